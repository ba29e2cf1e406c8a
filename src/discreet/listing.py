"""The items of a release as people and tables have them: in one order, with their places and counts where released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.labels import sort_key
from discreet.text import align_columns, count_with_commas, printable, shorten

_TABLE = ("item", "about", "95% interval")


@dataclass(frozen=True)
class Listing:
    """The items of a release: by noisy count, else in the released order, else sorted by label.

    Attributes
    ----------
    items
        The items, sorted by label.
    order
        The same items in the released order, or None.
    counts
        The count of each item, the largest first, or None.
    names
        The names of the columns that make a group, of which a release of one list has none.
    """

    items: list[Any]
    order: list[Any] | None
    counts: Sequence[Any] | None
    names: ClassVar[tuple[str, ...]] = ()

    def describe_order(self) -> str:
        """In which order the items are, in words."""
        if self.counts is not None:
            return "by noisy count"
        return "sorted by name, which says nothing about rank" if self.order is None else "in the released order"

    def columns(self) -> list[str]:
        """The names of what `rows` has of each item."""
        places = [] if self.order is None else ["order"]
        return ["item", *places, *([] if self.counts is None else ["count", "low", "high"])]

    def rows(self) -> list[tuple[Any, ...]]:
        """Each item with its place in the released order, its count and the interval, as far as these are there."""
        places = {sort_key(item): (place,) for place, item in enumerate(self.order or [], 1)}
        if self.counts is not None:
            return [(c.item, *places.get(sort_key(c.item), ()), c.value, c.low, c.high) for c in self.counts]
        return [(item, *places.get(sort_key(item), ())) for item in self._list_items()]

    def lines(self, longest: int | None = None) -> list[str]:
        """The items as lines of text, each cut to so many characters where that is said."""

        def name(item: Any) -> str:
            return printable(item) if longest is None else shorten(printable(item), longest)

        if self.counts is not None:
            rows = [_TABLE, *((name(item), *numbers) for item, *numbers in self._cells())]
            return align_columns(rows, numbers=True)
        width = len(str(len(self.items)))
        names = [name(item) for item in self._list_items()]
        return [f"{i:>{width}}  {name}" if self.order else name for i, name in enumerate(names, 1)]

    def to_html(self) -> str:
        """Return the items as an HTML list, or as a table with their counts."""
        from discreet.html_text import make_html_table, render_html

        if self.counts is not None:
            return make_html_table(self._cells(), _TABLE)
        tag = "ul" if self.order is None else "ol"
        template = "<{{ tag }}>{% for item in items %}<li>{{ item }}</li>{% endfor %}</{{ tag }}>"
        return render_html(template, tag=tag, items=map(str, self._list_items()))

    def _list_items(self) -> list[Any]:
        return self.items if self.order is None else self.order

    def _cells(self) -> list[tuple[str, str, str]]:
        """The counts as text, a row for each item."""
        return [
            (
                str(count.item),
                count_with_commas(count.value),
                f"{count_with_commas(count.low)} to {count_with_commas(count.high)}",
            )
            for count in self.counts or []
        ]
