"""Mechanisms that keep a budget of its own for each level of a public menu."""
