"""Fuzzing: whatever is handed to discreet, it answers rightly or complains with its own Error. See run.py."""
