"""URLs without what may be secret in them: a name and a password before the host, and a query."""

from __future__ import annotations

import re

_URL = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]+:/+")
"""How a URL begins, in any case and with a slash too few or too many."""


def redact_url(text: str) -> str:
    """A URL without what may be secret in it; any other text as it is.

    Examples
    --------
    >>> redact_url("https://ann:pw@example.org/events.csv?X-Amz-Signature=ab12")
    'https://example.org/events.csv'
    >>> redact_url(" POSTGRES:/ann:p/w@example.org/shop")
    'POSTGRES:/...'
    """
    begin = _URL.match(text)
    if begin is None:
        return text
    scheme, rest = begin.group().strip(), text[begin.end() :]
    place = re.split("[?#]", rest)[0]
    authority = place.partition("/")[0]
    # A password may hold any sign, and then what looks like the host or the path is part of it.
    if "@" in rest[len(authority) :]:
        return f"{scheme}..."
    return f"{scheme}{authority.rpartition('@')[2]}{place[len(authority) :]}"
