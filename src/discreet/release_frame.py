"""The items of a release as a table of pandas, polars or pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, MissingExtraError, quote

if TYPE_CHECKING:
    from discreet.grouped_listing import GroupedListing
    from discreet.listing import Listing

LIBRARIES = ("pandas", "polars", "pyarrow")
"""What can hold the table, the first that is installed by default."""


def make_frame(listing: Listing | GroupedListing, library: Any) -> Any:
    """The rows of a list, or of those of all groups, as a table of a library."""
    found, rows = _find_library(library), list(listing.rows())
    columns = {name: [_plain(row[i]) for row in rows] for i, name in enumerate(listing.columns())}
    return _MAKERS[found](import_module(found), columns)


def _find_library(given: Any) -> str:
    if given is None:
        installed = next((name for name in LIBRARIES if find_spec(name) is not None), None)
        if installed is None:
            raise MissingExtraError("to_frame needs pandas, polars or pyarrow: pip install pyarrow")
        return installed
    if not isinstance(given, str) or given not in LIBRARIES:
        raise InvalidValueError(f"library must be one of {', '.join(LIBRARIES)}, not {quote(given)}")
    if find_spec(given) is None:
        raise MissingExtraError(f"{given} is not installed: pip install {given}")
    return given


def _plain(value: Any) -> Any:
    """A value as tables have it: a fraction as a float."""
    return float(value) if isinstance(value, Fraction) else value


def _make_pandas(pandas: Any, columns: dict[str, list[Any]]) -> Any:
    # A column of tuples is one of objects; as they are, pandas would take them apart.
    return pandas.DataFrame({name: pandas.Series(values) for name, values in columns.items()})


def _make_polars(polars: Any, columns: dict[str, list[Any]]) -> Any:
    return polars.DataFrame([_hold(polars.Series, name, values) for name, values in columns.items()])


def _make_pyarrow(pyarrow: Any, columns: dict[str, list[Any]]) -> Any:
    return pyarrow.table(
        {name: _hold(lambda _, values: pyarrow.array(values), name, values) for name, values in columns.items()}
    )


def _hold(make: Callable[[str, list[Any]], Any], name: str, values: list[Any]) -> Any:
    """A column of values of one type, or of their texts where the library has no type for all of them."""
    kinds = {type(value) for value in values if value is not None}
    try:
        if len(kinds) <= 1:
            return make(name, values)
    except Exception:  # noqa: S110  # each library has errors of its own for what it cannot hold
        pass
    return make(name, [None if value is None else str(value) for value in values])


_MAKERS: dict[str, Callable[[Any, dict[str, list[Any]]], Any]] = {
    "pandas": _make_pandas, "polars": _make_polars, "pyarrow": _make_pyarrow,
}  # fmt: skip
