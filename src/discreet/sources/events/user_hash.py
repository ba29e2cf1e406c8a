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
from discreet.sources.events.dialects import Dialect


def check_hash(opened: Opened, argument: str) -> None:
    """Refuses what a hash decides on an engine of which it is not known how it makes one."""
    if opened.dialect.hash_bytes is None or opened.dialect.text_bytes is None:
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
    # The digest has no colon, so that no two pairs are joined to the same text.
    return _to_bytes(
        dialect, _digest(dialect, _to_bytes(dialect, _digest(dialect, _spell(dialect, who)) + ":" + thing))
    )


def _digest(dialect: Dialect, value: Any) -> Any:
    assert dialect.hash_bytes is not None, "checked when the source was made"
    return dialect.hash_bytes(value)


def _to_bytes(dialect: Dialect, text: Any) -> Any:
    assert dialect.text_bytes is not None, "checked when the source was made"
    return dialect.text_bytes(text)


def _spell(dialect: Dialect, who: Any) -> Any:
    """The bytes of a user's spelling, the same for values that are equal; none for what has no spelling."""
    import ibis

    dtype = who.type()
    if dialect.spell_user is not None:
        return _to_bytes(dialect, dialect.spell_user(who))
    if dtype.is_binary():
        return who
    plain = is_whole_type(dtype) or dtype.is_uuid() or dtype.is_boolean()
    text = who.cast("string") if plain else read_cell(dialect, who, "string")
    return _to_bytes(dialect, ibis.coalesce(text, ""))
