"""Releases the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""

from typing import TYPE_CHECKING, Any

from discreet.errors import Error, InternalError
from discreet.guarantee import Guarantee
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.core import Core
from discreet.mechanisms.histogram import Histogram
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.peeling import Peeling
from discreet.privacy import Sensitivity
from discreet.release import Count, Release
from discreet.topk import top_k

if TYPE_CHECKING:
    from discreet.analysis import bounds
    from discreet.analysis.averages import expected
    from discreet.analysis.choose import compare, epsilon_for
    from discreet.analysis.comparison import Comparison
    from discreet.analysis.details import ClassProbabilities, class_probabilities, subset_probability
    from discreet.analysis.results import Expected, GroupedUtility, Utility
    from discreet.analysis.shots import Chance
    from discreet.analysis.utility import utility
    from discreet.discovery_terms import Discovered, discovered
    from discreet.evidence.audit import Audit, audit
    from discreet.evidence.report import Verification
    from discreet.evidence.verify import verify
    from discreet.grouped_release import GroupedRelease
    from discreet.ledger.errors import BudgetSpentError, LedgerError
    from discreet.ledger.ledger import Ledger
    from discreet.mechanisms.sampler import Sampler
    from discreet.sketch_scores import sketch
    from discreet.sketches import Sketch
    from discreet.sources.engine import EngineError
    from discreet.sources.events.check import check_events
    from discreet.sources.events.check_report import Check
    from discreet.sources.events.group_lists import product
    from discreet.sources.events.periods import (
        day,
        days,
        month,
        months,
        quarter,
        quarters,
        week,
        weeks,
        year,
        years,
    )
    from discreet.sources.events.ranges import integers
    from discreet.sources.events.source import events
    from discreet.sources.events.strings import strings
    from discreet.sources.events.table import TableSource
    from discreet.sources.groups import GroupedSource
    from discreet.sources.members import grouped
    from discreet.sources.unlisted import UnlistedGroups, UnlistedSource
    from discreet.study.plan import Plan, plan

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "BudgetSpentError",
    "Canonical",
    "Chance",
    "Check",
    "ClassProbabilities",
    "Comparison",
    "Core",
    "Count",
    "Discovered",
    "EngineError",
    "Error",
    "Expected",
    "GroupedRelease",
    "GroupedSource",
    "GroupedUtility",
    "Guarantee",
    "Histogram",
    "InternalError",
    "Joint",
    "Ledger",
    "LedgerError",
    "OneShot",
    "Peeling",
    "Plan",
    "Release",
    "Sampler",
    "Sensitivity",
    "Sketch",
    "TableSource",
    "UnlistedGroups",
    "UnlistedSource",
    "Utility",
    "Verification",
    "__version__",
    "audit",
    "bounds",
    "check_events",
    "class_probabilities",
    "compare",
    "day",
    "days",
    "discovered",
    "epsilon_for",
    "events",
    "expected",
    "grouped",
    "integers",
    "month",
    "months",
    "plan",
    "product",
    "quarter",
    "quarters",
    "sketch",
    "strings",
    "subset_probability",
    "top_k",
    "utility",
    "verify",
    "week",
    "weeks",
    "year",
    "years",
]

_ON_DEMAND = {
    "Audit": "discreet.evidence.audit",
    "BudgetSpentError": "discreet.ledger.errors",
    "Chance": "discreet.analysis.shots",
    "Check": "discreet.sources.events.check_report",
    "ClassProbabilities": "discreet.analysis.details",
    "Comparison": "discreet.analysis.comparison",
    "Discovered": "discreet.discovery_terms",
    "EngineError": "discreet.sources.engine",
    "Expected": "discreet.analysis.results",
    "GroupedRelease": "discreet.grouped_release",
    "GroupedSource": "discreet.sources.groups",
    "GroupedUtility": "discreet.analysis.results",
    "Ledger": "discreet.ledger.ledger",
    "LedgerError": "discreet.ledger.errors",
    "Plan": "discreet.study.plan",
    "Sampler": "discreet.mechanisms.sampler",
    "Sketch": "discreet.sketches",
    "TableSource": "discreet.sources.events.table",
    "UnlistedGroups": "discreet.sources.unlisted",
    "UnlistedSource": "discreet.sources.unlisted",
    "Utility": "discreet.analysis.results",
    "Verification": "discreet.evidence.report",
    "audit": "discreet.evidence.audit",
    "bounds": "discreet.analysis.bounds",
    "check_events": "discreet.sources.events.check",
    "class_probabilities": "discreet.analysis.details",
    "compare": "discreet.analysis.choose",
    "day": "discreet.sources.events.periods",
    "days": "discreet.sources.events.periods",
    "discovered": "discreet.discovery_terms",
    "epsilon_for": "discreet.analysis.choose",
    "events": "discreet.sources.events.source",
    "expected": "discreet.analysis.averages",
    "grouped": "discreet.sources.members",
    "integers": "discreet.sources.events.ranges",
    "month": "discreet.sources.events.periods",
    "months": "discreet.sources.events.periods",
    "plan": "discreet.study.plan",
    "product": "discreet.sources.events.group_lists",
    "quarter": "discreet.sources.events.periods",
    "quarters": "discreet.sources.events.periods",
    "sketch": "discreet.sketch_scores",
    "strings": "discreet.sources.events.strings",
    "subset_probability": "discreet.analysis.details",
    "utility": "discreet.analysis.utility",
    "verify": "discreet.evidence.verify",
    "week": "discreet.sources.events.periods",
    "weeks": "discreet.sources.events.periods",
    "year": "discreet.sources.events.periods",
    "years": "discreet.sources.events.periods",
}
"""Public names that a release from an array does not need, and the modules that have them or are meant by them."""


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_ON_DEMAND[name])
    # A module that does not have the name is what the name stands for.
    found = getattr(module, name, module)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
