"""All strings up to a length as a domain: numbered without a gap, and read alike by every engine."""

import random
from collections import defaultdict
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.sources.events.dialects.base import Dialect
from engines import ENGINES, on, on_server

ALPHABET = "ba'\\%ä😀\u0301"
"""With a quote, what SQL and patterns escape, letters of two and four bytes, and an accent of its own."""

OUTSIDE = [
    "",
    "A",
    "B",
    "ab.",
    "c",
    "abab",
    "á",
    " a",
    "a ",
    "a\n",
    "\n",
    "ab\tb",
    "😁",
    "ä" * 4,
    "\u0301" * 5,
    "a" * 99,
]


def list_strings(alphabet, shortest, longest):
    """The definition: by length, then by the order of the alphabet."""
    return ["".join(word) for length in range(shortest, longest + 1) for word in product(alphabet, repeat=length)]


@pytest.mark.parametrize("alphabet", ["x", "ab", "cab", ALPHABET])
@pytest.mark.parametrize(("shortest", "longest"), [(0, 1), (0, 3), (1, 1), (1, 3), (2, 3), (3, 3)])
def test_numbers_are_strings_by_length_then_alphabet(alphabet, shortest, longest):
    domain = discreet.strings(alphabet, longest, min_length=shortest)
    assert domain.list_items() == list_strings(alphabet, shortest, longest)
    assert domain.d == len(domain.list_items())


@pytest.mark.parametrize(("alphabet", "longest"), [("01", 62), ("abcdefghijklmnopqrstuvwxyz", 13), ("x", 63)])
def test_the_first_and_the_last_of_very_many(alphabet, longest):
    domain = discreet.strings(alphabet, longest)
    assert domain.spell(domain.lo) == alphabet[0]
    assert domain.spell(domain.hi) == alphabet[-1] * longest
    assert domain.d == sum(len(alphabet) ** length for length in range(1, longest + 1)) < 2**63


def make_events(inside, outside, seed):
    rng = random.Random(seed)
    cells = [*rng.choices(inside, k=150), *outside, None]
    return [{"who": rng.choice(["ann", "bob", "Bob", None, "zoë"]), "what": cell} for cell in cells * 2]


def count_users(rows, items):
    users = defaultdict(set)
    for row in rows:
        if row["who"] is not None:
            users[row["what"]].add(row["who"])
    return {item: len(users[item]) for item in items}


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_scores_and_items_are_those_of_a_plain_loop(engine, tmp_path, request):
    items = list_strings(ALPHABET, 1, 3)
    rows = make_events(random.Random(1).sample(items, 60), OUTSIDE, seed=2)
    schema = pa.schema([("who", pa.string()), ("what", pa.string())])
    given = on(engine, pa.Table.from_pylist(rows, schema), tmp_path, request)
    source = discreet.events(**given, user="who", item="what", domain=discreet.strings(ALPHABET, 3))
    expected = count_users(rows, items)
    ranked = sorted(items, key=lambda item: (-expected[item], items.index(item)))
    tally = source.tally()
    assert [int(tally.exact(rank)) for rank in range(len(items))] == [expected[item] for item in ranked]
    assert source.items(np.arange(len(items))) == ranked
    assert source.every_item() == items


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "sqlite", on_server("postgres")])
def test_no_number_overflows(engine, tmp_path, request):
    # As many places as there can be, and a text that is longer yet.
    words = ["1" * 62, "0", "1" * 63, "1" * 200, "01" * 31]
    events = pa.table({"who": ["ann", "ann", "bob", "bob", "ann"], "what": words})
    domain = discreet.strings("01", 62)
    source = discreet.events(**on(engine, events, tmp_path, request), user="who", item="what", domain=domain)
    source.tally()
    assert source.items(np.arange(3)) == ["0", "01" * 31, "1" * 62]
    assert source.items(np.array([3, 4, 2**62])) == ["1", "00", "0" * 62]


def test_the_empty_string_is_an_item_only_where_asked_for(tmp_path):
    events = pa.table({"who": ["ann", "bob"], "what": ["", "a"]})
    source = discreet.events(events, user="who", item="what", domain=discreet.strings("a", 2, min_length=0))
    assert (source.d, source.tally().exact(1), source.items(np.arange(3))) == (3, 1, ["", "a", "aa"])
    source = discreet.events(events, user="who", item="what", domain=discreet.strings("a", 2))
    assert (source.d, source.tally().exact(1), source.items(np.arange(2))) == (2, 0, ["a", "aa"])


def test_a_nul_ends_no_string(tmp_path, request):
    events = pa.table({"who": ["ann", "bob"], "what": ["a\0b", "b"]})
    for engine in ("arrow", "sqlite"):
        given = on(engine, events, tmp_path, request)
        source = discreet.events(**given, user="who", item="what", domain=discreet.strings("ab", 3))
        tally = source.tally()
        assert (tally.exact(0), tally.exact(1), source.items(np.arange(1))) == (1, 0, ["b"]), engine


WORDS = pa.Table.from_pylist(
    [
        {"who": f"u{user}", "what": word, "shop": shop, "amount": 1 + user % 2}
        for rank, word in enumerate(["x", "bb", "a", "ba", "aab", "b", "ab"])
        for shop in (0, 1)
        for user in range(20 - 2 * rank if shop else 8 + 2 * rank)
    ]
)


@pytest.mark.parametrize("split", [{}, {"by": "shop", "groups": [0, 1], "each_user": "many"}])
def test_groups_and_sums_are_as_in_a_written_list(split):
    def release(domain):
        asked = {"user": "who", "item": "what", "value": "amount", "clip": (0, 3), **split}
        found = discreet.top_k(discreet.events(WORDS, domain=domain, **asked), 2, 10**6, rng=random.Random(3))
        return [sorted(found[key].items) for key in found] if split else sorted(found.items)

    assert release(discreet.strings("ab", 2)) == release(list_strings("ab", 1, 2))


def test_so_many_items_of_each_user_count():
    items = defaultdict(set)
    for row in WORDS.to_pylist():
        if row["what"] in ("a", "b", "ab", "ba", "bb"):
            items[row["who"]].add(row["what"])
    asked = {"user": "who", "item": "what", "domain": discreet.strings("ab", 2), "max_items_per_user": 2}
    tally = discreet.events(WORDS, **asked).tally()
    assert sum(tally.exact(rank) for rank in range(6)) == sum(min(2, len(each)) for each in items.values())


def test_numbers_in_a_column_are_read_as_text():
    events = pa.table({"who": ["ann", "bob", "eve"], "what": [12, 12, 7]})
    source = discreet.events(events, user="who", item="what", domain=discreet.strings("0123456789", 2))
    assert (source.tally().exact(0), source.items(np.array([0, 1]))) == (2, ["12", "7"])


def test_a_check_tells_what_is_outside():
    events = pa.table({"who": ["ann", "bob", "eve", "eve"], "what": ["ab", "AB", "toolong", None]})
    source = discreet.events(events, user="who", item="what", domain=discreet.strings("ab", 3))
    found = discreet.check_events(source)
    assert (found.rows_inside, found.rows_outside, found.rows_of_other_kind, found.d) == (1, 2, 0, 14)
    assert (found.kind, {each.value for each in found.outside}) == ("string", {"AB", "toolong"})


def test_they_say_what_they_are():
    domain = discreet.strings("ab", 2)
    assert repr(domain) == "Strings('ab', max_length=2, min_length=1)"
    events = pa.table({"who": ["ann"], "what": ["ab"]})
    source = discreet.events(events, user="who", item="what", domain=domain)
    assert source.description()["domain"] == ["ab", 1, 2]
    grouped = {"by": "what", "groups": discreet.strings("ab", 1), "each_user": "one"}
    assert discreet.events(events, user="who", item="what", domain=domain, **grouped).keys == ("a", "b")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("aba", 3), "alphabet must have each character once, but 'a' is there twice"),
        (("", 3), "alphabet must have at least one character, not none"),
        ((["a", "b"], 3), r"alphabet must be a string of characters, not \['a', 'b'\]"),
        (("a\0", 3), "alphabet must be proper text without NUL, which databases cannot hold"),
        (("a\ud800", 3), "alphabet must be proper text without NUL"),
        (("ab", 63), "max_length must leave fewer than 2\\^63 strings, and 2 characters make more of up to 63"),
        (("ab", 64), "max_length must be a whole number from 1 to 63, not 64"),
        (("ab", 0), "max_length must be a whole number from 1 to 63, not 0"),
        (("ab", 2.0), "max_length must be a whole number from 1 to 63, not 2.0"),
        (("ab", 3, -1), "min_length must be a whole number from 0 to 63, not -1"),
        (("ab", 3, 4), "min_length must be at most max_length, 3, not 4"),
    ],
)
def test_mistakes_get_one_sentence(arguments, sentence):
    alphabet, longest, *shortest = arguments
    with pytest.raises(discreet.Error, match=f"^{sentence}"):
        discreet.strings(alphabet, longest, **({"min_length": shortest[0]} if shortest else {}))


def test_what_does_not_fit_is_refused():
    events = pa.table({"who": ["ann"], "what": [True]})
    with pytest.raises(discreet.Error, match="label must be left out when domain is all strings up to a length"):
        discreet.events(events, user="who", item="what", domain=discreet.strings("a", 1), label="what")
    with pytest.raises(
        discreet.Error, match="domain must be a list on Engine: discreet does not know how it takes text"
    ):
        discreet.strings("a", 1).check_engine(Dialect(name="engine", title="Engine"))
