"""Mutation testing: break one operator, name or number of the source, and see a test fail."""
