"""The keys of a charts file, in one table: what is checked, what an editor is told, and what is suggested for a slip.

A key says of what kind its value is, in words of TOML. What a value must be beyond that is known where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote, suggestion
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import FALLBACKS, MECHANISMS
from discreet.privacy import ADJACENCIES, MANY, ONE
from discreet.sources.discovered import KINDS, SPELLINGS
from discreet.sources.events.csv_format import ENCODINGS
from discreet.sources.events.periods import UNITS


@dataclass(frozen=True)
class Kind:
    """What a value can be: in words, as Python has it after tomllib, and for JSON Schema."""

    words: str
    types: tuple[type, ...]
    schema: dict[str, Any]
    members: Kind | None = None

    def fits(self, value: Any) -> bool:
        """Whether a value is of the kind; true and false are no numbers."""
        if isinstance(value, bool) and bool not in self.types:
            return False
        if not isinstance(value, self.types):
            return False
        return not isinstance(value, list) or all(map((self.members or ANYTHING).fits, value))


_STRING = {"type": "string", "minLength": 1}
ANYTHING = Kind("anything", (object,), {})
TEXT = Kind("a text", (str,), _STRING)
WHOLE = Kind("a whole number", (int,), {"type": "integer"})
NUMBER = Kind('a number, best as a text such as "0.25" or "1/3"', (str, int, Decimal), {"type": ["string", "number"]})
FLAG = Kind("true or false", (bool,), {"type": "boolean"})
TABLE = Kind("a table", (dict,), {"type": "object"})
TABLES = Kind("one or more tables, each under [[chart]]", (list,), {"type": "array", "minItems": 1}, TABLE)
PERIOD = Kind("a period such as '2026-01'", (str, int, date), {"type": ["string", "integer"]})
_MEMBER = Kind("a text or a whole number", (str, int), {"type": ["string", "integer"]})
NAMES = Kind("a text or a list of texts", (str, list), {"type": ["string", "array"], "items": _STRING}, TEXT)
PUBLIC_LIST = Kind(
    "FILE:COLUMN, a range, or a list",
    (str, list),
    {"type": ["string", "array"], "items": {"type": ["string", "integer"]}, "minItems": 1},
    _MEMBER,
)
GROUP_LIST = Kind(
    "FILE:COLUMN, a range, or a list, of which there is one for each column where by has several",
    (str, list),
    {"type": ["string", "array"], "items": {"type": ["string", "integer", "array"]}, "minItems": 1},
    Kind("a text, a whole number or a list", (str, int, list), {}, _MEMBER),
)
PAIR = Kind(
    "a list of two numbers", (list,), {"type": "array", "items": NUMBER.schema, "minItems": 2, "maxItems": 2}, NUMBER
)


@dataclass(frozen=True)
class Key:
    """A key: its name, the kind of its value, what it is for, and which values or keys are allowed in it."""

    name: str
    kind: Kind
    says: str
    choices: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    is_required: bool = False


EVENTS = (
    Key("table", NAMES, "The events: a file, a pattern, a folder, or a list of these, relative to the charts file."),
    Key("connect", TEXT, "In place of table: the URL of a database. ${VAR} stands for a variable of the environment."),
    Key("name", TEXT, "With connect: the table of the events in the database."),
    Key("user", TEXT, "The column that says which user.", is_required=True),
    Key("item", TEXT, "The column that says what the user did it to.", is_required=True),
    Key("where", TEXT, "A condition on single events, in DuckDB's SQL."),
    Key("value", TEXT, "A column to add up. Without it, distinct users are counted."),
    Key("clip", PAIR, "With value: the range of what one user may add to an item in all."),
    Key("resolution", NUMBER, "With value: the steps values are rounded to."),
    Key("max_items_per_user", WHOLE, "Score at most so many items of each user."),
    Key("delimiter", TEXT, "What separates the fields of .csv files."),
    Key("escape", TEXT, "What stands before a quote inside quotes in .csv files."),
    Key("encoding", TEXT, "How the bytes of .csv files spell text.", ENCODINGS),
)
DISCOVER = (
    Key("delta", NUMBER, "The chance that the promise of epsilon may fail, such as 1e-8.", is_required=True),
    Key("max_items_per_user", WHOLE, "How many items of a user count for finding them.", is_required=True),
    Key("epsilon", NUMBER, "How much of epsilon is for finding the items."),
    Key("kind", TEXT, "What the items are.", KINDS),
    Key("spelling", TEXT, "Which texts are one item.", tuple(SPELLINGS)),
)
BY = (
    Key("column", NAMES, "The column that says which group, or several.", is_required=True),
    Key("groups", GROUP_LIST, "The public list of groups.", is_required=True),
    Key("each_user", TEXT, "Whether a user counts in one group or in many.", (ONE, MANY), is_required=True),
    Key("max_groups_per_user", WHOLE, "With many: a user counts in at most so many groups."),
)
TERMS = (
    Key("note", TEXT, "A sentence below the title."),
    Key("events", TABLE, "The events that the chart is made of.", keys=EVENTS, is_required=True),
    Key("domain", PUBLIC_LIST, "The public items: FILE:COLUMN, connect:TABLE.COLUMN, integers:LO:HI, or a list."),
    Key("label", TEXT, "A column of the domain to show for the item."),
    Key("discover", TABLE, "In place of domain: find the items, for a delta.", keys=DISCOVER),
    Key("by", TABLE, "Release a list for each group.", keys=BY),
    Key("k", WHOLE, "How many items to release.", is_required=True),
    Key("epsilon", NUMBER, "What one release costs, without counts.", is_required=True),
    Key("counts", NUMBER, "Release noisy counts too, at this epsilon beside the other."),
    Key("split", TEXT, "With auto: counts for half of epsilon.", ("auto",)),
    Key("mechanism", TEXT, "How to draw.", tuple(MECHANISMS)),
    Key("gamma", NUMBER, "For canonical: the weight of the worst item taken."),
    Key("noise", TEXT, "For canonical, one-shot and peeling.", tuple(NOISES)),
    Key("ceil", FLAG, "For canonical: round losses up to multiples of the sensitivity."),
    Key("precision", NUMBER, "For core: the share of the items that should be among the true k."),
    Key("otherwise", TEXT, "For core: what to release where data support no core.", FALLBACKS),
    Key("adjacency", TEXT, "What neighbours differ by.", tuple(ADJACENCIES)),
    Key("every", TEXT, "A release for each period of this length; without it there is one release.", tuple(UNITS)),
    Key("time", TEXT, "With every: the column of dates or times that says which period an event is in."),
    Key("zone", TEXT, "With every: the time zone of the periods, such as Europe/Berlin; by default UTC."),
    Key("from", PERIOD, "With every: the first period to release; without it only the one that ended last is."),
    Key("dataset", TEXT, "The data, by the name that the budget has for them."),
    Key("pad_to", NUMBER, "Write and end only at multiples of so many seconds."),
)
CHART = (
    Key("id", TEXT, "A short name of small letters, digits and hyphens, which never changes.", is_required=True),
    Key("title", TEXT, "What people call it.", is_required=True),
    *TERMS,
)
FILE = (
    Key("title", TEXT, "The title of the site.", is_required=True),
    Key("note", TEXT, "A sentence below the title."),
    Key("ledger", TEXT, "The budget, which 'discreet budget init' makes.", is_required=True),
    Key("out", TEXT, "The folder of the site.", is_required=True),
    Key("defaults", TABLE, "What holds for every chart that says nothing else.", keys=TERMS),
    Key("chart", TABLES, "The charts.", keys=CHART, is_required=True),
)


def check_keys(given: dict[str, Any], keys: tuple[Key, ...], place: str, partial: bool = False) -> None:
    """Raises unless all keys are known, their values are of their kinds, and none that is required is missing.

    Parameters
    ----------
    given
        A table of the file.
    keys
        What it may have.
    place
        What messages call it: a prefix that ends with a colon and a space.
    partial
        Whether what is required may be missing, as in defaults.
    """
    known = {key.name: key for key in keys}
    for name, value in given.items():
        if name not in known:
            hint = suggestion(name, list(known), private=False)
            raise InvalidValueError(f"{place}{quote(name)} is no key here{hint or f'; there are {_join(known)}'}")
        _check_value(known[name], value, place, partial)
    for key in keys:
        if key.is_required and key.name not in given and not partial:
            raise InvalidValueError(f"{place}{key.name} is missing. {key.says}")


def _check_value(key: Key, value: Any, place: str, partial: bool) -> None:
    # What is in a URL may be a password, and stays untold.
    told = "" if key.name == "connect" else f", not {quote(value)}"
    if not key.kind.fits(value):
        raise InvalidTypeError(f"{place}{key.name} must be {key.kind.words}{told}")
    if value in ("", []):
        raise InvalidValueError(f"{place}{key.name} must not be empty")
    if key.choices and value not in key.choices:
        hint = suggestion(value, list(key.choices), private=False)
        raise InvalidValueError(f"{place}{key.name} must be one of {_join(key.choices)}{told}{hint}")
    if key.kind is TABLE and key.name != "defaults":
        check_keys(value, key.keys, f"{place.removesuffix(': ')}, {key.name}: ", partial)


def _join(names: Any) -> str:
    return ", ".join(names)
