"""What can be asked of a table, each with its sensitivity and its error."""
