"""The public query behind a release, and its fingerprint: what was asked, never what the data answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.labels import sort_labels
from discreet.ledger.chain import canonical, digest
from discreet.release import Guarantee
from discreet.request import Request
from discreet.sources.base import Source

MOST_LABELS = 100_000
"""Labels of larger domains are not read for the fingerprint: it would take longer than the release."""


@dataclass(frozen=True)
class Query:
    """What is asked: k of d items, with a guarantee, of a source that is described in public terms.

    `dataset` is the caller's name for the data, or None.
    """

    k: int
    d: int
    guarantee: Guarantee
    source: dict[str, Any]
    dataset: str | None = None

    @property
    def fingerprint(self) -> str:
        """The same for two queries that ask the same, whatever the data."""
        promised = self.guarantee.to_dict()
        del promised["zcdp"]  # which a later version may know better
        named = {} if self.dataset is None else {"dataset": self.dataset}
        return digest(canonical({"k": self.k, "d": self.d, "guarantee": promised, "source": self.source, **named}))


def query_of(request: Request, dataset: str | None = None) -> Query:
    """The query that a request asks of the data of this name, if it has one."""
    described = {**request.source.description(), **_hash_of_labels(request.source)}
    return Query(request.k, request.d, request.guarantee, described, dataset)


def _hash_of_labels(source: Source) -> dict[str, Any]:
    """A hash of the labels that the caller gave, in an order of the labels alone: theirs can be that of the scores."""
    labels = getattr(source, "labels", None)
    if labels is None or len(labels) > MOST_LABELS:
        return {}
    # The text of a list tells its members and their types apart, and is made quickly.
    return {"labels": digest(repr(sort_labels(labels)))}
