"""At most so many items a user: which of them are kept, decided by the user's own items in the domain and nothing else.

Each item of the domain has an ordinal, from 0, in the order of the items themselves. A user's items are hashed as
multiplier * (ordinal + 1) mod 2^31, with an odd multiplier made of the sum of the user's own ordinals, and those with
the least hashes are kept. So no item of the domain is favoured, and users with other items choose otherwise; two users
with the same items keep the same ones. Products and sums fit 63 bits and remainders are masks of bits, which are the
same on every engine (SQLite computes remainders in floats).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import InvalidValueError
from discreet.sources.engine import ask
from discreet.sources.events.connect import Opened
from discreet.sources.events.dialects import Dialect
from discreet.sources.events.domain import Integers, ListedDomain

MASK = 2**31 - 1
"""Ordinals are taken modulo 2^31; smaller ones have different hashes, because the multiplier is odd."""

MIX = 1_327_217_885
"""2^31 over the golden ratio, which spreads the small sums of small domains over all multipliers."""


def number_items(domain: Integers | ListedDomain, opened: Opened) -> Any:
    """The items of a domain with their ordinals, on the engine of the events; a range of numbers needs no table.

    The order is made here, by size or code point, because engines sort text by rules of their own.
    """
    if isinstance(domain, Integers):
        return domain
    import pyarrow as pa
    import pyarrow.compute as pc

    backend, table = opened.table.get_backend(), domain.table
    if domain.kind == "string" and opened.dialect.text_bytes is None:
        # Where two spellings may be equal, a user who touched one item could move the scores of two.
        raise InvalidValueError(
            f"max_items_per_user must be left out for items of text on {opened.engine}: "
            "discreet does not know how it tells spellings apart"
        )
    rows = ask(opened.engine, "reading the domain", lambda: backend.to_pyarrow(table.select("item")))
    items = rows["item"].combine_chunks()
    order = pc.array_sort_indices(items.cast(pa.uint8()) if domain.kind == "boolean" else items)
    return opened.adopt(pa.table({"item": items.take(order), "ordinal": np.arange(len(items)) & MASK}))


def join_ordinals(rows: Any, ordinals: Any, dialect: Dialect) -> Any:
    """The rows of the domain's items, each with its ordinal; items of text are bytes here."""
    if not isinstance(ordinals, Integers):
        joined = rows.inner_join(ordinals, rows.item == dialect.group_key(ordinals.item))
        others = {name: rows[name] for name in rows.columns if name != "item"}
        return joined.select(item=rows.item, ordinal=ordinals.ordinal, **others)
    inside = rows.filter(rows.item.between(ordinals.lo, ordinals.hi))
    # item - lo modulo 2^31, without a difference that could leave 64 bits.
    return inside.mutate(ordinal=((inside.item & MASK) + (-ordinals.lo & MASK)) & MASK)


def keep_first_items(pairs: Any, ordinals: Any, most: int) -> Any:
    """At most so many rows of every user, of one row for each user and item, with the ordinal of the item.

    What is kept of a user depends on the rows of this user alone: every window is over one user. As few queries inside
    each other as can be, because SQLite's parser does not go deep.
    """
    import ibis

    # A sum of numbers below 2^31 fits 63 bits for four billion items of one user. PostgreSQL adds up numbers of 32 bits
    # in 64, and those of 64 in decimals, which have no bits to mask.
    total = pairs.ordinal.cast("int32").sum().over(group_by=pairs.who)
    multiplier = ((total & MASK) * MIX & MASK) | 1
    hashed = pairs.mutate(hash=(multiplier * (pairs.ordinal + 1)) & MASK)
    # Numbers far apart can share an ordinal.
    order = [hashed.hash, hashed.item if isinstance(ordinals, Integers) else hashed.ordinal]
    position = ibis.row_number().over(ibis.window(group_by=hashed.who, order_by=order))
    ranked = hashed.mutate(position=position)
    return ranked.filter(ranked.position < most)
