"""A charts file: its keys, the reader that checks it whole before any other file is opened, and its JSON Schema.

The file is TOML, read by tomllib with exact decimals. Paths are relative to the file. An error names the chart and the
key. `python -m discreet.publish.charts_file` prints the schema, which is shipped as `charts.schema.json` for editors.
"""

from __future__ import annotations

import glob
import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, check_is_path, quote, redact_url, suggestion
from discreet.language import LANGUAGES, Language
from discreet.ledger.charges import check_text
from discreet.ledger.store import canonical, digest, is_url
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import DEFAULT, make_mechanism
from discreet.privacy import exact, positive, whole_number
from discreet.publish.options import (
    FLAG,
    NAMES,
    NUMBER,
    TABLE,
    TEXT,
    WHOLE,
    DiscoveryOptions,
    EventOptions,
    GroupOptions,
    ItemOptions,
    Kind,
    LedgerOptions,
    MechanismOptions,
    ReleaseOptions,
)
from discreet.publish.site_folder import is_in_site
from discreet.release.shortfall import parse_shortfall
from discreet.sources.events.location import FilePath, Location
from discreet.sources.events.periods import UNITS, Unit, open_zone

RESERVED = {"index", "statement", "data"}
"""Names of the site's own pages, which no chart may have as its id."""

VARIABLE = r"\$\{(\w+)\}"
"""A variable of the environment in the value of a key."""

MAX_TITLE = 200
"""The number of characters that a title or a note may have: more does not fit the head of a page."""

_TABLES = Kind("one or more tables, each under [[chart]]", (list,), {"type": "array", "minItems": 1}, TABLE)
_PERIOD = Kind("a period such as '2026-01'", (str, int, date), {"type": ["string", "integer"]})


@dataclass(frozen=True)
class Key:
    """A key of the file: its name, the kind of its value, its purpose, and the values or keys allowed in it."""

    name: str
    kind: Kind
    says: str
    choices: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    is_required: bool = False


def _make_keys(options: type, *names: str) -> tuple[Key, ...]:
    """Return the keys made from the fields of a dataclass of options: of all fields, or of those named."""
    declared = {field.name: field.metadata["option"] for field in fields(options)}
    return tuple(
        Key(one.key or name, one.kind, one.describe(one.charts, str), tuple(one.choices), (), one.is_required)
        for name, one in ((name, declared[name]) for name in names or declared)
        if one.kind is not None
    )


EVENTS = (
    Key("table", NAMES, "The events: a file, a pattern, a folder, or a list of these, relative to the charts file."),
    *_make_keys(EventOptions),
)
DISCOVER = (
    *_make_keys(DiscoveryOptions, "delta"),
    Key(
        "max_items_per_user",
        WHOLE,
        "The number of items of a user that count for finding items; except with the method laplace, 100 if left out.",
    ),
    *_make_keys(DiscoveryOptions, "discovery_epsilon", "kind", "spelling", "method"),
)
TERMS = (
    Key("note", TEXT, "A sentence below the title."),
    Key("events", TABLE, "The events of the chart.", keys=EVENTS, is_required=True),
    *_make_keys(ItemOptions),
    replace(*_make_keys(DiscoveryOptions, "discover"), keys=DISCOVER),
    Key("by", TABLE, "Release a list for each group.", keys=_make_keys(GroupOptions)),
    *_make_keys(ReleaseOptions, "k", "epsilon", "counts", "split", "shortfall"),
    Key(
        "withhold_above",
        NUMBER,
        "With shortfall: a list whose bound is above this is not shown, and its page says that it is too noisy.",
    ),
    *_make_keys(MechanismOptions),
    *_make_keys(ReleaseOptions, "adjacency"),
    Key("every", TEXT, "Release each period of this length. Without it there is one release.", tuple(UNITS)),
    Key("time", TEXT, "With every: the column of dates or times that assigns events to periods."),
    Key("zone", TEXT, "With every: the time zone of the periods, such as Europe/Berlin. The default is UTC."),
    Key("from", _PERIOD, "With every: the first period to release. By default only the last one that ended is."),
    Key("to", _PERIOD, "With every: the last period to release, after which the chart ends; its pages stay."),
    *_make_keys(LedgerOptions, "dataset", "part"),
    *_make_keys(ReleaseOptions, "pad_to"),
)
CHART = (
    Key("id", TEXT, "A permanent short name of lower-case letters, digits and hyphens.", is_required=True),
    Key("title", TEXT, "The title of the chart.", is_required=True),
    *TERMS,
)
FILE = (
    Key("title", TEXT, "The title of the site.", is_required=True),
    Key("note", TEXT, "A sentence below the title."),
    Key("language", TEXT, "The language of the pages and of the statement. The default is en, English.", LANGUAGES),
    *_make_keys(LedgerOptions, "ledger"),
    Key("out", TEXT, "The folder of the site.", is_required=True),
    Key("pictures", FLAG, "Without matplotlib or with false, the site has no pictures of its charts to download."),
    Key("defaults", TABLE, "Settings for all charts that do not set them.", keys=TERMS),
    Key("chart", _TABLES, "The charts.", keys=CHART, is_required=True),
)

_UNSETTABLE = {key.name for key in TERMS if not (key.is_required or key.keys or key.kind is FLAG)}
"""Keys that a chart can unset by false where the defaults have them."""

_NOT_ASKED = {"id", "title", "note", "from", "to", "dataset", "part", "pad_to", "withhold_above"}
_PLACES = {"table", "connect", "name", "delimiter", "escape", "encoding"}
"""Keys outside the fingerprint of a chart: its names, the time of a release, and the place of the events."""


@dataclass(frozen=True, repr=False)
class Chart:
    """One chart of a file, checked.

    Attributes
    ----------
    id, title, note
        The name for programs, the name for people, and a sentence about the chart.
    settings
        The keys of the chart and of the defaults, as the file has them.
    folder
        The folder of the file, which paths are relative to.
    """

    id: str
    title: str
    note: str | None
    settings: dict[str, Any]
    folder: Path

    def get(self, key: str) -> Any:
        """Return the value of a key, None where it is not given."""
        return self.settings.get(key)

    @property
    def unit(self) -> Unit | None:
        """The length of its periods; None for a chart that is released once."""
        return None if self.get("every") is None else UNITS[self.get("every")]

    @property
    def first(self) -> date | None:
        """The first day of the first period to release; None where the file does not say it."""
        return None if self.unit is None or self.get("from") is None else self.unit.parse(self.get("from"))

    @property
    def last(self) -> date | None:
        """The first day of the last period to release; None for a chart that goes on."""
        return None if self.unit is None or self.get("to") is None else self.unit.parse(self.get("to"))

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism with its parameters."""
        _, *own = (field.name for field in fields(MechanismOptions))
        options = {name: self.get(name) for name in own if self.get(name) is not None}
        return make_mechanism(self.get("mechanism") or DEFAULT.name, options)

    @property
    def withhold_above(self) -> Fraction | None:
        """The largest bound of a shortfall with which a list is shown; None to show every list."""
        given = self.get("withhold_above")
        return None if given is None else exact(given, "withhold_above")

    @property
    def fingerprint(self) -> str:
        """Eight digits that change with the question of the chart, not with its names or the place of its events."""
        asked = {name: value for name, value in self.settings.items() if name not in _NOT_ASKED}
        asked["events"] = {name: value for name, value in asked["events"].items() if name not in _PLACES}
        return digest(canonical(_to_json(asked)))[:8]

    def find_path(self, text: str) -> str:
        """Return a path of the file as an absolute one; brackets in the name of its folder are no pattern."""
        if os.path.isabs(text) or FilePath.parse(text).is_remote:
            return text
        folder = str(self.folder)
        return os.path.join(glob.escape(folder) if glob.has_magic(text) else folder, text)


@dataclass(frozen=True, repr=False)
class ChartsFile:
    """A charts file, checked: the title and the language of its site, its budget, its folder and its charts."""

    path: Path
    title: str
    note: str | None
    ledger: str
    out: Path
    charts: tuple[Chart, ...]
    language: Language
    has_pictures: bool

    def find_ledger(self) -> str:
        """Return the path or the URL of the ledger, with the variables of the environment in it."""
        given = expand_variables(self.ledger, "ledger")
        folder = Path(os.path.abspath(self.path)).parent
        if is_url(given, folder):
            return given
        path = folder / given
        if is_in_site(path, self.out) or is_in_site(path, self.dummy_out):
            raise InvalidValueError(f"{self.path.name}: ledger must be outside of out, which is published and replaced")
        return str(path)

    @property
    def dummy_out(self) -> Path:
        """The folder of a rehearsal, which leaves the published site alone."""
        return self.out.with_name(f"{self.out.name}-dummy")


def read_charts(given: str | os.PathLike[str]) -> ChartsFile:
    """Read a charts file and check all of it; no other file is opened.

    Parameters
    ----------
    given
        The path of the file.

    Returns
    -------
    ChartsFile
        The file with its charts; each has the defaults that it leaves open.
    """
    check_is_path("FILE", os.fspath(given), "a charts file")
    path = Path(given)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise InvalidValueError(
            f"FILE must be a charts file that exists, not {str(path)!r}: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise InvalidValueError(f"{path.name} must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        # The message of tomllib may quote the file, and the quoted text may be a password.
        at = re.search(r"at (line \d+, column \d+|end of document)", str(error))
        raise InvalidValueError(f"{path.name} must be TOML, and is not{f' {at[0]}' if at else ''}") from None
    check_keys(data, FILE, f"{path.name}: ")
    defaults, folder = data.get("defaults", {}), Path(os.path.abspath(path)).parent
    check_keys(defaults, TERMS, f"{path.name}, defaults: ", partial=True)
    charts = []
    for number, given_chart in enumerate(data["chart"], 1):
        name = given_chart.get("id")
        place = f"{path.name}, chart {quote(name) if isinstance(name, str) else number}: "
        # Tables are merged with the defaults key by key.
        settings = {**defaults, **given_chart}
        for key, value in given_chart.items():
            if isinstance(value, dict) and isinstance(defaults.get(key), dict):
                settings[key] = {**defaults[key], **value}
        # A chart unsets a key of the defaults by false.
        flags = {key.name for key in TERMS if key.kind is FLAG}
        settings = {key: value for key, value in settings.items() if value is not False or key in flags}
        # Of two keys that exclude each other, the chart's own wins.
        for one, other in (("domain", "discover"), ("discover", "domain"), ("counts", "split"), ("split", "counts")):
            if one in given_chart and other not in given_chart:
                settings.pop(other, None)
        check_keys(settings, CHART, place)
        chart = Chart(settings["id"], settings["title"], settings.get("note"), settings, folder)
        with name_place(place):
            _check_chart(chart)
        charts.append(chart)
    ids = [chart.id for chart in charts]
    for name in ids:
        if ids.count(name) > 1:
            raise InvalidValueError(f"{path.name}: id must be another for each chart, and {quote(name)} is there twice")
    language, has_pictures = Language(data.get("language", "en")), data.get("pictures", True)
    out, more = folder / data["out"], (tuple(charts), language, has_pictures)
    file = ChartsFile(path, data["title"], data.get("note"), data["ledger"], out, *more)
    if "${" not in file.ledger:
        file.find_ledger()
    return file


def is_database(given: Any) -> bool:
    """Return True for the URL of a database."""
    location = Location.parse(given)
    return location is not None and location.database is not None


def expand_variables(text: str, key: str) -> str:
    """Return the value of a key with the variables of the environment in it."""

    def find_variable(found: re.Match[str]) -> str:
        name = found[1]
        if not os.environ.get(name):
            raise InvalidValueError(f"{key} must name variables of the environment that are set, and {name} is not")
        return os.environ[name]

    return re.sub(VARIABLE, find_variable, text)


def check_keys(given: dict[str, Any], keys: tuple[Key, ...], place: str, partial: bool = False) -> None:
    """Raise unless all keys are known, their values are of their kinds, and no required key is missing.

    Parameters
    ----------
    given
        A table of the file.
    keys
        The keys that the table may have.
    place
        The name of the table in messages: a prefix that ends with a colon and a space.
    partial
        True if required keys may be missing, as in defaults.
    """
    known = {key.name: key for key in keys}
    for name, value in given.items():
        if name not in known:
            hint = suggestion(name, list(known), private=False) or f"; there are {', '.join(known)}"
            raise InvalidValueError(f"{place}{quote(name)} is no key here{hint}")
        key = known[name]
        # A URL may hold a password, so the values of connect and ledger are not quoted.
        told = "" if name in ("connect", "ledger") else f", not {quote(value)}"
        if not key.kind.fits(value):
            raise InvalidTypeError(f"{place}{name} must be {key.kind.words}{told}")
        if value in ("", []):
            raise InvalidValueError(f"{place}{name} must not be empty")
        if key.choices and value not in key.choices:
            hint = suggestion(value, list(key.choices), private=False)
            raise InvalidValueError(f"{place}{name} must be one of {', '.join(key.choices)}{told}{hint}")
        if key.kind is TABLE and name != "defaults":
            check_keys(value, key.keys, f"{place.removesuffix(': ')}, {name}: ", partial)
    for key in keys:
        if key.is_required and key.name not in given and not partial:
            raise InvalidValueError(f"{place}{key.name} is missing. {key.says}")


@contextmanager
def name_place(place: str) -> Iterator[None]:
    """Begin the errors from inside with a place, such as the id of a chart."""
    try:
        yield
    except (InvalidValueError, InvalidTypeError) as error:
        failure = type(error)(f"{place}{error}")
    else:
        return
    raise failure


def _check_chart(chart: Chart) -> None:
    """Raise if a key of a chart is wrong by itself or does not fit another."""
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,49}", chart.id) or chart.id in RESERVED:
        raise InvalidValueError(
            f"id must be of up to 50 small letters, digits and hyphens, and none of {', '.join(sorted(RESERVED))}, "
            f"not {quote(chart.id)}"
        )
    for name in ("title", "note"):
        if chart.get(name) is not None and len(check_text(chart.get(name), name)) > MAX_TITLE:
            raise InvalidValueError(f"{name} must have at most {MAX_TITLE} characters")
    for name in ("epsilon", "counts"):
        if chart.get(name) is not None:
            positive(chart.get(name), name)
    if chart.get("shortfall") is not None:
        parse_shortfall(chart.get("shortfall"))
    elif chart.withhold_above is not None:
        raise InvalidValueError(
            "withhold_above must be left out without shortfall, which is the bound that it compares"
        )
    if chart.withhold_above is not None and chart.withhold_above < 0:
        raise InvalidValueError(f"withhold_above must not be negative, as {quote(chart.get('withhold_above'))} is")
    whole_number(chart.get("k"), "k", 1)
    events = chart.settings["events"]
    for given, one, other, why in (
        (chart, "domain", "discover", "the items come from a list, or they are found"),
        (events, "table", "connect", "the events are in files, or in a database"),
    ):
        if (given.get(one) is None) == (given.get(other) is None):
            raise InvalidValueError(f"either {one} or {other} must be given, and not both: {why}")
    named = events.get("table") or []
    if any(is_database(each) for each in ([named] if isinstance(named, str) else named)):
        raise InvalidValueError(
            "table must name files, and the URL of a database is none: it is connect, with name for the table in it"
        )
    if chart.get("counts") is not None and chart.get("split") is not None:
        raise InvalidValueError("split must be left out with counts")
    chart.mechanism  # noqa: B018  # an error in its parameters shows here
    if events.get("where") is not None:
        from discreet.sources.events.where import Condition

        Condition.parse(events["where"])
    unit = chart.unit
    if unit is None:
        for name in ("time", "zone", "from", "to"):
            if chart.get(name) is not None:
                raise InvalidValueError(f"{name} must be left out without every: the chart is released once")
        return
    if chart.get("time") is None:
        raise InvalidValueError("time must be given with every: the column that says which period an event is in")
    if chart.get("zone") is not None:
        open_zone(chart.get("zone"))
    if chart.get("from") is not None and chart.first is None:
        raise InvalidValueError(f"from must be a {unit.name} like {unit.example}, not {quote(chart.get('from'))}")
    if chart.get("to") is not None and chart.last is None:
        raise InvalidValueError(f"to must be a {unit.name} like {unit.example}, not {quote(chart.get('to'))}")
    if chart.first is not None and chart.last is not None and chart.last < chart.first:
        raise InvalidValueError(
            f"to must not be before from, {quote(chart.get('from'))}, as {quote(chart.get('to'))} is"
        )


def _to_json(value: Any) -> Any:
    """Return a value of the file in terms of JSON; two spellings of one number stay two.

    The signature of a URL is left out, because it may change every time.
    """
    if isinstance(value, dict):
        return {name: _to_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_to_json(each) for each in value]
    if isinstance(value, str):
        return redact_url(value)
    return str(value) if isinstance(value, Decimal) else value


def format_schema() -> str:
    """Return the JSON Schema of a charts file, as the text that is shipped."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Charts of discreet publish"}
    return json.dumps({**head, **_make_schema(FILE)}, indent=2) + "\n"


def _list_types(schema: dict[str, Any]) -> list[str]:
    kinds = schema["type"]
    return kinds if isinstance(kinds, list) else [kinds]


def _make_schema(keys: tuple[Key, ...], partial: bool = False) -> dict[str, Any]:
    """Return the schema of a table; a partial one requires nothing."""
    properties = {}
    for key in keys:
        value = {"description": key.says, **key.kind.schema, **({"enum": list(key.choices)} if key.choices else {})}
        if key.name == "chart":
            # The defaults may hold every other required key of a chart.
            value["items"] = _make_schema(key.keys, partial=True) | {"required": ["id", "title"]}
        elif key.name in _UNSETTABLE and keys is CHART:
            value |= {"type": [*_list_types(value), "boolean"], "not": {"const": True}}
            value |= {"enum": [*key.choices, False]} if key.choices else {}
        elif key.keys:
            value |= _make_schema(key.keys, partial or key.name == "defaults")
        properties[key.name] = value
    required = [key.name for key in keys if key.is_required and not partial]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


if __name__ == "__main__":
    print(format_schema(), end="")
