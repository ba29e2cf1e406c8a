"""The command line: parses, calls, prints."""

from discreet.cli.app import main

__all__ = ["main"]
