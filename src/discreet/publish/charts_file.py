"""A charts file: read by tomllib, and checked whole before anything else is read.

Paths are relative to the file. Nothing here opens what a path names. What is wrong with one chart is said with its id
and its key.
"""

from __future__ import annotations

import glob
import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from discreet.discovery_terms import KINDS, SPELLINGS
from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.ledger.chain import canonical, digest
from discreet.ledger.charges import check_text
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import DEFAULT, FALLBACKS, MECHANISMS, make_mechanism
from discreet.noise import NOISES
from discreet.privacy import ADJACENCIES, MANY, ONE, positive, whole_number
from discreet.publish.site_folder import is_in_site
from discreet.redaction import redact_url
from discreet.sources.column_hints import suggestion
from discreet.sources.events.csv_format import ENCODINGS
from discreet.sources.events.local_days import open_zone
from discreet.sources.events.periods import UNITS, Unit
from discreet.sources.events.remote_files import is_remote


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


RESERVED = {"index", "statement", "data"}
"""What the site has pages of its own for."""

_ELSEWHERE = {"id", "title", "note", "from", "dataset", "pad_to"}
_PLACES = {"table", "connect", "name", "delimiter", "escape", "encoding"}
"""Keys that do not change what is asked: where events are, and when and under which name they are asked."""

_OF_MECHANISMS = ("gamma", "noise", "ceil", "precision", "otherwise")

_LONGEST = 200


@dataclass(frozen=True)
class Chart:
    """One chart of a file, checked.

    Attributes
    ----------
    id, title, note
        What it is called, for programs and for people, and a sentence about it.
    settings
        The keys of the chart and of the defaults, as the file has them.
    folder
        That of the file, which paths are relative to.
    """

    id: str
    title: str
    note: str | None
    settings: dict[str, Any]
    folder: Path

    def get(self, key: str) -> Any:
        """The value of a key, None where it is not given."""
        return self.settings.get(key)

    @property
    def unit(self) -> Unit | None:
        """How long its periods are; None where it is released once."""
        return None if self.get("every") is None else UNITS[self.get("every")]

    @property
    def first(self) -> date | None:
        """The first day of the first period to release, where that is said."""
        return None if self.unit is None or self.get("from") is None else self.unit.parse(self.get("from"))

    @property
    def mechanism(self) -> Mechanism:
        """How to draw."""
        options = {name: self.get(name) for name in _OF_MECHANISMS if self.get(name) is not None}
        return make_mechanism(self.get("mechanism") or DEFAULT.name, options)

    @property
    def fingerprint(self) -> str:
        """A few digits that change with what the chart asks, and not with where its events are or what it is called."""
        asked = {name: value for name, value in self.settings.items() if name not in _ELSEWHERE}
        asked["events"] = {name: value for name, value in asked["events"].items() if name not in _PLACES}
        return digest(canonical(_as_json(asked)))[:8]

    def find_path(self, text: str) -> str:
        """A path of the file as one from anywhere; a folder with brackets in its name is no pattern."""
        if os.path.isabs(text) or is_remote(text):
            return text
        folder = str(self.folder)
        return os.path.join(glob.escape(folder) if glob.has_magic(text) else folder, text)


@dataclass(frozen=True)
class ChartsFile:
    """A charts file, checked: the title of its site, its budget, its folder and its charts."""

    path: Path
    title: str
    note: str | None
    ledger: Path
    out: Path
    charts: tuple[Chart, ...]

    @property
    def dummy_out(self) -> Path:
        """The folder of a rehearsal, which leaves alone what is published."""
        return self.out.with_name(f"{self.out.name}-dummy")


def read_charts(given: str | os.PathLike[str]) -> ChartsFile:
    """Reads a charts file and checks all of it; no other file is opened."""
    path = Path(given)
    data = _read_toml(path)
    place = f"{path.name}: "
    check_keys(data, FILE, place)
    defaults, folder = data.get("defaults", {}), Path(os.path.abspath(path)).parent
    check_keys(defaults, TERMS, f"{path.name}, defaults: ", partial=True)
    charts = [
        _read_chart(each, number, defaults, folder, path.name)
        for number, each in enumerate(data["chart"], 1)
    ]  # fmt: skip
    _check_ids([chart.id for chart in charts], place)
    ledger, out = folder / data["ledger"], folder / data["out"]
    file = ChartsFile(path, data["title"], data.get("note"), ledger, out, tuple(charts))
    if is_in_site(ledger, out) or is_in_site(ledger, file.dummy_out):
        raise InvalidValueError(f"{place}ledger must be outside of out, which is published and replaced")
    return file


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise InvalidValueError(
            f"FILE must be a charts file that exists, not {str(path)!r}: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise InvalidValueError(f"{path.name} must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        # The words of tomllib may quote the file, and what is quoted may be a password.
        at = re.search(r"at (line \d+, column \d+|end of document)", str(error))
        raise InvalidValueError(f"{path.name} must be TOML, and is not{f' {at[0]}' if at else ''}") from None


def _read_chart(given: dict[str, Any], number: int, defaults: dict[str, Any], folder: Path, file: str) -> Chart:
    name = given.get("id")
    place = f"{file}, chart {quote(name) if isinstance(name, str) else number}: "
    settings = _merge(defaults, given)
    check_keys(settings, CHART, place)
    chart = Chart(settings["id"], settings["title"], settings.get("note"), settings, folder)
    with name_place(place):
        _check_chart(chart)
    return chart


def _merge(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The keys of a chart and those of the defaults that it leaves open; tables are merged key by key."""
    merged = {**defaults, **given}
    for name, value in given.items():
        if isinstance(value, dict) and isinstance(defaults.get(name), dict):
            merged[name] = {**defaults[name], **value}
    # One takes the place of the other.
    for one, other in (("domain", "discover"), ("discover", "domain"), ("counts", "split"), ("split", "counts")):
        if one in given and other not in given:
            merged.pop(other, None)
    return merged


@contextmanager
def name_place(place: str) -> Iterator[None]:
    """What is raised inside says which chart it is about."""
    try:
        yield
    except (InvalidValueError, InvalidTypeError) as error:
        failure = type(error)(f"{place}{error}")
    else:
        return
    raise failure


def _check_chart(chart: Chart) -> None:
    """Raises where keys are wrong by themselves or do not go together."""
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,49}", chart.id) or chart.id in RESERVED:
        raise InvalidValueError(
            f"id must be of up to 50 small letters, digits and hyphens, and none of {', '.join(sorted(RESERVED))}, "
            f"not {quote(chart.id)}"
        )
    for name in ("title", "note"):
        if chart.get(name) is not None and len(check_text(chart.get(name), name)) > _LONGEST:
            raise InvalidValueError(f"{name} must have at most {_LONGEST} characters")
    for name in ("epsilon", "counts"):
        if chart.get(name) is not None:
            positive(chart.get(name), name)
    whole_number(chart.get("k"), "k", 1)
    _check_pair(chart, "domain", "discover", "the items come from a list, or they are found")
    _check_pair(chart.settings["events"], "table", "connect", "the events are in files, or in a database")
    if chart.get("counts") is not None and chart.get("split") is not None:
        raise InvalidValueError("split must be left out with counts")
    chart.mechanism  # noqa: B018  # made to be checked
    _check_where(chart.settings["events"].get("where"))
    _check_periods(chart)


def _check_pair(given: Any, one: str, other: str, why: str) -> None:
    if (given.get(one) is None) == (given.get(other) is None):
        raise InvalidValueError(f"either {one} or {other} must be given, and not both: {why}")


def _check_where(where: str | None) -> None:
    if where is None:
        return
    from discreet.sources.events.where.parsing import parse_expression, silence_sqlglot

    with silence_sqlglot():
        parse_expression(where)


def _check_periods(chart: Chart) -> None:
    unit = chart.unit
    if unit is None:
        for name in ("time", "zone", "from"):
            if chart.get(name) is not None:
                raise InvalidValueError(f"{name} must be left out without every: the chart is released once")
        return
    if chart.get("time") is None:
        raise InvalidValueError("time must be given with every: the column that says which period an event is in")
    if chart.get("zone") is not None:
        open_zone(chart.get("zone"))
    if chart.get("from") is not None and chart.first is None:
        raise InvalidValueError(f"from must be a {unit.name} like {unit.example}, not {quote(chart.get('from'))}")


def _check_ids(ids: list[str], place: str) -> None:
    for name in ids:
        if ids.count(name) > 1:
            raise InvalidValueError(f"{place}id must be another for each chart, and {quote(name)} is there twice")


def _as_json(value: Any) -> Any:
    """A value of the file in terms that JSON can hold; what spells one number in two ways counts as two.

    The signature of a URL is left out, which may change every time.
    """
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    if isinstance(value, str):
        return redact_url(value)
    return str(value) if isinstance(value, Decimal) else value


def make_schema() -> dict[str, Any]:
    """The schema of a charts file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Charts of discreet publish",
        **_table(FILE),
    }


def to_text() -> str:
    """The schema as the file that is shipped."""
    return json.dumps(make_schema(), indent=2) + "\n"


def _table(keys: tuple[Key, ...], partial: bool = False) -> dict[str, Any]:
    required = [key.name for key in keys if key.is_required and not partial]
    return {
        "type": "object",
        "properties": {key.name: _value(key, partial) for key in keys},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _value(key: Key, partial: bool) -> dict[str, Any]:
    described = {"description": key.says, **key.kind.schema}
    if key.choices:
        described["enum"] = list(key.choices)
    # What the defaults say, a chart need not: nothing but what it is called is required of every one.
    if key.name == "chart":
        return {**described, "items": _table(key.keys, partial=True) | {"required": ["id", "title"]}}
    return {**described, **_table(key.keys, partial=partial or key.name == "defaults")} if key.keys else described


if __name__ == "__main__":
    print(to_text(), end="")
