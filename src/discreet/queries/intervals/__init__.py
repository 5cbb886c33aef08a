"""Confidence intervals that hold what they say, for private columns and for local reports."""
