"""ClickHouse in the process, through the client and the backend of ibis that a server has too."""

import random
from datetime import datetime

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.events import lookup
from discreet.sources.events.dialects.base import dialect_of
from effort import examples
from engines import fill_clickhouse

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("clickhouse")]


def scores(table, **options):
    """The score of each item, in the order of the ranks."""
    source = discreet.events(table, user="who", item="what", **options)
    tally = source.tally()
    found = {item: int(tally.exact(rank)) for rank, item in enumerate(source.items(np.arange(source.d)))}
    source.close()
    return found


def test_many_users_are_counted_exactly():
    """ibis compiles a count of distinct values to uniq, which is an estimate beyond 65,536 of them."""
    number = 200_003
    table = fill_clickhouse(pa.table({"who": range(number), "what": [1] * number}))
    assert "uniq(" in table.get_backend().compile(table.who.nunique())
    assert scores(table, domain=[1, 2]) == {1: number, 2: 0}
    split = {"by": "what", "groups": [1], "each_user": "many"}
    source = discreet.events(table, user="who", item="what", domain=[1, 2], **split)
    released = discreet.top_k(source, 1, 1000, counts=10**6)
    assert [each.value for each in released[1].counts] == [number]


SPELLED = ["Soup", "soup", "SOUP", "Soup ", " Soup", "Soup\0", "süß", "su\u0308ß", "😀", ""]


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck), deadline=None)
@given(
    what=st.lists(st.sampled_from([*SPELLED, None]), max_size=6),
    number=st.sampled_from([float("nan"), -float("nan"), 0.0, -0.0, 5.0, float("inf"), None]),
    options=st.sampled_from([{}, {"where": "x >= 0"}, {"max_items_per_user": 2}, {"value": "x", "clip": (-1, 2)}]),
)
def test_one_user_moves_no_score_further_than_declared(what, number, options):
    base = [("ann", item, 1.0) for item in SPELLED] + [("Ann", "soup", float("nan")), ("ann ", "soup", -0.0)]
    more = [("ANN", item, number) for item in what]
    before, after = (
        scores(fill_clickhouse(pa.table([pa.array(each) for each in zip(*rows, strict=True)], ["who", "what", "x"])),
               domain=SPELLED, **options)
        for rows in (base, base + more)
    )  # fmt: skip
    low, high = options.get("clip", (0, 1))
    moves = {item: after[item] - before[item] for item in SPELLED if after[item] != before[item]}
    assert moves.keys() <= set(what)
    assert all(low <= move <= high for move in moves.values())
    assert len(moves) <= options.get("max_items_per_user", len(SPELLED))
    if not options:
        assert (before["Soup"], before["soup"]) == (1, 3)


def test_settings_of_the_connection_change_nothing():
    """A limit or an overflow mode would leave out rows, and joins without NULL give zeros."""
    table = fill_clickhouse(pa.table({"who": range(100), "what": [1, 2] * 50}))
    client = table.get_backend().con
    strange = {"group_by_overflow_mode": "any", "max_rows_to_group_by": 1, "limit": 1, "join_use_nulls": 0}
    for name, value in strange.items():
        client.set_client_setting(name, value)
    with pytest.raises(discreet.EngineError, match=r"^the query failed on clickhouse at computing the scores"):
        scores(table, domain=[1, 2, 3])
    client.set_client_setting("max_rows_to_group_by", 0)
    assert scores(table, domain=[1, 2, 3]) == {1: 50, 2: 50, 3: 0}


def test_enums_and_other_texts_are_text():
    rows = pa.table({"who": ["a", "b", "c"], "what": ["x", "y", "x"]})
    for kind in ("Enum8('x' = 1, 'y' = 2)", "FixedString(1)", "LowCardinality(String)", "String"):
        table = fill_clickhouse(rows, what=kind)
        assert scores(table, domain=["x", "y", "zzz"], where="what <> 'zz'") == {"x": 2, "y": 1, "zzz": 0}


def test_moments_are_points_in_time_whatever_the_zone_of_the_column():
    moments = [datetime(2026, 1, 1), datetime(2025, 12, 31, 23, 59, 59, 999_999), datetime(1969, 12, 31, 23, 59, 59, 1)]
    rows = pa.table({"who": range(3), "what": ["x"] * 3, "at": pa.array(moments, pa.timestamp("us", "UTC"))})
    for kind in ("DateTime64(6)", "DateTime64(6, 'Asia/Tokyo')", "DateTime64(3, 'UTC')"):
        table = fill_clickhouse(rows, at=kind)
        for year in (2026, 2025, 1969):
            assert scores(table, domain=["x", "y"], during=discreet.year("at").only(year))["x"] == 1
        typed = "TIMESTAMP '2026-01-01 00:00:00'" if "'" not in kind else "TIMESTAMPTZ '2026-01-01 00:00:00+00:00'"
        assert scores(table, domain=["x", "y"], where=f"at >= {typed}")["x"] == 1


def test_no_statement_and_no_table_of_others_shows_a_score(monkeypatch):
    """Two tables whose scores all differ: the statements are the same, and the tables are temporary."""
    monkeypatch.setattr(lookup, "FETCHED", 8)
    told = []
    for amounts in ((90_677, 81_799, 64_513), (99_013, 98_017, 31_337)):
        items = [f"item {i}" for i in range(120)]
        rows = {"who": [1] * 120, "what": items, "amount": [float(amounts[i % 3]) for i in range(120)]}
        table = fill_clickhouse(pa.table(rows))
        client, said = table.get_backend().con, []
        for name in ("query", "command", "raw_query", "query_column_block_stream", "raw_insert"):
            usual = getattr(client, name)

            def tell(*args, usual=usual, said=said, **options):
                said.extend(each for each in (*args, *options.values()) if isinstance(each, str))
                return usual(*args, **options)

            monkeypatch.setattr(client, name, tell)
        source = discreet.events(
            table, user="who", item="what", domain=items, value="amount", clip=(0, 10**5), resolution=1
        )
        discreet.top_k(source, 40, 10**4, rng=random.Random(3))
        source.tally()
        source.items(np.array([0, 41, 100]))
        # Our own client has made the snapshot: it is there, in this session alone.
        made = client.query("SELECT name, is_temporary FROM system.tables WHERE name LIKE 'ibis_cached%'").result_rows
        assert made
        assert all(is_temporary for _, is_temporary in made)
        source.close()
        told.append("\n".join(said))
    assert any("discreet_wanted" in text for text in told)
    for text in told:
        assert not any(str(amount) in text for amount in (90_677, 81_799, 64_513, 99_013, 98_017, 31_337))


def test_the_connection_of_the_caller_stays_as_it_is():
    table = fill_clickhouse(pa.table({"who": [1], "what": [1]}))
    ours = dialect_of(table).adapt_table(table).get_backend()
    assert ours is not table.get_backend()
    assert dialect_of(table).adapt_table(table).get_backend() is ours
    assert "uniq(" in ibis.to_sql(table.who.nunique(), dialect="clickhouse")
    listed = fill_clickhouse(pa.table({"what": [1, 2]}))
    assert scores(table, domain=listed) == {1: 1, 2: 0}
    same = table.get_backend().table(table.get_name())
    assert scores(table, domain=table.get_backend().sql("SELECT 2 AS what, 'b' AS label"), label="label") == {"b": 0}
    assert same.count().to_pyarrow().as_py() == 1
