"""Write the table of Unicode simple case folding that ships with the package, from the Unicode data of this Python.

    python tools/case_folding.py > src/discreet/sources/events/case_folding.json

Unicode never changes how a character folds that has once been assigned, so that a later version only adds characters.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

_SURROGATES = range(0xD800, 0xE000)
_DOTTED_I = 0x130
"""A capital I with a dot folds to two characters, or to i in Turkish; simple case folding leaves it as it is."""

Run = tuple[int, int, int, int]
"""The first and the last code point, the step between neighbours, and the distance to what each folds to."""


def fold_simply(code: int) -> int:
    """Return the code point that a code point folds to: its full case folding or its lower case, if that is one."""
    if code == _DOTTED_I or code in _SURROGATES:
        return code
    character = chr(code)
    return next((ord(each) for each in (character.casefold(), character.lower()) if len(each) == 1), code)


def find_runs() -> Iterator[Run]:
    """Yield the runs of code points that fold to others, in ascending order."""
    run: list[int] = []
    for code in range(0x110000):
        offset = fold_simply(code) - code
        if not offset:
            continue
        if run and offset == run[3] and code - run[1] in ((1, 2) if run[0] == run[1] else (run[2],)):
            run = [run[0], code, code - run[1], offset]
            continue
        if run:
            yield run[0], run[1], run[2], run[3]
        run = [code, code, 1, offset]
    yield run[0], run[1], run[2], run[3]


def format_table() -> str:
    """Return the table as JSON with a line for each run."""
    lines = ",\n".join(f"  {json.dumps(run)}" for run in find_runs())
    return f'{{\n"unicode": "{unicodedata.unidata_version}",\n"runs": [\n{lines}\n]\n}}\n'


if __name__ == "__main__":
    print(format_table(), end="")
