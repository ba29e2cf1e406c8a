"""At most so many items a user: which of them are kept, decided by the user's own items in the domain and nothing else.

Each item of the domain has an ordinal, from 0, in the order of the items themselves. A user's items are hashed as
multiplier * (ordinal + 1) mod 2^31, with an odd multiplier made of the sum of the user's own ordinals, and those with
the least hashes are kept. So no item of the domain is favoured, and users with other items choose otherwise; two users
with the same items keep the same ones. Products and sums fit 63 bits and remainders are masks of bits, which are the
same on every engine (SQLite computes remainders in floats).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.sources.engine import ask
from discreet.sources.events.connect import Opened
from discreet.sources.events.dialect import Dialect
from discreet.sources.events.domain import ListedDomain
from discreet.sources.events.ranges import Integers

MASK = 2**31 - 1
"""Ordinals are taken modulo 2^31; smaller ones have different hashes, because the multiplier is odd."""

MIX = 1_327_217_885
"""2^31 over the golden ratio, which spreads the small sums of small domains over all multipliers."""


def number_items(domain: Integers | ListedDomain, opened: Opened) -> Any:
    """Return the items of a domain with their ordinals, on the engine of the events; a range needs no table."""
    if isinstance(domain, Integers):
        return domain
    return adopt_ordinals(read_in_order(domain, opened)["item"], opened)


def read_in_order(domain: ListedDomain, opened: Opened) -> Any:
    """The rows of a domain as an Arrow table, in the order of the items, which is made here.

    By size or code point, because engines sort text by rules of their own.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    backend = opened.table.get_backend()
    rows = ask(opened.engine, "reading the domain", lambda: backend.to_pyarrow(domain.table)).combine_chunks()
    items = rows["item"].combine_chunks()
    return rows.take(pc.array_sort_indices(items.cast(pa.uint8()) if domain.kind == "boolean" else items))


def adopt_ordinals(items: Any, opened: Opened) -> Any:
    """Items in their order, each with its ordinal, on the engine of the events."""
    import pyarrow as pa

    return opened.adopt(pa.table({"item": items, "ordinal": np.arange(len(items)) & MASK}))


def join_ordinals(rows: Any, ordinals: Any, dialect: Dialect) -> Any:
    """The rows of the domain's items, each with its ordinal; items of text are bytes here."""
    if not isinstance(ordinals, Integers):
        joined = rows.inner_join(ordinals, rows.item == dialect.group_key(ordinals.item))
        others = {name: rows[name] for name in rows.columns if name != "item"}
        return joined.select(item=rows.item, ordinal=ordinals.ordinal, **others)
    inside = rows.filter(rows.item.between(ordinals.lo, ordinals.hi))
    # item - lo modulo 2^31, without a difference that could leave 64 bits.
    return inside.mutate(ordinal=((inside.item & MASK) + (-ordinals.lo & MASK)) & MASK)


def keep_first_items(pairs: Any, ordinals: Any, most: int, within: Sequence[str] = ()) -> Any:
    """At most so many rows of every user, or of every user within each group, by the hash of their ordinals.

    What is kept of a user depends on the rows of this user alone: every window is over one user. As few queries inside
    each other as can be, because SQLite's parser does not go deep.

    Parameters
    ----------
    pairs
        One row for each user and item, with the ordinal of the item.
    ordinals
        What they come from.
    most
        How many rows to keep.
    within
        The columns in each of whose values so many are kept.
    """
    import ibis

    own = ["who", *within]
    # A sum of numbers below 2^31 fits 63 bits for four billion items of one user. PostgreSQL adds up numbers of 32 bits
    # in 64, and those of 64 in decimals, which have no bits to mask.
    total = pairs.ordinal.cast("int32").sum().over(group_by=own)
    multiplier = ((total & MASK) * MIX & MASK) | 1
    hashed = pairs.mutate(hash=(multiplier * (pairs.ordinal + 1)) & MASK)
    # Numbers far apart can share an ordinal.
    order = [hashed.hash, hashed.item if isinstance(ordinals, Integers) else hashed.ordinal]
    position = ibis.row_number().over(ibis.window(group_by=own, order_by=order))
    ranked = hashed.mutate(position=position)
    return ranked.filter(ranked.position < most)


def pair_scores(scores: Any, clipped: Any, dialect: Dialect) -> Any:
    """How many items have each pair of a score and the score with a bound, which is 0 where nobody keeps the item."""
    import ibis

    joined = scores.left_join(clipped, dialect.group_key(scores.item) == dialect.group_key(clipped.item))
    pairs = joined.select(score=scores.score.cast("int64"), kept=ibis.coalesce(clipped.score, 0).cast("int64"))
    return pairs.group_by("score", "kept").agg(items=pairs.count())
