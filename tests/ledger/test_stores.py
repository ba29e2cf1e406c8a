"""The contract of a ledger on both of its places: nothing is lost or drawn without a charge, and no change hides.

Races are in test_race.py and kills in test_kills.py, for both places too.
"""

import json
import random
import re
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from chart_folder import ARTISTS, fill_folder, publish, read_log, read_site
from discreet.cli.app import app
from discreet.errors import InternalError, InvalidValueError, LedgerError
from discreet.exact.entropy import SystemBits
from discreet.ledger import charges, postgres_store, store
from discreet.ledger.postgres_store import PostgresTransaction
from discreet.ledger.store import open_store
from discreet.publish import editions, run
from places import PLACES, put_back, run_sql

SCORES = {"dune": 912_345, "alien": 877, "heat": 410}
on_both = pytest.mark.parametrize("place", PLACES, indirect=True)
on_postgres = pytest.mark.parametrize("place", PLACES[1:], indirect=True)


def create(place, epsilon=1, **terms):
    return discreet.Ledger.create(place, epsilon=epsilon, unit="users", **terms)


def release(ledger, **options):
    return discreet.top_k(SCORES, 1, "0.1", ledger=ledger, **options)


@contextmanager
def undrawn(monkeypatch):
    """Fails where a random bit is drawn."""
    with monkeypatch.context() as patched:
        patched.setattr(SystemBits, "getrandbits", lambda *_: pytest.fail("a random bit was drawn"))
        yield


@on_both
def test_what_is_kept_is_read_again(place):
    ledger = create(place, every="year", zone="Europe/Berlin")
    first = release(ledger, request_id="june", purpose="ä\x00b")
    ledger.reserve_part("team", epsilon="0.5")
    release(place, part="team")
    ledger.withdraw("songs", None, "wrong")
    again = discreet.Ledger(place)
    assert again.history() == ledger.history()
    assert (again.export(), again.spending, again.head) == (ledger.export(), ledger.spending, ledger.head)
    assert release(again, request_id="june", purpose="other") == first == again.history()[0].release
    assert (again.check(), again.check(first_hash(again)), len(again.withdrawals())) == (7, 6, 1)
    with pytest.raises(discreet.Error, match="does not exist yet"):
        create(place)
    assert again.has_head(ledger.head)


def first_hash(ledger):
    return ledger.export()["records"][0]["hash"]


EDITS = {
    "a cheaper charge": 'UPDATE records SET body = replace(body, \'"epsilon":"1/10"\', \'"epsilon":"1/99"\')',
    "a larger budget": 'UPDATE records SET body = replace(body, \'"epsilon":"1"\', \'"epsilon":"9"\') WHERE number = 1',
    "another release": "UPDATE records SET body = replace(body, 'dune', 'heat') WHERE number = 3",
    "another kind": "UPDATE records SET kind = 'store' WHERE number = 4",
    "another hash before": "UPDATE records SET previous = hash WHERE number = 5",
    "a charge removed": "DELETE FROM records WHERE number = 4",
    "all removed": "DELETE FROM records",
    "one added": "INSERT INTO records SELECT 6, kind, body, previous, hash FROM records WHERE number = 2",
    "one added before": "INSERT INTO records SELECT -3, kind, body, previous, hash FROM records WHERE number = 1",
}


@pytest.mark.some(1)
@on_both
def test_every_edit_is_found_and_nothing_is_drawn_after_it(place, monkeypatch):
    ledger = create(place)
    release(ledger)
    release(ledger)
    head, reader = ledger.head, discreet.Ledger(place)
    (rows,) = run_sql(place, "SELECT * FROM records")
    for statement in EDITS.values():
        run_sql(place, statement)
        with undrawn(monkeypatch):
            for one in (place, ledger, reader):
                with pytest.raises(LedgerError, match="damaged"):
                    discreet.top_k(SCORES, 1, "0.1", ledger=one) if one is place else one.check()
        put_back(place, rows)
        assert discreet.Ledger(place).head == head
    run_sql(place, "DELETE FROM records WHERE number > 3")
    assert discreet.Ledger(place).check() == 3
    with pytest.raises(LedgerError, match="does not hold the head given"):
        discreet.Ledger(place).check(head)
    with undrawn(monkeypatch), pytest.raises(LedgerError, match="record 5 was edited or removed"):
        release(ledger)


@on_both
def test_a_fault_locks_it_for_everybody_until_it_is_reopened(place, monkeypatch):
    ledger = create(place)
    with monkeypatch.context() as patched:
        patched.setattr(SystemBits, "getrandbits", lambda *_: (_ for _ in ()).throw(InternalError()))
        with pytest.raises(InternalError):
            release(ledger)
    other = discreet.Ledger(place)
    with undrawn(monkeypatch), pytest.raises(LedgerError, match="the ledger is locked"):
        release(other)
    other.reopen("mended")
    release(ledger)
    assert (ledger.is_locked, len(ledger.history()), ledger.check()) == (False, 2, 6)


@on_both
def test_a_clock_that_goes_back_charges_nothing(place, monkeypatch):
    ledger = create(place, every="year")
    release(ledger)
    moment = datetime.now(UTC).replace(microsecond=0) - timedelta(days=400)
    monkeypatch.setattr(charges, "now", lambda: moment)
    monkeypatch.setattr(PostgresTransaction, "clock", lambda _: moment)
    with undrawn(monkeypatch), pytest.raises(LedgerError, match=r"^the clock says .* nothing was drawn"):
        release(ledger)
    assert (len(ledger.history()), ledger.check()) == (1, 3)


def set_clock(monkeypatch, text):
    """Sets the clock that counts, that of this machine for a file and that of the server for a table."""
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    monkeypatch.setattr(charges, "now", lambda: moment)
    monkeypatch.setattr(PostgresTransaction, "clock", lambda _: moment)


QUARTERS = [f"{year}-Q{number}" for year in range(2021, 2026) for number in range(1, 5)]


def spend_quarters(ledger, quarters):
    """Tries to charge the whole budget as of each quarter."""
    for name in quarters:
        year, number = map(int, name.split("-Q"))
        with suppress(discreet.Error):
            release(ledger, as_of=f"{year}-{3 * number - 2:02}-01")


@pytest.mark.some(1)
@on_both
@pytest.mark.parametrize("since", [None, "2023-02-15", "2022-01-01"])
def test_the_periods_that_can_be_charged_are_those_from_the_start_to_now(place, monkeypatch, since):
    first = QUARTERS.index({None: "2023-Q2", "2023-02-15": "2023-Q1", "2022-01-01": "2022-Q1"}[since])
    for number, (moment, last) in enumerate(
        [("2023-05-11", "2023-Q2"), ("2023-12-31", "2023-Q4"), ("2024-04-01", "2024-Q2")]
    ):
        set_clock(monkeypatch, "2023-05-10")
        ledger = create(f"{place}_{number}", epsilon="0.1", every="quarter", since=since)
        set_clock(monkeypatch, moment)
        spend_quarters(ledger, QUARTERS + QUARTERS)
        assert list(ledger.periods) == QUARTERS[first : QUARTERS.index(last) + 1]
        assert len(ledger.history()) == len(ledger.periods)
        assert ledger.check()


@on_both
def test_no_order_of_tries_spends_more_budgets_than_there_are_periods(place, monkeypatch):
    rng = random.Random(3)
    set_clock(monkeypatch, "2023-05-10")
    ledger = create(place, epsilon="0.1", every="quarter", since="2022-08-01")
    for moment, last in (("2023-05-10", "2023-Q2"), ("2023-08-01", "2023-Q3"), ("2024-04-01", "2024-Q2")):
        set_clock(monkeypatch, moment)
        spend_quarters(ledger, rng.sample(QUARTERS, 8))
        assert set(ledger.periods) <= set(QUARTERS[QUARTERS.index("2022-Q3") : QUARTERS.index(last) + 1])
        assert len(ledger.history()) == len(ledger.periods)


@on_both
def test_a_period_before_the_ledger_was_made_is_refused(place, monkeypatch):
    set_clock(monkeypatch, "2025-01-03")
    ledger = create(place, every="year", zone="Europe/Berlin")
    early = (
        "as_of must be in 2025 or later, the period in which the ledger was made, not in 2024, and nothing was drawn: "
        "leave as_of out, or make a ledger that begins earlier, with 'discreet budget init --since 2024-01-01'"
    )
    with undrawn(monkeypatch), pytest.raises(InvalidValueError, match=f"^{re.escape(early)}$"):
        release(ledger, as_of="2024-12-31")
    # In Berlin the year has begun.
    release(ledger, as_of="2024-12-31T23:30Z")
    started = create(f"{place}_2", every="year", since="2023-07-08")
    release(discreet.Ledger(f"{place}_2"), as_of="2023-01-01")
    with (
        undrawn(monkeypatch),
        pytest.raises(
            InvalidValueError, match="as_of must be in 2023 or later, the period of the last charge, not in 2022"
        ),
    ):
        release(started, as_of="2022-12-31")
    assert (list(ledger.periods), list(started.periods)) == (["2025"], ["2023"])
    with (
        undrawn(monkeypatch),
        pytest.raises(
            InvalidValueError, match="as_of must be in 2023 or later, the first period of the ledger, not in 2022"
        ),
    ):
        release(create(f"{place}_3", every="year", since="2023-07-08"), as_of="2022-12-31")


@on_both
def test_a_ledger_from_before_there_was_a_start_keeps_its_charges_and_takes_no_more_of_them(place, monkeypatch):
    set_clock(monkeypatch, "2025-03-04")
    ledger = create(place, every="year", since="2020-01-01")
    for moment in ("2021-05-06", "2022-05-06"):
        release(ledger, as_of=moment, request_id=moment)
    # An earlier version wrote the same records without a start.
    last, rows = None, []
    for record in ledger._all()[1]:
        last = store.next_record(last, record.kind, {k: v for k, v in record.content.items() if k != "since"})
        rows.append((last.number, last.kind, last.body, last.previous, last.hash))
    run_sql(place, "DELETE FROM records")
    put_back(place, rows)
    old = discreet.Ledger(place)
    assert (old.budget.since, list(old.periods), old.check()) == (None, ["2021", "2022"], 5)
    assert old.history()[1].release == release(old, as_of="2022-05-06", request_id="2022-05-06")
    for moment in ("2021-05-06", "2022-05-06", "2024-12-31"):
        with (
            undrawn(monkeypatch),
            pytest.raises(InvalidValueError, match="as_of must be in 2025 or later, the period in"),
        ):
            release(old, as_of=moment)
    release(old)
    release(old, as_of="2025-01-01")
    assert (list(old.periods), discreet.Ledger(place).check()) == (["2021", "2022", "2025"], 9)


@on_postgres
def test_the_clock_of_the_host_that_makes_a_ledger_opens_no_period(place, monkeypatch):
    now = datetime.now(UTC)
    monkeypatch.setattr(charges, "now", lambda: now - timedelta(days=400))
    ledger = create(place, every="month")
    assert abs(ledger.account.time - now) < timedelta(minutes=1)


@on_postgres
def test_the_clock_of_one_host_ends_no_period(place, monkeypatch):
    """The clock of the server counts: a host that is a year ahead would spend the budget of the next year today."""
    ledger = create(place, every="year")
    for days in (400, -400):
        moment = datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)

        class Moved(datetime):
            @classmethod
            def now(cls, zone=None, moment=moment):
                return moment

        with monkeypatch.context() as patched:
            patched.setattr(charges, "datetime", Moved)
            release(ledger)
            if days > 0:
                with undrawn(patched), pytest.raises(discreet.Error, match="must not be after now, which is"):
                    release(ledger, as_of=moment.isoformat())
    times = [datetime.fromisoformat(entry.time) for entry in ledger.history()]
    assert all(abs(moment - datetime.now(UTC)) < timedelta(minutes=1) for moment in times)
    assert len(ledger.periods) == 1


@pytest.mark.long
@on_postgres
def test_the_clock_of_one_host_makes_no_period_due(place, tmp_path, monkeypatch, capsys):
    """Publishing, its price, a correction and what is left, on a host that is a year ahead of the server or behind."""
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path, ARTISTS)
    ledger = create(place, every="year", epsilon="0.5")
    (tmp_path / "charts.toml").write_text((tmp_path / "charts.toml").read_text().replace("budget.db", place))
    assert publish() == 0
    name = ledger.history()[0].request_id
    correct = ["publish", "correct", "charts.toml", *name.split("/"), "--reason", "wrong", "--yes"]
    for days in (400, -400):

        class Moved(datetime):
            @classmethod
            def now(cls, zone=None, days=days):
                return datetime.now(zone) + timedelta(days=days)

        with monkeypatch.context() as patched:
            for module in (charges, editions):
                patched.setattr(module, "datetime", Moved)
            capsys.readouterr()
            assert publish("--dry-run") == 0
            assert f"as of {datetime.now(UTC):%Y-%m-%d}" in capsys.readouterr().out
            assert publish() == 0
            assert publish("--as-of", f"{datetime.now(UTC) + timedelta(days=300):%Y-%m-%d}") == 2
            assert app([*correct, *(["--draw-again"] if days < 0 else [])], standalone_mode=False) == 0
            assert ledger.left == discreet.Ledger(place).left < Fraction("0.5")
        correct[-2] = "wrong again"
    assert {entry.request_id.rpartition("/")[0] for entry in ledger.history()} == {"artists", name}
    assert (len(ledger.history()), len(ledger.periods)) == (3, 1)


@pytest.mark.some(1)
@on_both
def test_a_writer_is_waited_for_and_not_for_ever(place, monkeypatch):
    ledger = create(place)
    held, go = threading.Event(), threading.Event()

    def hold():
        with ledger._store.write(1):
            held.set()
            go.wait(30)

    writer = threading.Thread(target=hold)
    writer.start()
    held.wait(30)
    with (
        undrawn(monkeypatch),
        pytest.raises(LedgerError, match="is in use by other processes and was not free in time"),
    ):
        release(discreet.Ledger(place, wait=0.1))
    assert ledger.left == 1  # reading needs no lock
    timer = threading.Timer(0.5, go.set)
    timer.start()
    begun = time.monotonic()
    release(ledger)
    assert time.monotonic() - begun > 0.4
    writer.join()


@on_both
def test_two_runs_of_publish_wait_for_each_other(place):
    store, told = create(place)._store, []
    with store.lock_publishing(1, lambda *_, **__: None):
        other = store.lock_publishing(0.1, lambda event, **facts: told.append((event, facts)))
        with pytest.raises(LedgerError, match="another run of 'discreet publish' is at work on"), other:
            pytest.fail("two runs at once")
        release(discreet.Ledger(place))  # others may release meanwhile
    assert told == [("waiting", {"on": "budget", "seconds": 0.1})]
    with store.lock_publishing(0, lambda *_, **__: pytest.fail("nobody has it")):
        pass


@on_postgres
def test_a_run_that_lost_its_lock_stops_before_it_charges(place, tmp_path, monkeypatch, capsys):
    """The server ends the connection of the lock, and another run could begin: the first one charges nothing more."""
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path, ARTISTS + ARTISTS.replace('"artists"', '"others"'))
    ledger, open_source = create(place), run.open_chart_source
    (tmp_path / "charts.toml").write_text((tmp_path / "charts.toml").read_text().replace("budget.db", place))

    def lose(chart, period):
        if chart.id == "others":
            (ended,) = run_sql(
                place,
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND granted "
                "AND objid = (SELECT 'records'::regclass::oid)",
            )
            assert ended == [(True,)]
            with discreet.Ledger(place).lock_publishing(0, lambda *_, **__: pytest.fail("it is free")):
                pass
        return open_source(chart, period)

    monkeypatch.setattr(run, "open_chart_source", lose)
    assert publish("--as-of", "2025-11-01", "--log", "json") == 4
    event = read_log(capsys.readouterr().out)[-1]
    assert (event["event"], event["code"], event["exit"]) == ("error", "engine", 4)
    assert re.search(r"the connection to the ledger '.*' broke, and with it the lock of this run", event["error"])
    assert [entry.request_id for entry in ledger.history()] == ["artists/2025-10"]
    assert not Path("site").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert publish("--as-of", "2025-11-01") == 0
    assert [entry.request_id for entry in ledger.history()] == ["artists/2025-10", "others/2025-10"]


@on_postgres
def test_no_second_record_of_a_number_even_without_the_lock(place, monkeypatch):
    ledger, other = create(place), discreet.Ledger(place)
    own = PostgresTransaction.append

    def append(chain, record):
        monkeypatch.setattr(PostgresTransaction, "append", own)
        monkeypatch.setattr(postgres_store, "_LOCK", 7)
        release(other)
        own(chain, record)

    monkeypatch.setattr(PostgresTransaction, "append", append)
    with pytest.raises(LedgerError, match="a record is in the way of the next one"):
        release(ledger)
    assert (other.check(), len(ledger.history())) == (3, 1)


@on_postgres
def test_a_charge_is_durable_whatever_the_session_has(place, monkeypatch):
    seen, own = [], PostgresTransaction.append

    def append(chain, record):
        seen.append(chain._connection.execute("SHOW synchronous_commit").fetchone()[0])
        own(chain, record)

    monkeypatch.setattr(PostgresTransaction, "append", append)
    create(place)
    url, _, name = place.partition("&ledger=")
    release(f"{url}&options=-csynchronous_commit%3Doff&ledger={name}")
    assert seen == ["on"] * 3
    monkeypatch.setattr(postgres_store, "_FORM", postgres_store._FORM.replace("current_setting('fsync')", "'off'"))
    with undrawn(monkeypatch), pytest.raises(LedgerError, match="its server has fsync off"):
        release(place)


FORMS = {
    "ALTER TABLE records SET UNLOGGED": "ALTER TABLE records SET LOGGED",
    "ALTER TABLE records ENABLE ROW LEVEL SECURITY": "ALTER TABLE records DISABLE ROW LEVEL SECURITY",
    "CREATE RULE forget AS ON INSERT TO records DO INSTEAD NOTHING": "DROP RULE forget ON records",
    "CREATE TRIGGER forget BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION "
    "suppress_redundant_updates_trigger()": "DROP TRIGGER forget ON records",
    "ALTER TABLE records ADD more text": "ALTER TABLE records DROP more",
    "CREATE TABLE child_records () INHERITS (records)": "DROP TABLE child_records",
    "ALTER TABLE records ALTER number TYPE numeric": "ALTER TABLE records ALTER number TYPE bigint",
}


@on_postgres
def test_a_table_that_could_lose_a_charge_is_refused(place, monkeypatch):
    ledger = create(place)
    for change, back in FORMS.items():
        words = [each.replace("child_records", "child_of_all") for each in (change, back)]
        run_sql(place, words[0])
        with undrawn(monkeypatch), pytest.raises(LedgerError, match="its table is not the one that discreet makes"):
            release(ledger)
        run_sql(place, words[1])
        assert ledger.check() == 1
    run_sql(place, "COMMENT ON TABLE records IS 'discreet ledger 2'")
    with pytest.raises(LedgerError, match="is of a newer discreet"):
        release(ledger)
    run_sql(place, "COMMENT ON TABLE records IS NULL")
    with pytest.raises(discreet.Error, match="must be a ledger made by discreet"):
        release(ledger)


@on_postgres
@pytest.mark.parametrize("when", ["charge", "store"])
def test_a_connection_that_breaks_withholds_the_release(place, monkeypatch, when):
    ledger, own = create(place), PostgresTransaction.append

    def append(chain, record):
        own(chain, record)
        if record.kind == when:
            pid = chain._connection.info.backend_pid
            run_sql(place, f"SELECT pg_terminate_backend({pid}, 5000)")

    monkeypatch.setattr(PostgresTransaction, "append", append)
    with pytest.raises(discreet.EngineError, match=r"the connection to the ledger .* broke") as caught:
        release(ledger)
    assert str(caught.value).startswith("the release could not be stored, so it is withheld") == (when == "store")
    assert [entry.stored for entry in ledger.history()] == [None] * (when == "store")


@on_postgres
def test_a_user_without_the_right_charges_nothing(place, monkeypatch):
    create(place)
    run_sql(place, "DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN", "GRANT SELECT ON records TO reader")
    reading = place.replace("postgres:@", "reader:@", 1)
    try:
        assert discreet.Ledger(reading).left == 1
        with (
            undrawn(monkeypatch),
            pytest.raises(LedgerError, match="this user lacks the right to read it or to add to it"),
        ):
            release(reading)
        run_sql(place, "GRANT INSERT ON records TO reader")
        release(reading)  # and can change nothing
    finally:
        run_sql(place, "REVOKE ALL ON records FROM reader", "DROP ROLE reader")


def test_a_server_that_does_not_answer_is_one_sentence():
    with pytest.raises(discreet.EngineError) as raised:
        discreet.Ledger("postgres://ada:hunter2@127.0.0.1:1/db?connect_timeout=1")
    assert str(raised.value).startswith("the server of the ledger 'postgres://127.0.0.1:1/db")
    assert str(raised.value).endswith(" does not answer: try again later, or correct ledger")


def test_a_password_is_in_no_path():
    """libpq takes a "?" in a password, and the query of a URL begins with one."""
    for password in ("hunter2", "hun?ter2", "q?ledger=hunter2", "q?ledger=hunter2&x"):
        store = open_store(f"postgres://ada:{password}@host/db?ledger=books")
        assert (store._key, "hunter2" in store.path) == (("public", "books"), False)
        assert store._url == f"postgres://ada:{password}@host/db"
    for wrong in ("p/q?ledger=hunter2@h/db", "@h/db?ledger=x?password=hunter2", "@h/db?ledger=hunter2-"):
        with pytest.raises(discreet.Error, match="ledger must name its table") as caught:
            open_store(f"postgres://ada:{wrong}")
        assert "hunter2" not in str(caught.value)


NO_PATHS = [
    "'postgres://ada:hunter2@h/db'",
    '"postgresql://ada:hunter2@h/db"',
    " postgres://ada:hunter2@h/db",
    "host=h user=ada password=hunter2 dbname=x",
    "dbname=x user=ada PASSWORD = hunter2",
    "jdbc:postgresql://h/db?user=a&password=hunter2",
    "postgres:/ada:hunter2@h/db",
    "postgres:ada:hunter2@h/db",
    "ada:hunter2@h/db",
    "ada:hun/hunter2@h/db",
    "//ada:hunter2@h/db",
    "POSTGRES://ada:hunter2@h/db",
    "mysql://ada:hunter2@h/db",
    "postgresql+psycopg://ada:hunter2@h/db",
    "LEDGER=postgres://ada:hunter2@h/db",
]


@pytest.mark.some(5)
@pytest.mark.parametrize("name", NO_PATHS)
def test_what_is_nearly_a_url_is_refused_and_not_shown(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path, ARTISTS)
    charts = (tmp_path / "charts.toml").read_text()
    (tmp_path / "charts.toml").write_text(charts.replace('ledger = "budget.db"', 'ledger = "${LEDGER}"'))
    monkeypatch.setenv("LEDGER", name)
    for attempt in (discreet.Ledger, create, release):
        with pytest.raises(discreet.Error, match="looks like another URL or a connection string") as caught:
            attempt(name)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    for arguments in (
        ["budget", "show", name],
        ["budget", "init", name, "--epsilon", "1", "--unit", "users"],
        ["budget", "export", "budget.db", "--out", name],
        ["publish", name],
        ["publish", "correct", name, "artists", "2025-10", "--reason", "wrong"],
        ["publish", "charts.toml", "--as-of", "2025-11-01"],
        ["publish", "withdraw", "charts.toml", "artists", "2025-10", "--reason", "wrong"],
        ["select", "scores.csv", "-k", "1", "--epsilon", "1", "--ledger", name],
    ):
        assert app(arguments, standalone_mode=False) == 2
    (tmp_path / "charts.toml").write_text(charts.replace("budget.db", name.replace('"', '\\"')))
    assert publish("--as-of", "2025-11-01") == 2
    told = "".join(capsys.readouterr())
    assert "hunter2" not in told
    assert told.count("looks like another URL or a connection string") >= 8


def test_a_file_may_have_any_name_and_a_drive_is_no_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (r"C:\Users\ann@corp\b.db", "C:/Users/ann@corp/b.db", "ann@corp.db", "a:b.db", "user.db", "hosts.db"):
        assert open_store(name).name
    create("plain.db")
    Path("plain.db").rename("ada:x@h.db")
    assert discreet.Ledger("ada:x@h.db").check() == 1


@on_postgres
def test_the_password_is_in_nothing(place, tmp_path, monkeypatch, capfd):
    """The server of the tests takes any password, and this one must not be seen in any text, file or traceback."""
    secret, seen = "hunter2", []
    url = place.replace("postgres:@", f"postgres:{secret}@", 1)
    assert secret in url
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    fill_folder(tmp_path, ARTISTS)
    charts = (tmp_path / "charts.toml").read_text()
    monkeypatch.setenv("LEDGER", url)
    (tmp_path / "charts.toml").write_text(charts.replace('ledger = "budget.db"', 'ledger = "${LEDGER}"'))

    def run(*arguments):
        code = app([*arguments], standalone_mode=False)
        seen.extend(capfd.readouterr())
        return code

    assert run("budget", "init", url, "--epsilon", "3", "--unit", "users") == 0
    assert run("budget", "init", url, "--epsilon", "3", "--unit", "users") == 2
    assert publish("--as-of", "2025-11-01") == 0
    assert publish("--as-of", "2025-11-01", "--log", "json") == 0
    assert run("publish", "withdraw", "charts.toml", "artists", "2025-10", "--reason", "wrong") == 0
    for command in ("show", "history", "export", "check"):
        assert run("budget", command, url) == 0
    ledger = discreet.Ledger(url)
    made = release(ledger)
    seen += [repr(ledger), ledger.path, ledger._repr_html_(), made.statement(ledger), json.dumps(ledger.export())]
    wrong = [
        url.replace("/contract", "/no_database"),
        url.replace("host=", "host=/nowhere"),
        url.replace("&ledger=", "&ledger=no_"),
        url.replace("&ledger=", "&ledger=No-"),
        url.replace("&ledger=", "&no_option=1&ledger="),
        f"postgres://ada:{secret}@127.0.0.1:1/db",
        f"postgres://ada:{secret}/x@127.0.0.1:1/db",
        f"postgres://ada:{secret}?x@127.0.0.1:1/db",
        f"postgres://ada@127.0.0.1:1/db?password={secret}",
    ]
    for one in wrong:
        for attempt in (discreet.Ledger, release):
            with pytest.raises(discreet.Error) as caught:
                attempt(one)
            seen += traceback.format_exception(caught.value)
        run("budget", "show", one)
    monkeypatch.setenv("LEDGER", wrong[5])
    assert publish("--as-of", "2025-12-01", "--log", "json") == 4
    run_sql(place, "UPDATE records SET body = body || ' ' WHERE number = 2")
    assert run("budget", "show", url) == 1
    seen.extend(capfd.readouterr())
    seen += [path.read_text(errors="replace") for path in Path(tmp_path).rglob("*") if path.is_file()]
    seen += [str(row) for rows in run_sql(place, "SELECT * FROM records") for row in rows]
    assert len("".join(seen)) > 10_000
    assert secret not in "".join(seen)


@on_postgres
def test_charts_are_published_from_a_ledger_on_a_server(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path, ARTISTS)
    create(place, epsilon="0.1")
    charts = (tmp_path / "charts.toml").read_text().replace('ledger = "budget.db"', 'ledger = "${LEDGER}"')
    (tmp_path / "charts.toml").write_text(charts)
    assert publish("--as-of", "2025-11-01") == 2
    assert "ledger must name variables of the environment that are set, and LEDGER is not" in capsys.readouterr().err
    monkeypatch.setenv("LEDGER", place)
    assert publish("--as-of", "2025-11-01") == 0
    before = read_site()
    assert publish("--as-of", "2025-11-01") == 0
    assert read_site() == before
    assert publish("--as-of", "2025-12-01") == 3
    monkeypatch.setenv("LEDGER", place + "x")
    assert publish("--as-of", "2025-12-01") == 2
    monkeypatch.setenv("LEDGER", "site/budget.db")
    assert publish("--as-of", "2025-12-01") == 2
    assert "ledger must be outside of out" in capsys.readouterr().err
    assert [entry.request_id for entry in discreet.Ledger(place).history()] == ["artists/2025-10"]


def test_a_table_has_a_plain_name():
    for name in ("A", "a-b", "a.b.c", "", "a;b", 'a"b', "x" * 64):
        with pytest.raises(discreet.Error, match="ledger must name its table as ledger=TABLE"):
            discreet.Ledger(f"postgres://127.0.0.1:1/db?ledger={name}")
