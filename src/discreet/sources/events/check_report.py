"""The report of `check_events`: counts and examples of rows that do not fit, and advice.

The report shows private rows: do not publish it. `Check` holds the findings, prints as a report and converts to JSON.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from discreet.text import align_columns, make_html_view, printable, render_html, shorten

WARNING = "NOT private, for the data holder alone: this is read off the rows, and must not be published"
_WIDTH = 40
"""Maximum characters of a quoted value, so that several fit on one line."""

_MENDING = ", blanks inside by replace(ITEM, '  ', ' ') in the place of the item, others in a clean copy of the table"
_FINE = "Nothing stands out."
_UNCHECKED = "Rows that where leaves out are not checked: it misses values in another spelling."

_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Check</title>'
    "{% for title, part in parts.items() %}<h2>{{ title }}</h2>{{ part | safe }}{% endfor %}</html>"
)
_BARS = (
    "<table><tr><th>left out, by cause</th><th>share</th><th></th><th>rows</th><th>mended by</th></tr>"
    "{% for each, remedy in lost %}<tr><td>{{ each.title }}</td><td>{{ each.share }}</td>"
    # Browsers colour a meter by the distance from its optimum: few rows left out are green, most of them red.
    '<td><meter min="0" max="1" low="0.05" high="0.5" optimum="0" value="{{ each.rows / each.of }}">{{ each.share }}'
    "</meter></td><td>{{ '{:,} of {:,}'.format(each.rows, each.of) }}</td><td>{{ remedy }}</td></tr>{% endfor %}"
    "</table>"
)
"""The table of the causes; a row may have several, so that shares need not add up to all rows left out."""


@dataclass(frozen=True, repr=False)
class Frequent:
    """A value of the events and its number of rows."""

    value: str
    rows: int

    def __str__(self) -> str:
        return f"{_show(self.value)} ({_count_rows(self.rows)})"


@dataclass(frozen=True, repr=False)
class NearMatch:
    """An item of the events that would equal an item of the domain if both were spelled alike.

    If items are to be found, `listed` is a more frequent item of the events.
    """

    found: str
    listed: str
    rows: int


CAUSES = {
    "encoding": "not text in its encoding",
    "date": "no date in its spelling",
    "value": "no number in its spelling",
    "user": "no user",
    "item": "no listed item",
    "group": "no listed group",
}
"""The causes by which rows are left out, in words."""


@dataclass(frozen=True, repr=False)
class Loss:
    """Rows that a release leaves out by one cause.

    Attributes
    ----------
    cause
        One of `CAUSES`.
    column
        The column, or the period of one, as the caller named it; "" if the cause is about the file.
    rows, of
        The rows left out, and the rows that were looked at. A row may have several causes.
    remedies
        The arguments of `events` that mend it, from a fixed list: alternatives that read as many rows, or none.
    list_as
        The functions that the caller has to apply to a list that is in no file or table, "" if there is no such list.
    """

    cause: str
    column: str
    rows: int
    of: int
    remedies: tuple[dict[str, str], ...] = ()
    list_as: str = ""

    @property
    def title(self) -> str:
        """The cause in words, with its column."""
        return f"{CAUSES[self.cause]}{f' in {_show(self.column)}' if self.column else ''}"

    @property
    def share(self) -> str:
        """The share of the rows as a text, such as "48.5%"."""
        return f"{100 * self.rows / self.of:.1f}%"

    def spell_remedy(self, as_options: bool) -> str:
        """Return what mends it, with arguments as Python or a shell spells them, "" if nothing is known."""
        between, form = (" ", "--{} {}") if as_options else (", ", "{}={}")
        quote = shlex.quote if as_options else repr
        spelled = " or ".join(
            between.join(
                form.format(name.replace("_", "-") if as_options else name, quote(value))
                for name, value in each.items()
            )
            for each in self.remedies
        )
        return " with ".join(filter(None, [spelled, self.list_as and f"{self.list_as} in the list"]))


@dataclass(frozen=True, repr=False)
class OtherColumn:
    """A column of the domain's file with most of the items that the given column lacks, `found` of `tried`."""

    spelling: str
    found: int
    tried: int


@dataclass(frozen=True, repr=False)
class GroupCheck:
    """Rows outside the listed groups, and listed groups without rows.

    Attributes
    ----------
    rows_outside
        Rows of no listed group.
    empty, number
        Listed groups that have no row, and all listed groups.
    outside
        For each group column, by its spelling, the most frequent values that are not in the list.
    """

    rows_outside: int
    empty: int
    number: int
    outside: dict[str, list[Frequent]]


@dataclass(frozen=True, kw_only=True, repr=False)
class Check:
    """The findings of `check_events`. NOT private: they are for the data holder alone.

    Attributes
    ----------
    rows, rows_kept
        Rows read, and rows of these that `where` keeps; the other fields are about the rows kept.
    has_where
        True if the source has a condition; not in the JSON.
    as_options
        True to spell the arguments that mend a loss as options of the command line; not in the JSON.
    rows_unreadable
        Rows of a text file whose user or item is not valid text, most often because of another encoding.
    users
        The number of distinct users.
    rows_without_user, rows_without_item, rows_without_value
        Rows that are dropped because a cell is missing; the last is None without `value`.
    placeholder_users
        Text that stands for no user, such as an empty one or "null": all rows of one text count as one person.
    rows_inside
        Rows that count: they have a user and an item of the domain.
    kind, rows_of_other_kind
        The kind that items are read as, and rows whose item has another kind.
    d, items_untouched, untouched
        The number of items of the domain, the number without a row, and a few of these; d is None if items are to be
        found.
    rows_outside, items_outside, outside
        Rows and items outside the domain, and the most frequent few.
    rows_near, near
        Rows that would be inside if case and spaces were ignored, and a few of their items. If items are to be found,
        rows that would then be of a more frequent item.
    rows_alike, alike
        Rows that would be inside if items were whole numbers and not text, and a few of their items.
    other_columns
        Columns of the domain's file with most of the items that the given column lacks.
    header_item
        The header of the domain's file if events have an item of that name: the file may have no header.
    lost
        The rows that are left out by each cause, and the arguments that mend it. No text of a row is in them.
    where_values
        The most frequent values of the columns of the condition, if it keeps no row.
    groups
        The findings about groups; None without groups.
    """

    rows: int
    rows_kept: int
    rows_unreadable: int = 0
    users: int
    rows_without_user: int
    rows_without_item: int
    rows_without_value: int | None
    placeholder_users: list[Frequent]
    rows_inside: int
    kind: str
    rows_of_other_kind: int
    d: int | None
    items_untouched: int | None = None
    untouched: list[str] = field(default_factory=list)
    rows_outside: int = 0
    items_outside: int = 0
    outside: list[Frequent] = field(default_factory=list)
    rows_near: int = 0
    near: list[NearMatch] = field(default_factory=list)
    rows_alike: int = 0
    alike: list[NearMatch] = field(default_factory=list)
    other_columns: list[OtherColumn] = field(default_factory=list)
    header_item: str | None = None
    lost: list[Loss] = field(default_factory=list)
    where_values: dict[str, list[Frequent]] = field(default_factory=dict)
    groups: GroupCheck | None = None
    has_where: bool = False
    as_options: bool = False

    @property
    def is_noise(self) -> bool:
        """True if no row counts for any item, so that a release would be noise alone."""
        lost = self.groups is not None and self.groups.rows_outside >= self.rows_kept
        return self.rows_inside == 0 or lost

    @property
    def advice(self) -> list[str]:
        """Sentences about what to change, none if nothing stands out."""
        return list(_advise(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        found = {name: value for name, value in asdict(self).items() if name not in ("has_where", "as_options")}
        for each in found["lost"]:
            if not each["list_as"]:
                del each["list_as"]
        return {"private": False, **found, "is_noise": self.is_noise, "advice": self.advice}

    def _repr_html_(self) -> str:
        lost = [(each, each.spell_remedy(self.as_options)) for each in self.lost]
        body = render_html(_BARS, lost=lost) if lost else ""
        unchecked = [_UNCHECKED] if self.has_where else []
        return make_html_view(f"{WARNING}.", body, [*unchecked, *(self.advice or [_FINE])])

    def __str__(self) -> str:
        figures: dict[str, int | None] = {
            "rows read": self.rows,
            "rows kept by where": self.rows_kept if self.has_where else None,
            "rows in the period": None if self.has_where or self.rows_kept == self.rows else self.rows_kept,
            "users": self.users,
            "rows without user": self.rows_without_user,
            "rows without item": self.rows_without_item,
            "rows without value": self.rows_without_value,
            f"rows whose item is no {self.kind}": self.rows_of_other_kind,
            "rows that count": self.rows_inside,
        }
        if self.d is not None:
            figures |= {
                "rows of items outside the domain": self.rows_outside,
                "items outside the domain": self.items_outside,
                "items of the domain": self.d,
                "items of the domain never touched": self.items_untouched,
                "rows inside but for case and spaces": self.rows_near,
            }
        elif self.rows_near:
            figures |= {"rows of another item but for case and spaces": self.rows_near}
        if self.groups is not None:
            figures |= {"rows of no listed group": self.groups.rows_outside, "groups without rows": self.groups.empty}
        table = [(name, f"{figure:,}") for name, figure in figures.items() if figure is not None]
        lines = [f"{WARNING}.", *(f"  {line}" for line in align_columns(table, numbers=True))]
        if self.lost:
            causes = [
                (each.title, f"{each.rows:,}", each.share, each.spell_remedy(self.as_options)) for each in self.lost
            ]
            lines += ["Left out, by cause (a row may have several):"]
            lines += [f"  {line}".rstrip() for line in align_columns(causes)]
        if self.outside:
            lines.append(f"Most frequent outside the domain: {_join(self.outside)}")
        if self.untouched:
            lines.append(f"Never touched, for example: {', '.join(map(_show, self.untouched))}")
        for column, values in (self.groups.outside if self.groups else {}).items():
            if values:
                lines.append(f"Most frequent in {_show(column)} and in no group: {_join(values)}")
        if self.has_where:
            lines.append(_UNCHECKED)
        advice = self.advice or [_FINE]
        return "\n".join([*lines, "What to change:", *(f"- {each}" for each in advice)])


def make_page(checks: Mapping[str, Check]) -> str:
    """Return checks by title as a page of HTML, with the share of each cause as a bar."""
    parts = {title: check._repr_html_() for title, check in checks.items()}
    return render_html(_PAGE, parts=parts)


def _advise(check: Check) -> Iterator[str]:
    if not check.rows:
        yield "The table has no rows: is it the right file, pattern or table?"
    elif check.rows_unreadable:
        yield (
            f"{_share(check.rows_unreadable, check.rows)} cannot be read and are dropped: is the file in the encoding "
            "that was said, by default utf-8? If not, say its encoding, such as 'latin-1'"
        )
    elif not check.rows_kept:
        held = [f"{_show(column)} holds {_join(values)}" for column, values in check.where_values.items() if values]
        compared = f" Compare it with what its columns hold most: {'; '.join(held)}" if held else ""
        if check.has_where:
            yield f"where keeps none of {check.rows:,} rows.{compared}"
        else:
            yield f"None of {check.rows:,} rows is in the period: have its events arrived?"
    if check.rows_without_user:
        yield (
            f"{_share(check.rows_without_user, check.rows_kept)} have no user and are dropped: if people are behind "
            "them, name the column that has their ids"
        )
    if check.placeholder_users:
        yield (
            f"The user column has text that stands for nobody, {_join(check.placeholder_users)}, and all rows of one "
            "such text count as one person: make it missing, or leave it out by where"
        )
    if check.rows_without_item:
        yield f"{_share(check.rows_without_item, check.rows_kept)} have no item and are dropped"
    if check.rows_without_value:
        lost = f"{_share(check.rows_without_value, check.rows_kept)} have no number as value and are dropped"
        yield lost + "".join(
            f": {each.spell_remedy(check.as_options)} reads them"
            for each in check.lost
            if each.cause == "value" and each.remedies
        )
    if check.rows_of_other_kind:
        lost = _share(check.rows_of_other_kind, check.rows_kept)
        yield f"{lost} have an item that is no {check.kind} and are dropped"
    if check.rows_near and check.d is None:
        first = check.near[0]
        yield (
            f"{_share(check.rows_near, check.rows_kept)} are of items that differ from a more frequent one in case or "
            f"in spaces at the ends, such as {_show(first.found)} beside {_show(first.listed)}: spelling='fold' in "
            "discreet.discovered, --spelling fold on the command line, makes one item of them"
        )
    elif check.rows_near:
        first = check.near[0]
        spelled = [each for each in check.lost if each.cause == "item" and (each.list_as or _has_spelling(each))]
        respelled = spelled[0].spell_remedy(check.as_options) if spelled else ""
        yield (
            f"{_count_rows(check.rows_near)} would be inside the domain if case and spaces were ignored, such as "
            f"{_show(first.found)}, which the domain has as {_show(first.listed)}: "
            f"{f'{respelled} spells both alike' if respelled else f'spell both alike{_MENDING}'}"
        )
    if check.rows_alike:
        first = check.alike[0]
        yield (
            f"{_count_rows(check.rows_alike)} would be inside the domain if items were whole numbers and not text, "
            f"such as {_show(first.found)}, which the domain has as {_show(first.listed)}: give the domain as numbers "
            "(a Parquet file, a list, or integers:LO:HI), or spell both alike"
        )
    for other in check.other_columns:
        yield (
            f"Of the {other.tried:,} most frequent items outside the domain {other.found:,} are in another column of "
            f"its file: is the domain {_show(other.spelling)}?"
        )
    if check.header_item is not None:
        yield (
            f"The first line of the domain's file, {_show(check.header_item)}, is taken for the name of its column, "
            "and events have an item of that name: if the file has no header line, add one"
        )
    if check.d is not None and check.rows_kept and check.items_untouched == check.d:
        yield "No item of the domain is in the events: a release would be noise alone"
    elif 2 * check.rows_outside > check.rows_kept:
        yield (
            f"{_share(check.rows_outside, check.rows_kept)} are of items outside the domain and are dropped: is it the "
            "right list, and the right column?"
        )
    for each in check.lost:
        if each.cause == "date":
            mended = "date_format says how they are spelled"
            mended = f"{each.spell_remedy(check.as_options)} reads them" if each.remedies else mended
            yield (
                f"{_share(each.rows, each.of)} have a date in {_show(each.column)} that is not read, and is missing to "
                f"a condition, a period or a domain of dates: {mended}"
            )
    groups = check.groups
    if groups is None:
        return
    remedies = [each.spell_remedy(check.as_options) for each in check.lost if each.cause == "group"]
    mended = " and ".join(filter(None, remedies))
    if mended or 2 * groups.rows_outside > check.rows_kept:
        lost = _share(groups.rows_outside, check.rows_kept)
        told = f"{mended} reads them" if mended else "is the list right?"
        yield f"{lost} are in no listed group and are dropped: {told}"
    if groups.empty:
        yield f"{groups.empty:,} of {groups.number:,} groups have no rows, and their lists would be noise alone"


def _has_spelling(loss: Loss) -> bool:
    return any({"item", "domain"} & each.keys() for each in loss.remedies)


def _share(rows: int, of: int) -> str:
    return f"{rows:,} of {of:,} rows ({100 * rows / of:.1f}%)"


def _count_rows(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _join(values: list[Frequent]) -> str:
    return ", ".join(map(str, values))


def _show(text: str) -> str:
    return f"'{printable(shorten(text, _WIDTH))}'"
