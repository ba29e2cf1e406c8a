"""Groups by period: every engine puts every moment into the period that plain Python dates have for it."""

import json
import sqlite3
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from zoneinfo import ZoneInfo

import ibis
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.events import connect, group_keys
from discreet.sources.events.cells import read_cell
from discreet.sources.events.engine import ask
from discreet.sources.events.group_columns import read_by
from discreet.sources.events.group_keys import parse_by, parse_groups
from discreet.sources.events.location import Location
from discreet.sources.events.periods import CODES_PER_DAY, UNITS, code_moments, find_offsets
from effort import examples

ZONES = [None, "Europe/Berlin", "America/New_York", "Asia/Kolkata"]
TICK = timedelta(microseconds=1)

CHANGES = [
    datetime(2026, 3, 29, 1),  # Berlin goes to summer time
    datetime(2026, 10, 25, 1),  # and back
    datetime(2026, 3, 8, 7),  # New York
    datetime(2026, 11, 1, 6),
    datetime(2026, 1, 31, 18, 30),  # midnight in Kolkata
    datetime(2026, 1, 31, 23),  # in Berlin in winter
    datetime(2026, 6, 30, 22),  # and in summer
    datetime(2026, 1, 1, 5),  # in New York
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 12),
    datetime(2000, 2, 29),
    datetime(2024, 3, 1),  # after a leap day
    datetime(1900, 3, 1),  # after none
    datetime(2021, 1, 4),  # the week after 2020-W53
    datetime(2018, 12, 31),  # 2019-W01
    datetime(2026, 7, 1),
]
NEAR = [moment for change in CHANGES for moment in (change - TICK, change, change + timedelta(hours=7, seconds=1))]
FAR = [datetime(1, 1, 1), datetime(1, 1, 1, 23, 59, 59, 999999), datetime(9999, 12, 31), datetime.max]

TEXTS = {
    "2026-03-29T00:59:59.999999Z": datetime(2026, 3, 29, 0, 59, 59),
    "2026-03-29 01:00": datetime(2026, 3, 29, 1),
    "2026-01-31": date(2026, 1, 31),
    "2026-01-31 00:00:00": datetime(2026, 1, 31),
    "2026-01-31 23:59:59.123456789": datetime(2026, 1, 31, 23, 59, 59),
    "2026-01-31 02:00:00+0530": datetime(2026, 1, 30, 20, 30),
    "2026-01-31T02:00:00.5+05:30": datetime(2026, 1, 30, 20, 30),
    "2026-01-31 10:00:00+23:59": datetime(2026, 1, 30, 10, 1),
    "2026-01-31 10:00-16:00": datetime(2026, 2, 1, 2),
    "2026-01-31 22:00-05": datetime(2026, 2, 1, 3),
    "2026-01-31 10:00:00 UTC": datetime(2026, 1, 31, 10),
    "1969-12-31 23:59:59.9": datetime(1969, 12, 31, 23, 59, 59),
    "2000-02-29": date(2000, 2, 29),
    "9999-12-31": date.max,
    **dict.fromkeys([
        None, "", " 2026-01-31", "2026-01-31\n", "2026-02-29", "2026-1-5", "2026-01-31 24:00", "2026-01-31 10:60", "7",
        "0000-01-01", "10000-01-01", "0001-01-01 00:00+01:00", "9999-12-31 23:59:59-01:00", "2026-01-31 10:00:00+24",
        "infinity", "-infinity", "now", "today", "epoch", "٢٠٢٦-01-31", "2026-01-31 10:00:00.", "2026-01-31x",
        "2026-01-31 10:00:00.1234567891", "20260131", "31.01.2026", "2026-01-31 10:00:00 CET", "\ufeff2026-01-31",
    ]),
}  # fmt: skip


def spell(unit, day):
    """The definition of a key."""
    year, week, _ = day.isocalendar()
    return {
        "day": f"{day.year:04}-{day.month:02}-{day.day:02}",
        "week": f"{year:04}-W{week:02}",
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month - 1) // 3 + 1}",
        "year": day.year,
    }[unit]


def local(cell, zone):
    """The definition of the day that a cell is in."""
    if cell is None or not isinstance(cell, datetime):
        return cell
    aware = cell.replace(tzinfo=UTC)
    return aware.date() if zone is None else aware.astimezone(ZoneInfo(zone)).date()


def expected(cells, unit, zone):
    days = {row: local(cell, zone) for row, cell in enumerate(cells)}
    return {row: spell(unit, day) for row, day in days.items() if day is not None}


def open_group_keys(by, groups, opened):
    return group_keys.open_group_keys(read_by(by), groups, opened)


def open_table(given, *rest, **options):
    """Open a table whose location `discreet.events` would have parsed."""
    return connect.open_table(Location.parse(given) or given, *rest, **options)


def open_arrow(table):
    return open_table(table, None, "table", table.column_names)


def grouped(opened, by, groups):
    """The group of each row that has one."""
    keys = open_group_keys(by, groups, opened)
    rows = keys.add_ordinals(opened.table, who=read_cell(opened.dialect, opened.table.who, "integer"))
    found = ask("engine", "reading", lambda: opened.table.get_backend().to_pyarrow(rows)).to_pylist()
    assert len(found) == len({row["who"] for row in found})
    return {int(row["who"]): keys.keys[row["grp"]] for row in found}


def assert_days(opened, column, cells, zone=None):
    wanted = expected(cells, "day", zone)
    far = [] if zone is not None or "9999-12-31" in wanted.values() else ["9999-12-31"]
    listed = list(dict.fromkeys([*wanted.values(), *far]))
    assert grouped(opened, discreet.day(column, zone), listed) == wanted


def code(cell):
    """The definition of the number that an engine makes of a cell."""
    if cell is None:
        return None
    day = cell.toordinal() * CODES_PER_DAY
    return day + 1 + 2 * (cell.hour * 3600 + cell.minute * 60 + cell.second) if isinstance(cell, datetime) else day


FIRST, LAST = code(date.min), code(datetime.max)


def assert_codes(opened, columns):
    """The codes of several columns, all asked for at once."""
    read = {name: code_moments(opened, opened.table[name]) for name in columns}
    rows = opened.table.select(who=read_cell(opened.dialect, opened.table.who, "integer"), **read).order_by("who")
    found = ask("engine", "reading", lambda: opened.table.get_backend().to_pyarrow(rows))
    for name, cells in columns.items():
        inside = [each if each is None or FIRST <= each <= LAST else None for each in found[name].to_pylist()]
        assert inside == list(map(code, cells)), name


def moments(far=True):
    return NEAR + (FAR if far else []) + [None]


def arrow_table(cells):
    aware = [cell and cell.replace(tzinfo=UTC) for cell in cells]
    days = [cell and cell.date() for cell in cells]
    return pa.table(
        {
            "who": range(len(cells)),
            "naive": pa.array(cells, pa.timestamp("us")),
            "zoned": pa.array(aware, pa.timestamp("us", "UTC" if datetime.max in cells else "America/New_York")),
            "day": pa.array(days, pa.date32()),
            "text": [cell and str(cell) for cell in cells],
        }
    )


def assert_columns(opened, cells, zone, columns=("naive", "zoned", "day", "text")):
    for column in columns:
        assert_days(opened, column, [cell and cell.date() for cell in cells] if column == "day" else cells, zone)


@pytest.mark.some(2)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("form", ["arrow", "pandas", "objects", "parquet", "csv", "json"])
def test_moments_of_files_and_frames_are_in_their_days(form, zone, tmp_path):
    cells = moments(far=zone is None and form != "pandas")
    table, columns = arrow_table(cells), ["naive", "zoned", "day", "text"]
    if form == "pandas":
        table = table.to_pandas()
    elif form == "objects":
        objects = {name: pd.Series(table[name].to_pylist(), dtype=object) for name in columns}
        table = pd.DataFrame({"who": range(len(cells)), **objects})
    elif form == "parquet":
        pa.parquet.write_table(table, tmp_path / "1.parquet")
        pa.parquet.write_table(pa.table({"who": [999], "naive": ["x"]}), tmp_path / "2.parquet")
        table = str(tmp_path / "*.parquet")
    elif form == "csv":
        rows = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in table.to_pylist()]
        (tmp_path / "e.csv").write_text("\n".join([",".join(table.column_names), *rows]), encoding="utf-8")
        table = tmp_path / "e.csv"
    elif form == "json":
        lines = [json.dumps(row, default=lambda moment: moment.isoformat()) for row in table.to_pylist()]
        (tmp_path / "e.jsonl").write_text("\n".join(lines), encoding="utf-8")
        table = str(tmp_path / "e.jsonl")
    opened = open_table(table, None, "table", ["who", *columns], user="who")
    assert_columns(opened, cells, zone)
    opened.close()


@pytest.mark.some(2)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("form", ["arrow", "pandas", "objects", "parquet"])
def test_text_is_a_moment_or_nothing(form, zone, tmp_path):
    texts = {text: cell for text, cell in TEXTS.items() if zone is None or cell != date.max}
    frame = pd.DataFrame({"who": range(len(texts)), "text": list(texts)})
    table = pa.Table.from_pandas(frame) if form == "arrow" else frame
    if form == "objects":
        table = pd.DataFrame({"who": [*frame.who, 999], "text": [*frame.text, 7]})
    if form == "parquet":
        frame.to_parquet(tmp_path / "1.parquet")
        pa.parquet.write_table(pa.table({"who": [999], "text": [7]}), tmp_path / "2.parquet")
        table = str(tmp_path / "*.parquet")
    opened = open_table(table, None, "table", ["who", "text"], user="who")
    assert_days(opened, "text", list(texts.values()), zone)
    opened.close()


@pytest.mark.corners
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_is_that_of_the_calendar(unit, zone):
    cells = moments(far=zone is None)
    opened = open_arrow(arrow_table(cells))
    wanted = expected(cells, unit, zone)
    by = getattr(discreet, unit)("naive", zone)
    assert grouped(opened, by, list(dict.fromkeys(wanted.values()))) == wanted
    some = getattr(discreet, f"{unit}s")(spell(unit, date(2018, 12, 31)), spell(unit, date(2026, 3, 29)))
    assert grouped(opened, by, some) == {row: key for row, key in wanted.items() if key in some}
    opened.close()


@pytest.mark.some(2)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_timestamp_is_too_far_for_a_period(unit):
    """One user's timestamp, the farthest that its column can hold, moves nobody and makes nothing fail."""
    for far in ([], [2**63 - 2], [-(2**63) + 2]):
        ticks = pa.array([0, *far], pa.timestamp(unit))
        opened = open_table(pa.table({"who": range(len(ticks)), "at": ticks}), None, "table", ["who", "at"])
        assert grouped(opened, discreet.day("at"), discreet.days("1970-01-01", "1970-01-02")) == {0: "1970-01-01"}
        opened.close()


def test_zones_before_clocks_agreed():
    cells = [datetime(1883, 11, 18, 4, 56, 1) + timedelta(seconds=second) for second in range(-2, 3)]
    cells += [datetime(1893, 3, 31, 23, 6, 31) + timedelta(seconds=second) for second in range(-3, 3)]
    opened = open_arrow(arrow_table(cells))
    for zone in ("Europe/Berlin", "America/New_York", "Asia/Manila", "Pacific/Apia"):
        assert_columns(opened, cells, zone)
    opened.close()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Africa/Freetown", "Pacific/Apia", "Asia/Gaza", "UTC"])
def test_offsets_are_those_of_the_zone_at_every_hour(zone):
    offsets, info = find_offsets(ZoneInfo(zone), date(1939, 1, 1), date(1941, 12, 31)), ZoneInfo(zone)
    start = datetime(1939, 1, 1, tzinfo=UTC)
    for hour in range(3 * 365 * 24):
        moment = start + timedelta(hours=hour)
        second = int(moment.timestamp()) + date(1970, 1, 1).toordinal() * 86_400
        found = [offset for change, offset in offsets if change <= second][-1]
        assert timedelta(seconds=found) == moment.astimezone(info).utcoffset()


def sqlite_url(path, columns, rows):
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO events VALUES ({marks})", rows)  # noqa: S608  # marks alone
    connection.close()
    return f"sqlite://{path}"


@pytest.mark.some(1)
@pytest.mark.parametrize("zone", ZONES)
def test_moments_of_sqlite_are_in_their_days(zone, tmp_path):
    cells = moments(far=zone is None)
    rows = [
        (row, *[cell and str(cell)] * 2, cell and str(cell.date()), cell and f"{cell}Z")
        for row, cell in enumerate(cells)
    ]
    rows += [(900, 7, 7.5, b"2026-01-31", 0)]
    columns = "who INTEGER, naive TIMESTAMP, text, day DATE, zoned TEXT"
    opened = open_table(sqlite_url(tmp_path / "e.db", columns, rows), "events", "table", [])
    assert_columns(opened, cells, zone)
    opened.close()
    texts = {text: cell for text, cell in TEXTS.items() if zone is None or cell != date.max}
    url = sqlite_url(tmp_path / "t.db", "who INTEGER, text TEXT", list(enumerate(texts)))
    opened = open_table(url, "events", "table", [])
    assert_days(opened, "text", list(texts.values()), zone)
    opened.close()


MANY = moments() + [None] * len(TEXTS)
WORDS = [None] * len(moments()) + list(TEXTS)
COLUMNS = {
    "naive": MANY,
    "zoned": MANY,
    "text": MANY,
    "day": [cell and cell.date() for cell in MANY],
    "words": [None] * len(moments()) + list(TEXTS.values()),
}


def assert_servers(opened):
    """All moments are what they are on a server, and are joined there."""
    assert_codes(opened, COLUMNS)
    wanted = expected([cell if cell not in FAR else None for cell in MANY], "week", "Asia/Kolkata")
    assert grouped(opened, discreet.week("zoned", "Asia/Kolkata"), list(dict.fromkeys(wanted.values()))) == wanted


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_moments_of_postgres_are_in_their_days(request):
    url = request.getfixturevalue("postgres")
    connection = ibis.connect(url)
    with connection.con.cursor() as cursor, connection.con.transaction():
        cursor.execute("DROP TABLE IF EXISTS moments")
        columns = "who int8, naive timestamp, zoned timestamptz, day date, text text, words text"
        cursor.execute(f"CREATE TABLE moments ({columns})")
        for row, (cell, word) in enumerate(zip(MANY, WORDS, strict=True)):
            values = (row, cell, cell and f"{cell}+00", cell and cell.date(), cell and str(cell), word)
            cursor.execute("INSERT INTO moments VALUES (%s, %s, %s, %s, %s, %s)", values)
    opened = open_table(url, "moments", "table", [])
    with opened.table.get_backend().con.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'America/New_York'")
    assert_servers(opened)
    opened.close()
    with connection.con.cursor() as cursor, connection.con.transaction():
        cursor.execute("DELETE FROM moments")
        for word in ("infinity", "-infinity", "0044-03-15 BC", "10000-01-01", "294276-12-31", "4713-01-01 BC"):
            cursor.execute("INSERT INTO moments VALUES (900, %s, %s, %s, %s, %s)", [word] * 5)
    connection.disconnect()
    opened = open_table(url, "moments", "table", [])
    assert_codes(opened, dict.fromkeys(COLUMNS, [None] * 6))
    opened.close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_moments_of_spark_are_in_their_days(request):
    session = request.getfixturevalue("spark")
    rows = [(row, cell and str(cell), word) for row, (cell, word) in enumerate(zip(MANY, WORDS, strict=True))]
    frame = session.createDataFrame(rows, "who bigint, text string, words string").selectExpr(
        "who", "text", "words", "cast(replace(text, ' ', 'T') || 'Z' AS timestamp) AS zoned",
        "cast(text AS timestamp_ntz) AS naive", "cast(substr(text, 1, 10) AS date) AS day",
    )  # fmt: skip
    opened = open_table(frame, None, "table", [])
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert_servers(opened)
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")
        opened.close()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
CELLS = st.one_of(
    st.none(),
    TEXT,
    st.sampled_from([text for text in TEXTS if text]),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.dates(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.booleans(),
    st.binary(max_size=12),
    st.timedeltas(),
)
BASES = {
    "moments": NEAR[:12],
    "midnights": [datetime(2026, 1, day) for day in range(1, 13)],
    "zoned": [moment.replace(tzinfo=UTC) for moment in NEAR[:12]],
    "dates": [date(2026, 1, day) for day in range(1, 13)],
    "texts": list(TEXTS)[:12],
    "numbers": list(range(12)),
}


def release_frame(base, cell=()):
    """The groups of a pandas column of these moments, and of one more cell."""
    cells = [*BASES[base], *cell]
    frame = pd.DataFrame({"who": range(len(cells)), "at": cells})
    opened = open_table(frame, None, "table", ["who", "at"], user="who")
    found = grouped(opened, discreet.day("at", "America/New_York"), discreet.days("2025-12-31", "2026-02-01"))
    opened.close()
    return {row: key for row, key in found.items() if row < len(BASES[base])}


@cache
def release_base(base):
    """The groups without a further cell; those with one may be of what has no hash."""
    return release_frame(base)


@pytest.mark.some(2)
@pytest.mark.parametrize("base", BASES)
@settings(max_examples=examples(8))
@given(cell=CELLS)
def test_a_row_of_pandas_changes_the_group_of_no_other(base, cell):
    assert release_frame(base, (cell,)) == release_base(base)


@settings(max_examples=examples(15))
@given(cell=st.one_of(st.none(), TEXT, st.binary(max_size=12), st.floats(), st.integers(-(2**63), 2**63 - 1)))
def test_a_row_of_sqlite_changes_the_group_of_no_other(sqlite_moments, cell):
    opened, wanted = sqlite_moments
    connection = opened.table.get_backend().con
    connection.execute("INSERT INTO events VALUES (900, ?)", [cell])
    try:
        found = grouped(opened, discreet.month("at", "Europe/Berlin"), discreet.months("2026-01", "2026-12"))
    finally:
        connection.execute("DELETE FROM events WHERE who = 900")
    found.pop(900, None)
    assert found == wanted


@pytest.fixture(scope="module")
def sqlite_moments(tmp_path_factory):
    """Moments in SQLite, and the months of them."""
    path = tmp_path_factory.mktemp("sqlite") / "e.db"
    rows = [(row, str(moment)) for row, moment in enumerate(NEAR)]
    opened = open_table(sqlite_url(path, "who INTEGER, at TEXT", rows), "events", "table", [])
    months = expected(NEAR, "month", "Europe/Berlin")
    yield opened, {row: key for row, key in months.items() if key.startswith("2026")}
    opened.close()


def test_a_timestamp_at_midnight_is_no_date_in_whatever_files_it_comes(tmp_path):
    midnight, groups = datetime(2026, 1, 31), discreet.days("2026-01-30", "2026-01-31")
    by = discreet.day("at", "America/New_York")
    found = []
    for extra in (
        pa.array(["x"]),
        pa.array([midnight.date()]),
        pa.array([Decimal(7)]),
    ):
        pa.parquet.write_table(pa.table({"who": [0], "at": pa.array([midnight])}), tmp_path / "1.parquet")
        pa.parquet.write_table(pa.table({"who": [1], "at": extra}), tmp_path / "2.parquet")
        opened = open_table(str(tmp_path / "*.parquet"), None, "table", ["who", "at"])
        found.append(grouped(opened, by, groups))
        opened.close()
    assert found == [{0: "2026-01-30"}, {0: "2026-01-30", 1: "2026-01-31"}, {0: "2026-01-30"}]


def test_lists_of_periods_are_public_keys():
    assert discreet.months("2025-12", "2026-02") == ["2025-12", "2026-01", "2026-02"]
    assert discreet.weeks("2020-W52", "2021-W01") == ["2020-W52", "2020-W53", "2021-W01"]
    assert discreet.weeks("9999-W51", "9999-W52") == ["9999-W51", "9999-W52"]
    assert discreet.quarters("0001-Q4", "0002-Q1") == ["0001-Q4", "0002-Q1"]
    assert discreet.days(date(2024, 2, 28), "2024-03-01") == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert discreet.years(9998, 9999) == [9998, 9999]
    assert discreet.years("2024", 2024) == [2024]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: discreet.months("2026-13", "2027-01"), "first must be a month like '2026-01', not '2026-13'"),
        (lambda: discreet.months("2026-01", "2026"), "last must be a month like '2026-01', not '2026'"),
        (lambda: discreet.months("2026-02", "2026-01"), "last must not be before first, '2026-02', but is '2026-01'"),
        (lambda: discreet.weeks("2026-W54", "2027-W01"), "first must be a week like '2026-W05', not '2026-W54'"),
        (lambda: discreet.days(datetime(2026, 1, 1), "2026-01-02"), "first must be a day like '2026-01-31'"),
        (lambda: discreet.years(0, 1), "first must be a year like 2026, not 0"),
        (lambda: discreet.years(True, 2), "first must be a year like 2026, not True"),
        (lambda: discreet.month(7), "column must be the name of a column, not 7"),
        (lambda: discreet.month("at", "Mars"), "zone must be the name of a time zone such as 'Europe/Berlin', not"),
        (lambda: discreet.month("at", "../etc"), "zone must be the name of a time zone"),
        (lambda: discreet.month("at", 7), "zone must be the name of a time zone"),
        (lambda: parse_groups("2026-01..2026"), "groups must run from a month to a month, not to '2026'"),
        (lambda: parse_by("country,"), "by must name a column on each side of a comma"),
    ],
)  # fmt: skip
def test_periods_that_are_none_are_refused(make, message):
    with pytest.raises(discreet.Error) as error:
        make()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("by", "groups", "message"),
    [
        (discreet.month("naive"), ["2026-01-01"], "groups must hold months like '2026-01', not '2026-01-01'"),
        (discreet.month("naive"), pa.array(["2026-1"]), "groups must hold months like '2026-01', and one is not"),
        (discreet.month("naive"), pa.table({"a": ["x"]}), "groups must hold months like '2026-01', and one is not"),
        (["who", discreet.month("naive")], [(1, "2026-1")], "groups must hold months like '2026-01', not '2026-1'"),
        (discreet.month("naive"), ["2026-01", None], "groups must not hold missing groups, and one is missing"),
        (discreet.month("naive"), ["2026-01"] * 2, "groups must hold each group once, but '2026-01' is there twice"),
        (discreet.month("who"), ["2026-01"], "by must be a period of a column of dates, timestamps or text, and 'who'"),
        (discreet.month("played"), ["2026-01"], "by must be a column of the table, one of who, naive"),
        (discreet.year("naive", "Europe/Berlin"), [1500, 2026], "groups must lie within 200 years where"),
    ],
)  # fmt: skip
def test_groups_that_are_no_periods_are_refused(by, groups, message):
    opened = open_arrow(arrow_table(NEAR))
    with pytest.raises(discreet.Error) as error:
        open_group_keys(by, groups, opened)
    opened.close()
    assert str(error.value).startswith(message)


def test_periods_come_from_files_and_stand_beside_other_columns(tmp_path):
    (tmp_path / "months.csv").write_text("month,note\n2026-03,b\n2026-01,a\n", encoding="utf-8")
    table = arrow_table(NEAR).append_column("country", pa.array(["DE", "FR"] * (len(NEAR) // 2)))
    opened = open_arrow(table)
    months = expected(NEAR, "month", None)
    file = Location.parse_list(f"{tmp_path / 'months.csv'}:month", "groups")
    listed = grouped(opened, discreet.month("naive"), file)
    assert listed == {row: key for row, key in months.items() if key in ("2026-01", "2026-03")}
    by = ["country", discreet.month("naive")]
    pairs = {row: ("DE" if row % 2 == 0 else "FR", key) for row, key in months.items()}
    wanted = discreet.product(["FR", "DE"], discreet.months("2026-01", "2026-03"))
    keys = open_group_keys(by, wanted, opened)
    assert keys.names == ("country", "month")
    assert keys.keys[:4] == (("FR", "2026-01"), ("FR", "2026-02"), ("FR", "2026-03"), ("DE", "2026-01"))
    assert grouped(opened, by, wanted) == {row: pair for row, pair in pairs.items() if pair in keys.keys}
    some = [("DE", "2026-03"), ("FR", "1969-12")]
    assert grouped(opened, by, some) == {row: pair for row, pair in pairs.items() if pair in some}
    both = [discreet.month("naive"), discreet.month("day"), discreet.year("naive")]
    assert open_group_keys(both, [("2026-01", "2026-02", 2026)], opened).names == ("month(naive)", "month(day)", "year")
    opened.close()


def test_command_lines_spell_groups():
    assert parse_by("country") == "country"
    assert parse_by("month(played_at)") == discreet.month("played_at")
    assert parse_by("country, week(at, Europe/Berlin)") == ["country", discreet.week("at", "Europe/Berlin")]
    assert parse_by("hour(at)") == "hour(at)"
    assert parse_groups("2026-01..2026-03") == ["2026-01", "2026-02", "2026-03"]
    assert parse_groups("2026-W52..2027-W01") == ["2026-W52", "2026-W53", "2027-W01"]
    assert parse_groups("2026-Q1..2026-Q2") == ["2026-Q1", "2026-Q2"]
    assert parse_groups("2026-01-30..2026-01-31") == ["2026-01-30", "2026-01-31"]
    assert parse_groups("-1..12") == discreet.integers(-1, 12)
    assert parse_groups("countries.csv:code") == Location.parse_list("countries.csv:code", "groups")
    assert parse_groups("../countries.csv:code") == Location.parse_list("../countries.csv:code", "groups")
    file = Location.parse_list("c.csv:code", "groups")
    assert parse_groups(["c.csv:code", "1..2"]) == discreet.product(file, discreet.integers(1, 2))
