"""The public query behind a release, and its fingerprint: what was asked, never what the data answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.any_request import AnyRequest
from discreet.discovery_request import DiscoveryRequest
from discreet.grouped_request import GroupedRequest
from discreet.guarantee import Guarantee
from discreet.labels import sort_labels
from discreet.ledger.chain import canonical, digest
from discreet.request import Request
from discreet.sketch_request import SketchRequest
from discreet.sources.base import Source

MOST_LABELS = 100_000
"""Labels of larger domains are not read for the fingerprint: it would take longer than the release."""


@dataclass(frozen=True)
class Query:
    """What is asked: k of d items or, for a sketch, ranks, with a guarantee, of a source described in public terms.

    Items that nobody listed have no d.

    `dataset` is the caller's name for the data, or None; `groups` how many groups it is asked for, d then being the
    size of the largest, or None where there are none.
    """

    k: int
    d: int | None
    guarantee: Guarantee
    source: dict[str, Any]
    dataset: str | None = None
    groups: int | None = None

    @property
    def fingerprint(self) -> str:
        """The same for two queries that ask the same, whatever the data."""
        named = {} if self.dataset is None else {"dataset": self.dataset}
        promised = _promise_to_dict(self.guarantee)
        return digest(canonical({"k": self.k, "d": self.d, "guarantee": promised, "source": self.source, **named}))


def query_of(request: AnyRequest | SketchRequest, dataset: str | None = None) -> Query:
    """The query that a request asks of the data of this name, if it has one."""
    if isinstance(request, DiscoveryRequest):
        return Query(request.k, None, request.guarantee, request.source.description(), dataset, request.groups)
    if isinstance(request, SketchRequest):
        return _query_of_sketch(request, dataset)
    if not isinstance(request, GroupedRequest):
        return Query(request.k, request.d, request.guarantee, _describe(request.source), dataset)
    described = {**request.source.description(), "members": _digest_members(request.requests)}
    return Query(request.k, request.d, request.guarantee, described, dataset, len(request.requests))


def _query_of_sketch(request: SketchRequest, dataset: str | None) -> Query:
    """The same for a sketch: as many scores as it has ranks, and which."""
    source, asked = request.source, {"ranks": list(request.ranks), "grid": str(request.noise.grid)}
    described = {**_describe(source), "sketch": asked}
    return Query(len(request.ranks), source.d, request.guarantee, described, dataset)


def _promise_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    promised = guarantee.to_dict()
    del promised["zcdp"]  # which a later version may know better
    return promised


def _describe(source: Source) -> dict[str, Any]:
    return {**source.description(), **_hash_of_labels(getattr(source, "labels", None), MOST_LABELS)}


def _digest_members(requests: Sequence[Request]) -> str:
    """A hash of what is asked of each group, in their order: its size, its share, and what is public of its source."""
    promises: dict[int, dict[str, Any]] = {}
    told: dict[int, dict[str, Any]] = {}
    room = MOST_LABELS
    described = []
    for request in requests:
        guarantee, source = request.guarantee, request.source
        labels = getattr(source, "labels", None)
        if id(guarantee) not in promises:
            promises[id(guarantee)] = _promise_to_dict(guarantee)
        if id(labels) not in told:
            told[id(labels)] = _hash_of_labels(labels, room)
            room -= 0 if labels is None else len(labels)
        described.append([request.d, promises[id(guarantee)], {**source.description(), **told[id(labels)]}])
    return digest(canonical(described))


def _hash_of_labels(labels: Any, most: int) -> dict[str, Any]:
    """A hash of the labels that the caller gave, in an order of the labels alone: theirs can be that of the scores."""
    if labels is None or len(labels) > most:
        return {}
    # The text of a list tells its members and their types apart, and is made quickly.
    return {"labels": digest(repr(sort_labels(labels)))}
