"""A look at the rows finds the same on every engine: what is dropped, what is outside, and what nearly fits."""

import random
import re
import sqlite3
from collections import Counter

import ibis
import pyarrow as pa
import pytest

import discreet
from discreet.sources.events import check as check_module
from discreet.sources.events.check_report import WARNING, Frequent, Loss, NearMatch
from discreet.sources.events.connect import open_table
from engines import ENGINES, on

ROWS = [
    *[(1, "dune", "DE", "31/01/2026"), (1, "Dune ", "DE", "30/01/2026"), (2, "Dune ", "FR", "02/01/2026")],
    *[(3, "zorro", "XX", "2026-01-31"), (3, "zorro", "XX", None), (4, "rio", None, "2026/01/31")],
    *[(None, "dune", "DE", None), (None, "zorro", "DE", None), (5, None, "DE", None), (6, "heat", "FR", None)],
]
EVENTS = pa.table(
    {
        "who": pa.array([row[0] for row in ROWS], pa.int64()),
        "film": pa.array([row[1] for row in ROWS], pa.string()),
        "land": pa.array([row[2] for row in ROWS], pa.string()),
        "at": pa.array([row[3] for row in ROWS], pa.string()),
    }
)
FILMS = ["dune", "heat", "alien", "ran"]
COLUMNS = {"user": "who", "item": "film", "domain": FILMS}


def check(table=EVENTS, **options):
    return discreet.check_events(discreet.events(table, **{**COLUMNS, **options}))


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_finds_the_same(engine, tmp_path, request):
    found = check(**on(engine, EVENTS, tmp_path, request), where="at IS NULL OR at <> 'never'")
    assert (found.rows, found.rows_kept, found.users) == (10, 10, 6)
    assert (found.rows_without_user, found.rows_without_item, found.rows_of_other_kind) == (2, 1, 0)
    assert (found.rows_inside, found.rows_outside, found.items_outside) == (2, 5, 3)
    assert found.outside == [Frequent("Dune ", 2), Frequent("zorro", 2), Frequent("rio", 1)]
    assert (found.d, found.items_untouched, found.untouched) == (4, 2, ["alien", "ran"])
    assert (found.rows_near, found.near) == (2, [NearMatch("Dune ", "dune", 2)])
    # These two do not fold text.
    mended = () if engine in ("datafusion", "mariadb") else ({"item": "fold(trim(film))"},)
    assert found.lost == [
        Loss("date", "at", 3, 10, ({"date_format": "%d/%m/%Y"},)),
        Loss("user", "who", 2, 10),
        Loss("item", "film", 6, 10, mended),
    ]
    assert not found.is_noise


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_finds_the_same_by_group(engine, tmp_path, request):
    options = {"by": "land", "groups": ["DE", "FR", "IT"], "each_user": "one"}
    found = check(**on(engine, EVENTS, tmp_path, request), **options).groups
    assert (found.rows_outside, found.empty, found.number) == (3, 1, 3)
    assert found.outside["land"] == [Frequent("XX", 2), Frequent("(no text)", 1)]


@pytest.mark.parametrize(("lines", "header"), [("Dune\nheat\nran\n", "Dune"), ("title\ndune\nheat\n", None)])
def test_a_list_without_a_header_is_noticed(lines, header, tmp_path):
    (tmp_path / "films.csv").write_text(lines)
    table = pa.table({"who": [1, 2, 3, 4], "film": [" dune", "heat", "heat", "zorro"]})
    found = check(table, domain=str(tmp_path / "films.csv"))
    assert found.header_item == header
    assert ("no header line, add one" in str(found)) == (header is not None)


def test_what_is_looked_for_in_other_columns_stands_in_no_statement(tmp_path, monkeypatch):
    (tmp_path / "films.csv").write_text("id,title,year\n1,Dune,1984\n2,Heat,1995\n3,Ran,1985\n")
    log = []

    def open_with_log(*given, **options):
        opened = open_table(*given, **options)
        connection = opened.table.get_backend().con
        connection.execute("CALL enable_logging('QueryLog')")
        told = "SELECT message FROM duckdb_logs WHERE type = 'QueryLog'"
        opened.cleanup.append(lambda: log.extend(row[0] for row in connection.execute(told).fetchall()))
        return opened

    monkeypatch.setattr(check_module, "open_table", open_with_log)
    table = pa.table({"who": [1, 2, 3, 4], "film": ["Dune", "Heat", "Heat", "zorro"]})
    found = check(table, domain=f"{tmp_path / 'films.csv'}:id")
    [column] = found.other_columns
    assert (column.spelling, column.found, column.tried) == (f"{tmp_path / 'films.csv'}:title", 2, 3)
    assert any("title" in statement for statement in log)
    assert not any(item in statement for statement in log for item in ("Dune", "Heat", "zorro"))


def test_the_column_that_an_expression_of_the_domain_reads_is_no_other_column(tmp_path):
    (tmp_path / "films.csv").write_text("Title,id\nThe Old,1\nThe New,2\n")
    table = pa.table({"who": [1, 2], "film": ["the  old", "the  new"]})
    found = check(table, item="fold(trim(film))", domain=f"{tmp_path / 'films.csv'}:fold(trim(title))")
    assert (found.rows_near, found.other_columns) == (2, [])
    assert any("by replace(ITEM, '  ', ' ')" in each for each in found.advice)
    mended = "replace(fold(trim(film)), '  ', ' ')"
    assert check(table, item=mended, domain=f"{tmp_path / 'films.csv'}:fold(trim(title))").rows_outside == 0


def test_the_items_are_kept_in_a_temporary_table_that_is_dropped_at_the_end():
    connection = ibis.duckdb.connect()
    events = connection.create_table("events", EVENTS)
    connection.con.execute("CALL enable_logging('QueryLog')")
    check(events)
    log = connection.con.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
    assert any(re.match("CREATE TEMP(ORARY)? TABLE .*ibis_cached", statement) for (statement,) in log)
    assert connection.con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("events",)]
    connection.disconnect()


def test_a_range_of_numbers_is_a_domain_too():
    table = pa.table({"who": [1, 2, 3, 4], "film": ["7", "07", "99", "seven"]})
    found = check(table, domain=discreet.integers(0, 9))
    assert (found.rows_inside, found.rows_outside, found.items_untouched) == (2, 2, 9)
    assert (found.kind, found.rows_of_other_kind) == ("integer", 1)
    assert found.outside == [Frequent("99", 1), Frequent("seven", 1)]


def test_values_that_are_no_numbers_are_counted():
    table = pa.table({"who": [1, 2, 3], "film": ["dune", "dune", "heat"], "stars": [1.0, None, float("nan")]})
    found = check(table, value="stars", clip=(0, 5))
    assert (found.rows_without_value, found.rows_inside, found.items_untouched) == (2, 1, 3)
    assert "2 of 3 rows (66.7%) have no number as value and are dropped" in found.advice
    assert Loss("value", "stars", 2, 3) in found.lost


def test_items_that_are_to_be_found_have_no_domain():
    found = check(domain=discreet.discovered("1e-8", max_items_per_user=1))
    assert (found.d, found.items_untouched, found.rows_inside, found.rows_outside) == (None, None, 7, 0)
    assert "domain" not in str(found).partition("What to change")[0]


SPELLED = [*["Müller"] * 5, *["MÜLLER "] * 2, " müller", *["heat"] * 3, "Heat", "a", "A", "Ran"]
SPELLED += ["Straße", "Straße", "STRAẞE"]


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_spellings_of_items_that_are_to_be_found_are_told(engine, tmp_path, request):
    rows = pa.table({"who": range(len(SPELLED)), "film": SPELLED, "n": range(len(SPELLED))})
    given = on(engine, rows, tmp_path, request)
    expected = {
        "exact": [
            *[("MÜLLER ", "Müller", 2), (" müller", "Müller", 1), ("Heat", "heat", 1)],
            *[("STRAẞE", "Straße", 1), ("a", "A", 1)],
        ],
        "both": [("mÜller", "müller", 2), ("straẞe", "straße", 1)],
        "fold": [],
    }
    if engine in ("datafusion", "mariadb"):  # it does not fold text, so that its checks look for no spellings
        expected = {"exact": []}
    for spelling, near in expected.items():
        terms = discreet.discovered("1e-8", 1, spelling=spelling)
        found = check(**given, domain=terms, where="n <> 99")
        assert [(each.found, each.listed, each.rows) for each in found.near] == near
        assert found.rows_near == sum(rows for _, _, rows in near)
        assert len([each for each in found.advice if "--spelling fold" in each]) == bool(near)
    missing = pa.table({"who": [1, 2, 3, None], "film": ["a", None, "b", "A"]})
    assert check(missing, domain=discreet.discovered("1e-8", 1)).rows_near == 0
    # Rows without a value do not count, and numbers and dates have one spelling.
    gaps = pa.table({"who": [1, 2], "film": ["a", "A"], "stars": [1.0, None]})
    assert check(gaps, domain=discreet.discovered("1e-8", 1), value="stars", clip=(0, 1)).rows_near == 0
    terms = discreet.discovered("1e-8", 1, kind="integer")
    assert check(pa.table({"who": [1, 2], "film": ["7", "07"]}), domain=terms).rows_near == 0


def dates_lost(table, **options):
    return [each for each in check(table, **options).lost if each.cause == "date"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("texts", "formats"),
    [
        (["02.03.2026", None], ["%d.%m.%Y"]),
        (["02.03.2026 10:30", "2.3.2026 9:05"], ["%d.%m.%Y %H:%M"]),
        (["02/03/2026"], ["%d/%m/%Y", "%m/%d/%Y"]),
        (["02/03/2026", "02/28/2026"], ["%m/%d/%Y"]),
        (["20260302"], ["%Y%m%d"]),
        (["2.3.26"], ["%d.%m.%y"]),
    ],
)
def test_the_format_that_reads_most_dates_is_named(texts, formats):
    table = pa.table({"who": range(len(texts)), "film": ["dune"] * len(texts), "at": texts})
    there = sum(text is not None for text in texts)
    remedies = tuple({"date_format": text} for text in formats)
    assert dates_lost(table, where="at >= '2026-01-01'") == [Loss("date", "at", there, len(texts), remedies)]
    by = {"by": discreet.month("at"), "groups": discreet.months("2026-01", "2026-12"), "each_user": "one"}
    assert dates_lost(table, **by) == [Loss("date", "at", len(texts), len(texts), remedies)]
    read = check(table, **by, date_format=formats[0])
    assert read.rows_inside == len(texts)
    assert [each.rows for each in read.lost if each.cause in ("date", "group")] == [1] * (len(texts) - there)


def test_dates_that_no_format_reads_are_counted_alone():
    table = pa.table({"who": [1, 2], "film": ["dune", "dune"], "at": ["02/31/2026", "yesterday"]})
    during = discreet.month("at").only("2026-01")
    assert dates_lost(table, during=during) == [Loss("date", "at", 2, 2)]
    assert dates_lost(table, where="at >= '2026'") == []


def test_a_format_that_reads_fewer_dates_than_are_read_is_no_remedy():
    table = pa.table({"who": range(3), "film": ["dune"] * 3, "at": ["2026-01-31", "2026-01-30", "31.01.2026"]})
    assert dates_lost(table, during=discreet.month("at").only("2026-01")) == [Loss("date", "at", 1, 3)]


def test_a_condition_leaves_rows_out_unchecked():
    found = check(pa.table({"who": [1, 2], "film": ["dune", "heat"], "land": ["DE", "de "]}), where="land = 'DE'")
    told = "Rows that where leaves out are not checked: it misses values in another spelling."
    assert str(found).endswith(f"\n{told}\nWhat to change:\n- Nothing stands out.")
    assert told in found._repr_html_()


def test_a_condition_may_name_a_column_in_another_case():
    found = check(where="LAND = 'de' AND At >= '2026'")
    assert found.where_values["land"][0] == Frequent("DE", 5)
    assert [each.column for each in found.lost if each.cause == "date"] == ["at"]


@pytest.mark.some(1)
@pytest.mark.parametrize("text", ["2026-01-31", "2026-01-31 12:00:00", "1.2.3.4", "hello"])
def test_other_text_is_no_date_in_another_order(text):
    table = pa.table({"who": [1], "film": ["dune"], "at": [text]})
    assert dates_lost(table, where=f"at = '{text}'") == []


def test_dates_of_a_type_are_not_looked_at():
    table = pa.table({"who": [1], "film": ["dune"], "at": pa.array([0], pa.date32())})
    assert dates_lost(table, where="at >= DATE '2026-01-01'") == []


def test_items_that_are_dates_are_looked_at():
    import datetime

    table = pa.table({"who": [1, 2, 3], "film": ["31/01/2026", "30/01/2026", "2026-01-30"]})
    found = check(table, domain=[datetime.date(2026, 1, 30), datetime.date(2026, 1, 31)])
    assert (found.rows_inside, found.rows_of_other_kind) == (1, 2)
    assert found.lost[0] == Loss("date", "film", 2, 3, ({"date_format": "%d/%m/%Y"},))


def test_text_that_stands_for_nobody_is_one_person():
    table = pa.table({"who": ["NULL", "NULL", " ", "ann"], "film": ["dune"] * 4})
    found = check(table)
    assert found.placeholder_users == [Frequent("NULL", 2), Frequent(" ", 1)]
    assert "'NULL' (2 rows), ' ' (1 row)" in found.advice[0]


def test_what_fits_has_no_advice():
    found = check(pa.table({"who": [1, 2], "film": ["dune", "heat"]}))
    assert found.advice == []
    assert str(found).startswith(WARNING)
    assert str(found).endswith("Nothing stands out.")
    assert "not checked" not in str(found)
    assert found.to_dict()["private"] is False


@pytest.mark.parametrize("rows", [0, 1])
def test_a_release_would_be_noise_where_nothing_counts(rows):
    table = pa.table({"who": pa.array([1] * rows, pa.int64()), "film": pa.array(["zorro"] * rows, pa.string())})
    found = check(table)
    assert found.is_noise
    assert found.advice == (
        ["No item of the domain is in the events: a release would be noise alone"]
        if rows
        else ["The table has no rows: is it the right file, pattern or table?"]
    )


def test_rows_of_no_group_are_noise_too():
    options = {"by": "land", "groups": ["IT"], "each_user": "one"}
    assert check(**options).is_noise


def test_a_period_and_the_mend_of_a_list_of_groups_are_told():
    days = {"land": ["it", "IT", "IT", "it"], "day": ["2026-10-01", "2026-10-02", "2026-10-03", "2026-11-01"]}
    table = pa.table({"who": [1, 2, 3, 4], "film": ["dune"] * 4, **days})
    period = discreet.month("day").only("2026-10")
    found = check(table, by="land", groups=["IT"], each_user="one", during=period)
    assert (found.rows, found.rows_kept) == (4, 3)
    assert [line.split() for line in str(found).splitlines()[1:3]] == [
        ["rows", "read", "4"],
        ["rows", "in", "the", "period", "3"],
    ]
    told = "are in no listed group and are dropped: by='fold(trim(land))' with fold(trim(...)) in the list reads them"
    assert found.advice[-1] == f"1 of 3 rows (33.3%) {told}"


def test_a_list_in_no_file_is_to_be_spelled_alike_too(tmp_path):
    rows = {"who": [1, 2, 3], "what": ["Soup", "soup ", "pie"], "land": ["by", "BY", "BY"]}
    split = {"by": "land", "groups": ["By"], "each_user": "one"}
    found = check(pa.table(rows), item="what", domain=["SOUP"], **split)
    both = [({"item": "fold(trim(what))"},), ({"by": "fold(trim(land))"},)]
    assert [(each.remedies, each.list_as) for each in found.lost] == [(each, "fold(trim(...))") for each in both]
    mended = "item='fold(trim(what))' with fold(trim(...)) in the list spells both alike"
    assert any(each.endswith(mended) for each in found.advice)
    assert found.to_dict()["lost"][0]["list_as"] == "fold(trim(...))"
    folded = check(
        pa.table(rows), item="fold(trim(what))", domain=["soup"], **{**split, "by": "fold(land)", "groups": ["by"]}
    )
    assert (folded.rows_inside, folded.lost[0].list_as) == (2, "")
    # With the expression there, only the list is left to change, and a list that is spelled so does not change.
    with pytest.warns(UserWarning, match="spell them alike"):
        half = check(pa.table(rows), item="fold(trim(what))", domain=["SOUP"])
    assert half.lost[-1] == Loss("item", "fold(trim(what))", 3, 3, (), "fold(trim(...))")
    assert check(pa.table(rows), item="what", domain=["soup"]).lost[-1] == Loss("item", "what", 3, 3, both[0])


def test_a_list_beside_the_events_is_spelled_by_an_expression(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE events (who INTEGER, what TEXT)")
        connection.execute("INSERT INTO events VALUES (1, 'Soup'), (2, 'soup '), (3, 'pie')")
        connection.execute('CREATE TABLE songs ("the song" TEXT)')
        connection.execute("INSERT INTO songs VALUES ('SOUP')")
    connection.close()
    options = {"table": f"sqlite://{tmp_path}/shop.db", "name": "events", "item": "what"}
    (loss,) = check(**options, domain="connect:songs.the song").lost
    mended = {"item": "fold(trim(what))", "domain": 'connect:songs.fold(trim("the song"))', "label": "the song"}
    assert loss == Loss("item", "what", 3, 3, (mended,))
    source = discreet.events(user="who", **{**options, **mended})
    release = discreet.top_k(source, 1, 1000, counts=1000)
    assert [(each.item, each.value) for each in release.counts] == [("SOUP", 2)]


def test_a_source_can_be_released_after_it_was_looked_at():
    source = discreet.events(EVENTS, **COLUMNS)
    assert discreet.check_events(source) == discreet.check_events(source)
    assert discreet.top_k(source, k=2, epsilon=1000).items == ["dune", "heat"]


@pytest.mark.parametrize("source", [EVENTS, {"dune": 3}, None])
def test_what_is_no_source_of_events_is_refused(source):
    with pytest.raises(TypeError, match=r"source must be what discreet\.events returns, not a"):
        discreet.check_events(source)


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(8))
def test_the_counts_are_those_of_a_loop_over_the_rows(seed):
    rng = random.Random(seed)
    items = ["dune", "Dune", " dune", "DU NE", "heat", "HEAT", "zorro", None]
    rows = [(rng.choice([1, 2, 3, None]), rng.choice(items), rng.randrange(3)) for _ in range(rng.randrange(1, 40))]
    who, film, stars = (pa.array(list(column)) for column in zip(*rows, strict=True))
    table = pa.table({"who": who.cast(pa.int64()), "film": film.cast(pa.string()), "stars": stars})
    domain = rng.sample(["dune", "HEAT", "heat", "alien"], 3)
    found = check(table, domain=domain, where="stars > 0")
    kept = [(user, item) for user, item, star in rows if star > 0]
    usable = [item for user, item in kept if user is not None and item is not None]
    outside = [item for item in usable if item not in domain]
    folded = {item.lower() for item in domain}
    near = [item for item in outside if item.lower().replace(" ", "") in folded]
    assert (found.rows, found.rows_kept) == (len(rows), len(kept))
    assert found.users == len({user for user, _ in kept} - {None})
    assert found.rows_without_user == sum(user is None for user, _ in kept)
    assert found.rows_without_item == sum(item is None for _, item in kept)
    assert (found.rows_inside, found.rows_outside) == (len(usable) - len(outside), len(outside))
    assert (found.items_outside, found.items_untouched) == (len(set(outside)), len(set(domain) - set(usable)))
    assert found.rows_near == len(near)
    assert [(each.value, each.rows) for each in found.outside] == sorted(
        Counter(outside).items(), key=lambda pair: (-pair[1], pair[0])
    )[:5]


NUMBERS = pa.table({"who": range(7), "film": ["7.0", "07", "7", "+8", "8.5", "9", "x"]})


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_texts_that_are_the_same_whole_number_are_found(engine, tmp_path, request):
    """A gap makes floats of ids, and a program writes 7.0: beside a list of text nothing would match."""
    found = check(**on(engine, NUMBERS, tmp_path, request), domain=["7", "8", "x"])
    assert (found.rows_inside, found.rows_alike) == (2, 3)
    assert set(found.alike) == {NearMatch("+8", "8", 1), NearMatch("07", "7", 1), NearMatch("7.0", "7", 1)}
    assert "3 rows would be inside the domain if items were whole numbers and not text, such as" in str(found)
    counted = check(**on(engine, NUMBERS, tmp_path, request), domain=[7, 8])
    assert (counted.rows_inside, counted.rows_alike, counted.alike) == (4, 0, [])


@pytest.mark.long
def test_the_expression_that_spells_events_and_lists_alike_is_told(tmp_path):
    rows = [("Soup", "by"), ("Soup ", "BY"), ("soup", "Be"), ("salad", "be"), ("pie", "x")]
    table = pa.table({"who": range(5), "my dish": [dish for dish, _ in rows], "land": [land for _, land in rows]})
    (tmp_path / "menu.csv").write_text("dish,price\nSoup,3\nSalad,2\n")
    (tmp_path / "alike.csv").write_text("my dish\nSoup\nSOUP\n")
    options = {"item": "my dish", "domain": f"{tmp_path}/menu.csv:dish"}
    told = {"item": 'fold(trim("my dish"))', "domain": f"{tmp_path}/menu.csv:fold(trim(dish))", "label": "dish"}
    (tmp_path / "lands.csv").write_text("code\nBY\nbe\n")
    split = {"by": "land", "groups": f"{tmp_path}/lands.csv", "each_user": "one"}
    groups = {"by": "fold(trim(land))", "groups": f"{tmp_path}/lands.csv:fold(trim(code))"}
    assert check(table, **options, **split).lost == [
        Loss("item", "my dish", 4, 5, (told,)), Loss("group", "land", 3, 5, (groups,))
    ]  # fmt: skip
    # With the expressions there, or a part of them, only the lists change.
    with pytest.warns(UserWarning, match="spell them alike"):
        half = check(table, **{**options, "item": told["item"]}, **{**split, "by": "trim(land)"})
    lists = {name: text for name, text in told.items() if name != "item"}
    assert [loss.remedies for loss in half.lost] == [(lists,), (groups,)]
    split |= groups
    assert [loss.rows for loss in check(table, **told, **split).lost] == [1, 1]
    release = discreet.top_k(discreet.events(table, user="who", **told, **split), k=1, epsilon=1000, counts=1000)
    assert [(each.item, each.value) for each in release["by"].counts] == [("Soup", 2)]
    # A spelling that makes one item of two is no remedy, and the next best one is.
    options["domain"] = f"{tmp_path}/alike.csv"
    assert check(table, **options).lost == [Loss("item", "my dish", 4, 5, ({"item": 'trim("my dish")'},))]
    options["domain"] += ':fold("my dish")'
    with pytest.raises(discreet.Error, match="domain must hold each item once"):
        discreet.events(table, user="who", **options)
