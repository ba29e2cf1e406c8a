"""Conditions: what `where` accepts looks at one row alone and means what DuckDB means by it.

The reference is DuckDB itself: it parses the text with a parser of its own, in whose tree no window, subquery,
aggregate or function beyond a short list may be, and it evaluates the text on every row as plain SQL. Where `where`
documents another meaning on purpose (overflow is NULL, exponents are exact, letters beyond A to Z keep their case),
`plain_sql` says so and the values are not compared.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import ibis

import discreet
from discreet.sources.events.where import Condition
from fuzz.contract import REFUSED, Finding, agree, as_text, outcome

SEEDS = """i = 5
i > 4.5 AND j <= -1
5 BETWEEN i AND j OR NOT b
i NOT BETWEEN -1 AND 4.9
i IN (5, 0.5, NULL)
big >= 9223372036854775807
big = 9007199254740993.0
d < 1.5 OR d IN (0.01, 3.14)
f >= 0.1 AND f < 1e300
i + 1 > j * 2 - 3
- i = 1
(i + j) * 0.5 = 2
s = 'abc' AND Name <> 'it''s'
s LIKE 'a%' OR s ILIKE '%B_'
s NOT LIKE '%'
lower(trim(s)) = upper(Name)
ltrim(s) < rtrim(Name)
b IS NOT TRUE
(b = (i > 0)) IS NULL
s ISNULL OR s NOTNULL
i IS DISTINCT FROM j
coalesce(i, j, 0.5) > 0
CASE WHEN i > 0 THEN 'x' WHEN b THEN s ELSE Name END = 'y'
CASE WHEN b THEN i END IS NULL
day = DATE '2024-01-31' AND stamp >= '2024-01-31 12:00'
stamp BETWEEN TIMESTAMP '2024-01-31 00:00:00' AND DATE '2024-02-29'
i = 1 -- a comment
i = /* another */ 1
NOT i = 5 AND i > 0 OR NULL
i = (SELECT max(i) FROM events)
row_number() OVER () < 5
sum(i) > 1
random() < 0.5
now() > stamp
i / 2 = 1
CAST(s AS INTEGER) = 1
i = 1; DROP TABLE events
s = 'a' 'b'
"i" == 1_0
i IN [5, 1]""".splitlines()
FOUND = [
    "i !IN (5)",
    "5 !BETWEEN i AND j",
    "!b",
    "i <=> 5",
    "5 BETWEEN i j",
    "i IN (5, , 1)",
    "CASE WHEN b i END IS NULL",
]
FOUND += ["b NOT", "DATE() '2024-01-31' = day", "IF b", "random(1) < 0.5"]
"""What sqlglot reads and DuckDB does not, or not so; refused since, without a word of sqlglot's own."""
SEEDS += FOUND


WORDS = """i j big d f s Name b day stamp who item 0 1 5 -1 0.5 1e2 .5 2. 1e-3 100 46341 2147483648 'abc'
9223372036854775807 'a%' '' '_' '%B' '2024-01-31' '2024-01-31 12:00:00.5' NULL TRUE FALSE = <> != ==
< <= > >= <=> ( ) , [ ] + - * / % ^ | &
~ ! || :: . ; ? $1 : @ # AND OR NOT IN LIKE ILIKE BETWEEN IS DISTINCT FROM ISNULL NOTNULL CASE WHEN THEN ELSE END DATE
TIMESTAMP TIMESTAMPTZ INTERVAL CAST TRY_CAST AS INTEGER lower( upper( trim( ltrim( rtrim( coalesce( LEADING TRAILING
ESCAPE COLLATE SIMILAR TO SYMMETRIC ANY ALL EXISTS SELECT max( count(*) OVER random() now() uuid() current_date getenv(
if( nullif( abs( list( unnest( struct { } -> " ' '' -- /* */ \\ \u00a0 \u2028 é É \u212a 😀 e' $$ x' GLOB POSITION ROW
XOR DIV RLIKE REGEXP MEMBER OF COLUMNS( rowid main. events. ELSE NULL IFNULL( greatest( TOP LIMIT ORDER BY""".split()  # noqa: SIM905
WORDS += [" ", " AND ", " OR ", "NOT ", " = ", " IS ", "\n", "\r", "\t", " NOT ", "(", ")"]

COLUMNS = (
    "id BIGINT, who VARCHAR, item VARCHAR, i BIGINT, j INTEGER, big BIGINT, d DECIMAL(10, 2), f DOUBLE, s VARCHAR, "
)
COLUMNS += '"Name" VARCHAR, b BOOLEAN, day DATE, stamp TIMESTAMP'
ROWS = """0, 'ann', 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
1, 'ann', 'x', 0, 0, 0, 0, 0, '', '', false, '2024-01-31', '2024-01-31 12:00:00'
2, 'bob', 'x', 1, -1, 9223372036854775807, 1.5, -0.0, 'abc', 'Abc', true, '2024-02-29', '2024-01-31 12:00:00.5'
3, 'bob', 'y', -1, 5, -9223372036854775808, -1.5, 0.1, 'ABC', 'abc', NULL, '0001-01-01', '0001-01-01'
4, 'eve', 'y', 5, 5, 9007199254740993, 2.01, 1.5, ' abc ', 'abc', true, '9999-12-31', '9999-12-31 23:59:59.999999'
5, NULL, 'y', 77, 10, 2147483648, 99999999.99, 'inf', 'a%b_c', '中', false, '1999-12-31', '2024-01-31'
6, 'eve', NULL, -100, -77, 5, -99999999.99, '-inf', 'a' || chr(10) || 'b', 'x \t', true, NULL, NULL
7, 'zoe', 'z', 2, NULL, -5, 0.01, 'nan', 'z', 'it''s', false, '2024-02-01', '2024-02-29 00:00:01'
8, 'zoe', 'x', 10, 100, 1, 3.14, 1e300, '😀b', 'B', NULL, '2024-01-30', '2024-01-31 00:00:00'""".splitlines()
DOMAIN = ["x", "y", "z", "unseen"]

KNOWN = {
    "+",
    "-",
    "*",
    "~~",
    "!~~",
    "~~*",
    "!~~*",
    "lower",
    "upper",
    "trim",
    "ltrim",
    "rtrim",
    "contains",
    "list_value",
}
"""The functions, as DuckDB's parser names them, that an accepted condition may call; all of one row and consistent."""
CLASSES = {"CONSTANT", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "OPERATOR", "FUNCTION", "CASE", "CAST", "BETWEEN"}


def condition(where: str, table: Any) -> Any:
    """Return the translation of a condition; the tests of this harness plant faults here."""
    return Condition.parse(where).translate(table).expression


def check(text: str) -> bool:
    """Compare one condition with DuckDB; return True if it was accepted."""
    table, engine = _table()
    with _Silence():
        found = outcome(lambda: condition(text, table))
    if found is REFUSED:
        return False
    _check_tree(text, engine)
    query = ibis.to_sql(table.select(table.id, kept=found), dialect="duckdb")
    try:
        answers = _answers(engine, query)
    except duckdb.Error as error:
        raise Finding(f"the query of {text!r} fails: {error}") from error
    sql = plain_sql(text)
    expected = None if sql is None else _plain(engine, f"SELECT id, ({sql}\n) FROM events")
    if expected is not None:
        agree(answers == expected, f"{text!r} is {answers} and to DuckDB {expected}")
    return True


class _Silence(logging.Handler):
    """Catches what the parser says on the side, which would be a second line on standard error."""

    def __enter__(self) -> None:
        self.said: list[str] = []
        logging.getLogger("sqlglot").addHandler(self)

    def __exit__(self, *failure: object) -> None:
        logging.getLogger("sqlglot").removeHandler(self)
        agree(failure[0] is not None or not self.said, f"sqlglot logs: {self.said}")

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def check_events(text: str) -> bool:
    """Compare the scores of the events that a condition keeps with plain SQL; return True if it was accepted."""
    table, engine = _table()
    source = outcome(lambda: discreet.events(table, user="who", item="item", domain=DOMAIN, where=text))
    if source is REFUSED:
        return False
    tally = outcome(source.tally)
    agree(tally is not REFUSED, f"the query of {text!r} fails")
    scores = [tally.exact(rank) for rank in range(tally.d)]
    source.close()
    sql = plain_sql(text)
    query = f"SELECT item, count(DISTINCT who) FROM events WHERE ({sql}\n) AND item IS NOT NULL GROUP BY item"
    counts = None if sql is None else _plain(engine, query)
    if counts is not None:
        expected = sorted((Fraction(counts.get(item) or 0) for item in DOMAIN), reverse=True)
        agree(scores == expected, f"{text!r} gives the scores {scores} and to DuckDB {expected}")
    return True


def check_bytes(data: bytes) -> bool:
    """Try one input of the fuzzer; one in sixteen goes through events, which is ten times slower."""
    text = as_text(data)
    accepted = check(text)
    return check_events(text) if accepted and sum(data) % 16 == 0 else accepted


def plain_sql(text: str) -> str | None:
    """Return the condition as DuckDB has to be asked, or None where `where` documents that it means something else.

    Exponents are written out, because DuckDB takes 1e2 for a double. Sums and products, coalesce and CASE are compared
    only where the digits cannot add up to 2^63; floats where all literals together have at most 15 digits.
    """
    if any(ord(each) > 127 and (each.lower() != each.upper() or unicodedata.category(each) == "Zs") for each in text):
        return None  # lower, upper, ILIKE and trim know ASCII alone
    if _EXPONENT.search(text):
        if "'" in text or '"' in text or any(abs(int(power)) > 30 for _, power in _EXPONENT.findall(text)):
            return None
        text = _EXPONENT.sub(lambda found: _written_out(*found.groups()), text)
    bare = re.sub(r"'(?:[^']|'')*'|--[^\n\r]*|/\*.*?\*/", " ", text, flags=re.DOTALL).lower()
    if re.search(r"[\d.]e[+-]?\d", bare):
        return None
    # Nothing is added or multiplied across AND and OR, but within CASE.
    pieces = [bare] if "case" in bare else re.split(r"\b(?:and|or)\b", bare)
    return None if any(map(_is_too_long, pieces)) else text


_EXPONENT = re.compile(r"(?<![\w.])(\d+\.?\d*|\.\d+)e([+-]?\d{1,3})(?![\w.])", re.IGNORECASE)


def _is_too_long(piece: str) -> bool:
    """Whether what is calculated may be 2^63 or more, or a float literal not the one that DuckDB makes of it."""
    digits = len(re.findall(r"\d", piece))
    reach = digits + 19 * len(re.findall(r"\bbig\b", piece)) + 2 * len(re.findall(r"\b[ij]\b", piece))
    mixed = re.search(r"[-+*]|coalesce|case", piece) is not None
    return (mixed and reach > 17) or (digits > 15 and re.search(r"\bf\b", piece) is not None)


def _written_out(mantissa: str, power: str) -> str:
    before, _, after = mantissa.partition(".")
    shift = int(power)
    digits, point = before + after, len(before) + shift
    digits, point = "0" * max(0, -point) + digits, max(point, 0)
    digits = digits.ljust(point, "0")
    return f"{digits[:point] or '0'}.{digits[point:]}" if digits[point:] else digits[:point]


def _check_tree(text: str, engine: Any) -> None:
    """Look through the tree that DuckDB's own parser makes of an accepted condition."""
    written = engine.execute("SELECT json_serialize_sql(?)", [f"SELECT ({text}\n) FROM events"]).fetchone()[0]
    tree = json.loads(written)
    agree(not tree["error"], f"{text!r} is accepted and no SQL to DuckDB: {tree.get('error_message')}")
    agree(len(tree["statements"]) == 1, f"{text!r} is accepted and more than one statement")
    node = tree["statements"][0]["node"]
    agree(len(node["select_list"]) == 1 and node["from_table"]["type"] == "BASE_TABLE", f"{text!r} leaves its place")
    for part in _parts(node["select_list"]):
        agree(part["class"] in CLASSES, f"{text!r} is accepted and has a {part['class']}")
        name = part.get("function_name")
        agree(name is None or name in KNOWN, f"{text!r} is accepted and calls {name}")


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "class" in node:
            yield node
        for child in node.values():
            yield from _parts(child)
    elif isinstance(node, list):
        for child in node:
            yield from _parts(child)


def _answers(engine: Any, query: str) -> dict[Any, Any]:
    """Return the second column by the first."""
    return dict(engine.execute(query).fetchall())


def _plain(engine: Any, query: str) -> dict[Any, Any] | None:
    """Return the answer of DuckDB to plain SQL, or None where it fails on a row, which `where` does not."""
    with suppress(duckdb.Error):
        return _answers(engine, query)
    return None


@cache
def _table() -> tuple[Any, Any]:
    """Return the events as an ibis table, and a cursor of their connection for plain SQL."""
    connection = ibis.duckdb.connect()
    connection.raw_sql(f"CREATE TABLE events ({COLUMNS})")
    for row in ROWS:
        connection.raw_sql(f"INSERT INTO events VALUES ({row})")
    return connection.table("events"), connection.con
