"""Releases the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""

from typing import TYPE_CHECKING, Any

from discreet.errors import Error, InternalError
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.core import Core
from discreet.mechanisms.histogram import Histogram
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.peeling import Peeling
from discreet.privacy import Sensitivity
from discreet.release.guarantee import Guarantee
from discreet.release.release import Count, Release, Shortfall
from discreet.release.topk import top_k

if TYPE_CHECKING:
    from discreet.analysis import bounds
    from discreet.analysis.compare import Comparison, compare, epsilon_for
    from discreet.analysis.race_odds import Chance
    from discreet.analysis.results import Expected, GroupedUtility, Utility
    from discreet.analysis.utility import ClassProbabilities, class_probabilities, expected, subset_probability, utility
    from discreet.errors import BudgetSpentError, LedgerError
    from discreet.evidence.audit import Audit, audit
    from discreet.evidence.report import Verification
    from discreet.evidence.verify import verify
    from discreet.ledger.ledger import Ledger
    from discreet.mechanisms.sampler import Sampler
    from discreet.release.grouped import GroupedRelease
    from discreet.release.sketch import Sketch
    from discreet.release.sketch_request import sketch
    from discreet.sources.base import GroupedSource
    from discreet.sources.discovered import Discovered, UnlistedGroups, UnlistedSource, discovered
    from discreet.sources.events.check import check_events
    from discreet.sources.events.check_report import Check
    from discreet.sources.events.compiled import compiled
    from discreet.sources.events.engine import EngineError
    from discreet.sources.events.group_columns import product
    from discreet.sources.events.periods import day, days, month, months, quarter, quarters, week, weeks, year, years
    from discreet.sources.events.ranges import integers, strings
    from discreet.sources.events.source import events
    from discreet.sources.events.table import TableSource
    from discreet.sources.scores import grouped
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
    "Shortfall",
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
    "compiled",
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
    "BudgetSpentError": "discreet.errors",
    "Chance": "discreet.analysis.race_odds",
    "Check": "discreet.sources.events.check_report",
    "ClassProbabilities": "discreet.analysis.utility",
    "Comparison": "discreet.analysis.compare",
    "Discovered": "discreet.sources.discovered",
    "EngineError": "discreet.sources.events.engine",
    "Expected": "discreet.analysis.results",
    "GroupedRelease": "discreet.release.grouped",
    "GroupedSource": "discreet.sources.base",
    "GroupedUtility": "discreet.analysis.results",
    "Ledger": "discreet.ledger.ledger",
    "LedgerError": "discreet.errors",
    "Plan": "discreet.study.plan",
    "Sampler": "discreet.mechanisms.sampler",
    "Sketch": "discreet.release.sketch",
    "TableSource": "discreet.sources.events.table",
    "UnlistedGroups": "discreet.sources.discovered",
    "UnlistedSource": "discreet.sources.discovered",
    "Utility": "discreet.analysis.results",
    "Verification": "discreet.evidence.report",
    "audit": "discreet.evidence.audit",
    "bounds": "discreet.analysis.bounds",
    "check_events": "discreet.sources.events.check",
    "class_probabilities": "discreet.analysis.utility",
    "compare": "discreet.analysis.compare",
    "compiled": "discreet.sources.events.compiled",
    "day": "discreet.sources.events.periods",
    "days": "discreet.sources.events.periods",
    "discovered": "discreet.sources.discovered",
    "epsilon_for": "discreet.analysis.compare",
    "events": "discreet.sources.events.source",
    "expected": "discreet.analysis.utility",
    "grouped": "discreet.sources.scores",
    "integers": "discreet.sources.events.ranges",
    "month": "discreet.sources.events.periods",
    "months": "discreet.sources.events.periods",
    "plan": "discreet.study.plan",
    "product": "discreet.sources.events.group_columns",
    "quarter": "discreet.sources.events.periods",
    "quarters": "discreet.sources.events.periods",
    "sketch": "discreet.release.sketch_request",
    "strings": "discreet.sources.events.ranges",
    "subset_probability": "discreet.analysis.utility",
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
