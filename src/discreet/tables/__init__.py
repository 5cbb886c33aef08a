"""The one door: question + noise + ledger + data → a release."""
