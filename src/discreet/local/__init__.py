"""The door of the local model: what clients send becomes an estimate, on one machine or many."""
