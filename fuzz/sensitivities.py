"""Sensitivities: the text DOWN,UP on the command line, and Sensitivity itself, against numbers read by hand."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

from discreet import Sensitivity
from fuzz.contract import REFUSED, Finding, agree, as_text, command, folder, outcome
from fuzz.rationals import is_plain, of_text

SEEDS = ["0,1", "1,0", "0,0", "1/3,2", "0.5,1e-3", "-1,1", "1,-1", "1", "1,2,3", ",", "0,", ",1", " 0 , 1 ", "1e400,0"]
SEEDS += ["0,1e-400", "nan,1", "0;1", "--,1", "0,1/0", "1e-9,1e9", "1_0,1", "+0,.5", "-0,5."]
WORDS = [*"0123456789", ",", ".", "e", "-", "+", "/", " ", "1/3", "1e-5", "1000", ",,", "=", "--json"]


def check(text: str) -> bool:
    """Holds one text against the reference, in both adjacencies; whether it was accepted."""
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
        found = of_text(said["down"]), of_text(said["up"])
        agree(found == _under(adjacency, *expected), f"the sensitivity {text!r} is {expected}, and read as {found}")
        _check_value(text, *expected)
    return True


def check_bytes(data: bytes) -> bool:
    """What the fuzzer calls."""
    return check(as_text(data))


def _check_value(text: str, down: Fraction, up: Fraction) -> None:
    """What the command line takes, Python takes too, and halves the width."""
    found = outcome(lambda: Sensitivity(*text.split(",")))
    agree(found is not REFUSED and (found.down, found.up) == (down, up), f"Sensitivity of {text!r} is {found!r}")
    agree(found.delta == Fraction(down + up, 2), f"the delta of {text!r} is {found.delta}")
    sides = re.fullmatch(r"Sensitivity\(down='?([^']+?)'?, up='?([^']+?)'?\)", repr(found))
    agree(sides is not None and tuple(map(of_text, sides.groups())) == (down, up), f"{found!r} is not {text!r}")


def _meant(text: str) -> tuple[Fraction, Fraction] | None:
    """The sensitivity that a text spells, or None; limits on the size of numbers are not looked at."""
    if text.count(",") != 1 or not text.isascii():
        return None
    down, up = map(of_text, text.split(","))
    if down is None or up is None or min(down, up) < 0 or down == up == 0:
        return None
    return down, up


def _under(adjacency: str, down: Fraction, up: Fraction) -> tuple[Fraction, Fraction]:
    return (down, up) if adjacency == "add-remove" else (down + up, down + up)


@cache
def _scores() -> Path:
    path = folder() / "scores.json"
    path.write_text('{"dune": 912, "alien": 877, "heat": 410}')
    return path
