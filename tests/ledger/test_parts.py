"""Parts of a budget: each has its own epsilon and deltas, they sum to the budget, and none spends another's."""

import json
import random
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction

import pytest

import discreet
from discreet.cli.app import app
from discreet.errors import LedgerError
from discreet.ledger import charges, store
from discreet.ledger.account import Budget, Composition, Spending, zcdp_to_epsilon

SCORES = {"dune": 912_345, "alien": 877, "heat": 410, "ran": 3}
DELTA = Fraction(1, 10**6)


def random_steps(spending, seed):
    """Divide and charge at random; yield every spending that was allowed."""
    chance = random.Random(seed)
    whole = spending.budgets[None]
    for _ in range(60):
        name = chance.choice(["a", "b", "c", None])
        with suppress(discreet.Error):
            if name is not None and chance.random() < 0.4:
                epsilon = Fraction(chance.randrange(6), 4)
                share = DELTA * chance.randrange(4) / 16 if whole.delta else Fraction(0)
                delta = share + DELTA * chance.randrange(6) / 16 if whole.delta and epsilon else None
                spending = spending.with_part(name, epsilon, delta, share if delta else Fraction(0))
                yield spending
            else:
                epsilon = Fraction(chance.randrange(1, 9), 16)
                cost = Composition(epsilon, epsilon**2 / 8, DELTA / 64 if chance.random() < 0.1 else Fraction(0))
                if spending.budget_of(name).fits(spending.cost_of(name).plus(cost)):
                    spending = spending.plus(name, cost)
                    yield spending


def create(tmp_path, epsilon=3, **terms):
    return discreet.Ledger.create(tmp_path / "budget.db", epsilon=epsilon, unit="users", **terms)


def release(ledger, epsilon, **options):
    return discreet.top_k(SCORES, 2, epsilon, ledger=ledger, **options)


def test_a_part_is_spent_by_its_own_releases_alone(tmp_path):
    ledger = create(tmp_path)
    ledger.reserve_part("charts", epsilon=1)
    with pytest.raises(discreet.BudgetSpentError, match="does not fit: 2 of 2 is left outside of its parts"):
        release(ledger, "2.1")
    with pytest.raises(discreet.BudgetSpentError, match="1 of 1 is left for part 'charts', and"):
        release(ledger, "1.1", part="charts")
    release(ledger, 2)
    release(ledger, 1, part="charts")
    assert (ledger.spent, ledger.left, ledger.check()) == (3, 0, 6)
    again = discreet.Ledger(ledger.path)
    assert [entry.part for entry in again.history()] == [None, "charts"]
    assert again.spending == ledger.spending
    assert {part: cost.epsilon for part, cost in again.spending.costs.items()} == {None: 2, "charts": 1}
    with pytest.raises(discreet.Error, match="part must be one of charts, or left out, not 'chart'"):
        release(ledger, "0.1", part="chart")
    with pytest.raises(discreet.Error, match="part must be left out without a ledger"):
        discreet.top_k(SCORES, 2, 1, part="charts")


def test_a_ledger_without_parts_refuses_one_before_anything_is_read(tmp_path):
    class Unread(dict):
        def __getitem__(self, key):
            pytest.fail("the scores were read")

    ledger = create(tmp_path)
    with pytest.raises(discreet.Error, match="part must be left out, as the ledger has none, not 'charts'"):
        discreet.top_k(Unread(a=1, b=2), 1, 1, ledger=ledger, part="charts")


def test_a_request_belongs_to_its_part(tmp_path):
    ledger = create(tmp_path)
    ledger.reserve_part("charts", epsilon=1)
    first = release(ledger, "0.5", part="charts", request_id="june")
    assert release(ledger, "0.5", part="charts", request_id="june") == first
    for part in (None, "charts "):
        with pytest.raises(discreet.Error, match=r"request_id must be new|part must be one of"):
            release(ledger, "0.5", part=part, request_id="june")
    assert len(ledger.history()) == 1
    assert "of part charts" in first.statement(ledger)
    assert "for each" not in first.statement(ledger)


def test_parts_and_the_remainder_sum_to_the_budget_whatever_is_done():
    """Random divisions and charges: the sums hold in epsilon and both deltas, and what is spent fits."""
    done = 0
    for seed in range(40):
        for converts in (False, True):
            deltas = {"delta": DELTA, "release_delta": DELTA / 4} if converts else {"delta": None}
            budget = Budget(Fraction(3), adjacency="add-remove", unit="users", **deltas)
            for spending in random_steps(Spending({None: budget}), seed):
                done += 1
                parts = spending.budgets.values()
                assert sum(each.epsilon for each in parts) == budget.epsilon
                assert sum(each.release_delta for each in parts) == budget.release_delta
                assert sum(each.conversion_delta or 0 for each in parts) == (budget.conversion_delta or 0)
                assert all(min(each.epsilon, each.release_delta, each.conversion_delta or 0) >= 0 for each in parts)
                assert spending.fits
                if not converts:
                    assert spending.cost.epsilon <= budget.epsilon
    assert done > 1000


def test_rho_is_converted_with_the_delta_of_its_own_part(tmp_path):
    ledger = create(tmp_path, delta=DELTA)
    ledger.reserve_part("many", epsilon=1, delta=DELTA / 10)
    for _ in range(40):
        release(ledger, "0.05", part="many")
    cost = ledger.spending.costs["many"]
    assert cost.epsilon == 2
    assert ledger.spent == zcdp_to_epsilon(cost.rho, DELTA / 10) < 1
    assert ledger.budget.conversion_delta == DELTA
    assert ledger.spending.budgets[None].conversion_delta == DELTA * 9 / 10
    with pytest.raises(discreet.BudgetSpentError, match="at delta 1e-07 to"):
        release(ledger, 1, part="many")
    release(ledger, 2)
    assert ledger.check()


def test_a_conversion_is_not_divided_after_a_release(tmp_path):
    """Its epsilon and its delta must be fixed beforehand: a split that follows releases could exceed both."""
    ledger = create(tmp_path, delta=DELTA)
    ledger.reserve_part("charts", epsilon=1, delta=DELTA / 2)
    release(ledger, "0.1", part="charts")
    # What is unspent can be divided after releases of others.
    ledger.reserve_part("maps", epsilon=1, delta=DELTA / 4)
    for name in ("charts", "maps", "new"):
        if name == "maps":
            release(ledger, "0.1")
        with pytest.raises(discreet.Error, match="a part must be made or changed before anything is charged to it"):
            ledger.reserve_part(name, epsilon="0.5", delta=DELTA / 8)


def test_sums_may_be_divided_at_any_time_but_what_is_spent_stays(tmp_path):
    ledger = create(tmp_path)
    release(ledger, 2)
    with pytest.raises(discreet.Error, match="epsilon must be at most 1, which is in no part and not spent"):
        ledger.reserve_part("late", epsilon="1.5")
    ledger.reserve_part("late", epsilon=1)
    release(ledger, "0.4", part="late")
    with pytest.raises(discreet.Error, match="a part must keep what it has spent"):
        ledger.reserve_part("late", epsilon="0.3")
    ledger.reserve_part("late", epsilon="0.4")
    release(ledger, "0.6")
    assert (ledger.left, ledger.check()) == (0, 9)


def test_a_part_that_is_given_back_is_gone(tmp_path):
    ledger = create(tmp_path)
    ledger.reserve_part("charts", epsilon=3)
    with pytest.raises(discreet.BudgetSpentError, match="0 of 0 is left outside of its parts"):
        release(ledger, 1)
    ledger.reserve_part("charts", epsilon=0)
    release(ledger, 3)
    assert ledger.spending.parts == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": " ", "epsilon": 1}, "part must have from 1 to"),
        ({"name": "a\nb", "epsilon": 1}, "part must have at most 50 characters that can be printed"),
        ({"name": "a" * 51, "epsilon": 1}, "part must have at most 50 characters"),
        (
            {"name": "No part ", "epsilon": 1},
            "part must have another name than 'no part', which is the rest of the budget",
        ),
        ({"name": "a", "epsilon": 0}, "epsilon must be above zero for a new part"),
        ({"name": "a", "epsilon": -1}, "epsilon must not be negative"),
        ({"name": "a", "epsilon": 4}, "epsilon must be at most 3, which is in no part and not spent, not 4"),
        ({"name": "a", "epsilon": 1, "delta": "1e-9"}, "delta must be left out for a part of a budget that has none"),
        ({"name": "a", "epsilon": 1, "release_delta": "1e-9"}, "release_delta must be left out without delta"),
    ],
)
def test_a_bad_part_is_not_made(tmp_path, arguments, sentence):
    ledger = create(tmp_path)
    with pytest.raises(discreet.Error, match=sentence):
        ledger.reserve_part(**arguments)
    assert ledger.check() == 1


def test_a_delta_for_releases_is_of_the_part(tmp_path):
    import pyarrow as pa

    ledger = create(tmp_path, delta=DELTA, release_delta=DELTA / 2)
    with pytest.raises(discreet.Error, match=r"release_delta must be at most 5e-07, which is in no part"):
        ledger.reserve_part("found", epsilon=1, delta=DELTA, release_delta=DELTA)
    ledger.reserve_part("found", epsilon=1, delta=DELTA / 2, release_delta=DELTA / 4)
    table = pa.table({"who": list(range(90)), "what": ["a"] * 90})

    def find(**options):
        source = discreet.events(table, user="who", item="what", domain=discreet.discovered(DELTA / 4, 1))
        return discreet.top_k(source, 1, "0.1", ledger=ledger, **options)

    find(part="found")
    with pytest.raises(discreet.BudgetSpentError, match=r"0 of 2.5e-07 is left for releases for part 'found'"):
        find(part="found")
    find()
    assert ledger.check()


def test_a_part_is_of_each_period_and_ends_the_period_before(tmp_path, monkeypatch):
    ledger, moments = create(tmp_path, every="year"), [datetime(2024, 6, 1, tzinfo=UTC)]
    monkeypatch.setattr(charges, "now", lambda: moments[-1])
    monkeypatch.setattr(charges, "parse_moment", lambda given, _: datetime.fromisoformat(given).replace(tzinfo=UTC))
    with ledger._store.write(1) as chain:
        # The ledger is made anew in 2024: no later record stands before the charges.
        first = ledger.account.last
        chain._connection.execute("DELETE FROM records")
        chain.append(store.next_record(None, store.BUDGET, {**first.content, "time": "2024-01-01T00:00:00Z"}))
    ledger = discreet.Ledger(ledger.path)
    ledger.reserve_part("charts", epsilon=1)
    release(ledger, 1, part="charts")
    moments.append(datetime(2025, 1, 2, tzinfo=UTC))
    release(ledger, 1, part="charts")
    release(ledger, 2)
    assert ledger.account.period == "2025"
    moments.append(datetime(2026, 1, 2, tzinfo=UTC))
    ledger.reserve_part("charts", epsilon=2)
    with pytest.raises(discreet.Error, match="as_of must be in 2026 or later"):
        release(ledger, 1, part="charts", as_of="2025-12-31")
    release(ledger, 2, part="charts")
    assert {period: cost.epsilon for period, cost in ledger.periods.items()} == {"2024": 1, "2025": 3, "2026": 2}
    assert ledger.check()


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "9"},
        {"epsilon": "-1"},
        {"more": 1},
        {"part": None},
        {"time": "2001-01-01T00:00:00Z"},
        {"period": "2026"},
    ],
)
def test_a_part_that_does_not_fit_is_damage_even_in_an_intact_chain(tmp_path, change):
    ledger = create(tmp_path)
    ledger.reserve_part("charts", epsilon=1)
    with ledger._store.write(1) as chain:
        *_, last = chain.records()
        chain.append(store.next_record(last, store.PART, {**last.content, **change}))
    with pytest.raises(LedgerError, match="record 3 is not one that discreet writes"):
        discreet.Ledger(ledger.path)


def test_a_charge_to_a_part_that_never_was_is_damage(tmp_path):
    ledger = create(tmp_path)
    release(ledger, 1)
    with ledger._store.write(1) as chain:
        _, charge, last = chain.records()
        chain.append(store.next_record(last, "charge", {**charge.content, "part": "charts"}))
    with pytest.raises(LedgerError, match="record 4 is not one"):
        discreet.Ledger(ledger.path)


def test_the_commands_make_show_and_list_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores.csv").write_text("item,score\na,9\nb,1\n")

    def run(*arguments, code=0):
        assert app([*arguments], standalone_mode=False) == code
        return capsys.readouterr()

    run("budget", "init", "budget.db", "--epsilon", "3", "--unit", "users")
    assert "  charts   1        0      1     ░░" in run("budget", "part", "budget.db", "charts", "--epsilon", "1").out
    spend = ("scores.csv", "--epsilon", "0.5", "--ledger", "budget.db", "--part", "charts")
    run("select", "-k", "1", *spend)
    run("sketch", *spend)
    assert "0 of 1 is left for part 'charts'" in run("select", "-k", "1", *spend, code=3).err
    lines = run("budget", "show", "budget.db").out.splitlines()
    assert lines[-2].split() == ["charts", "1", "1", "0", "█" * 20]
    assert lines[-1].split() == ["no", "part", "2", "0", "2", "░" * 20]
    parts = json.loads(run("budget", "show", "budget.db", "--json").out)["parts"]
    assert {each["part"]: (each["epsilon"], each["left"]) for each in parts} == {None: ("2", "2"), "charts": ("1", "0")}
    listed = json.loads(run("budget", "history", "budget.db", "--json").out)
    assert [(each["part"], each["epsilon"], each["has_release"]) for each in listed] == [("charts", "1/2", True)] * 2
    assert "part charts" in run("budget", "history", "budget.db").out
    assert "2 charges" not in discreet.Ledger("budget.db")._repr_html_()
    assert "part charts" in discreet.Ledger("budget.db")._repr_html_()


def test_a_composition_of_nothing_costs_nothing():
    budget = Budget(Fraction(1), None, "add-remove", "users")
    assert Spending({None: budget}).cost == Composition()
    assert (Spending({None: budget}).spent(), Spending({None: budget}).left()) == (0, 1)
