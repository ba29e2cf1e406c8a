"""Formats of dates and numbers in text: the same on every engine, exact or missing, and never an error on a cell."""

import random
import re
from collections import Counter
from datetime import date, datetime
from fractions import Fraction

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.mechanisms.tally import Selection
from discreet.sources.events.formats import DateFormat, Formats
from effort import examples
from engines import CONNECT, ENGINES, LONG_ON_SERVERS, on
from snapshots import select_items

GERMAN = {"date_format": "%d.%m.%Y", "decimal": ",", "thousands": "."}
ODD = [
    *(None, "", "03.11.2026", "3.11.2026", "3.1.2026", "03.11.26", "2026-11-03", " 03.11.2026", "03.11.2026 "),
    *("31.02.2026", "29.02.2024", "29.02.2023", "00.01.2026", "01.13.2026", "01.00.2026", "31.12.9999", "01.01.0001"),
    *("01.01.0000", "003.11.2026", "03.11.20261", "03.11.2026\n", "03.11.2026 10:00", "\u06603.11.2026", "03,11,2026"),
    *("3.11.\U0001f600", "x" * 10_000, "1" * 10_000, "03.11.2026" + " " * 10_000, "03-11-2026", "DATE '2026-11-03'"),
    *("infinity", "30.11.2026"),
]
NUMBERS = [
    *(None, "", "1", "1,5", "1.5", "1.234", "1.234,5", "12.34", "1234,5", "12345.678", "1.234.567,89", "-1,5", "+1,5"),
    *(",5", "1,", ",", ".", "1,5e2", "1e999", "nan", "inf", " 1,5", "1,5 ", "1 234,5", "17,29 €", "9" * 500),
    *("1" * 10_000, "\u0663,5", "\U0001f600", "0x1F", "--1", "1,5,5", "1.2345", "12.345.67", "2,", "1.000"),
]


def read_date(text, form):
    """The date of a text by the standard library, if it is ASCII and has no blank that strptime would pass over."""
    if text is None or not text.isascii() or text != text.strip():
        return None
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def read_number(text):
    """The number of a German text, read character by character."""
    if text is None or not text.isascii():
        return None
    body, _, power = text.lower().partition("e")
    if "e" in text.lower() and not re.fullmatch("[+-]?[0-9]{1,3}", power):
        return None
    whole, point, rest = body.removeprefix("-" if body.startswith("-") else "+").partition(",")
    first, *groups = whole.split(".")
    fits = all(len(group) == 3 for group in groups) and (not groups or 1 <= len(first) <= 3)
    digits = first + "".join(groups)
    if not fits or not re.fullmatch("[0-9]{0,400}", digits) or not re.fullmatch("[0-9]{0,400}", rest):
        return None
    if not digits and not (point and rest):
        return None
    return float(f"{'-' if body.startswith('-') else ''}{digits or 0}.{rest or 0}e{power or 0}")


def grouped_scores(arguments, domain=("a",), **options):
    """The score of each item in each group."""
    source = discreet.events(**arguments, user="who", item="what", domain=list(domain), each_user="many", **options)
    found = select_items(source, lambda _, tally: Selection(np.arange(tally.d)), scored=True)
    return {
        (key, item): score
        for key, (items, scores) in zip(source.keys, found, strict=True)
        for item, score in zip(items, scores, strict=True)
    }


def table_of(texts, column="at"):
    return pa.table({"who": range(len(texts)), "what": ["a"] * len(texts), column: pa.array(texts, pa.string())})


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["%d.%m.%Y", "%d.%m.%y", "%Y%m%d", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M"])
def test_every_engine_reads_the_same_dates(engine, form, tmp_path, request):
    days = [(2026, 11, 3, 9, 5, 7), (1970, 1, 1), (1969, 12, 31, 23, 59), (2068, 2, 29)]
    plain = [datetime(*day).strftime(form) for day in days]
    # Without the zeros before a digit, where another character follows it.
    texts = [*ODD, *plain, *(re.sub(r"\b0(\d)\b", r"\1", text) for text in plain)]
    texts = [text for text in texts if engine not in ("csv", "tsv.gz") or text != ""]
    # Each day of a period is a row that MariaDB and Spark Connect are sent: four million of them would take minutes.
    first, last = (1900, 2100) if engine == "mariadb" or (CONNECT and engine == "spark") else (1, 9999)
    dates = [found for text in texts if (found := read_date(text, form))]
    expected = Counter(found.year for found in dates if first <= found.year <= last)
    assert len(expected) >= 3
    found = grouped_scores(
        on(engine, table_of(texts), tmp_path, request), by=discreet.year("at"), groups=discreet.years(first, last),
        date_format=form,
    )  # fmt: skip
    assert {year: score for (year, _), score in found.items() if score} == expected


SUMMING_NO_TEXT = {"postgres", "mariadb", "datafusion"}
SUMMING_TEXT = [each for each in ENGINES if not SUMMING_NO_TEXT & {*getattr(each, "values", (each,))}]


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", SUMMING_TEXT)
def test_every_engine_reads_the_same_numbers(engine, tmp_path, request):
    events = table_of(NUMBERS, "paid")
    expected = sum(
        np.clip(np.floor(number * 100 + 0.5), -10_000, 1_000_000)
        for text in NUMBERS
        if (number := read_number(text)) is not None
    )
    source = discreet.events(
        **on(engine, events, tmp_path, request), user="who", item="what", domain=["a"], value="paid",
        clip=(-100, 10_000), resolution="0.01", decimal=",", thousands=".",
    )  # fmt: skip
    assert source.tally().exact(0) == Fraction(int(expected), 100)


@pytest.mark.parametrize("engine", ["datafusion", *LONG_ON_SERVERS[:2]])
def test_other_engines_sum_no_text(engine, tmp_path, request):
    arguments = on(engine, table_of(NUMBERS, "paid"), tmp_path, request)
    with pytest.raises(TypeError, match="value must be a column of numbers, not of string"):
        discreet.events(**arguments, user="who", item="what", domain=["a"], value="paid", clip=(0, 1), decimal=",")


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_keeps_the_same_period_and_items(engine, tmp_path, request):
    arguments = on(engine, table_of([text for text in ODD if text]), tmp_path, request)
    source = discreet.events(
        **arguments, user="who", item="what", domain=["a"], during=discreet.month("at").only("2026-11"),
        date_format="%d.%m.%Y",
    )  # fmt: skip
    kept = [text for text in ODD if (day := read_date(text, "%d.%m.%Y")) and (day.year, day.month) == (2026, 11)]
    assert source.tally().exact(0) == len(kept)
    dated = discreet.events(
        **arguments, user="who", item="at", domain=[date(2026, 11, 3), date(2024, 2, 29)], date_format="%d.%m.%Y"
    )
    tally, items = dated.tally(), dated.items(np.arange(2))
    assert {item: tally.exact(rank) for rank, item in enumerate(items)} == {date(2026, 11, 3): 2, date(2024, 2, 29): 1}


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ["csv", "pandas", "untyped sqlite"])
def test_a_condition_reads_the_formats_too(engine, tmp_path):
    days, paid = ["3.11.2026", "30.10.2026", "2026-11-04", None], ["1.234,5", "2,5", "2.5", "9"]
    if engine == "untyped sqlite":
        connection = ibis.sqlite.connect(tmp_path / "e.db")
        connection.con.execute("CREATE TABLE e (who, what, day, paid)")
        rows = [(i, "a", *row) for i, row in enumerate(zip(days, paid, strict=True))]
        connection.con.executemany("INSERT INTO e VALUES (?, ?, ?, ?)", rows)
        table = connection.table("e")
    else:
        table = pd.DataFrame({"who": range(4), "what": "a", "day": days, "paid": paid})
    if engine == "csv":
        table.to_csv(tmp_path / "e.csv", index=False, sep=";")
        table = tmp_path / "e.csv"

    def score(where):
        source = discreet.events(table, user="who", item="what", domain=["a"], where=where, **GERMAN)
        return source.tally().exact(0), source.notes()[-1]

    assert score("day >= DATE '2026-11-01'")[0] == 1
    assert score("paid > 2.25")[0] == 3
    assert score("paid = 1234.5")[0] == 1
    assert score("day = '2026-11-04'")[0] == 1
    kept, note = score("day < DATE '2026-11-01' AND paid < 3")
    assert kept == 1
    assert note == (
        "where reads day as dates (03.11.2026) and paid as numbers (1.234,5), because their types are not declared: "
        "no other spelling meets it"
    )


FORMS = ["%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d.%m.%y", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S", "%H:%M:%S %d-%m-%y"]


@given(moment=st.datetimes(min_value=datetime(1000, 1, 1)), form=st.sampled_from(FORMS), padded=st.booleans())
def test_a_date_that_was_written_in_a_format_is_read_in_it(moment, form, padded):
    text = moment.strftime(form)
    if not padded and "%Y%m" not in form:
        # A year at the end keeps its two digits.
        text = re.sub(r"\b0(\d)\b(?!$)", r"\1", text)
    again = datetime.strptime(text, form)
    spelled = DateFormat.parse(form).respell(text)
    assert datetime.fromisoformat(spelled) == again


@given(
    text=st.one_of(st.text(), st.from_regex(r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}", fullmatch=True)),
    form=st.sampled_from(FORMS[:4]),
)
def test_other_text_is_read_as_by_the_standard_library(text, form):
    spelled = DateFormat.parse(form).respell(text)
    try:
        found = None if spelled is None else datetime.fromisoformat(spelled)
    except ValueError:
        found = None
    if "%Y%m" in form and len(text) != 8:
        assert found is None
    else:
        assert found == read_date(text, form)


@given(text=st.one_of(st.text(alphabet="0123456789.,eE+- "), st.text()))
def test_a_number_is_read_as_it_is_spelled(text):
    spelled = Formats(None, ",", ".").respell(text, "float")
    assert (None if spelled is None else float(spelled)) == read_number(text)


CELL = st.one_of(
    st.none(), st.text(max_size=12), st.sampled_from([text for text in ODD + NUMBERS if len(text or "") < 99]),
    st.dates().map(lambda day: day.strftime("%d.%m.%Y")), st.floats().map(lambda x: f"{x:,.2f}"),
)  # fmt: skip
OPTIONS = {"by": None, "groups": ["2026-10", "2026-11"], "value": "paid", "clip": (0, 5), "resolution": "0.5", **GERMAN}


@pytest.mark.long
@settings(max_examples=examples(30), deadline=None)
@given(
    odd=st.lists(st.tuples(CELL, CELL), max_size=4),
    where=st.sampled_from([None, "day > DATE '2026-10-05'", "paid > 1"]),
)
def test_one_users_cells_change_that_users_part_alone(odd, where, tmp_path_factory):
    """Neighbouring tables, with formats: the scores differ by at most the clip bound, in files, frames and SQLite."""
    rows = [(str(i), "ab"[i % 2], f"{i + 1}.1{i % 2}.2026", f"{i % 4},5") for i in range(8)]
    options = {**OPTIONS, "by": discreet.month("day"), "where": where}

    def scores(extra):
        every = [*rows, *(("x", "a", *cells) for cells in extra)]
        columns = [pa.array([_clean(row[place]) for row in every], pa.string()) for place in range(4)]
        events = pa.table(columns, names=["who", "what", "day", "paid"])
        folder = tmp_path_factory.mktemp("odd")
        # A condition compares text with dates only where its type is not declared.
        engines = ("csv", "pandas", "sqlite") if where is None else ("csv",)
        found, *others = [grouped_scores(on(each, events, folder, None), ("a", "b"), **options) for each in engines]
        assert all(each == found for each in others)
        return found

    without, neighbour = scores([]), scores(odd)
    assert without.keys() == neighbour.keys()
    assert all(0 <= neighbour[key] - without[key] <= 5 for key in without)
    changed = [key for key in without if neighbour[key] != without[key]]
    assert {item for _, item in changed} <= {"a"}


def _clean(text):
    """A text that every engine stores: none is empty, or has a NUL, a line end or half of a surrogate pair."""
    if text is None:
        return None
    return re.sub("[\\0\r\n\\ud800-\\udfff]", "", text) or None


def test_broken_text_and_formats(tmp_path):
    (tmp_path / "e.csv").write_bytes(b"who,what,day\n1,a,03.11.2026\n2,a,\xff3.11.2026\n3,a,3.11.2026\n")
    source = discreet.events(
        tmp_path / "e.csv", user="who", item="what", domain=["a"], during=discreet.year("day").only(2026),
        date_format="%d.%m.%Y",
    )  # fmt: skip
    assert source.tally().exact(0) == 2


UNDECLARED = "because its type is not declared"
LOST = f"{UNDECLARED}: rows in another spelling are left out"


def test_the_notes_of_a_source_depend_on_no_row(tmp_path):
    (tmp_path / "one.csv").write_text("who,what,land,day,paid\n1,a,DE,03.11.2026,1\n")
    (tmp_path / "other.csv").write_text('who,what,land,day,paid\n2,7,,2026-11-03,"1,5"\nx,,,,\n')
    groups = {"by": [discreet.month("day"), "land"], "groups": discreet.product(["2026-11"], ["DE"])}
    options = {**groups, "each_user": "one", "value": "paid", "clip": (0, 1)}
    for name in ("one.csv", "other.csv"):
        table = {"table": tmp_path / name, "user": "who", "item": "what", "domain": ["a"], **options}
        assert discreet.events(**table).notes() == [
            f"item reads what as text, whose case and spaces count, {UNDECLARED}",
            f"by reads day as dates and times (2026-01-31 or 2026-01-31 12:00:00), {LOST}; date_format says otherwise",
            f"by reads land as text, whose case and spaces count, {UNDECLARED}",
            f"value reads paid as numbers (2.5), {LOST}; decimal says otherwise",
        ]
        assert discreet.events(**table, **GERMAN).notes()[1::2] == [
            f"by reads day as dates (03.11.2026), {LOST}",
            f"value reads paid as numbers (1.234,5), {LOST}",
        ]
    declared = pa.table({"who": [1], "what": ["a"], "land": ["DE"], "day": [date(2026, 11, 3)], "paid": [1.0]})
    assert discreet.events(declared, user="who", item="what", domain=["a"], **options).notes() == []


def test_formats_are_part_of_the_question():
    frame = pd.DataFrame({"who": [1], "what": ["a"], "day": ["3.11.2026"]})
    plain = {"user": "who", "item": "what", "domain": ["a"], "during": discreet.month("day").only("2026-11")}
    description = discreet.events(frame, **plain, **GERMAN).description()
    assert {name: description[name] for name in GERMAN} == GERMAN
    assert not GERMAN.keys() & discreet.events(frame, **plain).description().keys()


REFUSED = {
    "%d.%m": "date_format must have a year (%Y or %y), a month (%m) and a day (%d), and each directive once",
    "%d.%m.%Y %y": "date_format must have a year",
    "%d.%m.%Y %d": "date_format must have a year",
    "%d. %B %Y": "date_format must have no directive but %Y, %y, %m, %d, %H, %M, %S, %f, which mean the same on every "
    "engine, and '%d. %B %Y' has '%B'",
    "%d.%m.%Y%": "'%d.%m.%Y%' has '%'",
    "%d.%m.%Y %I": "has '%I'",
    "%d.%m.%Y %H": "date_format must have %M with %H, and '%d.%m.%Y %H' does not",
    "%d.%m.%Y %M": "date_format must have %H with %M",
    "%d.%m.%Y %H:%S": "date_format must have %M with %S",
    "%dx%m.%Y": "date_format must have blanks, T and . , / - : _ alone between directives, not 'x'",
    "%d1%m.%Y": "between directives, not '1'",
    7: "date_format must be a text such as '%d.%m.%Y', not 7",
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_format_that_engines_would_read_differently_is_refused(form):
    frame = pd.DataFrame({"who": [1], "what": ["a"]})
    with pytest.raises((TypeError, ValueError), match=re.escape(REFUSED[form])):
        discreet.events(frame, user="who", item="what", domain=["a"], date_format=form)


@pytest.mark.parametrize(
    ("formats", "told"),
    [
        ({"decimal": ";"}, "decimal must be one of '.', ',', not ';'"),
        ({"decimal": 1}, "decimal must be one of '.', ',', not 1"),
        ({"thousands": "x"}, "thousands must be one of '.', ',', ' ', "),
        ({"thousands": "."}, "thousands must be another character than decimal, and both are '.': give decimal too"),
        ({"decimal": ",", "thousands": ","}, "thousands must be another character than decimal, and both are ','"),
    ],
)
def test_marks_that_cannot_be_are_refused(formats, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        discreet.events(pd.DataFrame({"who": [1], "what": ["a"]}), user="who", item="what", domain=["a"], **formats)


@pytest.mark.parametrize("argument", GERMAN)
def test_formats_are_refused_where_no_column_holds_text(argument):
    events = pa.table({"who": [1], "what": [1]})
    formats = {argument: GERMAN[argument], **({"decimal": ","} if argument == "thousands" else {})}
    with pytest.raises(ValueError, match="must be left out where no column that is used holds text"):
        discreet.events(events, user="who", item="what", domain=[1], **formats)


def test_the_alternatives_of_a_format_are_those_that_were_written():
    """A wrong format is seen: day and month exchanged give other months."""
    rng = random.Random(5)
    days = [date(2026, rng.randint(1, 12), rng.randint(1, 12)) for _ in range(200)]
    events = table_of([day.strftime("%d/%m/%Y") for day in days])
    right = Counter(day.month for day in days)
    for form, same in (("%d/%m/%Y", True), ("%m/%d/%Y", False)):
        months = {"by": discreet.month("at"), "groups": discreet.months("2026-01", "2026-12")}
        found = grouped_scores({"table": events}, **months, date_format=form)
        assert ({int(month[-2:]): score for (month, _), score in found.items()} == right) == same


@pytest.mark.long
def test_the_query_of_a_format_with_a_time_stays_short_on_datafusion():
    """Nested concatenations would make it nine million characters, and a query of a minute."""
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    table = ibis.datafusion.connect().create_table("ev", table_of(["03.11.2026 10:00"]))
    source = discreet.events(
        table, user="who", item="what", domain=["a"], during=discreet.year("at").only(2026),
        date_format="%d.%m.%Y %H:%M",
    )  # fmt: skip
    assert len(ibis.to_sql(source.list_parts().kept)) < 500_000
    assert source.tally().exact(0) == 1
