"""`during` keeps the rows of one period, on every engine those that grouping by the period puts into it."""

import re
from datetime import date, datetime

import pyarrow as pa
import pytest
from test_group_periods import NEAR, TEXTS, expected

import discreet
from discreet.sources.events.group_keys import parse_during
from engines import ENGINES, on

CELLS = [moment for moment in NEAR if moment.year > 1900]
EXACT = 10**9
"""An epsilon that leaves no noise."""


def kept_rows(during, rows, **table):
    """The rows that a release counts, each of which is the only one of its item."""
    source = discreet.events(
        **table, user="who", item="what", domain=discreet.integers(0, rows - 1), during=during
    )  # fmt: skip
    release = discreet.top_k(source, k=rows, epsilon=1, counts=EXACT)
    return {count.item for count in release.counts if count.value}


def table_of(cells):
    rows = list(range(len(cells)))
    return pa.table({"who": rows, "what": rows, "when": cells})


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_keeps_the_rows_of_the_period(engine, tmp_path, request):
    # SQLite has no timestamps but text, and the tests hand Spark none.
    events = table_of(list(map(str, CELLS)) if engine in ("sqlite", "spark") else CELLS)
    table = on(engine, events, tmp_path, request)
    cases = [("America/New_York", "2026-03"), (None, "2026-01"), ("Europe/Berlin", "2026-01")]
    # Each release takes Spark seconds.
    for zone, period in cases[:1] if engine == "spark" else cases:
        found = kept_rows(discreet.month("when", zone).only(period), len(CELLS), **table)
        wanted = {row for row, month in expected(CELLS, "month", zone).items() if month == period}
        assert found == wanted, zone
        assert 0 < len(wanted) < len(CELLS)


@pytest.mark.some(2)
@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("zone", [None, "Asia/Kolkata"])
def test_text_is_read_as_by_groups(unit, zone):
    cells = list(TEXTS.values())
    wanted = expected(cells, unit, zone)
    for period in [spelt for spelt in dict.fromkeys(wanted.values()) if zone is None or str(spelt) < "9"][:3]:
        found = kept_rows(getattr(discreet, unit)("when", zone).only(period), len(cells), table=table_of(list(TEXTS)))
        assert found == {row for row, spelt in wanted.items() if spelt == period}


def test_groups_are_of_the_rows_that_are_kept():
    """A user counts in the group with most of the rows of the period, whatever other periods have."""
    rows = {"who": [1] * 4, "what": [0] * 4, "land": ["DE", "DE", "DE", "FR"]}
    days = [date(2026, 1, 5)] * 3 + [date(2026, 2, 5)]
    source = discreet.events(
        pa.table({**rows, "when": days}), user="who", item="what", domain=discreet.integers(0, 0), by="land",
        groups=["DE", "FR"], each_user="one", during=discreet.month("when").only("2026-02"),
    )  # fmt: skip
    release = discreet.top_k(source, k=1, epsilon=1, counts=EXACT)
    assert {group: each.counts[0].value for group, each in release.items()} == {"DE": 0, "FR": 1}


def test_the_period_is_a_part_of_the_query(tmp_path):
    book = discreet.Ledger.create(tmp_path / "budget.db", epsilon=9, unit="people")
    events = {"table": table_of(CELLS), "user": "who", "item": "what", "domain": discreet.integers(0, 9)}
    for period in ("2026-01", "2026-02"):
        source = discreet.events(**events, during=discreet.month("when").only(period))
        discreet.top_k(source, k=1, epsilon=1, ledger=book)
    first, second = book.history()
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    ("during", "message"),
    [
        ("2026-01", "during must be one period of a column, such as"),
        (discreet.month("when"), "during must be one period"),
        (discreet.month("wen").only("2026-01"), "during must be a column of the table, .*did you mean when"),
        (discreet.month("who").only("2026-01"), "during must be a period of a column of dates, timestamps or text"),
    ],
)
def test_what_is_no_period_is_refused(during, message):
    with pytest.raises(discreet.Error, match=message):
        kept_rows(during, 5, table=table_of([datetime(2026, 1, 1)] * 5))


def test_a_period_is_written_as_its_unit_is():
    with pytest.raises(discreet.Error, match="period must be a month like '2026-01', not '2026-13'"):
        discreet.month("when").only("2026-13")


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("month(when)=2026-11", discreet.month("when").only("2026-11")),
        ("day(at, Europe/Berlin) = 2026-11-03", discreet.day("at", zone="Europe/Berlin").only("2026-11-03")),
        ("year(when)=2026", discreet.year("when").only(2026)),
        ("week(sold = at)=2026-W05", discreet.week("sold = at").only("2026-W05")),
    ],
)
def test_a_period_is_spelled_on_the_command_line(text, period):
    assert parse_during(text) == period


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("month(when)", "during must be one period of a column, such as month"),
        ("2026-11", "during must be one period of a column"),
        ("monat(when)=2026-11", "during must be one period of a column"),
        ("month(when)=2026-13", "period must be a month like '2026-01', not '2026-13'"),
        ("month(when, Berlin)=2026-11", "zone must be the name of a time zone"),
    ],
)
def test_a_text_that_is_no_period_is_refused(text, told):
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        parse_during(text)


def test_the_command_line_keeps_the_same_period(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text("who,what,when\n1,a,3.11.2026\n2,a,4.11.2026\n3,b,3.10.2026\n4,b,5.10.2026\n5,b,\n")
    (tmp_path / "d.csv").write_text("what\na\nb\n")
    options = ("--user", "who", "--item", "what", "--domain", "d.csv:what", "--date-format", "%d.%m.%Y", "-k", "1")
    for month, item in (("2026-11", "a"), ("2026-10", "b")):
        during = ("--during", f"month(when)={month}", "--epsilon", "1000", "--format", "items", "--quiet")
        assert call("select", "e.csv", *options, *during) == (0, f"{item}\n", "")
