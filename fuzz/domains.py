"""Domains: lists and integers() in Python, FILE:COLUMN and integers:LO:HI on the command line.

An input is a small piece of Python such as ['dune', 'heat'] or integers(0, 9), or else the text of --domain.
"""

from __future__ import annotations

import ast
import csv
import glob
import json
from contextlib import chdir
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet

import discreet
from fuzz.contract import REFUSED, agree, as_text, command, differs, folder, outcome
from fuzz.rationals import whole

SEEDS = ["['dune', 'heat']", "[1, 2, 3]", "[True, False]", "[date(2024, 1, 31), date(1, 1, 1)]", "[]", "['a', 'a']"]
SEEDS += ["[1, True]", "[1, 1.0]", "(1, 'a')", "[None]", "{3, 4}", "{'a': 1}", "range(5)", "range(3, 1)", "[2**63]"]
SEEDS += ["integers(0, 9)", "integers(-9223372036854775808, -1)", "integers(0, 9223372036854775807)", "integers(1, 0)"]
SEEDS += [
    "integers(True, 2)",
    "integers('0', 1)",
    "[datetime(2024, 1, 31)]",
    "['\\ud800']",
    "['']",
    "5",
    "'movies.csv'",
]
SEEDS += [
    "integers:0:9",
    "integers:-5:+5",
    "integers:9:0",
    "integers:0:9223372036854775807",
    "integers:0",
    "integers:a:b",
]
SEEDS += [
    "movies.csv:movie_id",
    "movies.csv",
    "./movies.csv:movie_id",
    "movies.csv:title",
    "mo*s.csv:movie_id",
    "odd.v2.csv:a b",
]
SEEDS += [
    "twice.csv:movie_id",
    "nothing.csv:movie_id",
    "movies.csv:",
    ":movie_id",
    "movies.csv:movie_id:",
    "sqlite://x",
]
WORDS = [
    *"0123456789",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "'",
    "-",
    "+",
    "*",
    ".",
    "/",
    "\\ud800",
    "é",
    "None",
    "True",
]
WORDS += ["date(2024, 1, 31)", "range(", "integers(", "integers:", "9223372036854775807", "9223372036854775808", "1.5"]
WORDS += ["movies", ".csv", "odd.v2.csv", "twice.csv", "movie_id", "a b", "title", "?", "'a', ", "1, ", "\x00", "_"]

ITEMS: dict[str, tuple[Any, list[Any]]] = {
    "string": (pa.string(), ["dune", "heat", "", None]),
    "integer": (pa.int64(), [1, 2, -5, None]),
    "date": (pa.date32(), [date(2024, 1, 31), date(1, 1, 1), date(9999, 12, 31), None]),
    "boolean": (pa.bool_(), [True, False, True, None]),
}


def check(text: str) -> bool:
    """Compare one input with the reference; return True if it was accepted as a domain."""
    try:
        domain = _built(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError):
        return _check_text(text.replace("\x00", "0"))
    if isinstance(domain, _Bounds):
        return _check_bounds(*domain)
    if isinstance(domain, str):
        return _check_text(domain.replace("\x00", "0"))
    return _check_value(domain)


def check_bytes(data: bytes) -> bool:
    """Try one input of the fuzzer."""
    return check(as_text(data))


class _Bounds(tuple[Any, Any]):
    """The arguments of a call of integers()."""


def _built(node: ast.expr) -> Any:
    """Return the value of a small piece of Python: literals, and calls of the few functions that make domains."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        makers = {"date": date, "datetime": datetime, "range": range, "integers": lambda lo, hi: _Bounds((lo, hi))}
        if node.func.id in makers:
            return makers[node.func.id](*map(_built, node.args))  # type: ignore[operator]
    if isinstance(node, ast.List):
        return [_built(each) for each in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_built(each) for each in node.elts)
    return ast.literal_eval(node)


def _check_bounds(lo: Any, hi: Any) -> bool:
    """integers(lo, hi) and the events on it."""
    found = outcome(lambda: discreet.integers(lo, hi))
    whole_numbers = type(lo) is int and type(hi) is int
    good = whole_numbers and -(2**63) <= lo <= hi < 2**63 and hi - lo < 2**63
    agree((found is not REFUSED) == good, f"integers({lo!r}, {hi!r}) is {found!r}")
    if good:
        agree((found.lo, found.hi, found.d) == (lo, hi, len_of(lo, hi)), f"integers({lo}, {hi}) is {found!r}")
        _check_events(found, "integer", len_of(lo, hi))
    return good


def len_of(lo: int, hi: int) -> int:
    """How many whole numbers there are from lo to hi."""
    return max(0, hi - lo + 1)


def _check_value(domain: Any) -> bool:
    """Return a list or another value of Python as the domain of events of the kind of its first item."""
    listed = list(domain) if isinstance(domain, list | tuple | set | range) and _is_small(domain) else []
    kind = _kind(listed[0]) if listed else None
    good = kind is not None and all(_kind(value) == kind for value in listed) and len(set(listed)) == len(listed)
    good = good and all(map(_is_storable, listed))
    if isinstance(domain, range) and not _is_small(domain):
        return False  # a list of it would not end
    source = outcome(lambda: _events(domain, kind or "string"))
    agree((source is not REFUSED) == good, f"the domain {domain!r} is {'refused' if good else 'accepted'}")
    if good:
        agree(source.d == len(listed), f"the domain {domain!r} has {source.d} items")
        agree(not differs(sorted(source.every_item()), sorted(listed)), f"{domain!r} became {source.every_item()!r}")
        _check_events(domain, str(kind), len(listed), source)
    return good


def _check_events(domain: Any, kind: str, d: int, source: Any = None) -> None:
    """Raise unless the tally has d items, of which as many have a user as the events say."""
    source = outcome(lambda: _events(domain, kind)) if source is None else source
    agree(source is not REFUSED, f"events refuse the domain {domain!r}")
    tally = outcome(source.tally)
    agree(tally is not REFUSED and tally.d == d, f"the tally of {domain!r} has {tally!r}, not {d} items")
    inside = _inside(domain)
    users: dict[Any, set[int]] = {}
    for who, item in enumerate(ITEMS[kind][1]):
        if item is not None and inside(item):
            users.setdefault(item, set()).add(who)
    expected = sorted((Fraction(len(each)) for each in users.values()), reverse=True)
    found = [tally.exact(rank) for rank in range(min(d, len(expected) + 1))]
    source.close()
    agree(found == [*expected, Fraction(0)][: len(found)], f"the scores of {domain!r} are {found}, not {expected}")


def _inside(domain: Any) -> Any:
    if isinstance(domain, discreet.sources.events.ranges.Integers):
        return lambda item: domain.lo <= item <= domain.hi
    return set(domain).__contains__


def _kind(value: Any) -> str | None:
    kinds = {str: "string", bool: "boolean", int: "integer", date: "date"}
    return kinds.get(type(value))


def _is_storable(value: Any) -> bool:
    """Whether engines can hold the value: 64 bits, and no half of a surrogate pair."""
    if type(value) is int:
        return -(2**63) <= value < 2**63
    return not (isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value))


def _is_small(domain: Any) -> bool:
    return not isinstance(domain, range) or len_of(min(domain.start, domain.stop), max(domain.start, domain.stop)) < 100


def _check_text(text: str) -> bool:
    """Return the text of --domain."""
    with chdir(_files()):
        options = ("--user", "who", "--item", "movie_id", "-k", "1", "--epsilon", "1000", "--json")
        code, printed, told = command("select", "events.parquet", f"--domain={text}", *options)
        expected = _text_size(text)
    if code:
        agree(code == 2, f"exit code {code} for the domain {text!r}: {told}")
        agree(expected is None or not text.startswith("integers:"), f"the domain {text!r} is refused: {told}")
        return False
    found = json.loads(printed)["d"]
    agree(found == expected, f"the domain {text!r} has {expected} items, and was read as {found}")
    return True


def _text_size(text: str) -> int | None:
    """How many items a domain of the command line has, or None where it is none."""
    if text.startswith("integers:"):
        ends = [end for end in map(_signed, text.split(":")[1:]) if end is not None]
        if text.count(":") != 2 or len(ends) != 2:
            return None
        lo, hi = ends
        return len_of(lo, hi) if -(2**63) <= lo <= hi < 2**63 and hi - lo < 2**63 else None
    # The column follows the last colon; a file without one has to have a column of the item's name, or only one.
    for path, column in ((text.rpartition(":")[0], text.rpartition(":")[2]), (text, None)):
        rows = _rows(path)
        if rows:
            names = list(rows[0])
            column = column or ("movie_id" if "movie_id" in names or len(names) > 1 else names[0])
            return len(rows) if column in names else None
    return None


def _signed(text: str) -> int | None:
    number = whole(text[1:] if text[:1] in ("+", "-") else text) if len(text) <= 21 else None
    return number if number is None or not text.startswith("-") else -number


def _rows(path: str) -> list[dict[str, str]]:
    """Return the rows of the files behind a path or a pattern."""
    found = glob.glob(path) if path and "\x00" not in path else []
    texts = [Path(each).read_text(encoding="utf-8", errors="replace") for each in found if Path(each).is_file()]
    return [row for text in texts for row in csv.DictReader(text.splitlines())]


def _events(domain: Any, kind: str) -> Any:
    return discreet.events(_table(kind), user="who", item="what", domain=domain)


@cache
def _table(kind: str) -> Any:
    dtype, items = ITEMS[kind]
    rows = pa.table({"who": pa.array(range(len(items)), pa.int64()), "what": pa.array(items, dtype)})
    return ibis.duckdb.connect().create_table("events", rows)


@cache
def _files() -> Path:
    """Return a folder with events of whole numbers and a few lists of movies."""
    path = folder() / "domains"
    path.mkdir()
    rows = {"who": [1, 2, 2, 3], "movie_id": [1, 1, 2, 9]}
    pa.parquet.write_table(pa.table(rows), path / "events.parquet")
    (path / "movies.csv").write_text("movie_id,title\n1,dune\n2,heat\n3,alien\n")
    (path / "odd.v2.csv").write_text("a b,c\n1,2\n5,6\n")
    (path / "twice.csv").write_text("movie_id\n1\n1\n")
    return path
