"""Scores counted from raw events: who did what, in files, frames and databases."""
