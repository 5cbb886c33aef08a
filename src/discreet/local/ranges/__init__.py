"""Ranges from reports of the local model: structures, their exact error, and their readers."""
