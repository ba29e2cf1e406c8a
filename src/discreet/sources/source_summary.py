"""What is public about a source, in rows for people: what was asked and declared, and nothing that was counted."""

from __future__ import annotations

from typing import Any

from discreet.text import decimal, printable

_WORDS = {
    "where": "where",
    "during": "during",
    "label": "label",
    "max_items_per_user": "items of a user",
    "by": "by",
    "each_user": "each user",
    "max_groups_per_user": "groups of a user",
    "spelling": "spelling",
}
"""The parts of a description that are shown as they are, and what they are called."""


def summarize_source(source: Any) -> dict[str, str]:
    """The rows, by their names.

    Examples
    --------
    >>> import discreet, pyarrow
    >>> loans = pyarrow.table({"who": [1, 2], "book": ["emma", "dune"]})
    >>> source = discreet.events(loans, user="who", item="book", domain=["emma", "dune", "ulysses"])
    >>> summarize_source(source)["items"], summarize_source(source)["adjacency"]
    ('3, a public list', 'add-remove')
    """
    described = source.description()
    rows = {role: printable(name) for role, name in described.get("columns", {}).items()}
    rows |= {_WORDS[part]: _spell(value) for part, value in described.items() if part in _WORDS and value is not None}
    if described.get("clip") is not None:
        low, high, unit = described["clip"]
        rows["clip"] = f"{low} to {high} steps of {unit}"
    rows["items"] = _describe_items(source)
    if hasattr(source, "keys"):
        rows["groups"] = f"{len(source.keys):,}"
    if getattr(source, "adjacency", None) is not None:
        rows["adjacency"] = source.adjacency
    moved = getattr(source, "sensitivity", None)
    if moved is not None:
        rows["one user"] = f"moves a score down by at most {decimal(moved.down)} and up by at most {decimal(moved.up)}"
    return rows


def _spell(value: Any) -> str:
    return " and ".join(map(printable, value)) if isinstance(value, list | tuple) else printable(value)


def _describe_items(source: Any) -> str:
    """How many items there are, where they are listed."""
    if hasattr(source, "terms"):
        return f"found in the events, for delta {decimal(source.delta)}"
    sizes = {member.d for member in source.members} if hasattr(source, "members") else {source.d}
    listed = f"{min(sizes):,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    return f"{listed}, a public list"
