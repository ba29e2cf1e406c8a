"""Conditions on single rows (`where`): SQL text in DuckDB's dialect becomes an ibis expression that every engine runs.

The nodes of a condition must be on an allow list: each gives every row a value that depends on that row alone, so a
condition can neither fail on a private row nor read another one. Where engines disagree about a node, the translation
fixes one meaning and uses only SQL on which they agree.
"""

from discreet.sources.events.where.grammar import DEEPEST, LONGEST
from discreet.sources.events.where.numbers import MOST
from discreet.sources.events.where.translate import Condition, Translation

__all__ = ["DEEPEST", "LONGEST", "MOST", "Condition", "Translation"]
