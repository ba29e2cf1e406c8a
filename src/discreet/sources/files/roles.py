"""Which columns of a file hold the items and the scores, and whether its first line names them at all."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import InvalidValueError, quote
from discreet.sources.column_hints import suggestion
from discreet.sources.files.spelled import spells_number
from discreet.sources.files.wording import quote_path

_MOST_LISTED = 20
_NONE = "and none was given; of events, name the user too"


def find_columns(names: list[str], item: str | None, score: str | None, path: Path) -> tuple[str, str]:
    """The columns of the items and of the scores, from what the caller says and how the columns are called."""
    named = score is not None
    item, score = _find_by_name(names, item, score)
    if len(names) == 2:
        rest = [name for name in names if name not in (item, score)]
        item = rest.pop(0) if item is None and rest else item
        score = rest.pop(0) if score is None and rest else score
    found = _check_found("item", item, names, path), _check_found("score", score, names, path)
    if item == score:
        raise InvalidValueError(f"item and score must be different columns, not both {quote(item)}")
    if not named and _is_data(score, path):
        raise InvalidValueError(f"the first line of {quote_path(path)} must name the columns, but it holds a number")
    return found


def refuse_columns(path: Path, item: str | None, score: str | None) -> None:
    """Raises where columns are named of a file that has none."""
    for role, column in (("item", item), ("score", score)):
        if column is not None:
            raise InvalidValueError(f"{role} must be left out for {quote_path(path)}, which has no columns")


def _find_by_name(names: list[str], item: str | None, score: str | None) -> tuple[str | None, str | None]:
    free = [name for name in names if name not in (item, score)]
    if item is None and "item" in free:
        item = "item"
    if score is None and "score" in free:
        score = "score"
    return item, score


def _check_found(role: str, column: str | None, names: list[str], path: Path) -> str:
    if column not in names:
        given = _NONE if column is None else f"not {quote(column)}"
        hint = suggestion(column, names, private=_is_text(path))
        raise InvalidValueError(
            f"{role} must name a column of {quote_path(path)}, {_list_choices(names, path)}, {given}{hint}"
        )
    if names.count(column) > 1:
        raise InvalidValueError(
            f"{role} must name one column of {quote_path(path)}, not two that are called {quote(column)}"
        )
    return column


def _list_choices(names: list[str], path: Path) -> str:
    """The columns to choose from; numbers may be the scores of a file without a header, which are not to be shown."""
    if any(_is_data(name, path) for name in names):
        return "whose first line holds numbers and may not be a header"
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"one of {', '.join(map(quote, names[:_MOST_LISTED]))}{more}"


def _is_data(name: str | None, path: Path) -> bool:
    """Whether the name of a column may be a score of a file without a header; a Parquet file always has names."""
    return name is not None and _is_text(path) and spells_number(name)


def _is_text(path: Path) -> bool:
    return path.suffix.lower() != ".parquet"
