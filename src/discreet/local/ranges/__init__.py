"""Range queries in the local model: randomizers, their exact error, and estimates."""
