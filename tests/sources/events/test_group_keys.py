"""Groups of plain columns: each row has the ordinal of its group in the public list, on every engine."""

from datetime import date
from itertools import product

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.events import connect, group_keys
from discreet.sources.events.cells import read_cell
from discreet.sources.events.engine import ask
from discreet.sources.events.group_columns import MOST_GROUPS, read_by
from discreet.sources.events.group_keys import ORDINAL
from discreet.sources.events.location import Location
from effort import examples
from engines import ENGINES, SERVERS, on

COUNTRIES = ["DE", "de", "Dé", None, "FR", " FR", "😀", "XX", "7", "FR"]
SHOPS = [1, 2, 3, None, 2**62, -5, 7, 1, 2, 2]
DAYS = [None if shop is None else date(2026, 1, 1 + shop % 9) for shop in SHOPS]
OPEN = [None if shop is None else shop % 2 == 0 for shop in SHOPS]
EVENTS = pa.table(
    {
        "who": range(10),
        "country": COUNTRIES,
        "shop": pa.array(SHOPS, pa.int64()),
        "on": pa.array(DAYS, pa.date32()),
        "open": OPEN,
    }
)
COLUMNS = {name: EVENTS[name].to_pylist() for name in EVENTS.column_names if name != "who"}


def open_group_keys(by, groups, opened):
    return group_keys.open_group_keys(read_by(by), groups, opened)


def opened_on(engine, folder, request):
    given = on(engine, EVENTS, folder, request)
    return open_table(given["table"], given.get("name"), "table", EVENTS.column_names, user="who")


def open_table(given, *rest, **options):
    """Open a table whose location `discreet.events` would have parsed."""
    return connect.open_table(Location.parse(given) or given, *rest, **options)


def locate(given):
    """The location of a file, as `discreet.events` parses it; anything else as it is."""
    return Location.parse_list(given, "groups") if isinstance(given, str) else given


def ordinals(opened, by, groups):
    """The ordinal of each row that has one, and the keys."""
    keys = open_group_keys(by, locate(groups), opened)
    rows = keys.add_ordinals(opened.table, who=read_cell(opened.dialect, opened.table.who, "integer"))
    assert rows.columns == ("who", ORDINAL)
    assert rows[ORDINAL].type().is_int64()
    found = ask("engine", "reading", lambda: opened.table.get_backend().to_pyarrow(rows)).to_pylist()
    assert len(found) == len({row["who"] for row in found})
    return {int(row["who"]): row[ORDINAL] for row in found}, keys


def expected(columns, keys):
    """The definition: the place of a row's values in the list, if they are there."""
    rows = list(zip(*(COLUMNS[name] for name in columns), strict=True))
    wanted = [key if isinstance(key, tuple) else (key,) for key in keys]
    return {who: wanted.index(row) for who, row in enumerate(rows) if row in wanted}


LISTS = {
    "country": ["XX", "FR", "DE", "😀", "nobody", "7"],
    "shop": [7, 1, 2**62, -5, 999],
    "on": [date(2026, 1, 8), date(2026, 1, 2), date(2020, 2, 29)],
    "open": [True, False],
}


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_have_the_ordinals_of_the_definition(engine, tmp_path, request):
    opened = opened_on(engine, tmp_path, request)
    few = engine in SERVERS
    for column, listed in LISTS.items() if not few else [("country", LISTS["country"]), ("on", LISTS["on"])]:
        found, keys = ordinals(opened, column, listed)
        assert keys.keys == tuple(listed)
        assert (keys.names, keys.columns) == ((column,), [column])
        assert found == expected([column], listed)
    both = ["country", "shop"]
    found, keys = ordinals(opened, both, discreet.product(["FR", "DE"], discreet.integers(1, 3)))
    assert keys.keys == tuple(product(["FR", "DE"], [1, 2, 3]))
    assert found == expected(both, keys.keys)
    listed = [("FR", 2), ("XX", 1), ("DE", 2), ("7", 2), ("de", 2)]
    found, keys = ordinals(opened, both, listed)
    assert (keys.keys, keys.names, keys.columns) == (tuple(listed), ("country", "shop"), both)
    assert found == expected(both, listed)
    opened.close()


@pytest.fixture
def events():
    opened = open_table(EVENTS, None, "table", EVENTS.column_names)
    yield opened
    opened.close()


@pytest.mark.some(2)
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_groups_of_a_file_keep_the_order_of_its_rows(ending, events, tmp_path):
    frame = pd.DataFrame({"country": ["XX", "FR", "DE"], "shop": [1, 2, 1], "name": ["x", "f", "d"]})
    path = str(tmp_path / f"groups.{ending}")
    if ending in ("csv", "tsv"):
        frame.to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    for groups in (f"{path}:country", path):
        assert ordinals(events, "country", groups)[1].keys == ("XX", "FR", "DE")
    found, keys = ordinals(events, ["shop", "country"], path)
    assert keys.keys == ((1, "XX"), (2, "FR"), (1, "DE"))
    assert found == expected(["shop", "country"], keys.keys)


def test_many_groups_of_a_file_keep_the_order_of_its_rows(events, tmp_path):
    listed = [(number * 7_919) % 200_003 for number in range(200_003)]
    (tmp_path / "g.csv").write_text("shop\n" + "\n".join(map(str, listed)), encoding="utf-8")
    pa.parquet.write_table(pa.table({"shop": listed}), tmp_path / "g.parquet", row_group_size=10_000)
    for name in ("g.csv", "g.parquet"):
        assert open_group_keys("shop", locate(str(tmp_path / name)), events).keys == tuple(listed)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "groups",
    [
        pd.Series(["XX", "FR"]), pl.Series(["XX", "FR"]), pa.array(["XX", "FR"]), ("XX", "FR"),
        pd.DataFrame({"country": ["XX", "FR"], "n": [1, 2]}), pl.DataFrame({"code": ["XX", "FR"]}),
        pl.LazyFrame({"code": ["XX", "FR"]}), pa.table({"country": ["XX", "FR"]}),
    ],
    ids=lambda groups: type(groups).__name__,
)  # fmt: skip
def test_lists_and_frames_keep_their_order(groups, events):
    assert open_group_keys("country", groups, events).keys == ("XX", "FR")


def test_a_table_of_an_engine_is_sorted_for_want_of_an_order(events):
    connection = ibis.duckdb.connect()
    groups = connection.create_table("g", pa.table({"country": ["XX", "FR", "DE"], "shop": [1, 2, 1]}))
    assert open_group_keys("country", groups, events).keys == ("DE", "FR", "XX")
    assert open_group_keys(["shop", "country"], groups, events).keys == ((1, "DE"), (1, "XX"), (2, "FR"))
    flags = connection.create_table("f", pa.table({"open": [True, False]}))
    assert open_group_keys("open", flags, events).keys == (False, True)
    connection.disconnect()


def test_numbers_are_integers_or_a_range(events):
    assert open_group_keys("shop", discreet.integers(-5, 2), events).keys == tuple(range(-5, 3))
    assert open_group_keys("shop", range(3), events).keys == (0, 1, 2)
    assert open_group_keys(["shop"], [1, 2], events).keys == (1, 2)


def test_rows_keep_what_is_asked_for_and_no_name_is_in_the_way():
    table = pa.table({"grp": ["a", "b"], "key0": ["u", "v"], "number": [1, 2]})
    opened = open_table(table, None, "table", table.column_names)
    keys = open_group_keys(["grp", "number"], [("b", 2), ("a", 1)], opened)
    rows = keys.add_ordinals(opened.table, key0=opened.table.key0, number=opened.table.grp).to_pyarrow().to_pylist()
    assert sorted(rows, key=str) == [{"key0": "u", "number": "a", "grp": 1}, {"key0": "v", "number": "b", "grp": 0}]
    with pytest.raises(discreet.Error, match=r"^table must not have a column called grp where all"):
        keys.add_ordinals(opened.table)
    opened.close()
    opened = open_table(EVENTS, None, "table", EVENTS.column_names)
    kept = open_group_keys("country", ["FR"], opened).add_ordinals(opened.table)
    assert kept.columns == (*EVENTS.column_names, "grp")
    opened.close()


TIMES = (
    "groups must hold only strings, only whole numbers, only dates or only booleans; periods are text: "
    "discreet.months('2026-01', '2026-12'), or days, weeks, quarters, years"
)


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("by", "groups", "message"),
    [
        ("country", [], "groups must hold at least one group, not none"),
        ("country", ["a", None], "groups must not hold missing groups, and one is missing"),
        ("country", ["a", "a"], "groups must hold each group once, but 'a' is there twice"),
        ("country", pd.Series(["a", "a"]), "groups must hold each group once, but one is there twice"),
        ("country", pa.table({"c": ["a", "a"]}), "groups must hold each group once, but one is there twice"),
        ("country", pa.table({"c": ["a", None]}), "groups must not hold missing groups, and one is missing"),
        ("country", pa.table({"c": ["a"], "d": ["a"]}), "groups must have a column called 'country', and has c, d;"),
        ("country", pa.table({"c": [1.5]}), "groups must hold strings, whole numbers, dates or booleans, not a column"),
        ("country", ["a", 1], "groups must hold only strings, only whole numbers, only dates or only booleans"),
        ("country", "nowhere.csv", "groups must be a file that exists, not 'nowhere.csv'"),
        ("country", "DE", "groups must be a list, a table or a file with its column, not 'DE': pass a list, ['DE']"),
        ("country", ["a", None], "groups must not hold missing groups, and one is missing; pandas reads the text NA"),
        ("country", pd.period_range("2026-01", periods=3, freq="M"), TIMES),
        ("country", pd.date_range("2026-01-01", periods=3), TIMES),
        ("on", ["2026-01", "2026-02"], "groups must hold dates, like those of the column 'on', not periods; for its "),
        ("country", 7, "groups must be a path or a list of paths, a connection URL, a pandas, polars or pyarrow table"),
        ("country", discreet.product(["a"], ["b"]), "groups must be one list where by is one column, not a product"),
        ("country", discreet.integers(1, MOST_GROUPS + 1), "groups must hold at most 1,000,000 groups, not 1,000,001"),
        ("shop", range(MOST_GROUPS + 1), "groups must hold at most 1,000,000 groups, not 1,000,001"),
        (
            ["country", "shop"],
            discreet.product(["a", "b"], discreet.integers(1, MOST_GROUPS)),
            "groups must hold at most 1,000,000 groups, not 2,000,000",
        ),
        ("on", [1, 2], "groups must hold groups like those of the events, dates, not integers"),
        ("county", ["a"], "by must be a column of the table, one of who, country, shop, on, open, not 'county'"),
        (7, ["a"], "by must be a column, a period of one such as discreet.month('played_at'), or a list"),
        ([], ["a"], "by must name at least one column, not none"),
        (["country", "country"], [("a", "b")], "by must name each column once, but one is there twice"),
        (["country", "shop"], ["a", "b"], "groups must hold tuples of 2 values, one for each of country, shop,"),
        (["country", "shop"], [("a", 1, 2)], "groups must hold tuples of 2 values, one for each of country, shop"),
        (["country", "shop"], [("a", 1)] * 2, "groups must hold each group once, but one is there twice"),
        (["country", "shop"], [], "groups must hold at least one group, not none"),
        (["country", "shop"], [("a", None)], "groups must not hold missing groups, and one is missing"),
        (["country", "shop"], pa.table({"country": ["a"]}), "groups must have a column called 'shop', and has country"),
        (["country", "shop"], "g.csv:code", "groups must be a file with the columns country, shop, without"),
        (["country", "shop"], discreet.product(["a"], [1], [2]), "groups must be a product of 2 lists, one for each"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)  # fmt: skip
def test_groups_that_cannot_be_are_refused(by, groups, message, events):
    with pytest.raises(discreet.Error) as error:
        open_group_keys(by, locate(groups), events)
    assert str(error.value).startswith(message)


def test_a_product_has_several_lists():
    with pytest.raises(discreet.Error, match=r"^product must have a list for each of two or more columns, not 1$"):
        discreet.product(["a"])


def test_columns_are_known_before_the_table_is_open():
    assert [each.column for each in read_by(["country", discreet.month("at")])] == ["country", "at"]


def test_a_header_that_may_be_private_is_not_shown(tmp_path):
    (tmp_path / "e.csv").write_text("who,ann 1970\n1,2\n", encoding="utf-8")
    opened = open_table(tmp_path / "e.csv", None, "table", ["who"])
    with pytest.raises(discreet.Error) as error:
        open_group_keys("country", ["a"], opened)
    assert str(error.value) == "by must be a column of the table, and 'country' is not in the header of the file"
    opened.close()


def test_long_numbers_are_refused_where_pandas_may_have_merged_them():
    frame = pd.DataFrame({"who": [1, 2], "shop": [2**60, 2**60 + 1]})
    for groups in ([2**60], [str(2**60)], discreet.integers(2**60, 2**60 + 3)):
        opened = open_table(frame, None, "table", ["who", "shop"], user="who")
        with pytest.raises(
            discreet.Error, match=r"^groups must not hold whole numbers beyond 2\^53 where the events are"
        ):
            open_group_keys("shop", groups, opened)
        opened.close()
    opened = open_table(frame.astype({"shop": "Int64"}), None, "table", ["who", "shop"], user="who")
    assert ordinals(opened, "shop", [2**60 + 1])[0] == {2: 0}
    opened.close()


def test_the_events_are_no_list_of_their_groups(tmp_path):
    EVENTS.to_pandas().to_csv(tmp_path / "e.csv")
    path = str(tmp_path / "e.csv")
    question = {"user": "who", "item": "shop", "domain": [1, 2], "each_user": "one"}
    for table, by, groups in (
        (EVENTS, "country", EVENTS["country"]),
        (EVENTS, "country", EVENTS),
        (path, "country", f"{path}:country"),
        (EVENTS, ["country", "shop"], discreet.product(["DE"], EVENTS["shop"])),
    ):
        with pytest.raises(discreet.Error, match=r"^groups must be a public list of groups, not the events themselves"):
            discreet.events(table, by=by, groups=groups, **question)
    discreet.events(EVENTS, by=["country", "shop"], groups=discreet.product(["DE"], [1]), **question)


def test_an_engine_that_counts_in_unknown_ways_has_no_periods():
    table = pa.table({"who": [1], "at": pa.array([date(2026, 1, 1)])})
    opened = open_table(ibis.polars.connect({"e": pl.from_arrow(table)}).table("e"), None, "table", [])
    with pytest.raises(discreet.Error) as error:
        open_group_keys(discreet.month("at"), ["2026-01"], opened)
    assert str(error.value).startswith("by must not be a period on polars: discreet does not know how it counts days")


def test_descriptions_hold_few_groups_in_words_and_many_as_a_hash(events):
    described = open_group_keys(["on", discreet.month("on")], [(date(2026, 1, 2), "2026-01")], events).description()
    day = {"type": "date", "value": "2026-01-02"}
    assert described == {"by": ["on", "month(on)"], "groups": [{"type": "tuple", "value": [day, "2026-01"]}]}
    # Text is another list than the dates that it spells.
    assert open_group_keys("on", ["2026-01-02"], events).description()["groups"] == ["2026-01-02"]
    assert open_group_keys("on", [date(2026, 1, 2)], events).description()["groups"] == [day]
    hashes = {
        str(open_group_keys("shop", groups, events).description()["groups"])
        for groups in (range(101), range(1, 102), [*range(1, 101), 0])
    }
    assert len(hashes) == 3
    assert all("'number': 101, 'sha256': '" in each for each in hashes)


CELLS = st.one_of(
    st.none(), st.text(max_size=5), st.integers(), st.floats(), st.booleans(), st.dates(), st.binary(max_size=5),
    st.sampled_from(["7", "07", "7.0", 7.0, 7, True, 2**60]),
)  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize("groups", [["7", "1"], [7, 1], [date(2026, 1, 1), date(2026, 1, 2)], [True, False]], ids=str)
@pytest.mark.parametrize("base", [[7, 1, 2], ["7", "a"], [7.0, 1.5], [date(2026, 1, 1)], [True, False]], ids=str)
@settings(max_examples=examples(5))
@given(cell=CELLS)
def test_a_row_of_pandas_changes_the_group_of_no_other(base, groups, cell):
    found = []
    for cells in (base, [*base, cell]):
        frame = pd.DataFrame({"who": range(len(cells)), "group": cells})
        opened = open_table(frame, None, "table", ["who", "group"], user="who")
        found.append(ordinals(opened, "group", groups)[0])
        opened.close()
    found[1].pop(len(base), None)
    assert found[0] == found[1]
