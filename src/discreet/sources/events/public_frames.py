"""Where pandas and polars keep a public list: in a type that declares its categories, and in the index of a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from discreet.errors import InvalidTypeError, quote
from discreet.labels import is_column

_TYPES = ("CategoricalDtype", "Categorical", "Enum")


def unwrap_categories(given: Any, argument: str) -> Any:
    """The members of a type that declares them, pandas' CategoricalDtype or polars' Enum; anything else as it is.

    Parameters
    ----------
    given
        What the caller passed.
    argument
        What error messages call it.
    """
    if type(given).__name__ not in _TYPES or isinstance(given, Iterable) or not is_column(given):
        return given
    # The categories of a polars Categorical are those of the rows that were seen.
    if type(given).__name__ == "Categorical" or given.categories is None:
        raise InvalidTypeError(
            f"{argument} must be a type that declares its categories, such as pandas.CategoricalDtype(['a', 'b']) or "
            f"polars.Enum(['a', 'b']), not {quote(given)}"
        )
    return given.categories


def bring_in_index(given: Any, wanted: set[str | None]) -> Any:
    """A pandas frame with its index as columns, where a wanted one is a level of it and no column; others as they are.

    A frame whose index holds the ids would otherwise have its only column taken for them.
    """
    if type(given).__module__.partition(".")[0] != "pandas":
        return given
    in_index = {level for level in given.index.names if level is not None} - set(given.columns)
    return given.reset_index() if in_index & wanted else given
