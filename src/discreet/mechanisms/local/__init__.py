"""What a client does in the local model, and how a server counts what it receives."""
