"""Whatever scores a caller may hold, as a source."""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.arrays.array import array_source, is_tensor
from discreet.sources.base import AnySource, Source, refuse_curve
from discreet.sources.groups import GroupedSource


def as_source(scores: Any, labels: Any = None) -> Source:
    """What the caller gave as scores, as a source of one list of items."""
    if not isinstance(scores, AnySource):
        if not is_tensor(scores):
            return array_source(scores, labels)
        from discreet.sources.arrays.tensor import tensor_source

        return tensor_source(scores, labels)
    if isinstance(scores, Source):
        if labels is not None:
            raise InvalidValueError("labels must be left out when scores is a source, which has its own")
        return scores
    if isinstance(scores, GroupedSource):
        raise InvalidTypeError("scores must be of one list of items here, not of several groups: take one at a time")
    from discreet.discovery_terms import refuse_discovered

    raise refuse_discovered("scores")


def as_listed_source(scores: Any) -> Source | GroupedSource:
    """What the caller gave as scores, as a source of one list of items or of one for each group."""
    return scores if isinstance(scores, GroupedSource) else as_source(scores)


def as_any_source(scores: Any, labels: Any = None) -> AnySource:
    """What the caller gave as scores, as a source of one list of items, of one for each group, or of none yet."""
    if not isinstance(scores, AnySource):
        return as_source(scores, labels)
    if isinstance(scores, Source):
        if not scores.has_items:
            raise refuse_curve()
        return as_source(scores, labels)
    if labels is not None and isinstance(scores, GroupedSource):
        raise InvalidValueError("labels must be left out when scores is by group: discreet.grouped takes them")
    if labels is not None:
        raise InvalidValueError("labels must be left out for items that are to be found")
    return scores
