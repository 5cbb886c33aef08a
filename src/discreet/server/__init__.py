"""A private query service for teams: pages and a JSON interface over the same functions."""
