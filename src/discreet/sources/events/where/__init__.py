"""A condition on single rows: one SQL expression in DuckDB's dialect, as an ibis expression that every engine runs.

Each node is held against a white list; what is on it gives every row a value, always the same one, from that row alone,
so a condition can neither fail on a private row nor look at another. Where engines disagree about what a node means,
one meaning is fixed here and spelled in what they agree on.
"""

from discreet.sources.events.where.grammar import DEEPEST, LONGEST, MOST_CASES, named_columns
from discreet.sources.events.where.numbers import MOST
from discreet.sources.events.where.translate import condition, describe_readings

__all__ = ["DEEPEST", "LONGEST", "MOST", "MOST_CASES", "condition", "describe_readings", "named_columns"]
