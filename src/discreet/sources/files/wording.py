"""What messages about files have in common."""

from __future__ import annotations

from pathlib import Path


def quoted(path: Path) -> str:
    """The name of a file."""
    return repr(str(path))


def empty(path: Path) -> str:
    """The sentence about a file that holds nothing."""
    return f"{quoted(path)} must hold scores, but is empty"


def not_finite(where: str) -> str:
    """The sentence about scores of which one is no finite number."""
    return f"scores must be finite numbers, and {where} holds one that is not"
