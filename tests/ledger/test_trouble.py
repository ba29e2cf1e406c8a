"""What can go wrong with a file: each time one clear sentence, and nothing is released without a charge."""

import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import discreet
from discreet.errors import LedgerError
from discreet.exact.entropy import SystemBits
from discreet.ledger import charges, file_store
from discreet.ledger.file_store import FileTransaction, check_free_space

SCORES = {"dune": 912_345, "alien": 877, "heat": 410}


@pytest.fixture
def path(tmp_path):
    return Path(discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="users").path)


@pytest.fixture
def undrawn(monkeypatch):
    """Fails where a random bit is drawn."""
    monkeypatch.setattr(SystemBits, "getrandbits", lambda *_: pytest.fail("a random bit was drawn"))


def release(ledger, **options):
    return discreet.top_k(SCORES, 1, "0.1", ledger=ledger, **options)


def refused(ledger, sentence):
    with pytest.raises(discreet.Error, match=sentence) as caught:
        release(ledger)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("undrawn")
def test_a_read_only_file_can_be_read_and_not_spent(path):
    path.chmod(0o400)
    ledger = discreet.Ledger(path)
    assert (ledger.left, ledger.check()) == (1, 1)
    refused(ledger, "the ledger '.*budget.db' is read-only, so nothing can be charged to it")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "must be a ledger made by discreet, and '.*' is another kind of file"),
        (b"item,score\na,1\n" * 100, "is not a ledger, or is damaged: SQLite cannot read it"),
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path, content, sentence):
    path = tmp_path / "notes"
    path.write_bytes(content)
    refused(path, sentence)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["notes"]


@pytest.mark.usefixtures("undrawn")
def test_another_database_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute(file_store.TABLE)
    refused(tmp_path / "other.db", "must be a ledger made by discreet, and '.*' is another kind of file")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", ["folder", "pipe", "nothing"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    path = tmp_path / "budget.db"
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    refused(path, "ledger must be a file that exists" if kind == "nothing" else "ledger must be a regular file")
    with pytest.raises(discreet.Error):
        discreet.Ledger.create(tmp_path / "no" / "budget.db", epsilon=1, unit="users")


@pytest.mark.usefixtures("undrawn")
def test_a_damaged_file_is_refused(path):
    content = bytearray(path.read_bytes())
    content[4096:4200] = b"\xff" * 104
    path.write_bytes(content)
    refused(path, "the ledger '.*' is damaged: SQLite cannot read it")
    path.write_bytes(content[:5000])
    refused(path, "is damaged")


@pytest.mark.usefixtures("undrawn")
def test_a_second_name_is_refused(path, tmp_path):
    os.link(path, tmp_path / "other.db")
    refused(path, "has hard links, by which it could be spent twice")


def test_a_symbolic_link_is_followed(path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    release(tmp_path / "link.db")
    assert discreet.Ledger(path).check() == 3


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("version", "kind"), [(2, "newer"), (0, "unknown")])
def test_another_version_is_refused(path, version, kind):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    refused(path, f"has version {version} of a {kind} discreet, not 1")


@pytest.mark.usefixtures("undrawn")
def test_a_write_ahead_log_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    refused(path, "is damaged: its table is not the one that discreet makes")


def test_a_file_that_is_gone_is_refused(path, undrawn):
    ledger = discreet.Ledger(path)
    path.unlink()
    refused(ledger, "ledger must be a file that exists")
    assert not path.exists()


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_removed_during_the_charge_is_noticed(path, undrawn, monkeypatch, replaced):
    ledger, own = discreet.Ledger(path), FileTransaction.append

    def append(chain, record):
        monkeypatch.setattr(FileTransaction, "append", own)
        own(chain, record)
        path.rename(path.with_name("away.db"))
        if replaced:
            discreet.Ledger.create(path, epsilon=1, unit="users")

    monkeypatch.setattr(FileTransaction, "append", append)
    # The new file takes the old one's journal away, which SQLite reports as an error of the disk.
    refused(
        ledger, "was removed or replaced while it was in use|or it was removed while in use|the disk reports an error"
    )


def test_a_file_removed_while_drawing_withholds_the_release(path, monkeypatch):
    own = SystemBits.getrandbits

    def getrandbits(self, k, /):
        path.unlink(missing_ok=True)
        return own(self, k)

    monkeypatch.setattr(SystemBits, "getrandbits", getrandbits)
    refused(path, "the release could not be stored, so it is withheld, and its epsilon spent: ledger must be a file")
    assert not path.exists()


def test_a_file_replaced_while_drawing_withholds_the_release(path, tmp_path, monkeypatch):
    other = discreet.Ledger.create(tmp_path / "other.db", epsilon=1, unit="users")
    release(other)
    own = SystemBits.getrandbits

    def getrandbits(self, k, /):
        if os.path.exists(other.path):
            os.replace(other.path, path)
        return own(self, k)

    monkeypatch.setattr(SystemBits, "getrandbits", getrandbits)
    refused(path, "the release could not be stored, so it is withheld, and its epsilon spent: the ledger is damaged")


def at(moment):
    return lambda: moment.replace(microsecond=0)


def test_a_clock_that_goes_back_is_refused(path, monkeypatch, undrawn):
    monkeypatch.setattr(charges, "now", at(datetime.now(UTC) - timedelta(days=1)))
    refused(path, r"the clock says 20..-..-..T..:..:..Z, but the last charge was at .*Z; nothing was drawn")
    assert discreet.Ledger(path).check() == 1


def test_a_clock_that_is_a_little_off_is_not(path, monkeypatch):
    release(path)
    monkeypatch.setattr(charges, "now", at(datetime.now(UTC) - timedelta(seconds=30)))
    release(path)
    first, second = discreet.Ledger(path).history()
    assert first.time == second.time


def test_a_lock_is_waited_for(path):
    ledger = discreet.Ledger(path)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        timer = threading.Timer(0.5, other.rollback)
        timer.start()
        begun = time.monotonic()
        release(ledger)
        assert time.monotonic() - begun >= 0.4
        timer.join()
    assert ledger.check() == 3


@pytest.mark.usefixtures("undrawn")
def test_a_lock_is_not_waited_for_for_ever(path):
    ledger = discreet.Ledger(path, wait=0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused(ledger, "is in use by other processes and was not free in time; try again, or wait longer")
        with pytest.raises(discreet.LedgerError) as caught:
            release(ledger)
        # Who waits and asks again, where the budget is not spent, can tell.
        assert not isinstance(caught.value, discreet.BudgetSpentError)
        assert ledger.left == 1  # reading needs no lock


@pytest.mark.usefixtures("undrawn")
def test_a_reader_that_stays_is_not_waited_for_for_ever(path):
    ledger = discreet.Ledger(path, wait=0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM records").fetchall()
        refused(ledger, "is in use by other processes")
    assert ledger.check() == 1


UNTIL_FULL = """
import os, sys, discreet
limit, path = int(sys.argv[1]), sys.argv[2]
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
released = 0
try:
    while True:
        discreet.top_k({f"film {i}": i for i in range(300)}, 200, "1/1000", ledger=path)
        released += 1
except discreet.Error as error:
    print(released, error)
"""


def until_full(path, limit):
    command = [sys.executable, "-c", UNTIL_FULL, str(limit), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    released, sentence = done.stdout.rstrip("\n").split(" ", 1)
    return int(released), sentence


def check_after(path, released):
    history = discreet.Ledger(path).history()
    assert discreet.Ledger(path).check() > 1
    assert len(history) >= sum(entry.stored is not None for entry in history) == released > 0


def test_a_limit_on_file_sizes_is_an_error(path):
    released, sentence = until_full(path, 100_000)
    assert "cannot be read or written: the disk reports an error, or a limit on file sizes" in sentence
    check_after(path, released)
    release(path)  # without the limit


def test_a_full_disk_is_an_error(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        ledger = discreet.Ledger.create(small / "budget.db", epsilon=1, unit="users")
        released, sentence = until_full(ledger.path, 0)
        assert "cannot be written: the disk is full" in sentence
        check_after(ledger.path, released)
        # The room is looked for before the charge, so that none is without its release.
        assert len(ledger.history()) == released
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_ledger_that_does_not_fit_is_not_made(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(LedgerError, match="the disk reports an error"):
            discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="users")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


def test_room_for_a_large_release_is_asked_for_without_writing_it(tmp_path):
    path = tmp_path / "budget.db"
    check_free_space(path, 10**9)
    assert not list(tmp_path.iterdir())
    with pytest.raises(LedgerError, match="has no room for the release; nothing was drawn or charged"):
        check_free_space(path, 10**18)
