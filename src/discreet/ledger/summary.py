"""What a budget comes to, in rows for people: what is promised, spent and left; no number is better than the exact."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.text import printable, round_down, round_up

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


def describe_whose(ledger: Ledger) -> str:
    """Whose privacy a budget is about, in words."""
    return f"the privacy of {printable(ledger.budget.unit)}, {ledger.budget.adjacency}"


def summarize_budget(ledger: Ledger) -> dict[str, str]:
    """The rows, by their names: what is spent is rounded up, and what is left down."""
    budget, composition, entries = ledger.budget, ledger.composition, ledger.history()
    lost = sum(entry.stored is None for entry in entries)
    promised = [
        f"epsilon {round_up(budget.epsilon)}",
        *([] if budget.delta is None else [f"delta {round_up(budget.delta)}"]),
        *([f"{round_up(budget.release_delta)} of it for releases"] if budget.release_delta else []),
    ]
    deltas = {"delta": f"{round_up(composition.delta)} of {round_up(budget.release_delta)} is spent on releases"}
    return {
        **({} if budget.dataset is None else {"dataset": printable(budget.dataset)}),
        "budget": ", ".join(promised),
        "spent": round_up(composition.spent(budget.conversion_delta)),
        "left": round_down(ledger.left),
        **({"locked": "releases are refused until 'discreet budget reopen'"} if ledger.is_locked else {}),
        **(deltas if budget.release_delta else {}),
        "by sum": round_up(composition.epsilon),
        "by zCDP": _describe_zcdp(composition.by_zcdp(budget.conversion_delta), composition.rho),
        "releases": f"{len(entries)}" + (f", {lost} of them without a stored release" if lost else ""),
        "head": ledger.head,
    }


def _describe_zcdp(epsilon: Fraction | None, rho: Fraction) -> str:
    return f"rho {round_up(rho)}" + (", which needs a delta" if epsilon is None else f", epsilon {round_up(epsilon)}")
