"""A sketch in a file, which stands for scores."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.sketches import Sketch, is_sketch
from discreet.sources.files.roles import refuse_columns


def read_sketch(path: str | Path, item: str | None = None, score: str | None = None) -> Sketch | None:
    """The sketch that a .json file holds, or None where it holds something else; `item` and `score` are no part of it.

    What cannot be read at all is for the reader of scores to complain about.
    """
    file = Path(path)
    if file.suffix.lower() != ".json":
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    if not is_sketch(data):
        return None
    refuse_columns(file, item, score)
    return Sketch.from_dict(data)
