"""HTML that notebooks and pages share: a title, a small table and notes, all of it escaped, and hashes of scripts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape


def make_html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows of text as a table of HTML.

    Examples
    --------
    >>> make_html_table([("<a>", "1")], head=("item", "count"))
    '<table><tr><th>item</th><th>count</th></tr><tr><td>&lt;a&gt;</td><td>1</td></tr></table>'
    """
    lines = [("th", head)] if head else []
    lines += [("td", row) for row in rows]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in lines)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def hash_for_policy(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows one inline style or script, and no other.

    Examples
    --------
    >>> hash_for_policy("alert('Hello, world.');")
    'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='
    """
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def make_html_view(title: str, body: str, notes: Iterable[str]) -> str:
    """A title in bold, HTML as it is, and notes in small print, a line each."""
    return f"<b>{escape(title)}</b>{body}<small>{'<br>'.join(map(escape, notes))}</small>"
