"""Render the HTML that notebooks show, with every value escaped, and hash scripts and styles for a page's policy."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

_TABLE = (
    "<table>{% if head %}<tr>{% for cell in head %}<th>{{ cell }}</th>{% endfor %}</tr>{% endif %}"
    "{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>"
)
_VIEW = (
    "<b>{{ title }}</b>{{ body | safe }}"
    "<small>{% for note in notes %}{{ note }}{{ '' if loop.last else '<br>' | safe }}{% endfor %}</small>"
)


def render_html(template: str, **values: Any) -> str:
    """Render a jinja2 template, given as text. Every value is escaped unless the template marks it as safe.

    Examples
    --------
    >>> render_html("<b>{{ name }}</b>", name="<a>")
    '<b>&lt;a&gt;</b>'
    """
    return _compile(template).render(values)


@cache
def _compile(template: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined).from_string(template)


def make_html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return rows of text as an HTML table.

    Examples
    --------
    >>> make_html_table([("<a>", "1")], head=("item", "count"))
    '<table><tr><th>item</th><th>count</th></tr><tr><td>&lt;a&gt;</td><td>1</td></tr></table>'
    """
    return render_html(_TABLE, rows=rows, head=head)


def make_html_view(title: str, body: str, notes: Iterable[str]) -> str:
    """Return a title in bold, `body` as the HTML that it is, and notes in small print, a line each."""
    return render_html(_VIEW, title=title, body=body, notes=notes)


def hash_for_policy(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows one inline style or script, and no other.

    Examples
    --------
    >>> hash_for_policy("alert('Hello, world.');")
    'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='
    """
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
