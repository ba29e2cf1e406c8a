"""Turn the caller's scores into a source: one list of items, or a list for each group (`discreet.grouped`)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from typing import Any

from discreet.errors import Error, InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Ranks
from discreet.labels import check_labels, unwrap_label
from discreet.mechanisms.tally import Selection, Tally
from discreet.sources.arrays.array import FRAMES, array_source, check_label_list
from discreet.sources.base import (
    MANY,
    AnySource,
    GroupedSource,
    OpeningTime,
    Snapshot,
    Source,
    check_each_user,
    refuse_curve,
)


def as_source(scores: Any, labels: Any = None) -> Source:
    """Return a source of one list of items."""
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
    from discreet.sources.discovered import refuse_discovered

    raise refuse_discovered("scores")


def is_tensor(scores: Any) -> bool:
    """Return True for a tensor, or an array of a library that shares its memory by DLPack."""
    package = type(scores).__module__.partition(".")[0]
    return package not in ("numpy", *FRAMES) and hasattr(type(scores), "__dlpack_device__")


def as_listed_source(scores: Any) -> Source | GroupedSource:
    """Return a source of one public list of items, or of one for each group."""
    return scores if isinstance(scores, GroupedSource) else as_source(scores)


def as_any_source(scores: Any, labels: Any = None) -> AnySource:
    """Return a source of any kind: a list, a list for each group, or items to be found."""
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


class MemberSnapshots:
    """Snapshots of the members one after the other: each ends before the next begins."""

    def __init__(self, members: Sequence[Source]) -> None:
        self._members, self._held = members, ExitStack()
        self._current: Snapshot

    def tallies(self) -> Iterator[Tally]:
        for member in self._members:
            self.close()
            self._current = self._held.enter_context(member.snapshot())
            yield self._current.tally

    def pick(self, selection: Selection) -> list[Any] | Ranks:
        return self._current.items(selection)

    def items(self, picks: list[Any]) -> list[list[Any] | Ranks]:
        return picks

    def close(self) -> None:
        """End the current snapshot."""
        self._held.close()


class MemberGroups(GroupedSource):
    """A source for each group, which are read one after the other."""

    def __init__(
        self,
        keys: Sequence[Any],
        members: Sequence[Source],
        each_user: str,
        groups_per_user: int,
        names: tuple[str, ...] = ("group",),
    ) -> None:
        self.keys, self.members, self.names = tuple(keys), members, names
        self.each_user, self.groups_per_user = each_user, groups_per_user
        self.expressions = tuple(dict.fromkeys(each for member in members for each in member.expressions))

    def snapshot(self) -> AbstractContextManager[MemberSnapshots]:
        return closing(MemberSnapshots(self.members))

    def description(self) -> dict[str, Any]:
        bound = {"max_groups_per_user": self.groups_per_user} if self.each_user == MANY else {}
        named = {} if self.names == ("group",) else {"by": list(self.names)}
        return {**named, "groups": repr(self.keys), "each_user": self.each_user, **bound}

    def opening_seconds(self) -> float:
        return super().opening_seconds() + sum(member.opening_seconds() for member in self.members)


def grouped(
    scores: Any,
    *,
    by: str | Sequence[str] | None = None,
    each_user: str | None = None,
    max_groups_per_user: int | None = None,
    labels: Any = None,
) -> GroupedSource:
    """Return a source of scores by group; `top_k` releases a list for each group, within one epsilon.

    Parameters
    ----------
    scores
        A mapping from group to scores that `top_k` accepts, or a pandas frame with a column for each group and the
        items as its index. The groups must be a public list: a group that exists because somebody is in it reveals
        that.
    by
        The name of the groups, such as "country", for the header of tables: one name, or one for each part of groups
        that are tuples. By default the names of the columns of a frame, or "group".
    each_user
        "one" if a user is in one group only, as people are in countries: each group then has the whole of epsilon.
        "many" if a user may be in several, as people are in months. There is no default, because the wrong choice
        breaks the guarantee.
    max_groups_per_user
        With "many": the contribution bound that the scores satisfy, by default all groups. Each group has one such part
        of epsilon.
    labels
        The names of the items if the scores have none: one list for all groups, or a mapping with one for each.

    Returns
    -------
    GroupedSource
        A source for `top_k`.

    Examples
    --------
    >>> import discreet
    >>> visits = {"DE": {"dune": 912, "alien": 877, "heat": 41}, "FR": {"dune": 20, "alien": 310, "heat": 298}}
    >>> charts = discreet.top_k(discreet.grouped(visits, each_user="one"), k=2, epsilon=1)
    >>> charts["FR"].items
    ['alien', 'heat']
    >>> charts.guarantee.epsilon
    Fraction(1, 1)
    """
    begun = time.monotonic()
    groups, columns, own_names = _split_groups(scores)
    if not groups:
        raise InvalidValueError("scores must hold at least one group, not none")
    message = ""
    try:
        keys = check_labels(groups)
    except Error as error:
        message = str(error)
    if message:
        raise InvalidValueError(f"groups of scores must be names as labels are: {message}")
    names = _check_names(own_names if by is None else by, keys)
    most = check_each_user(each_user, max_groups_per_user, len(keys))
    if isinstance(labels, Mapping):
        known = set(groups)
        unknown = [group for group in labels if group not in known]
        if unknown:
            raise InvalidValueError(
                f"labels must be for groups that scores has, and {quote(unwrap_label(unknown[0]))} is none"
            )
        listed = [labels.get(group) for group in groups]
    else:
        listed = [None if labels is None else check_label_list(labels)] * len(groups)
    members = [_open_member(*one) for one in zip(keys, columns, listed, strict=True)]
    source = MemberGroups(keys, members, str(each_user), most, names)
    source.opening = OpeningTime(begun)
    return source


def _split_groups(scores: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the groups, the scores of each, and the names that a frame has for its groups."""
    if isinstance(scores, Mapping):
        return list(scores), list(scores.values()), "group"
    kind, package = type(scores).__name__, type(scores).__module__.partition(".")[0]
    if package == "pandas" and kind == "DataFrame":
        if any(str(dtype) in ("object", "str", "string", "category") for dtype in scores.dtypes):
            # A column of text means a row for each group and item.
            raise InvalidTypeError(
                "scores must be a frame with a column of numbers for each group and the items as its index; of one "
                "with rows of group, item and score, write frame.pivot(index='item', columns='group', values='score')"
            )
        names = [name for name in scores.columns.names if isinstance(name, str)]
        known = names if len(names) == scores.columns.nlevels else "group"
        return scores.columns.tolist(), [scores.iloc[:, i] for i in range(scores.shape[1])], known
    columns = {"DataFrame": "columns", "Table": "column_names"}.get(kind)
    hint = "" if columns is None else f"; write {{name: frame[name] for name in frame.{columns}}}, and pass labels"
    raise InvalidTypeError(f"scores must be a mapping from group to scores or a pandas frame, not a {kind}{hint}")


def _check_names(given: Any, keys: list[Any]) -> tuple[str, ...]:
    """Return the names of the columns that make a group: one, or as many as each group has parts."""
    names = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidTypeError(f"by must be a name or a list of names, not {quote(given)}")
    if len(set(names)) < len(names):
        raise InvalidValueError(f"by must hold each name once, not {quote(given)}")
    if len(names) > 1 and not all(isinstance(key, tuple) and len(key) == len(names) for key in keys):
        raise InvalidValueError(f"by must be one name where groups are not tuples of {len(names)}, not {quote(given)}")
    return names


def _open_member(key: Any, scores: Any, labels: Any) -> Source:
    """Return the source of one group; an error names the group."""
    try:
        if isinstance(scores, Source) and not scores.has_items:
            raise refuse_curve()
        source = as_source(scores, labels)
        # The groups outlive this call, and the caller may change the scores.
        return source.freeze()
    except Error as error:
        kind, message = type(error), str(error)
    raise kind(f"{message} (in the group {quote(key)})")
