"""What every harness here holds the library to, and what they share.

The contract: nothing but `discreet.Error` comes out, and what comes back instead of an error is what a slow reference
in this folder says. A break of it is a Finding.
"""

from __future__ import annotations

import atexit
import io
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import discreet
import discreet.cli


class Finding(AssertionError):  # noqa: N818  # it is no error of ours
    """The library broke its contract."""


class _Refused:
    def __repr__(self) -> str:
        return "refused"


REFUSED = _Refused()
"""What `outcome` returns for a complaint."""


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or REFUSED where it complains as it should; anything else is a Finding."""
    try:
        return call()
    except discreet.Error as error:
        agree("\n" not in str(error), f"a complaint of more than one line: {error!r}")
        return REFUSED
    except Exception as error:
        raise Finding(f"{type(error).__name__} came out: {error}") from error


def agree(holds: bool, message: str) -> None:
    """Raise a Finding unless the claim holds."""
    if not holds:
        raise Finding(message)


def command(*arguments: str) -> tuple[int, str, str]:
    """Run the command line in this process: exit code, standard output, standard error.

    A code beyond 0, 1 and 2, an exception, or a complaint that is not one line of plain words is a Finding. Beside a
    result, standard error has notes alone, each of one line.
    """
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", ["discreet", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            code = discreet.cli.main()
        except BaseException as error:
            raise Finding(f"{type(error).__name__} came out of {arguments}: {error}") from error
    printed, told = out.getvalue(), err.getvalue()
    agree(code in (0, 1, 2), f"exit code {code} for {arguments}")
    agree("internal error" not in told and "Traceback" not in told, f"{told.strip()} for {arguments}")
    agree(not code or bool(told), f"exit code {code} without a complaint for {arguments}")
    lines = re.fullmatch(r"(discreet: [^\n]+\n)*", told)
    agree(lines is not None, f"not lines of plain words: {told!r}")
    return code, printed, told


@cache
def folder() -> Path:
    """Return a folder of this process for files that a harness reads."""
    path = Path(tempfile.mkdtemp(prefix="discreet-fuzz-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def as_text(data: bytes) -> str:
    """Bytes as text, with half of a surrogate pair where they are no UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """Return the bytes that `as_text` reads as this text."""
    return text.encode("utf-8", "surrogateescape")


def mutated(text: str, words: Sequence[str], seeds: Sequence[str], rng: random.Random) -> str:
    """Return the text with some of its words changed, dropped, doubled, moved, or taken from elsewhere."""
    parts = re.findall(r"\w+|\s+|'[^']*'|.", text, re.DOTALL)
    for _ in range(rng.choice((1, 1, 2, 3))):
        place, stop = (rng.randrange(len(parts) + 1) for _ in range(2))
        change = rng.randrange(6)
        if change == 0:
            parts.insert(place, rng.choice(words))
        elif change == 1:
            parts[place : place + 1] = [rng.choice(words)]
        elif change == 2:
            del parts[place : place + rng.randrange(1, 4)]
        elif change == 3:
            parts[place:place] = parts[min(place, stop) : max(place, stop)]
        elif change == 4:
            parts[place:place] = re.findall(r"\w+|.", rng.choice(seeds), re.DOTALL)
        else:
            parts[min(place, stop) : max(place, stop)] = ["(", *parts[min(place, stop) : max(place, stop)], ")"]
    return "".join(parts)


def differs(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two lists of values differ, in kind too: 1 is not True here."""
    return [(type(a), a) for a in one] != [(type(b), b) for b in other]
