"""Scores that the caller holds, in the memory of the host or of a GPU."""
