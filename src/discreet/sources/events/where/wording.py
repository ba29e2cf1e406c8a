"""How messages quote the parts of a condition."""

from __future__ import annotations

from typing import Any

Node = Any
"""A node of sqlglot, whose base class has had two names."""


def sql(node: Node) -> str:
    """The node as a message quotes it: short, on one line."""
    if isinstance(node, str):
        return node
    try:
        text = " ".join(node.sql("duckdb", comments=False).split())
    except Exception:  # a node that was only half understood
        text = str(node.key)
    return text if len(text) <= 60 else f"{text[:57]}..."


def article(kind: str) -> str:
    """A kind with its article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
