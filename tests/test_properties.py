"""Whatever is handed in, a right answer or an Error comes out: `top_k`, `events`, releases as text, the command line.

Each property is a strategy and a check, which fuzz/run.py draws for as long as it is told to; here they are drawn a
fixed number of times with fixed choices. A check returns whether the call was accepted.
"""

import json
import math
import random
import sys
from collections import defaultdict
from contextlib import chdir
from datetime import UTC, date, time
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.mechanisms.noise import NOISES
from discreet.release.release import add_decimals
from effort import examples

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the folder fuzz is
from fuzz import conditions
from fuzz.contract import REFUSED, agree, command, folder, outcome
from fuzz.rationals import of_text

MECHANISMS = {
    "canonical": discreet.Canonical,
    "one-shot": discreet.OneShot,
    "peeling": discreet.Peeling,
    "joint": discreet.Joint,
}

# Numbers as people hand them in, good ones first.
wholes = st.one_of(st.integers(-5, 20), st.integers(), st.integers(-(2**70), 2**70), st.sampled_from([2**63, -(2**63)]))
floats = st.one_of(
    st.floats(-9, 9), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([-0.0, 5e-324, 1e308])
)
fractions = st.one_of(st.fractions(-9, 9, max_denominator=9), st.fractions())
decimals = st.one_of(st.decimals(-9, 9, places=2), st.decimals(allow_nan=False, allow_infinity=False))
strange = st.sampled_from(
    [None, math.nan, math.inf, -math.inf, "5", "x", b"1", [1], (1, 2), {}, 1j, object(), Decimal("NaN"),
     Decimal("sNaN"), Decimal("1e999999"), Decimal("-Infinity"), np.float32(0.1), np.longdouble("0.1"), np.int8(-7),
     np.bool_(True), 10**5000, Fraction(1, 10**5000), pd.NA, pd.NaT, np.datetime64("2024-01-31"), float,
     "1" * 2000, "1e-99999"]
)  # fmt: skip


def mostly(good, bad=strange):
    """Good values, and now and then a bad one."""
    return st.integers(0, 39).flatmap(lambda n: bad if n == 39 else good)


def listed(values):
    return st.lists(values, min_size=1, max_size=8)


DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
          "float64", "longdouble", "object"]  # fmt: skip


@st.composite
def arrays(draw):
    """One-dimensional arrays of every kind of number, at the ends of their types too."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    length = draw(st.integers(1, 8))
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        values = draw(
            st.lists(st.integers(int(ends.min), int(ends.max)) | st.integers(0, 9), min_size=length, max_size=length)
        )
    elif dtype.kind == "f":
        width = {2: 16, 4: 32}.get(dtype.itemsize, 64)
        values = draw(
            st.lists(st.floats(width=width, allow_nan=False, allow_infinity=False), min_size=length, max_size=length)
        )
    else:
        values = draw(
            st.lists(st.booleans() if dtype.kind == "b" else wholes | fractions, min_size=length, max_size=length)
        )
    return np.array(values, dtype)


plain_scores = st.one_of(
    listed(wholes), listed(floats), listed(fractions), listed(decimals), listed(st.booleans()),
    listed(wholes | floats | fractions | decimals | st.booleans()), arrays(),
)  # fmt: skip
strange_scores = st.one_of(
    listed(wholes | strange), strange, st.just([]), arrays().map(lambda scores: scores.reshape(1, -1)),
    listed(floats).map(pd.Series), listed(floats).map(pl.Series), listed(floats).map(pa.array), st.sets(wholes),
    listed(wholes | strange).map(lambda values: np.array([*values, None], object)[:-1]),
)  # fmt: skip

simple_labels = st.one_of(
    st.text(max_size=5), st.integers(), st.booleans(), st.floats(allow_nan=False), st.binary(max_size=3), st.none(),
    st.decimals(allow_nan=False), st.fractions(), st.uuids(), st.dates(), st.times(), st.timedeltas(),
    st.datetimes(), st.datetimes(timezones=st.just(UTC)),
)  # fmt: skip
labels = simple_labels | st.tuples(simple_labels, simple_labels)
strange_labels = (
    labels | strange | st.sampled_from([math.nan, frozenset(), time(1, tzinfo=UTC), np.str_("a"), range(2)])
)

powers = st.sampled_from(
    ["1e-9", "1/3", "0.1", 1, 0.5, Fraction(7, 3), Decimal("2.5"), 10**4, "1e300", np.float64(0.25), 5e-324]
)
epsilons = mostly(
    powers | st.fractions(Fraction(1, 10**9), 50) | st.floats(1e-6, 50),
    strange | st.sampled_from([0, -1, "-0.5", True]),
)
gammas = mostly(
    st.sampled_from([0, 1, "1/2", 0.25, "2/5", Fraction(99, 100)]), strange | st.sampled_from([2, -1, "1.5"])
)
noises = mostly(st.sampled_from(list(NOISES)), st.sampled_from(["cauchy", None, 5, ""]))
sides = mostly(st.sampled_from([0, 1, "1/2", 3, 0.25, "1e-3", Decimal("2.5"), 10**6]), strange | st.sampled_from([-1]))


@st.composite
def requests(draw):
    """The arguments of `top_k`, the mechanism and the sensitivity as the arguments of their own."""
    scores = draw(mostly(plain_scores, strange_scores))
    size = len(scores) if hasattr(scores, "__len__") else 3
    names = draw(
        st.none() | mostly(st.lists(labels, min_size=size, max_size=size, unique_by=repr), st.lists(strange_labels))
    )
    name = draw(st.sampled_from(sorted(MECHANISMS)))
    options = {"gamma": draw(gammas), "noise": draw(noises), "ceil": draw(mostly(st.booleans(), st.just("yes")))}
    own = {"canonical": ["gamma", "noise", "ceil"], "one-shot": ["noise"], "peeling": ["noise"], "joint": []}[name]
    chosen = [option for option in own if draw(st.booleans())]
    return {
        "scores": scores,
        "labels": names,
        "as_mapping": draw(st.booleans()),
        "k": draw(
            mostly(st.integers(1, max(1, size)), strange | st.sampled_from([0, -1, size + 1, True, np.int8(1), 1.0]))
        ),
        "epsilon": draw(epsilons),
        "mechanism": (name, {option: options[option] for option in chosen}),
        "sensitivity": draw(st.none() | st.tuples(sides, sides)),
        "seed": draw(st.integers(0, 2**32)),
        "adjacency": draw(mostly(st.sampled_from([None, "add-remove", "swap"]), st.sampled_from(["Swap", 5, ""]))),
    }


def check_top_k(request):
    """Only an Error comes out, or a release of what was asked for; and at an enormous epsilon the truth."""
    call = dict(request)
    name, options = call.pop("mechanism")
    mechanism = outcome(lambda: MECHANISMS[name](**options))
    pair = call.pop("sensitivity")
    sensitivity = None if pair is None else outcome(lambda: discreet.Sensitivity(*pair))
    if mechanism is REFUSED or sensitivity is REFUSED:
        return False
    scores, names = call.pop("scores"), call.pop("labels")
    if call.pop("as_mapping") and names is not None and _maps(names, scores):
        scores, names = dict(zip(names, list(scores), strict=True)), None
    rng = random.Random(call.pop("seed"))  # so that a failure is found again
    given = {"labels": names, "mechanism": mechanism, "sensitivity": sensitivity, "rng": rng}
    release = outcome(lambda: discreet.top_k(scores, **call, **given))
    if release is REFUSED:
        return False
    exact, known = [rational(score) for score in _values(scores)], _names(scores, names)
    k = int(call["k"])
    check_release(release, known, k, mechanism)
    check_guarantee(release.guarantee, call, mechanism, sensitivity or discreet.Sensitivity(), len(exact))
    if not options.get("ceil"):
        check_truth(scores, given, exact, known, k)
    return True


def _maps(names, scores):
    """Whether the labels can be keys: all different, and as many as the scores."""
    try:
        return len(set(names)) == len(names) == len(list(scores))
    except TypeError:
        return False


def _values(scores):
    return list(scores.values()) if isinstance(scores, dict) else list(scores)


def _names(scores, names):
    if isinstance(scores, dict):
        return list(scores)
    return list(range(len(scores))) if names is None else list(names)


def rational(score):
    """The number that a score is."""
    if hasattr(score, "as_py"):
        score = score.as_py()
    if isinstance(score, bool | np.bool_ | np.integer):
        return Fraction(int(score))
    return Fraction(*score.as_integer_ratio())


def check_release(release, known, k, mechanism):
    """k different labels of the domain, sorted by label, in an order where one is proven, and the same from JSON."""
    items = list(map(typed, release.items))
    agree(len(items) == k == len(set(items)), f"{k} items are asked for, and {release.items} released")
    agree(set(items) <= set(map(typed, known)), f"{release.items} are not all of {known}")
    agree(is_sorted(release.items), f"{release.items} are not sorted")
    ordered = mechanism.ordered and k < len(known)
    agree((release.order is not None) == ordered, f"the order is {release.order}")
    agree(release.order is None or sorted(map(typed, release.order)) == sorted(items), f"{release.order} for {items}")
    agree(not release.private and release.d == len(known), f"{release!r} of {len(known)} items")
    again = discreet.Release.from_json(release.to_json())
    agree(again == release, f"{release!r} is {again!r} after a journey through JSON")
    agree(list(map(typed, again.items)) == items, f"{release.items} are {again.items} after a journey through JSON")
    agree(json.loads(release.to_json(indent=1)) == add_decimals(release), f"{release.to_dict()} is not its own JSON")
    agree(len(str(release).splitlines()) >= k + 2, f"{release!s} is too short")


def typed(label):
    """A label with its type, spelled out: 1, 1.0 and True are three."""
    label = label.item() if isinstance(label, np.generic) else label
    # Two times that differ in the hour of a clock that is set back alone are one label.
    return (type(label).__name__, repr(label.replace(fold=0) if type(label) is time else label))


def is_sorted(items):
    """Whether labels stand together by kind, and ascend within each; the order of kinds is the library's own."""
    kinds = [kind(item) for item in items]
    together = all(kinds[n] == kinds[n - 1] or kinds[n] not in kinds[:n] for n in range(1, len(kinds)))
    pairs = [(a, b) for a, b in pairwise(items) if kind(a) == kind(b)]
    return together and all(ascends(a, b) for a, b in pairs)


def kind(item):
    if isinstance(item, int | float | Decimal | Fraction):
        return "number"
    return f"{type(item).__name__} {getattr(item, 'tzinfo', None)}"


def ascends(one, other):
    if isinstance(one, tuple):
        first = next((a, b) for a, b in zip(one, other, strict=True) if typed(a) != typed(b))
        return kind(first[0]) != kind(first[1]) or ascends(*first)
    if kind(one) == "number":
        if math.inf in (abs(one), abs(other)):
            return one < other
        return Fraction(one) < Fraction(other)
    return one < other


def check_guarantee(guarantee, call, mechanism, sensitivity, d):
    """What was asked for is what is promised."""
    # A float among the privacy parameters is its shortest decimal.
    said = repr(float(call["epsilon"])) if isinstance(call["epsilon"], float) else call["epsilon"]
    epsilon = meant(said) if call["k"] < d else Fraction(0)
    agree(guarantee.epsilon == epsilon, f"epsilon {call['epsilon']!r} is promised as {guarantee.epsilon}")
    agree(guarantee.adjacency == (call["adjacency"] or "add-remove"), f"{call['adjacency']!r} is {guarantee.adjacency}")
    agree(guarantee.mechanism == mechanism, f"{mechanism} is promised as {guarantee.mechanism}")
    width = sensitivity.down + sensitivity.up
    sides = (width, width) if call["adjacency"] == "swap" else (sensitivity.down, sensitivity.up)
    promised = guarantee.sensitivity
    agree((promised.down, promised.up) == sides, f"{sensitivity} is promised as {promised}")


def meant(number):
    return of_text(number) if isinstance(number, str) else rational(number)


def check_truth(scores, given, exact, known, k):
    """At an enormous epsilon the release is a true top-k, by exact comparison.

    A wrong one loses at least `gap * share` by the loss of its mechanism, so that with this epsilon each is less likely
    than the truth by a factor of exp(-2500) or more. There are fewer than 9! of them: a false alarm has a probability
    below 10^-1000.
    """
    ranked = sorted(exact, reverse=True)
    gaps = [a - b for a, b in pairwise(ranked) if a > b]
    gamma = getattr(given["mechanism"], "gamma", Fraction(1, 2))
    delta = (given["sensitivity"] or discreet.Sensitivity()).delta
    share = min([part for part in (gamma, 1 - gamma) if part > 0])
    needed = 10_000 * k * 2 * delta / (min(gaps, default=Fraction(1)) * share)
    if needed > 2**4000:
        return  # no epsilon of that size is taken
    epsilon = 2 ** max(0, needed.numerator.bit_length() - needed.denominator.bit_length() + 1)
    release = outcome(lambda: discreet.top_k(scores, k, epsilon, **given))
    agree(release is not REFUSED, "an enormous epsilon is refused")
    score = dict(zip(map(typed, known), exact, strict=True))
    taken = [score[typed(item)] for item in release.items]
    if gamma == 0:
        # Only the largest score outside counts: what is above the k-th is in.
        agree(sum(each > ranked[k - 1] for each in taken) == sum(each > ranked[k - 1] for each in ranked), f"{release}")
    elif gamma == 1:
        # Only the smallest score inside counts: nothing below the k-th is in.
        agree(min(taken) == ranked[k - 1], f"{release.items} have {taken} of {ranked}")
    else:
        agree(sorted(taken, reverse=True) == ranked[:k], f"{release.items} have {taken} of {ranked}")
    if release.order is not None:
        agree([score[typed(item)] for item in release.order] == ranked[:k], f"{release.order} of {ranked}")


USERS = ["ann", "bob", "Bob", "eve", "", None]
UNIVERSES = {
    "string": (pa.string(), ["dune", "Dune", "é", "", "a\nb", "😀", "x'y", "NULL"]),
    "integer": (pa.int64(), [0, 1, 2, 3, -5, 2**40, -(2**63), 2**63 - 1]),
    "date": (pa.date32(), [date(2024, 1, 31), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)]),
    "boolean": (pa.bool_(), [True, False]),
}
AMOUNTS = {
    "float": pa.float64(),
    "integer": pa.int64(),
    "small": pa.int8(),
    "decimal": pa.decimal128(20, 3),
}
CONDITIONS = {
    None: lambda row: True,
    "stars = 5": lambda row: row["stars"] == 5,
    "stars * 2 > 5.5 OR who = 'ann'": lambda row: row["stars"] * 2 > 5.5 or row["who"] == "ann",
    "who IS NOT NULL AND NOT stars BETWEEN 2 AND 3": lambda row: row["who"] is not None and not 2 <= row["stars"] <= 3,
    "coalesce(lower(who), 'bob') = 'bob'": lambda row: (row["who"] or "x").lower() == "bob" or row["who"] is None,
}
FRAMES = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
}


amounts = {
    "float": st.none() | st.floats(-99, 99) | st.sampled_from([-0.0, 0.1, 1e300, -1e300, math.inf, math.nan]),
    "integer": st.one_of(st.none(), st.integers(-9, 9), st.sampled_from([2**62, -(2**62), 2**53 + 1])),
    "small": st.none() | st.integers(-128, 127),
    "decimal": st.none() | st.decimals(-9, 9, places=3) | st.sampled_from([Decimal("9" * 17), -Decimal("9" * 17)]),
}  # fmt: skip
CLIPS = [
    ((0, 5), None), ((-3, 7), 1), (("-0.5", "2.5"), "0.5"), ((0, "1/3"), "1/3"), ((-2, -1), None), ((1, 2), "0.25"),
    ((-(10**9), 10**9), 1), (("0", "1e-3"), "1e-6"), ((-4, 0), 2),
]  # fmt: skip


@st.composite
def tables(draw):
    """A small table of events with a domain, and how its scores are made."""
    kind = draw(st.sampled_from(sorted(UNIVERSES)))
    universe = UNIVERSES[kind][1]
    number = draw(st.sampled_from(sorted(AMOUNTS)))
    row = st.fixed_dictionaries(
        {
            "who": st.sampled_from(USERS),
            "what": st.sampled_from([*universe, None]),
            "amount": amounts[number],
            "stars": st.integers(1, 5),
        }
    )
    ranged = kind == "integer" and draw(st.booleans())
    lo = draw(st.integers(-6, 2)) if ranged else 0
    return {
        "kind": kind,
        "number": number,
        "rows": draw(st.lists(row, max_size=12)),
        "more": draw(st.lists(row, max_size=4)),
        "other": draw(st.lists(row, max_size=4)),
        "domain": discreet.integers(lo, lo + 12)
        if ranged
        else draw(st.lists(st.sampled_from(universe), min_size=1, unique=True)),
        "where": draw(st.sampled_from(list(CONDITIONS))),
        "sums": draw(st.none() | st.sampled_from(CLIPS)),
        "adjacency": draw(st.sampled_from(["add-remove", "swap"])),
        "frame": draw(st.sampled_from(sorted(FRAMES))),
    }


def source_of(case, rows):
    """The events as a source."""
    schema = [
        ("who", pa.string()),
        ("what", UNIVERSES[case["kind"]][0]),
        ("amount", AMOUNTS[case["number"]]),
        ("stars", pa.int64()),
    ]
    table = FRAMES[case["frame"]](pa.Table.from_pylist(rows, pa.schema(schema)))
    options = (
        {} if case["sums"] is None else {"value": "amount", "clip": case["sums"][0], "resolution": case["sums"][1]}
    )
    return discreet.events(
        table,
        user="who",
        item="what",
        domain=case["domain"],
        where=case["where"],
        adjacency=case["adjacency"],
        **options,
    )


def scores_of(source):
    """Every item with its score, as the tally and the lookup say."""
    tally = source.tally()
    try:
        return {typed(item): tally.exact(rank) for rank, item in enumerate(source.items(np.arange(tally.d)))}
    finally:
        source.close()


def listed_domain(case):
    domain = case["domain"]
    return domain if isinstance(domain, list) else list(range(domain.lo, domain.hi + 1))


def check_events(case):
    """The scores are those of the definition, in exact rationals, and a release is of the domain."""
    source = outcome(lambda: source_of(case, case["rows"]))
    agree(source is not REFUSED, f"{case} is refused")
    found = outcome(lambda: scores_of(source))
    agree(found == expected_scores(case, case["rows"]), f"{case} has the scores {found}")
    release = outcome(lambda: discreet.top_k(source, 1, "1/10", rng=random.Random(0)))
    agree(release is not REFUSED and release.items[0] in listed_domain(case), f"{case} gives {release}")
    return True


def expected_scores(case, rows):
    """The definition: users counted, or their totals in whole steps clipped and added; None where rounding is a tie.

    Rows are brought to whole steps in floats, so amounts within a millionth of the middle between two steps, where a
    float may go to the other one, are not looked at.
    """
    users, totals = defaultdict(set), defaultdict(int)
    for row in rows:
        if row["who"] is not None and CONDITIONS[case["where"]](row):
            users[row["what"]].add(row["who"])
            amount = row["amount"]
            if case["sums"] is not None and amount is not None and amount == amount:
                totals[row["what"], row["who"]] += steps(amount, case["sums"])
    if case["sums"] is None:
        return {typed(item): Fraction(len(users[item])) for item in listed_domain(case)}
    (low, high), unit = map(meant, case["sums"][0]), meant(case["sums"][1] or 1)
    scores = {item: Fraction(0) for item in listed_domain(case)}
    for (item, _), total in totals.items():
        if item in scores:
            scores[item] += max(low, min(high, total * unit))
    return {typed(item): score for item, score in scores.items()}


def steps(amount, sums):
    """A row's amount in whole steps, to the nearest, and at most a billion of them."""
    unit = meant(sums[1] or 1)
    if abs(amount) == math.inf:
        return 10**9 if amount > 0 else -(10**9)
    return math.floor(max(-(10**9), min(10**9, rational(amount) / unit)) + Fraction(1, 2))


def is_clear(case):
    """Whether no amount is so near to the middle of two steps that a float may round it to the other one."""
    if case["sums"] is None:
        return True
    unit = meant(case["sums"][1] or 1)
    amounts = [row["amount"] for row in case["rows"] if row["amount"] is not None and math.isfinite(row["amount"])]
    parts = [max(-(10**9), min(10**9, rational(amount) / unit)) % 1 for amount in amounts]
    return all(part == Fraction(1, 2) or abs(part - Fraction(1, 2)) > Fraction(1, 10**6) for part in parts)


def check_neighbours(case):
    """One user more moves each score within the sensitivity that the source states; one replaced, within swap's."""
    source = source_of(case, case["rows"])
    new = [{**row, "who": "new"} for row in case["more"]]
    other = [{**row, "who": "other"} for row in case["other"]]
    before, with_new, with_other = (scores_of(source_of(case, case["rows"] + rows)) for rows in ([], new, other))
    limit, width = source.sensitivity, source.sensitivity.under("swap")
    for item in before:
        moved, swapped = with_new[item] - before[item], with_other[item] - with_new[item]
        agree(-limit.down <= moved <= limit.up, f"adding a user moves {item} by {moved}, beyond {limit}, in {case}")
        agree(
            -width.down <= swapped <= width.up, f"replacing a user moves {item} by {swapped}, beyond {width}, in {case}"
        )
    return True


scraps = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "value", "down", "up"]), inner)
    ),
    max_leaves=6,
)
PLACES = [(place,) for place in ("items", "order", "d", "private", "format", "guarantee")]
PLACES += [("guarantee", place) for place in ("epsilon", "zcdp", "mechanism", "sensitivity", "adjacency")]
PLACES += [("guarantee", "mechanism", place) for place in ("name", "gamma", "noise")] + [
    ("guarantee", "sensitivity", "up")
]
wrong_texts = st.one_of(
    st.text(max_size=20),
    st.tuples(
        st.lists(st.tuples(st.sampled_from(PLACES), scraps), min_size=1, max_size=3), st.sampled_from([None, "drop"])
    ),
    st.tuples(st.sampled_from(["[", '{"a":', "9", " "]), st.integers(1, 10**5)),
    st.sampled_from(['{"format": 1}', "null", "[]", '"\\ud800"']),
)


def check_release_text(given):
    """A release whose JSON was tampered with is refused, or is a release that can be written again."""
    text = given if isinstance(given, str) else _tampered(*given)
    release = outcome(lambda: discreet.Release.from_json(text))
    return release is not REFUSED


def _tampered(changes, drop):
    if isinstance(changes, str):
        return changes * drop  # one piece of text, many times
    data = discreet.top_k({"a": 1, "b": 2, "c": 3}, 2, 1).to_dict()
    for path, scrap in changes:
        inner = data
        for name in path[:-1]:
            inner = inner.get(name, {}) if isinstance(inner, dict) else {}
        if isinstance(inner, dict) and drop:
            inner.pop(path[-1], None)
        elif isinstance(inner, dict):
            inner[path[-1]] = scrap
    return json.dumps(data)


@cache
def files():
    """A folder with scores and events, good and bad."""
    path = folder() / "command"
    path.mkdir(exist_ok=True)
    (path / "scores.csv").write_text("item,score\ndune,912\nalien,877.5\nheat,-1e3\n")
    (path / "bad.csv").write_text('item,score\n"dune,1\n')
    (path / "scores.json").write_text('{"dune": 1, "heat": 2.5}')
    (path / "bad.json").write_text("{")
    (path / "empty.csv").write_text("")
    (path / "movies.csv").write_text("movie_id,title\n1,dune\n2,heat\n3,alien\n")
    np.save(path / "scores.npy", np.array([3, 1, 2]))
    events = {"who": ["a", "b", "b"], "movie_id": [1, 1, 2], "stars": [5.0, 1.5, 3.0]}
    pa.parquet.write_table(pa.table(events), path / "events.parquet")
    (path / "events.csv").write_text("who,movie_id,stars\na,1,5\nb,2,x\n")
    ibis.sqlite.connect(path / "events.db").disconnect()
    (path / "folder.csv").mkdir(exist_ok=True)
    return path


FILES = ["scores.csv", "scores.json", "scores.npy", "bad.csv", "bad.json", "empty.csv", "folder.csv", "missing.csv",
         "events.parquet", "events.csv", "movies.csv", "*.csv", "", ".", "\udcff.csv"]  # fmt: skip
NUMBERS = ["1", "2", "0", "-1", "0.5", "1/3", "1e-3", "x", "", "nan", "1e9999", "9" * 30, "--", "1,2", "²"]
words = st.text(st.characters(exclude_characters="\x00/~*?[:"), max_size=6)
OPTIONS = {
    "-k": NUMBERS,
    "--epsilon": NUMBERS,
    "--item": ["item", "movie_id", "title", ""],
    "--score": ["score", "item", "who"],
    "--user": ["who", "stars", "nobody"],
    "--domain": ["movies.csv:movie_id", "integers:0:9", "movies.csv", "integers:9:0", "x:y"],
    "--label": ["title", "movie_id", ""],
    "--where": [*conditions.SEEDS, "stars = 5", "stars > 1", "'"],
    "--value": ["stars", "who"],
    "--clip": ["0,5", "5,0", "0", "0,1/3", ","],
    "--resolution": NUMBERS,
    "--connect": ["sqlite://events.db", "sqlite://missing.db", "duckdb://events.csv", "nothing", "x://y"],
    "--name": ["events", ""],
    "--mechanism": ["canonical", "one-shot", "peeling", "joint", "x"],
    "--gamma": NUMBERS,
    "--noise": [*NOISES, "x"],
    "--sensitivity": ["0,1", "1,1", "0,0", "1", "1/3,2", "-1,5"],
    "--adjacency": ["swap", "add-remove", "x"],
    "--out": ["out.json", "missing/out.json", "folder.csv", ""],
    **dict.fromkeys(["--ceil", "--json", "--help", "-h", "--nonsense"]),
}
SCORES = ("-k", "1", "--epsilon", "1")
EVENTS = (*SCORES, "--user", "who", "--item", "movie_id", "--domain", "movies.csv:movie_id")
STARTS = [("select", "scores.csv", *SCORES), ("select", "scores.json", *SCORES), ("select", "events.parquet", *EVENTS),
          ("select", "events.csv", *EVENTS), ("select",), ()]  # fmt: skip


@st.composite
def arguments(draw):
    """A call that would do, with options after it that may not, and now and then a word dropped or put in."""
    parts = list(draw(st.sampled_from(STARTS)))
    for option in draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=4)):
        values = OPTIONS[option]
        value = None if values is None else draw(mostly(st.sampled_from(values), words))
        glued = draw(st.booleans()) and option.startswith("--")
        parts += [option] if value is None else [f"{option}={value}"] if glued else [option, value]
    if draw(st.integers(0, 3)) == 0 and parts:
        parts.pop(draw(st.integers(0, len(parts) - 1)))
    if draw(st.integers(0, 5)) == 0:
        parts.insert(
            draw(st.integers(0, len(parts))), draw(words | st.sampled_from([*FILES, "--version", "--", "-", "select"]))
        )
    return parts


def check_command(given):
    """The exit code is 0, 1 or 2, a complaint is one line, and what is printed as JSON is a release."""
    with chdir(files()):
        code, printed, _ = command(*given)
        Path("out.json").unlink(missing_ok=True)
    if code == 0 and "--json" in given and not {"--help", "-h", "--version"} & set(given) and printed.startswith("{"):
        agree(add_decimals(discreet.Release.from_json(printed)) == json.loads(printed), f"{printed} is no release")
    return code == 0


PROPERTIES = {
    "top_k": (requests(), check_top_k),
    "events": (tables().filter(is_clear), check_events),
    "neighbours": (tables(), check_neighbours),
    "release text": (wrong_texts, check_release_text),
    "command line": (arguments(), check_command),
}
EXAMPLES = {"top_k": 300, "events": 30, "neighbours": 15, "release text": 150, "command line": 100}
ACCEPTED = {"top_k": 100, "events": 30, "neighbours": 15, "release text": 1, "command line": 10}
"""How many examples are drawn, and how many of them must be accepted for the property to say something."""


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", PROPERTIES)
def test_a_right_answer_or_an_error(name):
    strategy, check = PROPERTIES[name]
    accepted = []

    @settings(max_examples=examples(EXAMPLES[name]))
    @given(example=strategy)
    def one(example):
        accepted.append(check(example))

    one()
    assert sum(accepted) >= examples(ACCEPTED[name])
