"""Scores in memory, on the host or on a GPU."""
