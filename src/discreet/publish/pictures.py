"""Draw the pictures of a site to download, PNG and SVG of every list, with matplotlib where it is installed.

A picture takes about a second, so one that the site has already is kept while nothing in it has changed: each file
carries a digest of all that it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import discreet
from discreet.language import Language
from discreet.release.grouped import AnyRelease, GroupedRelease

ENDINGS = ("png", "svg")

_MOST_GROUPS, _MOST_ITEMS = 60, 1000
"""A release by group of more groups, or of more items in all, has no picture: it would take minutes."""


def is_drawable(release: AnyRelease) -> bool:
    """Return True if matplotlib is installed and the release is small enough for a picture."""
    if find_spec("matplotlib") is None:
        return False
    if isinstance(release, GroupedRelease):
        return len(release) <= _MOST_GROUPS and sum(each.k for each in release.values()) <= _MOST_ITEMS
    return release.k <= _MOST_ITEMS


def draw_pictures(shown: Mapping[str, tuple[str, AnyRelease]], language: Language, old: Path) -> dict[str, bytes]:
    """Return the pictures of releases, keyed by their path in the site.

    Parameters
    ----------
    shown
        The title and the release of each picture, keyed by its path without an ending.
    language
        The language of the words in the pictures.
    old
        The folder of the site as it is now, which may be missing; pictures that would be the same are taken from it.
    """
    made = {}
    for name, (title, release) in shown.items():
        digest = _digest(title, release, language)
        figure: Any = None
        for ending in ENDINGS:
            path = f"{name}.{ending}"
            content = _read(old / path)
            if content is None or digest.encode() not in content:
                from discreet.release.plots import add_heading, render

                if figure is None:
                    figure = release.plot(language=language.code)
                    add_heading(figure, title)
                content = render(figure, ending, title, digest)
            made[path] = content
    return made


def _digest(title: str, release: AnyRelease, language: Language) -> str:
    from matplotlib import __version__

    parts = (discreet.__version__, __version__, language.code, title, release.to_json())
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
