"""Texts for the readers of what is published, in one catalogue per language, with numbers and dates by its rules.

A catalogue is a TOML file in this folder: format strings with named fields, and tables of plural forms `one` and
`other`. Whole numbers and fractions in fields are formatted by the rules of the language. The output for programs, JSON
and the registry of deployments, is English.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from discreet import text
from discreet.errors import InvalidValueError, quote

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

LANGUAGES = ("en", "de")
"""The languages that have a catalogue, as charts files name them."""


@dataclass(frozen=True)
class Language:
    r"""A language by its code, with its texts and its rules for numbers and dates.

    Examples
    --------
    >>> english, german = Language("en"), Language("de")
    >>> english.text("groups", count=1200), german.text("groups", count=1200)
    ('1,200 groups', '1.200 Gruppen')
    >>> german.exact(Fraction(3, 10)), german.percent("57.5"), german.day(2026, 7, 1)
    ('0,3', '57,5\xa0%', '1. Juli 2026')
    """

    code: str

    def template(self, key: str, count: int | None = None) -> str:
        """Return the format string of a key, of the plural form of `count` if it has forms."""
        found = read_catalogue(self.code)[key]
        return found if isinstance(found, str) else found["one" if count == 1 else "other"]

    def text(self, key: str, **fields: Any) -> str:
        """Return the text of a key with its fields; `count` also chooses the plural form."""
        spelled = {name: self.spell(value) for name, value in fields.items()}
        return self.template(key, fields.get("count")).format(**spelled)

    def spell(self, value: Any) -> Any:
        """Return a whole number or a fraction as the language writes it, and anything else as it is."""
        is_number = isinstance(value, int | Fraction) and not isinstance(value, bool)
        return self.number(text.count_with_commas(value)) if is_number else value

    def number(self, spelled: str) -> str:
        """Return a number that is spelled in English, such as 1,234.5, by the rules of the language."""
        marks = read_catalogue(self.code)
        return spelled.translate({ord(","): marks["mark.thousands"], ord("."): marks["mark.decimal"]})

    def exact(self, number: Fraction) -> str:
        """Format a number as `text.decimal` does."""
        words, _, rest = text.decimal(number).rpartition(" ")
        if words:
            return self.text("about", number=self.number(rest)) if words == "about" else self.text("almost_nothing")
        return self.number(rest)

    def above(self, number: Fraction) -> str:
        """Format a promised number as `text.decimal_above` does."""
        spelled, _, is_rounded = text.decimal_above(number).partition(" ")
        found = self.number(spelled)
        return self.text("rounded_up", number=found) if is_rounded else found

    def rounded(self, number: Fraction) -> str:
        """Format a spent or promised number as `text.round_up` does."""
        return self.number(text.round_up(number))

    def percent(self, spelled: str) -> str:
        """Format a percentage that is spelled in English without its sign."""
        return self.text("percent", number=self.number(spelled))

    def join(self, parts: Iterable[str]) -> str:
        """Join parts by the word for "and"."""
        return self.text("and").join(parts)

    def day(self, year: int | str, month: int | str, day: int | str) -> str:
        """Return a date in words."""
        return self.text("period.day", day=str(int(day)), month=self._month(month), year=str(year))

    def period(self, period: str | None) -> str:
        """Return a period of a chart in words, and an empty text for None.

        Examples
        --------
        >>> [Language("en").period(each) for each in ("2026-10", "2026-W05", "2026-Q1", "2026-01-31")]
        ['October 2026', 'week 5 of 2026', 'quarter 1 of 2026', '31 January 2026']
        """
        year, _, rest = (period or "").partition("-")
        month, _, day = rest.partition("-")
        if rest[:1] in ("W", "Q"):
            key = "period.week" if rest[0] == "W" else "period.quarter"
            return self.text(key, number=str(int(rest[1:])), year=year)
        if not month:
            return year
        return self.day(year, month, day) if day else self.text("period.month", month=self._month(month), year=year)

    def moment(self, stamp: str, zone: ZoneInfo | None = None) -> str:
        """Return a time of the ledger, such as 2026-02-01T00:00:00Z, to the minute on the clocks of a zone, or UTC."""
        time = datetime.fromisoformat(stamp).astimezone(zone or UTC)
        day, name = self.day(time.year, time.month, time.day), "UTC" if zone is None else zone.key
        return self.text("period.moment", day=day, clock=f"{time:%H:%M}", zone=name)

    def _month(self, number: int | str) -> str:
        months: Sequence[str] = self.template("period.months").split()
        return months[int(number) - 1]


@cache
def read_catalogue(code: str) -> dict[str, Any]:
    """Return the texts of a language by key: a text, or a dict of plural forms. A table's name begins its keys."""
    # Both are slow to import, and a program may print no text.
    import tomllib
    from importlib.resources import files

    content = files(__package__).joinpath(f"{code}.toml").read_text(encoding="utf-8")
    return dict(_flatten("", tomllib.loads(content)))


def _flatten(prefix: str, table: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value.keys() != {"one", "other"}:
            yield from _flatten(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def find_language(code: Any) -> Language:
    """Return the language of a code; raise unless there is a catalogue for it."""
    if not isinstance(code, str) or code not in LANGUAGES:
        raise InvalidValueError(f"language must be one of {', '.join(LANGUAGES)}, not {quote(code)}")
    return Language(code)


ENGLISH = Language("en")
