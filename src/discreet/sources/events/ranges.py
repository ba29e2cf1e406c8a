"""A range of whole numbers as a public domain of items, which is never written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.privacy import is_whole_number
from discreet.sources.events.cells import LARGEST_EXACT, read_cell
from discreet.sources.events.dialect import Dialect


@dataclass(frozen=True)
class Integers:
    """The whole numbers from `lo` to `hi`, both included."""

    lo: int
    hi: int

    kind: ClassVar[str] = "integer"
    title: ClassVar[str] = "a range of whole numbers"

    @property
    def d(self) -> int:
        """How many there are."""
        return self.hi - self.lo + 1

    def description(self) -> list[Any]:
        """What is public about it, in terms that JSON can hold."""
        return [self.lo, self.hi]

    def spell(self, number: int) -> Any:
        """The item of a number."""
        return number

    def list_items(self) -> list[Any]:
        """All items, in their order."""
        return [self.spell(number) for number in range(self.lo, self.hi + 1)]

    def check_engine(self, dialect: Dialect) -> None:
        """Refuses an engine that is not known to read an item as all of them do."""

    def read_item(self, dialect: Dialect, column: Any) -> Any:
        """The number of a cell's item, NULL where it is none; it may be outside of the range."""
        return read_cell(dialect, column, "integer")

    def holds_long_numbers(self) -> bool:
        """Whether whole numbers beyond 2^53 are in it."""
        return max(-self.lo, self.hi) > LARGEST_EXACT


def integers(lo: int, hi: int) -> Integers:
    """The domain of all whole numbers from `lo` to `hi`, both included, up to 2^63 of them, never written out.

    Examples
    --------
    >>> import discreet
    >>> discreet.integers(0, 9)
    Integers(lo=0, hi=9)
    """
    for name, value in (("lo", lo), ("hi", hi)):
        if not is_whole_number(value):
            raise InvalidTypeError(f"{name} must be a whole number, not {quote(value)}")
        if not -(2**63) <= value < 2**63:
            raise InvalidValueError(f"{name} must be from -2^63 to 2^63 - 1, not {quote(value)}")
    if hi < lo:
        raise InvalidValueError(f"hi must be at least lo, {lo}, not {hi}")
    if hi - lo >= 2**63:
        raise InvalidValueError(f"hi must be less than 2^63 above lo, not {hi - lo} above")
    return Integers(int(lo), int(hi))
