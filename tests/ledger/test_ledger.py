import os
import sqlite3
import stat
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from discreet.errors import LedgerError
from discreet.exact.entropy import SystemBits
from discreet.ledger import charges, store
from discreet.ledger.store import BUDGET, next_record

SCORES = {"dune": 912_345, "alien": 877, "heat": 410, "ran": 3}


@pytest.fixture
def ledger(tmp_path):
    return discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="users of ratings")


@pytest.fixture
def drawn(monkeypatch):
    """Counts how often random bits are asked for; `at` is called the first time."""
    count = {"bits": 0, "at": None}
    own = SystemBits.getrandbits

    def getrandbits(self, k, /):
        if not count["bits"] and count["at"]:
            count["at"]()
        count["bits"] += 1
        return own(self, k)

    monkeypatch.setattr(SystemBits, "getrandbits", getrandbits)
    return count


def release(ledger, epsilon="0.1", k=2, **options):
    return discreet.top_k(SCORES, k, epsilon, ledger=ledger, **options)


def test_a_new_budget(ledger):
    assert ledger.budget == discreet.ledger.account.Budget(Fraction(1), None, "add-remove", "users of ratings")
    assert (ledger.spent, ledger.left, ledger.history(), ledger.check()) == (0, 1, [], 1)
    assert repr(ledger) == f"Ledger({ledger.path!r})"


def test_ten_times_a_tenth_is_one_and_no_more(ledger, drawn):
    for _ in range(10):
        release(ledger)
    assert (ledger.spent, ledger.left) == (Fraction(1), Fraction(0))
    drawn["bits"] = 0
    with pytest.raises(discreet.BudgetSpentError) as caught:
        release(ledger, "1e-9")
    assert str(caught.value) == "epsilon 1e-09 does not fit: 0 of 1 is left, and nothing was drawn"
    assert drawn["bits"] == 0
    assert len(ledger.history()) == 10


def test_an_entry_says_what_was_asked(ledger):
    released = release(ledger.path, "1/3", mechanism=discreet.OneShot("gumbel"), purpose="chart", request_id="r1")
    (entry,) = ledger.history()
    assert entry.release == released
    assert (entry.number, entry.purpose, entry.k, entry.d, entry.request_id) == (2, "chart", 2, 4, "r1")
    assert (entry.epsilon, entry.zcdp, entry.delta) == (Fraction(1, 3), Fraction(1, 144), 0)
    assert entry.mechanism == {"name": "one-shot", "noise": "gumbel"}
    assert entry.version == discreet.__version__
    assert len(entry.fingerprint) == 64
    assert entry.time == charges.stamp(charges.datetime.fromisoformat(entry.time))


def test_the_charge_is_there_before_the_first_random_bit(ledger, drawn):
    seen = []
    drawn["at"] = lambda: seen.extend(discreet.Ledger(ledger.path).history())
    released = release(ledger, purpose="chart")
    assert [(entry.purpose, entry.stored) for entry in seen] == [("chart", None)]
    assert ledger.history()[0].release == released


def test_what_fails_after_the_charge_is_spent_and_not_drawn_again(ledger, drawn):
    def cut():
        raise KeyboardInterrupt

    drawn["at"] = cut
    with pytest.raises(KeyboardInterrupt):
        release(ledger, request_id="june")
    drawn["at"] = None
    assert ledger.spent == Fraction(1, 10)
    assert [entry.release for entry in ledger.history()] == [None]
    with pytest.raises(LedgerError, match=r"request_id 'june' was charged at .* will not be drawn again"):
        release(ledger, request_id="june")
    assert drawn["bits"] == 0
    assert ledger.check() == 2


def test_a_request_is_answered_once(ledger, drawn):
    first = release(ledger, request_id="june", purpose="chart")
    bits = drawn["bits"]
    again = release(discreet.Ledger(ledger.path), request_id="june")
    assert (again, drawn["bits"], ledger.spent, ledger.check()) == (first, bits, Fraction(1, 10), 3)
    # Other data are no other query; the request names what it is about.
    assert discreet.top_k({**SCORES, "ran": 10**9}, 2, "0.1", ledger=ledger, request_id="june") == first


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": "0.2"},
        {"k": 1},
        {"mechanism": discreet.Joint()},
        {"sensitivity": discreet.Sensitivity(1, 1)},
        {"adjacency": "swap"},
    ],
)
def test_a_request_for_something_else_is_refused(ledger, other):
    release(ledger, request_id="june")
    with pytest.raises(ValueError, match="request_id must be new for a new query, and 'june' was for another one"):
        release(ledger, request_id="june", **other)
    with pytest.raises(ValueError, match="request_id must be new"):
        discreet.top_k({**SCORES, "jaws": 1}, 2, "0.1", ledger=ledger, request_id="june")
    assert ledger.check() == 3


def test_labels_in_another_order_are_the_same_query(ledger):
    first = release(ledger, request_id="june")
    turned = dict(reversed(SCORES.items()))
    assert discreet.top_k(turned, 2, "0.1", ledger=ledger, request_id="june") == first
    named = dict(zip(["a", "b", "c", "d"], SCORES.values(), strict=True))
    with pytest.raises(ValueError, match="request_id must be new"):
        discreet.top_k(named, 2, "0.1", ledger=ledger, request_id="june")


def test_the_labels_of_a_large_domain_are_not_read(ledger, monkeypatch):
    monkeypatch.setattr("discreet.ledger.charges.MOST_LABELS", 3)
    first = release(ledger, request_id="june")
    named = dict(zip(["a", "b", "c", "d"], SCORES.values(), strict=True))
    assert discreet.top_k(named, 2, "0.1", ledger=ledger, request_id="june") == first


def fingerprint(tmp_path, **options):
    table = pa.table({"who": [1, 2, 2], "movie": ["a", "a", "b"], "stars": [1, 2, 3], "other": ["b", "b", "b"]})
    given = {"user": "who", "item": "movie", "domain": ["a", "b", "c"], **options}
    ledger = discreet.Ledger.create(tmp_path / f"{len(os.listdir(tmp_path))}.db", epsilon=1, unit="users")
    discreet.top_k(discreet.events(table, **given), 1, 1, ledger=ledger)
    return ledger.history()[0].fingerprint


def test_every_part_of_a_query_of_events_is_in_its_fingerprint(tmp_path):
    domain = pa.table({"movie": ["a", "b", "c"], "title": ["x", "y", "z"]})
    queries = [
        {},
        {"user": "stars"},
        {"item": "other"},
        {"where": "stars > 1"},
        {"where": "stars > 2"},
        {"value": "stars", "clip": (0, 2)},
        {"value": "stars", "clip": (-2, 2)},
        {"value": "stars", "clip": (0, 2), "resolution": "0.5"},
        {"domain": ["a", "b", "c", "d"]},
        {"domain": domain, "label": "title"},
        {"user": "movie", "item": "stars", "domain": discreet.integers(0, 2)},
        {"user": "movie", "item": "stars", "domain": discreet.integers(1, 3)},
    ]
    found = [fingerprint(tmp_path, **query) for query in queries]
    assert len(set(found)) == len(queries)
    assert fingerprint(tmp_path) == found[0]


def test_nothing_private_is_in_the_file(ledger):
    # So many digits that no hash among the records holds them by chance.
    scores = {"dune": 9_123_450_987_612_345_678, "alien": 8_770_246_813_579_024_681, "heat": 4_106_172_839_405_162_738}
    discreet.top_k(scores, 1, 1, ledger=ledger, purpose="chart")
    content = Path(ledger.path).read_bytes()
    assert b"dune" in content
    for private in (*(str(score).encode() for score in scores.values()), b"alien", b"heat"):
        assert private not in content


def test_all_items_cost_nothing(ledger):
    release(ledger, 1)
    released = release(ledger, 5, k=4)
    entry = ledger.history()[-1]
    assert (entry.epsilon, entry.zcdp, entry.release) == (0, 0, released)
    assert (ledger.spent, ledger.left) == (1, 0)


def test_another_adjacency_is_refused(ledger, drawn, tmp_path):
    with pytest.raises(ValueError, match="adjacency must be that of the ledger, 'add-remove', not 'swap'"):
        release(ledger, adjacency="swap")
    assert (ledger.check(), drawn["bits"]) == (1, 0)
    swap = discreet.Ledger.create(tmp_path / "swap.db", epsilon=1, adjacency="swap", unit="users")
    release(swap, adjacency="swap")
    assert swap.spent == Fraction(1, 10)


def test_a_generator_is_refused(ledger):
    import random

    with pytest.raises(ValueError, match="rng must be left out with a ledger"):
        release(ledger, rng=random.Random(1))
    assert ledger.check() == 1


@pytest.mark.parametrize("option", ["purpose", "request_id", "dataset"])
def test_words_for_a_ledger_need_one(option):
    with pytest.raises(ValueError, match=f"{option} must be left out without a ledger"):
        discreet.top_k(SCORES, 1, 1, **{option: "x"})


class Unread(dict):
    """Scores that must not be read."""

    def values(self):
        pytest.fail("the scores were read")


def test_a_ledger_for_one_dataset_takes_that_alone(tmp_path, drawn):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="users", dataset="ratings")
    assert ledger.budget.dataset == "ratings"
    release(ledger, dataset="ratings")
    release(ledger.path, dataset="ratings")
    drawn["bits"] = 0
    for book in (ledger, ledger.path, discreet.Ledger(ledger.path)):
        with pytest.raises(ValueError, match="dataset must be that of the ledger, 'ratings', not 'orders'"):
            discreet.top_k(Unread(SCORES), 1, 1, ledger=book, dataset="orders")
        with pytest.raises(ValueError, match="dataset must be given, because the ledger is for one alone, 'ratings'"):
            discreet.top_k(Unread(SCORES), 1, 1, ledger=book)
    assert (ledger.spent, drawn["bits"]) == (Fraction(1, 5), 0)


def test_a_ledger_for_any_dataset_takes_all(ledger):
    assert ledger.budget.dataset is None
    for dataset in ("ratings", "orders", None):
        release(ledger, dataset=dataset)
    prints = [entry.fingerprint for entry in ledger.history()]
    assert len(set(prints)) == 3, "the dataset is a part of the query"


def test_a_request_for_another_dataset_is_refused(ledger):
    release(ledger, request_id="june", dataset="ratings")
    with pytest.raises(ValueError, match="request_id must be new for a new query"):
        release(ledger, request_id="june", dataset="orders")


def test_the_dataset_is_in_the_chain(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="users", dataset="ratings")
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute("UPDATE records SET body = replace(body, 'ratings', 'orders')")
    with pytest.raises(LedgerError, match="record 1 was edited"):
        release(ledger.path, dataset="orders")


def test_a_ledger_from_before_there_were_datasets_is_for_any(tmp_path):
    words = {"adjacency": "add-remove", "unit": "users", "time": "2026-01-01T00:00:00Z", "version": "0.1.0", "id": "1"}
    store.open_store(tmp_path / "old.db").make(
        lambda _: next_record(None, BUDGET, {"epsilon": "1", "delta": None, **words})
    )
    ledger = discreet.Ledger(tmp_path / "old.db")
    assert ledger.budget.dataset is None
    release(ledger)
    release(ledger, dataset="ratings")
    assert (ledger.check(), ledger.spent) == (5, Fraction(1, 5))


@pytest.mark.parametrize("option", ["purpose", "request_id"])
def test_words_are_texts_of_some_length(ledger, option):
    with pytest.raises(TypeError, match=f"{option} must be a text, not 7"):
        release(ledger, **{option: 7})
    for given in ("", " \n", "x" * 1001):
        with pytest.raises(ValueError, match=f"{option} must have from 1 to 1000 characters"):
            release(ledger, **{option: given})
    release(ledger, **{option: "a\nb \ud800 ä"})
    assert getattr(ledger.history()[0], option) == "a\nb \ud800 ä"


@pytest.mark.parametrize("label", ["\ud800", 1.5, None, (1, "a"), b"x"])
def test_labels_of_all_kinds_are_kept(ledger, label):
    released = discreet.top_k({label: 100_000, "z": 0}, 1, "0.5", ledger=ledger, request_id="r")
    assert discreet.top_k({label: 0, "z": 0}, 1, "0.5", ledger=ledger, request_id="r") == released
    assert released.items == [label]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"epsilon": 0}, "epsilon must be above zero"),
        ({"delta": 1}, "delta must be below 1, not 1"),
        ({"delta": 0}, "delta must be above zero"),
        ({"adjacency": "all"}, "adjacency must be 'add-remove' or 'swap'"),
        ({"unit": ""}, "unit must have from 1 to 1000 characters"),
        ({"dataset": " "}, "dataset must have from 1 to 1000 characters"),
        ({"wait": -1}, "wait must be from 0 to 10"),
    ],
)
def test_a_bad_budget_is_not_made(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        discreet.Ledger.create(tmp_path / "budget.db", **{"epsilon": 1, "unit": "users", **options})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("umask", [0, 0o777])
def test_the_file_is_for_its_owner_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="users")
    finally:
        os.umask(before)
    release(ledger)
    assert stat.S_IMODE(os.stat(ledger.path).st_mode) == 0o600
    assert os.listdir(tmp_path) == ["budget.db"]


def test_what_is_there_is_never_made_anew(ledger, tmp_path):
    before = Path(ledger.path).read_bytes()
    with pytest.raises(ValueError, match=r"path must be a file that does not exist yet, not '.*budget.db'"):
        discreet.Ledger.create(ledger.path, epsilon=5, unit="users")
    assert Path(ledger.path).read_bytes() == before
    with pytest.raises(ValueError, match="ledger must be a file that exists"):
        release(tmp_path / "no.db")
    assert os.listdir(tmp_path) == ["budget.db"]


def test_a_journal_left_by_an_older_file_is_not_taken_for_ours(tmp_path):
    (tmp_path / "budget.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\0" * 1016)
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="users")
    release(ledger)
    assert discreet.Ledger(ledger.path).check() == 3


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = discreet.Ledger.create("a budget?mode=ro#1%41.db", epsilon=1, unit="users")
    monkeypatch.chdir("/")
    release(ledger)
    assert os.listdir(tmp_path) == ["a budget?mode=ro#1%41.db"]


def test_threads_share_a_ledger(ledger):
    granted = []

    def spend():
        for _ in range(4):
            try:
                granted.append(release(ledger))
            except LedgerError:
                granted.append(None)

    threads = [threading.Thread(target=spend) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each is not None for each in granted) == 10
    assert len(granted) == 20
    assert (ledger.left, ledger.check()) == (0, 21)


def test_events_are_charged_too(ledger):
    table = pa.table({"who": [1, 2, 3], "movie": ["a", "a", "b"]})
    source = discreet.events(table, user="who", item="movie", domain=["a", "b", "c"])
    released = discreet.top_k(source, 1, "0.5", ledger=ledger)
    assert (ledger.history()[0].release, ledger.spent) == (released, Fraction(1, 2))


def entries_at_waits(ledger, monkeypatch, *args, **options):
    """The charges that the file holds each time that a padded release waits."""
    seen = []
    monkeypatch.setattr("discreet.release.topk.wait_for_multiple", lambda *_: seen.append(ledger.history()))
    release(ledger, *args, pad_to="0.001", **options)
    return seen


def test_padding_comes_before_the_charge_and_before_the_storing(ledger, monkeypatch):
    """When a record is written can be seen on the file: as coarsely as when the release returns."""
    before_charge, before_store = entries_at_waits(ledger, monkeypatch)
    assert before_charge == []
    assert [entry.stored for entry in before_store] == [None]
    assert ledger.history()[-1].stored is not None


def test_what_was_released_before_is_padded_as_well(ledger, monkeypatch):
    release(ledger, request_id="june")
    assert len(entries_at_waits(ledger, monkeypatch, request_id="june")) == 2


def test_with_a_delta_many_small_releases_cost_less(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=2, delta="1e-6", unit="users")
    for _ in range(100):
        release(ledger, "0.05")
    composition = ledger.composition
    assert (composition.epsilon, composition.rho) == (5, Fraction(100, 8 * 400))
    assert ledger.spent == composition.by_zcdp(Fraction(1, 10**6)) < 2
    with pytest.raises(
        discreet.BudgetSpentError, match=r"it would bring what is spent at delta 1e-06 to .*; .* of 2 is left"
    ):
        release(ledger, 2)
    assert ledger.spent + ledger.left == 2


@pytest.mark.parametrize("given", [7, b"x.db", "", "a\0b"])
def test_what_is_no_path_is_refused(given):
    with pytest.raises(discreet.Error, match="ledger must be a path"):
        release(given)


def test_ten_times_the_float_of_a_tenth_is_one_and_no_more(ledger):
    for _ in range(10):
        release(ledger, 0.1)
    assert (ledger.spent, ledger.left) == (Fraction(1), Fraction(0))


def test_what_does_not_fit_is_more_than_what_is_left(ledger):
    for _ in range(9):
        release(ledger, Fraction(0.1))  # as early versions read the float
    with pytest.raises(discreet.BudgetSpentError) as caught:
        release(ledger, 0.1)
    words = str(caught.value).split()
    assert Fraction(words[1]) == Fraction(1, 10)
    assert Fraction(words[5]) < Fraction(1, 10)


@pytest.mark.parametrize("given", [0.1, "0.1", Fraction(1, 10)], ids=repr)
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ({}, {}),
        ({"counts": Fraction(0.3)}, {"counts": "0.3"}),
        ({"counts": Fraction(0.3), "shortfall": "0.2"}, {"counts": 0.3, "shortfall": 0.2}),
        ({"split": "auto", "shortfall": "auto"}, {"split": "auto", "shortfall": "auto"}),
    ],
    ids=["plain", "counts", "both", "auto"],
)
def test_a_request_stored_by_an_early_version_matches_under_either_reading(tmp_path, stored, asked, given):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=9, unit="users")
    first = release(ledger, Fraction(0.1), request_id="chart", **stored)
    assert release(ledger, given, request_id="chart", **asked) == first
    with pytest.raises(discreet.Error, match="request_id must be new"):
        release(ledger, "0.1001", request_id="chart", **asked)
    assert len(ledger.history()) == 1


def test_requests_of_sketches_groups_and_discovery_match_under_either_reading(tmp_path):
    ledger = discreet.Ledger.create(
        tmp_path / "budget.db", epsilon=9, delta="1e-3", release_delta=Fraction(1e-6), unit="users"
    )
    table = pa.table({"who": [f"u{i}" for i in range(300)], "what": ["x"] * 300})

    def ask(epsilon, delta, request_id):
        if request_id == "sketch":
            return discreet.sketch(SCORES, epsilon, ledger=ledger, request_id=request_id)
        if request_id == "groups":
            groups = discreet.grouped({"a": SCORES, "b": SCORES}, each_user="one")
            return discreet.top_k(groups, 1, epsilon, ledger=ledger, request_id=request_id)
        found = discreet.discovered(delta=delta, max_items_per_user=1, epsilon=epsilon)
        source = discreet.events(table, user="who", item="what", domain=found)
        return discreet.top_k(source, 1, 3, ledger=ledger, request_id=request_id)

    for request_id in ("sketch", "groups", "discovery"):
        first = ask(Fraction(0.1), Fraction(1e-6), request_id)
        assert ask(0.1, 1e-6, request_id) == first
    assert len(ledger.history()) == 3
