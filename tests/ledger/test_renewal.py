"""A budget that renews: what counts in which period, what the file, the command and the statement say of it."""

import json
from datetime import UTC, datetime
from fractions import Fraction

import pytest

import discreet
from discreet.errors import LedgerError
from discreet.ledger import charges, store
from discreet.ledger.account import Composition

SCORES = {"dune": 912_345, "alien": 877, "heat": 410, "ran": 3}


class Clock:
    """The clock of charges and accounts, which a test sets."""

    def __init__(self, monkeypatch):
        self.now = datetime(2024, 6, 1, tzinfo=UTC)
        clock = self

        class Set(datetime):
            @classmethod
            def now(cls, zone=None):
                return clock.now.astimezone(zone)

        monkeypatch.setattr(charges, "datetime", Set)

    def set(self, text):
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def ledger(tmp_path, clock):
    return discreet.Ledger.create(tmp_path / "years.db", epsilon=1, every="year", unit="users")


def release(ledger, epsilon="0.6", **options):
    return discreet.top_k(SCORES, 2, epsilon, ledger=ledger, **options)


def test_each_year_has_a_budget_of_its_own_and_nothing_carries_over(ledger, clock):
    release(ledger)
    with pytest.raises(discreet.BudgetSpentError, match=r"^epsilon 0.6 does not fit: 0.4 of 1 is left in 2024, and"):
        release(ledger)
    clock.set("2025-01-01")
    assert (ledger.spent, ledger.left) == (0, 1)
    release(ledger)
    assert (ledger.spent, ledger.left) == (Fraction(3, 5), Fraction(2, 5))
    with pytest.raises(discreet.BudgetSpentError, match="in 2025"):
        release(ledger, "0.5")
    clock.set("2027-03-01")
    release(ledger, 1)
    assert {name: cost.epsilon for name, cost in ledger.periods.items()} == {
        "2024": Fraction(3, 5), "2025": Fraction(3, 5), "2027": 1,
    }  # fmt: skip
    again = discreet.Ledger(ledger.path)
    assert (again.periods, again.check(), again.history()) == (ledger.periods, 7, ledger.history())
    assert [entry.period for entry in again.history()] == ["2024", "2025", "2027"]


def test_a_charge_counts_in_the_period_of_as_of_and_never_in_one_before_the_last(ledger, clock):
    clock.set("2025-01-02T10:00:00")
    release(ledger, as_of="2024-12-31")
    (entry,) = ledger.history()
    assert (entry.time, entry.as_of, entry.period) == ("2025-01-02T10:00:00Z", "2024-12-31T00:00:00Z", "2024")
    assert ledger.left == 1
    release(ledger, request_id="new year")
    with pytest.raises(
        discreet.Error, match="as_of must be in 2025 or later, the period of the last charge, not in 2024"
    ):
        release(ledger, as_of="2024-12-31")
    stored = release(ledger, as_of="2024-12-31", request_id="new year")
    assert stored == ledger.history()[-1].release
    with pytest.raises(discreet.Error, match="as_of must not be after now"):
        release(ledger, as_of="2026-01-01")
    with pytest.raises(discreet.Error, match="as_of must be a day or a time"):
        release(ledger, as_of="soon")
    with pytest.raises(
        discreet.Error, match=r"not be after now, which is 2025-01-02T10:00:00Z, and is 2026-01-01T00:00"
    ):
        release(ledger, as_of=datetime(2026, 1, 1))
    assert len(ledger.history()) == 2


@pytest.mark.parametrize("zone", [None, "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("moment", ["0226-12-31", "0001-01-01", "1899-12-31", "9999-12-31T23:59-10:00"])
def test_a_moment_that_cannot_be_read_again_is_refused(tmp_path, zone, moment):
    terms = {"every": "year", "zone": zone, "since": "1900-01-01"}
    ledger = discreet.Ledger.create(tmp_path / "b.db", epsilon=1, unit="users", **terms)
    with pytest.raises(discreet.Error, match="as_of must be in the years 1900 to 2999, not '"):
        release(ledger, as_of=moment)
    release(ledger, as_of="1900-01-02")
    assert discreet.Ledger(ledger.path).check() == 3


def test_nothing_is_written_that_cannot_be_read_again(ledger, monkeypatch):
    release(ledger, "0.1", request_id="one")
    monkeypatch.setattr(charges, "stamp", lambda _: "226-12-31T00:00:00Z")
    for _ in range(2):
        with pytest.raises(LedgerError, match="would be damaged by its next record, which was not written"):
            release(ledger, "0.1", request_id="two")
    for write in (
        lambda: ledger.reserve_part("charts", epsilon="0.1"),
        lambda: ledger.withdraw("songs", None, "wrong"),
    ):
        with pytest.raises(LedgerError, match="would be damaged by its next record"):
            write()
    monkeypatch.undo()
    assert discreet.Ledger(ledger.path).check() == 3
    # A request that was refused is not remembered.
    ledger.reserve_part("charts", epsilon="0.1")
    release(ledger, "0.1", request_id="two")
    assert ledger.check() == 6


def test_as_of_needs_a_budget_that_renews(tmp_path):
    plain = discreet.Ledger.create(tmp_path / "plain.db", epsilon=1, unit="users")
    with pytest.raises(discreet.Error, match="as_of must be left out for a budget that does not renew"):
        release(plain, as_of="2024-01-01")
    with pytest.raises(discreet.Error, match="as_of must be left out without a ledger"):
        discreet.top_k(SCORES, 2, 1, as_of="2024-01-01")


@pytest.mark.parametrize(
    ("every", "zone", "moments"),
    [
        ("year", None, {"2024-12-31T23:59:59": "2024", "2025-01-01T00:00:00": "2025"}),
        ("year", "Europe/Berlin", {"2024-12-31T22:59:59": "2024", "2024-12-31T23:00:00": "2025"}),
        ("quarter", None, {"2024-09-30T12:00:00": "2024-Q3", "2024-10-01T00:00:00": "2024-Q4"}),
        ("month", "America/New_York", {"2024-07-01T03:59:59": "2024-06", "2024-07-01T04:00:00": "2024-07"}),
    ],
)
def test_periods_are_those_of_the_calendar_of_the_zone(tmp_path, clock, every, zone, moments):
    ledger = discreet.Ledger.create(tmp_path / "b.db", epsilon=1, every=every, zone=zone, unit="users")
    for moment, period in moments.items():
        clock.set(moment)
        release(ledger, 1)
        assert ledger.history()[-1].period == period
        assert ledger.left == 0


def test_a_clock_that_goes_back_a_little_stays_in_the_period_of_the_last_charge(ledger, clock):
    clock.set("2025-01-01T00:00:10")
    release(ledger)
    clock.set("2024-12-31T23:59:40")
    assert ledger.left == Fraction(2, 5)
    with pytest.raises(discreet.BudgetSpentError, match="in 2025"):
        release(ledger)
    clock.set("2024-12-31T23:00:00")
    with pytest.raises(LedgerError, match=r"^the clock says"):
        release(ledger)


def test_deltas_and_zcdp_are_of_each_period(tmp_path, clock):
    ledger = discreet.Ledger.create(
        tmp_path / "b.db", epsilon=1, delta="1e-6", release_delta="1e-8", every="month", unit="users"
    )
    domain = discreet.discovered(delta="1e-8", max_items_per_user=1)
    table = {"who": [f"u{i}" for i in range(300)], "what": ["x"] * 300}
    import pyarrow as pa

    def discover():
        return discreet.top_k(
            discreet.events(pa.table(table), user="who", item="what", domain=domain), 1, "0.5", ledger=ledger
        )

    discover()
    with pytest.raises(discreet.BudgetSpentError, match="delta 1e-08 does not fit: 0 of 1e-08 is left"):
        discover()
    clock.set("2024-07-01")
    discover()
    for _ in range(20):
        release(ledger, "0.02")
    one, two = ledger.periods.values()
    assert (one.delta, two.delta) == (Fraction(1, 10**8), Fraction(1, 10**8))
    total = ledger.account.total
    assert total == Composition(one.epsilon + two.epsilon, one.rho + two.rho, one.delta + two.delta)
    assert ledger.check()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"period": "2023"}, "record 4 is not one"),
        ({"period": "2025-01"}, "record 4 is not one"),
        ({"period": None}, "record 4 is not one"),
    ],
)
def test_a_charge_of_a_period_that_ended_is_damage_even_in_an_intact_chain(ledger, change, error):
    release(ledger, "0.1")
    with ledger._store.write(1) as chain:
        *_, charge, last = chain.records()
        content = {**charge.content, "request_id": "forged", **change}
        chain.append(store.next_record(last, "charge", content))
    with pytest.raises(LedgerError, match=error):
        discreet.Ledger(ledger.path)


def test_a_period_in_a_ledger_without_periods_is_damage(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "plain.db", epsilon=1, unit="users")
    release(ledger, "0.1")
    with ledger._store.write(1) as chain:
        *_, charge, last = chain.records()
        chain.append(store.next_record(last, "charge", {**charge.content, "period": "2024"}))
    with pytest.raises(LedgerError, match="record 4 is not one"):
        discreet.Ledger(ledger.path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"every": "week"}, "every must be one of year, quarter, month, or left out, not 'week'"),
        *(
            (
                {"every": "year", "zone": zone},
                f"zone must be the name of a time zone such as 'Europe/Berlin', not '{zone}'",
            )
            for zone in ("localtime", "Factory", "posixrules", "posix/UTC", "right/UTC", "Localtime")
        ),
        ({"zone": "UTC"}, "zone must be left out without every"),
        ({"since": "2023-01-01"}, "since must be left out without every"),
        *(
            ({"every": "year", "since": since}, "since must be a day such as 2023-01-01, in 1900 or later, not '?")
            for since in ("2023", "soon", "1899-12-31", "2023-02-30", 2023, datetime(2023, 1, 1))
        ),
        (
            {"every": "month", "since": "2999-01-01"},
            r"since must not be after today, \d{4}-\d\d-\d\d, and is 2999-01-01",
        ),
        ({"every": "year", "zone": "Berlin"}, "zone must be the name of a time zone such as 'Europe/Berlin'"),
    ],
)
def test_a_bad_renewal_is_not_made(tmp_path, options, sentence):
    with pytest.raises(discreet.Error, match=sentence):
        discreet.Ledger.create(tmp_path / "b.db", epsilon=1, unit="users", **options)
    assert not list(tmp_path.iterdir())


def test_the_statement_tells_each_period_and_all(ledger, clock):
    first = release(ledger)
    clock.set("2025-01-02")
    twice = "Twelve months may lie in two calendar years, so up to twice the budget may be spent within them."
    text = first.statement(ledger)
    assert twice in text
    assert "adds the budget once more: two come to epsilon = 2, and to at most 88.1%." in text
    assert "Charged so far: epsilon = 0.6 of 1 in 2024, and nothing in any other year." in text
    late = release(ledger, "0.1", as_of="2024-12-31")
    last = release(ledger, "0.3")
    text = last.statement(ledger)
    assert twice not in text
    assert "so the budgets of several periods may have been spent at about the same time." in text
    assert "epsilon = 1 for each year for all lists together, to protect the users; " in text
    assert "; all releases so far spent 0.3 in 2025." in text
    assert "Charged so far: epsilon = 1 of 2 in 2 years with charges since 2024." in text
    charged = late.statement(ledger)
    assert "counted in the budget of 2024; it counts as of 31 December 2024, 00:00 UTC" in charged
    assert "counts as of" not in text


def test_the_statement_names_a_start_before_the_ledger_was_made(tmp_path, clock):
    clock.set("2025-03-04")
    twice = "Twelve months may lie in two calendar years, so up to twice the budget may be spent within them."
    made = "The ledger was made in 2025 and has budgets from"
    # A day in the year in which the ledger is made changes nothing.
    for since, is_named in (("2023-05-06", True), ("2025-01-01", False)):
        ledger = discreet.Ledger.create(tmp_path / since, epsilon=1, every="year", since=since, unit="users")
        text = release(ledger).statement(ledger)
        assert (f"{made} 2023 on, so all of these may be spent at about the same time." in text) == is_named
        assert (twice not in text, made in text) == (is_named, is_named)
        assert ("before the ledger was made" in ledger._repr_html_()) == is_named


def test_a_statement_with_a_delta_converts_no_sum_of_rho(tmp_path, clock):
    ledger = discreet.Ledger.create(tmp_path / "b.db", epsilon=1, delta="1e-6", every="year", unit="users")
    release(ledger)
    clock.set("2025-01-02")
    text = release(ledger).statement(ledger)
    assert "Charged so far: at most epsilon = 2 and delta = 2e-06 in 2 years with charges since 2024." in text


def test_the_command_shows_the_period_and_all(ledger, clock, capsys):
    from discreet.cli.app import app

    release(ledger)
    clock.set("2025-02-01")
    release(ledger, "0.3")
    assert app(["budget", "show", ledger.path], standalone_mode=False) == 0
    rows = dict(line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:])
    assert rows["budget"] == "epsilon 1 every year, nothing carries over"
    assert (rows["period"], rows["spent"], rows["left"]) == ("2025", "0.3", "0.7")
    assert rows["all"] == "0.9 since 2024, in 2 periods"
    app(["budget", "show", ledger.path, "--json"], standalone_mode=False)
    data = json.loads(capsys.readouterr().out)
    assert (data["every"], data["period"], data["spent"], data["left"]) == ("year", "2025", "3/10", "7/10")
    assert [(each["period"], each["spent"]) for each in data["periods"]] == [("2024", "3/5"), ("2025", "3/10")]
    app(["budget", "history", ledger.path], standalone_mode=False)
    assert "in 2024" in capsys.readouterr().out.splitlines()[0]


def test_the_commands_take_the_renewal_and_as_of(tmp_path, monkeypatch, capsys):
    from discreet.cli.app import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores.csv").write_text("item,score\na,9\nb,1\n")
    options = ["--epsilon", "1", "--every", "quarter", "--zone", "Asia/Tokyo", "--unit", "users"]
    assert app(["budget", "init", "b.db", *options, "--since", "2024-02-01"], standalone_mode=False) == 0
    told = capsys.readouterr().out
    assert "epsilon 1 every quarter in Asia/Tokyo, nothing carries over" in told
    assert "since     2024-Q1, before the ledger was made" in told
    app(["budget", "show", "b.db", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["since"] == "2024-02-01"
    release_it = [
        "select",
        "scores.csv",
        "-k",
        "1",
        "--epsilon",
        "1",
        "--ledger",
        "b.db",
        "--as-of",
        "2024-03-31T20:00",
    ]
    assert app(release_it, standalone_mode=False) == 0
    (entry,) = discreet.Ledger("b.db").history()
    assert (entry.period, entry.as_of) == ("2024-Q1", "2024-03-31T11:00:00Z")  # a time of Tokyo
    assert app(release_it, standalone_mode=False) == 3
    sketch_it = ["sketch", "scores.csv", "--epsilon", "1", "--ledger", "b.db", "--as-of", "2024-03-31T20:00Z"]
    assert app(sketch_it, standalone_mode=False) == 0
    assert list(discreet.Ledger("b.db").periods) == ["2024-Q1", "2024-Q2"]
