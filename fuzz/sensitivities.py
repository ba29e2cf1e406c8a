"""Sensitivities: DOWN,UP or DOWN,UP,L on the command line, and Sensitivity itself, against numbers read by hand."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

from discreet import Sensitivity
from fuzz.contract import REFUSED, Finding, agree, as_text, command, folder, outcome
from fuzz.rationals import is_plain, of_text

SEEDS = [
    "0,1",
    "1,0",
    "0,0",
    "1/3,2",
    "0.5,1e-3",
    "-1,1",
    "1,-1",
    "1",
    "1,2,3",
    "0,1,0",
    "0,1,x",
    "0,1,2,3",
    "0,1, +7 ",
    ",",
    "0,",
    ",1",
    " 0 , 1 ",
    "1e400,0",
]
SEEDS += ["0,1e-400", "nan,1", "0;1", "--,1", "0,1/0", "1e-9,1e9", "1_0,1", "+0,.5", "-0,5."]
SEEDS += ["0,1,0", "0,1,x", "0,1,2,3", "0,1, +7 ", "0,1,1_0"]
WORDS = [*"0123456789", ",", ".", "e", "-", "+", "/", " ", "1/3", "1e-5", "1000", ",,", "=", "--json"]


def check(text: str) -> bool:
    """Compare one text with the reference, in both adjacencies; return True if it was accepted."""
    text = text.replace("\x00", "0")  # no argument of a program can hold a NUL
    expected = _meant(text)
    for adjacency in ("add-remove", "swap"):
        options = (f"--sensitivity={text}", "--adjacency", adjacency, "-k", "1", "--epsilon", "1", "--json")
        code, printed, _ = command("select", str(_scores()), *options)
        if code:
            agree(code == 2, f"exit code {code} for the sensitivity {text!r}")
            certain = expected is not None and all(map(is_plain, text.split(",")))
            agree(not certain, f"the sensitivity {text!r} is {expected}, and refused")
            return False
        if expected is None:
            raise Finding(f"the sensitivity {text!r} is accepted, and is none")
        said = json.loads(printed)["guarantee"]["sensitivity"]
        found = of_text(said["down"]), of_text(said["up"]), said.get("items")
        agree(found == _under(adjacency, *expected), f"the sensitivity {text!r} is {expected}, and read as {found}")
        _check_value(text, *expected)
    return True


def check_bytes(data: bytes) -> bool:
    """Try one input of the fuzzer."""
    return check(as_text(data))


def _check_value(text: str, down: Fraction, up: Fraction, items: int | None) -> None:
    """Raise unless Python takes what the command line takes, and halves the width."""
    found = outcome(lambda: Sensitivity(*text.split(",")[:2], items=items))
    agree(found is not REFUSED and (found.down, found.up) == (down, up), f"Sensitivity of {text!r} is {found!r}")
    agree(found.items == items, f"the items of {text!r} are {found.items}")
    agree(found.delta == Fraction(down + up, 2), f"the delta of {text!r} is {found.delta}")
    sides = re.fullmatch(r"Sensitivity\(down='?([^']+?)'?, up='?([^']+?)'?(?:, items=[0-9]+)?\)", repr(found))
    agree(sides is not None and tuple(map(of_text, sides.groups())) == (down, up), f"{found!r} is not {text!r}")


def _meant(text: str) -> tuple[Fraction, Fraction, int | None] | None:
    """Return the sensitivity that a text spells, or None; limits on the size of its sides are not looked at."""
    first, second, *more = [*text.split(","), "", ""][: max(2, text.count(",") + 1)]
    down, up, items = of_text(first), of_text(second), _read_items(more)
    if text.count(",") not in (1, 2) or not text.isascii() or items == 0:
        return None
    if down is None or up is None or min(down, up) < 0 or down == up == 0:
        return None
    return down, up, items


def _read_items(texts: list[str]) -> int | None:
    """How many items a user moves: None where nothing is said, and 0 for what is no such number."""
    if not texts:
        return None
    spelled = re.fullmatch(r"[\s\x1c-\x1f]*\+?([0-9]+(?:_[0-9]+)*)[\s\x1c-\x1f]*", texts[0])
    number = (
        0 if spelled is None else sum(int(digit) * 10**i for i, digit in enumerate(spelled[1].replace("_", "")[::-1]))
    )
    return number if number <= 2**63 else 0


def _under(adjacency: str, down: Fraction, up: Fraction, items: int | None) -> tuple[Fraction, Fraction, int | None]:
    if adjacency == "add-remove":
        return down, up, items
    return down + up, down + up, None if items is None else min(2 * items, 2**63)


@cache
def _scores() -> Path:
    path = folder() / "scores.json"
    path.write_text('{"dune": 912, "alien": 877, "heat": 410}')
    return path
