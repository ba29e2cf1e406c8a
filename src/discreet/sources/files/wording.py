"""What messages about files have in common."""

from __future__ import annotations

from pathlib import Path


def quote_path(path: Path) -> str:
    """The name of a file."""
    return repr(str(path))


def describe_empty(path: Path) -> str:
    """The sentence about a file that holds nothing."""
    return f"{quote_path(path)} must hold scores, but is empty"


def describe_not_finite(where: str) -> str:
    """The sentence about scores of which one is no finite number."""
    return f"scores must be finite numbers, and {where} holds one that is not"
