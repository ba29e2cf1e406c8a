"""The spellings of dates and numbers in text, as a caller states them: `date_format`, `decimal` and `thousands`.

A format is never inferred from rows. It rewrites the text of a cell into the spelling that `cells.py` reads, or to
nothing: a text that differs from the format is missing. The patterns have no alternatives between which engines could
choose differently. A number of one or two digits stands alone between characters that are no digits, and numbers that
touch have all of their digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote

DATE_KINDS = frozenset({"date", "timestamp", "timestamp with time zone", "day number", "second number"})
NUMBER_KINDS = frozenset({"integer", "float"})

MOMENT_KIND = "moment"
"""The kind of a column that periods are made of: a date, or a point in time with or without a zone."""

DIRECTIVES = {"Y": (4, 4), "y": (2, 2), "m": (1, 2), "d": (1, 2), "H": (1, 2), "M": (1, 2), "S": (1, 2), "f": (1, 6)}
"""The directives of a date format, with the least and the greatest number of digits that each stands for."""

_BETWEEN = " .,/-:_T"
"""The characters that may stand between directives."""

_LAST_CENTURY = "69|[7-9][0-9]"
"""The pattern of two-digit years that are in the 20th century, as POSIX has them; the others are in the 21st."""

DECIMALS = (".", ",")
THOUSANDS = (".", ",", " ", "'", "\u2019", "\u00a0", "\u202f")

_EXAMPLE = datetime(2026, 11, 3, 14, 5, 9)


@dataclass(frozen=True, repr=False)
class DateFormat:
    """A format of dates, in the directives of `datetime.strptime` that mean the same on every engine.

    Attributes
    ----------
    text
        The format, such as "%d.%m.%Y".
    pattern
        The pattern of a text in the format, without anchors; each directive is a group.
    directives
        The letters of the directives, in the order of the groups.
    """

    text: str
    pattern: str
    directives: str

    @classmethod
    def parse(cls, text: Any) -> DateFormat:
        """Parse a format, and raise unless it has a year, a month and a day, and no directive beyond the known ones."""
        if not isinstance(text, str):
            raise InvalidTypeError(f"date_format must be a text such as '%d.%m.%Y', not {quote(text)}")
        tokens = re.findall(r"%.?|[^%]+", text, re.DOTALL)
        letters = "".join(token[1:] for token in tokens if token.startswith("%"))
        for token in tokens:
            if token.startswith("%") and (len(token) < 2 or token[1] not in DIRECTIVES):
                raise InvalidValueError(
                    f"date_format must have no directive but {', '.join(f'%{name}' for name in DIRECTIVES)}, which "
                    f"mean the same on every engine, and {quote(text)} has {quote(token)}"
                )
            if not token.startswith("%") and not set(token) <= set(_BETWEEN):
                raise InvalidValueError(
                    f"date_format must have blanks, T and . , / - : _ alone between directives, not {quote(token)}"
                )
        years = letters.count("Y") + letters.count("y")
        if years != 1 or any(letters.count(name) != 1 for name in "md") or len(set(letters)) < len(letters):
            raise InvalidValueError(
                "date_format must have a year (%Y or %y), a month (%m) and a day (%d), and each directive once, as "
                f"'%d.%m.%Y' has; {quote(text)} does not"
            )
        for finer, coarser in (("M", "H"), ("S", "M"), ("f", "S"), ("H", "M")):
            if finer in letters and coarser not in letters:
                raise InvalidValueError(f"date_format must have %{coarser} with %{finer}, and {quote(text)} does not")
        pattern = ""
        for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
            if not token.startswith("%"):
                pattern += "".join(f"[{each}]" for each in token)
                continue
            least, most = DIRECTIVES[token[1]]
            # Numbers without a separator between them must have their full length.
            least = most if before.startswith("%") or after.startswith("%") else least
            pattern += f"([0-9]{{{least},{most}}})"
        return cls(text, pattern, letters)

    @property
    def has_time(self) -> bool:
        """True if the format has hours and minutes."""
        return "H" in self.directives

    def respell(self, text: str) -> str | None:
        """Return a text in the format as ISO 8601 spells it, None for another text; the calendar is not checked."""
        found = re.fullmatch(self.pattern, text, re.ASCII)
        if found is None:
            return None
        part = dict(zip(self.directives, found.groups(), strict=True))
        if "y" in part:
            part["Y"] = ("19" if re.fullmatch(_LAST_CENTURY, part["y"]) else "20") + part["y"]
        spelled = f"{part['Y']}-{part['m']:>02}-{part['d']:>02}"
        if self.has_time:
            spelled += f" {part['H']:>02}:{part['M']:>02}"
            spelled += f":{part['S']:>02}" if "S" in part else ""
            spelled += f".{part['f']}" if "f" in part else ""
        return spelled

    def respell_column(self, text: Any, end: str) -> Any:
        """Return an ibis column of text in the same way; a cell in another format becomes NULL or no date.

        Parameters
        ----------
        text
            The column.
        end
            The end of a text in a regular expression of the engine.
        """
        import ibis

        groups = [text.re_extract(f"^{self.pattern}{end}", place + 1) for place in range(len(self.directives))]
        part = dict(zip(self.directives, groups, strict=True))
        # The part of a cell in another format is NULL or empty, by the engine.
        two = {name: (ibis.literal("0") + each).right(2) for name, each in part.items()}
        if "y" in part:
            is_last = part["y"].re_search(f"^({_LAST_CENTURY}){end}")
            part["Y"] = ibis.cases((is_last, ibis.literal("19")), else_=ibis.literal("20")) + part["y"]
        # One concatenation of all parts: DataFusion repeats both sides of each for NULL, and nested ones multiply.
        spelled = ["-", two["m"], "-", two["d"]]
        if self.has_time:
            spelled += [" ", two["H"], ":", two["M"]]
            spelled += [":", two["S"]] if "S" in part else []
            spelled += [".", part["f"]] if "f" in part else []
        return part["Y"].concat(*spelled)


@dataclass(frozen=True, repr=False)
class Formats:
    """The formats of text that a caller has stated; None for the usual ones, 2026-11-03 and 1234.5.

    Attributes
    ----------
    date
        The format of dates and times.
    decimal, thousands
        The character before the decimal places, and the one between groups of three digits.
    """

    date: DateFormat | None = None
    decimal: str | None = None
    thousands: str | None = None

    @classmethod
    def parse(cls, date_format: Any, decimal: Any, thousands: Any) -> Formats:
        """Parse the arguments of `events`."""
        for argument, given, allowed in (("decimal", decimal, DECIMALS), ("thousands", thousands, THOUSANDS)):
            if given is not None and given not in allowed:
                raise InvalidValueError(
                    f"{argument} must be one of {', '.join(map(repr, allowed))}, not {quote(given)}"
                )
        if thousands is not None and thousands == (decimal or "."):
            raise InvalidValueError(
                f"thousands must be another character than decimal, and both are {quote(thousands)}: give decimal too"
            )
        return cls(None if date_format is None else DateFormat.parse(date_format), decimal, thousands)

    @property
    def key(self) -> str:
        """The formats as one text, from which `respell_by_key` makes them again; none of them has the separator."""
        return "|".join(self.given().get(name, "") for name in ("date_format", "decimal", "thousands"))

    def given(self) -> dict[str, str]:
        """Return the arguments that were given."""
        date = None if self.date is None else self.date.text
        named = {"date_format": date, "decimal": self.decimal, "thousands": self.thousands}
        return {name: text for name, text in named.items() if text is not None}

    def concern(self, kind: str) -> bool:
        """Return True if a format was given for text that is read as a kind."""
        if kind in NUMBER_KINDS:
            return self.decimal is not None or self.thousands is not None
        return kind in DATE_KINDS and self.date is not None

    @cached_property
    def number_pattern(self) -> str:
        """The pattern of a whole text that spells a number; groups of digits have three each, or there are none."""
        point, digits = f"[{self.decimal or '.'}]", "[0-9]{1,400}"
        if self.thousands is not None:
            digits = f"({digits}|[0-9]{{1,3}}([{self.thousands}][0-9]{{3}}){{1,130}})"
        return rf"[+-]?({digits}({point}[0-9]{{0,400}})?|{point}[0-9]{{1,400}})([eE][+-]?[0-9]{{1,3}})?"

    def respell(self, text: str, kind: str) -> str | None:
        """Return a text as `cells.py` reads a value of the kind, None if it is not in the format."""
        if not self.concern(kind):
            return text
        if kind not in NUMBER_KINDS:
            assert self.date is not None, "a kind of dates concerns a format of dates"
            return self.date.respell(text)
        if re.fullmatch(self.number_pattern, text, re.ASCII) is None:
            return None
        return text.replace(self.thousands or "", "").replace(self.decimal or ".", ".")

    def respell_column(self, text: Any, kind: str, end: str) -> Any:
        """Return an ibis column of text in the same way, NULL or no value where a cell is not in the format."""
        import ibis

        if not self.concern(kind):
            return text
        if kind not in NUMBER_KINDS:
            assert self.date is not None, "a kind of dates concerns a format of dates"
            # A day has no time, and a point in time has one.
            never = {"date", "day number"} if self.date.has_time else {"second number"}
            return ibis.null("string") if kind in never else self.date.respell_column(text, end)
        plain = text if self.thousands is None else text.replace(self.thousands, "")
        plain = plain if self.decimal in (None, ".") else plain.replace(self.decimal, ".")
        return ibis.cases((text.re_search(f"^({self.number_pattern}){end}"), plain), else_=ibis.null("string"))

    def describe(self, kind: str) -> str:
        """Return how text is read as a kind, in the words of a note, with an example."""
        if kind in NUMBER_KINDS:
            whole = f"1{self.thousands or ''}234" if self.thousands else "25"
            return f"whole numbers ({whole})" if kind == "integer" else f"numbers ({self._spell_number()})"
        if self.date is not None and kind in (*DATE_KINDS, MOMENT_KIND):
            times = "dates and times" if self.date.has_time else "dates"
            return f"{times} ({_EXAMPLE.strftime(self.date.text)})"
        return _READ_AS[kind]

    def _spell_number(self) -> str:
        if self.thousands is None:
            return f"2{self.decimal or '.'}5"
        return f"1{self.thousands}234{self.decimal or '.'}5"

    def mend(self, kind: str) -> str:
        """Return the end of a note: the argument that would change the spelling of a kind, "" if it was given."""
        if kind == "float":
            return "" if self.concern(kind) else "; decimal says otherwise"
        return "; date_format says otherwise" if kind in (*DATE_KINDS, MOMENT_KIND) and self.date is None else ""

    def describe_column(self, argument: str, column: str, kind: str) -> str:
        """Return a note: how a column without a declared type is read, which its rows do not decide."""
        lost = "" if kind == "string" else ": rows in another spelling are left out"
        how = f"as {self.describe(kind)}, because its type is not declared"
        return f"{argument} reads {column} {how}{lost}{self.mend(kind)}"


USUAL_FORMATS = Formats()
"""The formats of a caller who states none."""

_READ_AS = {
    "string": "text, whose case and spaces count",
    "boolean": "true or false",
    "date": "dates (2026-01-31)",
    "timestamp": "dates and times (2026-01-31 or 2026-01-31 12:00:00)",
    "timestamp with time zone": "times with a zone (2026-01-31 12:00:00+01:00)",
    MOMENT_KIND: "dates and times (2026-01-31 or 2026-01-31 12:00:00)",
}
"""The kinds that text is read as, in the words of a note."""


@lru_cache(maxsize=64)
def _parse_key(key: str) -> Formats:
    return Formats.parse(*(part or None for part in key.split("|")))


def respell_by_key(cell: Any, kind: str, key: str) -> bytes | None:
    """Return the bytes of a text as a kind is spelled, None for other cells; for engines that call functions of Python.

    `key` is `Formats.key`.
    """
    if not isinstance(cell, bytes):
        return None
    try:
        spelled = _parse_key(key).respell(cell.decode(), kind)
    except UnicodeDecodeError:
        return None
    return None if spelled is None else spelled.encode()
