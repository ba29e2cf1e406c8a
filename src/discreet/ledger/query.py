"""The public query behind a release, and its fingerprint: what was asked, never what the data answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.labels import in_order
from discreet.ledger.chain import canonical, digest
from discreet.release import Guarantee
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


def asked(source: Source, k: int, guarantee: Guarantee, dataset: str | None = None) -> Query:
    """The query of a release."""
    return Query(k, source.d, guarantee, {**source.description(), **_labels(source)}, dataset)


def _labels(source: Source) -> dict[str, Any]:
    """A hash of the labels that the caller gave, in an order of the labels alone: theirs can be that of the scores."""
    labels = getattr(source, "labels", None)
    if labels is None or len(labels) > MOST_LABELS:
        return {}
    # The text of a list tells its members and their types apart, and is made quickly.
    return {"labels": digest(repr(in_order(labels)))}
