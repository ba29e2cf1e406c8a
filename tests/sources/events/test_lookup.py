"""Finding items by rank in groups too large to fetch: by buckets, and among numbers that nobody touched."""

import random
import string
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from test_contract import counted, expected, ranking

import discreet
from discreet.sources.events import lookup
from engines import on


@pytest.fixture
def narrow(monkeypatch):
    """Fetch almost nothing at once, and cut into few buckets, so that every level is used."""
    monkeypatch.setattr(lookup, "FETCHED", 8)
    monkeypatch.setattr(lookup, "BITS", 5)


def many(kind, seed, n=700):
    rng = random.Random(seed)
    if kind == "string":
        letters = string.ascii_letters + "éß😀 "
        return list(
            {
                "common/prefix/of/all/" * rng.randrange(2) + "".join(rng.choices(letters, k=rng.randrange(1, 9)))
                for _ in range(n)
            }
        )
    if kind == "date":
        return [date(1950, 1, 1) + timedelta(days=37 * i) for i in range(n)]
    return list({rng.randrange(-(2**63), 2**63) if rng.random() < 0.5 else rng.randrange(-500, 500) for _ in range(n)})


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ["arrow", "sqlite"])
@pytest.mark.parametrize("kind", ["string", "integer", "date"])
def test_every_place_of_large_groups_is_found(engine, kind, tmp_path, request, narrow):
    domain = many(kind, 1)
    rng = random.Random(2)
    rows = [{"who": f"u{i % 3}", "what": rng.choice(domain)} for i in range(400)]
    types = {"string": pa.string(), "integer": pa.int64(), "date": pa.date32()}
    events = pa.Table.from_pylist(rows, pa.schema([("who", pa.string()), ("what", types[kind])]))
    source = discreet.events(**on(engine, events, tmp_path, request), user="who", item="what", domain=domain)
    order = expected(counted(rows, domain))
    tally = source.tally()
    for _ in range(6):
        ranks = np.array(rng.sample(range(len(domain)), 5))
        assert source.items(ranks) == [order[rank][1] for rank in ranks]
    assert [tally.exact(rank) for rank in range(tally.d)] == [score for score, _ in order]
    source.close()


@pytest.mark.some(2)
@pytest.mark.parametrize(("lo", "hi"), [(0, 300), (-150, 150), (-(2**63), -1), (0, 2**63 - 1), (2**62, 2**62 + 500)])
def test_numbers_that_nobody_touched_are_found_among_those_touched(lo, hi, narrow):
    rng = random.Random(3)
    near = [lo + i for i in range(0, 200, 2) if lo + i <= hi] + [hi - i for i in range(0, 100, 3) if hi - i >= lo]
    rows = [{"who": i % 7, "what": rng.choice(near)} for i in range(500)]
    source = discreet.events(pa.Table.from_pylist(rows), user="who", item="what", domain=discreet.integers(lo, hi))
    scores = counted(rows, near)
    touched = sorted(item for item, score in scores.items() if score)
    tally = source.tally()
    assert tally.d == hi - lo + 1
    places = sorted(
        {0, 1, 2, 50, 99, 100, tally.d - len(touched) - 1, *(rng.randrange(tally.d - len(touched)) for _ in range(20))}
    )
    ranks = np.array([len(touched) + place for place in places if place < tally.d - len(touched)])
    items = source.items(ranks)
    for place, item in zip(places, items, strict=False):
        assert lo <= item <= hi
        assert item not in touched
        assert item - lo - sum(t < item for t in touched) == place
    source.close()


def test_small_ranges_are_ranked_in_full(narrow):
    rows = [{"who": w, "what": i} for w, i in [(1, 3), (2, 3), (1, 5), (3, 9), (1, 100)]]
    source = discreet.events(pa.Table.from_pylist(rows), user="who", item="what", domain=discreet.integers(0, 9))
    assert ranking(source) == expected(counted(rows, range(10)))


def test_a_huge_range_draws_without_writing_it_out():
    rows = pa.table({"who": np.arange(1000) % 50, "what": np.arange(1000) * 10**15})
    source = discreet.events(rows, user="who", item="what", domain=discreet.integers(0, 2**63 - 1))
    release = discreet.top_k(source, k=20, epsilon="0.001")
    assert len(set(release.items)) == 20
    assert release.d == 2**63
