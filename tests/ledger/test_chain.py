"""An edited, removed or reordered record is found, and nothing is released from a ledger that holds one."""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing

import pytest

import discreet
from discreet.errors import LedgerError
from discreet.ledger.store import START, canonical

SCORES = {"dune": 912_345, "alien": 877, "heat": 410}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "budget.db"
    ledger = discreet.Ledger.create(path, epsilon=1, unit="users")
    for i in range(3):
        discreet.top_k(SCORES, 1, "0.1", ledger=ledger, purpose=f"chart {i}", request_id=f"r{i}")
    return path


@pytest.fixture
def path(original, tmp_path):
    return shutil.copy(original, tmp_path / "budget.db")


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


EDITS = {
    "a cheaper charge": 'UPDATE records SET body = replace(body, \'"epsilon":"1/10"\', \'"epsilon":"1/99"\')',
    "a larger budget": 'UPDATE records SET body = replace(body, \'"epsilon":"1"\', \'"epsilon":"9"\') WHERE number = 1',
    "another unit": "UPDATE records SET body = replace(body, 'users', 'people') WHERE number = 1",
    "another release": "UPDATE records SET body = replace(body, 'dune', 'heat') WHERE number = 3",
    "another purpose": "UPDATE records SET body = replace(body, 'chart 1', 'chart 9')",
    "another kind": "UPDATE records SET kind = 'store' WHERE number = 4",
    "another hash": "UPDATE records SET hash = previous WHERE number = 5",
    "another hash before": "UPDATE records SET previous = hash WHERE number = 5",
    "bytes for text": "UPDATE records SET body = CAST(body AS BLOB) WHERE number = 4",
    "no text": "UPDATE records SET body = CAST(x'fffe' AS TEXT) WHERE number = 4",
    "a charge removed": "DELETE FROM records WHERE number = 4",
    "the budget removed": "DELETE FROM records WHERE number = 1",
    "all removed": "DELETE FROM records",
    "one added": "INSERT INTO records SELECT 8, kind, body, previous, hash FROM records WHERE number = 2",
    "one added before": "INSERT INTO records SELECT 0, kind, body, previous, hash FROM records WHERE number = 1",
    "one skipped": "UPDATE records SET number = 9 WHERE number = 7",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_an_edit_is_found(path, statement):
    ledger = discreet.Ledger(path)
    edit(path, statement)
    with pytest.raises(LedgerError, match=r"damaged"):
        discreet.Ledger(path)
    with pytest.raises(LedgerError, match=r"damaged"):
        ledger.check()  # also by those who had read it before
    with pytest.raises(LedgerError, match=r"damaged"):
        discreet.top_k(SCORES, 1, "0.1", ledger=path)


def test_reordered_records_are_found(path):
    edit(
        path,
        "UPDATE records SET number = 100 WHERE number = 2",
        "UPDATE records SET number = 2 WHERE number = 4",
        "UPDATE records SET number = 4 WHERE number = 100",
    )
    with pytest.raises(LedgerError, match="record 2 was edited"):
        discreet.Ledger(path)


def test_a_removed_tail_is_found_by_the_head(path):
    ledger = discreet.Ledger(path)
    head, earlier = ledger.head, ledger.export()["records"][4]["hash"]
    assert (ledger.check(head), ledger.check(earlier)) == (0, 2)
    edit(path, "DELETE FROM records WHERE number > 5")
    cut = discreet.Ledger(path)
    assert (cut.check(), cut.check(earlier)) == (5, 0)
    with pytest.raises(LedgerError, match="does not hold the head given"):
        cut.check(head)
    with pytest.raises(LedgerError, match="record 7 was edited or removed"):
        discreet.top_k(SCORES, 1, "0.1", ledger=ledger)


@pytest.mark.parametrize("head", ["", "abc", "G" * 64, "A" * 64, 7])
def test_a_head_is_64_digits(path, head):
    with pytest.raises(ValueError, match="head must be the 64 hexadecimal digits"):
        discreet.Ledger(path).check(head)


def test_a_trigger_is_found(path):
    edit(path, "CREATE TRIGGER forget AFTER INSERT ON records BEGIN DELETE FROM records WHERE number > 1; END")
    with pytest.raises(LedgerError, match="its table is not the one that discreet makes"):
        discreet.Ledger(path)


def relinked(path, change):
    """The chain made anew after a change, by somebody who knows how."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT kind, body FROM records ORDER BY number").fetchall()
        connection.execute("DELETE FROM records")
        last = START
        for number, (kind, body) in enumerate(change([(kind, json.loads(body)) for kind, body in rows]), 1):
            text = canonical(body)
            digest = hashlib.sha256(f"{number}\n{kind}\n{last}\n{text}".encode()).hexdigest()
            connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", (number, kind, text, last, digest))
            last = digest
        connection.commit()


def test_a_chain_made_anew_is_found_by_the_head(path):
    head = discreet.Ledger(path).head
    relinked(path, lambda rows: rows[:1])
    assert discreet.Ledger(path).spent == 0
    with pytest.raises(LedgerError, match="does not hold the head given"):
        discreet.Ledger(path).check(head)


CHANGES = {
    "no budget": lambda rows: rows[1:],
    "two budgets": lambda rows: [rows[0], *rows],
    "a release for no charge": lambda rows: [rows[0], rows[2]],
    "two releases for a charge": lambda rows: [*rows[:3], rows[2]],
    "a request twice": lambda rows: [*rows[:2], rows[1]],
    "an unknown kind": lambda rows: [*rows, ("gift", {"charge": 2})],
    "a charge without a cost": lambda rows: [*rows, ("charge", {"time": "2026-01-01T00:00:00Z"})],
    "a negative charge": lambda rows: [*rows, ("charge", {**rows[1][1], "epsilon": "-1", "request_id": None})],
    "a charge of another day": lambda rows: [
        *rows,
        ("charge", {**rows[1][1], "time": "2001-01-01T00:00:00Z", "request_id": None}),
    ],
    "no zone": lambda rows: [*rows, ("charge", {**rows[1][1], "time": "2099-01-01T00:00:00", "request_id": None})],
    "no dictionary": lambda rows: [*rows, ("charge", [1, 2])],
    "no time": lambda rows: [*rows, ("charge", {**rows[1][1], "time": "today", "request_id": None})],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_records_that_make_no_sense_are_refused(path, change):
    relinked(path, change)
    with pytest.raises(LedgerError, match=r"record \d is not one that discreet writes"):
        discreet.Ledger(path)


def test_a_number_with_a_long_exponent_is_refused_at_once(path):
    relinked(path, lambda rows: [*rows, ("charge", {**rows[1][1], "epsilon": "1e3000000", "request_id": None})])
    with pytest.raises(LedgerError, match="epsilon must have an exponent of at most 1000, not '1e3000000'"):
        discreet.Ledger(path)


def test_a_chain_that_overspends_does_not_pass(path):
    relinked(path, lambda rows: [("budget", {**rows[0][1], "epsilon": "1/10"}), *rows[1:]])
    ledger = discreet.Ledger(path)
    assert ledger.left == 0
    with pytest.raises(LedgerError, match="more is spent than the budget allows"):
        ledger.check()


def test_the_export_can_be_checked_by_others(path):
    exported = json.loads(json.dumps(discreet.Ledger(path).export()))
    last = START
    for record in exported["records"]:
        body = json.dumps(record["body"], sort_keys=True, separators=(",", ":"))
        text = f"{record['number']}\n{record['kind']}\n{last}\n{body}"
        assert record["hash"] == hashlib.sha256(text.encode()).hexdigest()
        last = record["hash"]
    assert last == exported["head"]
    assert [record["kind"] for record in exported["records"]] == ["budget", *["charge", "store"] * 3]


def test_two_ledgers_have_no_hash_in_common(tmp_path):
    heads = {discreet.Ledger.create(tmp_path / f"{i}.db", epsilon=1, unit="users").head for i in range(3)}
    assert len(heads) == 3


def test_a_stored_release_that_was_edited_is_not_handed_out(path):
    ledger = discreet.Ledger(path)
    edit(path, EDITS["another release"])
    with pytest.raises(LedgerError, match="record 3 was edited"):
        discreet.top_k(SCORES, 1, "0.1", ledger=ledger, request_id="r0")
