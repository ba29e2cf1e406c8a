"""A hash of a user together with something of theirs, the same on every engine.

It decides which of a user's things count, so that no other user has a part in it and no thing is favoured for all. The
user is in it by a spelling: equal users have equal ones, which is all that is needed. Users with one spelling in common
would choose alike, and nothing else.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidValueError
from discreet.sources.events.cells import is_whole_type, read_cell
from discreet.sources.events.connect import Opened
from discreet.sources.events.dialect import Dialect


def check_hash(opened: Opened, argument: str) -> None:
    """Refuses what a hash decides on an engine of which it is not known how it makes one."""
    if opened.dialect.digest is None or opened.dialect.text_bytes is None:
        raise InvalidValueError(
            f"{argument} must be left out on {opened.engine}: discreet does not know how it makes a hash of text"
        )


def hash_with_user(dialect: Dialect, who: Any, thing: Any) -> Any:
    """MD5 of the digest of a user, a colon and a thing of theirs, as bytes that every engine orders alike.

    Parameters
    ----------
    dialect
        That of the engine, which makes hashes.
    who
        What users are told apart by, as `user_key` has it.
    thing
        A column of text.
    """
    assert dialect.digest is not None, "checked when the source was made"
    assert dialect.text_bytes is not None, "checked when the source was made"
    # A digest has no colon, so that no two pairs are joined to the same text.
    joined = dialect.digest(_spell(dialect, who)) + ":" + thing
    return dialect.text_bytes(dialect.digest(joined))


def _spell(dialect: Dialect, who: Any) -> Any:
    """A user's spelling, text or bytes, the same for values that are equal; empty for what has none."""
    import ibis

    dtype = who.type()
    if dialect.spell_user is not None:
        return dialect.spell_user(who)
    if dtype.is_binary():
        return who
    plain = is_whole_type(dtype) or dtype.is_uuid() or dtype.is_boolean()
    text = who.cast("string") if plain else read_cell(dialect, who, "string")
    return ibis.coalesce(text, "")
