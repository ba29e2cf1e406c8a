"""The lists of several groups as people and tables have them: side by side, to unfold, or as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from discreet.listing import Listing
from discreet.text import measure_width, pad_cell, printable

_ALL, _FEW, _FOLDED = 12, 3, 200
"""Up to how many groups are printed whole, how many of more, and how many a page has to unfold."""

_SIDE_BY_SIDE = (
    '<div style="display:flex;flex-wrap:wrap;gap:1em 2em;align-items:flex-start">'
    "{% for name, list in lists %}<div><b>{{ name }}</b>{{ list | safe }}</div>{% endfor %}</div>"
)
_FOLDS = (
    "{% for name, list in lists %}<details><summary>{{ name }}</summary>{{ list | safe }}</details>{% endfor %}"
    "{% if more %}<p>... and {{ '{:,}'.format(more) }} more groups (all of them: to_frame())</p>{% endif %}"
)

_GAP, _LONGEST = 4, 40
"""How many blanks there are between lists, and how long a name can be where lists stand beside each other."""


@dataclass(frozen=True)
class GroupedListing:
    """A list for each group.

    Attributes
    ----------
    names
        The names of the columns that make a group.
    lists
        The list of each group, by the group.
    """

    names: tuple[str, ...]
    lists: dict[Any, Listing]

    def columns(self) -> list[str]:
        """The names of what `rows` has; a group that is called like another column is told apart from it."""
        own = self._own_columns()
        return [*(f"group_{name}" if name in own else name for name in self.names), *own]

    def rows(self) -> Iterator[list[Any]]:
        """Each item of each group, the group first, in as many places as it has columns; None for what is not there."""
        own = self._own_columns()
        for group, listing in self.lists.items():
            parts, names = group if len(self.names) > 1 else (group,), listing.columns()
            for row in listing.rows():
                cells = dict(zip(names, row, strict=True))
                yield [*parts, *(cells.get(name) for name in own)]

    def describe_order(self) -> str:
        """In which order the items are, in words."""
        return ", or ".join(sorted({listing.describe_order() for listing in self.lists.values()}))

    def to_lines(self) -> list[str]:
        """The lists as lines of text, as many side by side as the terminal is wide for."""
        import shutil  # what it stands on takes time to import, and few lists are of groups

        few, width = len(self.lists) <= _ALL, shutil.get_terminal_size().columns
        shown = _ALL if few else _FEW
        blocks = self._make_blocks(shown, _LONGEST)
        if _count_across(blocks, width) == 1:
            # What stands alone on its line need not be cut.
            blocks = self._make_blocks(shown, None)
        more = (
            [] if few else [f"... and {len(self.lists) - _FEW:,} more groups (all of them: to_frame(), --format csv)"]
        )
        return [*_put_side_by_side(blocks, width), *more]

    def _make_blocks(self, count: int, longest: int | None) -> list[list[str]]:
        return [
            [name_group(group), *(f"  {line}" for line in listing.lines(longest))]
            for group, listing in self._some(count)
        ]

    def to_html(self) -> str:
        """Return the lists side by side, or, if there are many groups, folded one by one; no script is needed."""
        from discreet.html_text import render_html

        template = _SIDE_BY_SIDE if len(self.lists) <= _ALL else _FOLDS
        lists = [(name_group(group), one.to_html()) for group, one in self._some(_FOLDED)]
        return render_html(template, lists=lists, more=len(self.lists) - len(lists))

    def _some(self, count: int) -> Iterator[tuple[Any, Listing]]:
        return islice(self.lists.items(), count)

    def _own_columns(self) -> list[str]:
        """The columns of the lists without the group: what one of them has, all have, if only with nothing in it."""
        return max((listing.columns() for listing in self.lists.values()), key=len)


def name_group(group: Any) -> str:
    """A group on one line; the parts of one of several columns with commas between."""
    return ", ".join(map(printable, group)) if isinstance(group, tuple) else printable(group)


def _put_side_by_side(blocks: list[list[str]], width: int) -> list[str]:
    """Blocks of lines in rows, each with as many of equal width as fit, and at least one."""
    widest, across = _find_widest(blocks), _count_across(blocks, width)
    lines = []
    for first in range(0, len(blocks), across):
        row = zip_longest(*blocks[first : first + across], fillvalue="")
        lines += ["".join(pad_cell(cell, widest + _GAP) for cell in cells).rstrip() for cells in row]
    return lines


def _count_across(blocks: list[list[str]], width: int) -> int:
    """How many blocks beside each other fit, and at least one."""
    return min(len(blocks), max(1, (width + _GAP) // (_find_widest(blocks) + _GAP)))


def _find_widest(blocks: list[list[str]]) -> int:
    return max(measure_width(line) for block in blocks for line in block)
