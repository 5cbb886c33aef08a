"""What an event is worth: guarantees, and the pure functions behind them."""
