"""Counts of ranges and of streams on ordered domains."""
