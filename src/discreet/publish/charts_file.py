"""A charts file: read by tomllib, and checked whole before anything else is read.

Paths are relative to the file. Nothing here opens what a path names. What is wrong with one chart is said with its id
and its key.
"""

from __future__ import annotations

import glob
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

from discreet.errors import InvalidTypeError, InvalidValueError, quote, redact_url
from discreet.ledger.charges import check_text
from discreet.ledger.store import canonical, digest
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import DEFAULT, make_mechanism
from discreet.privacy import positive, whole_number
from discreet.publish.keys import CHART, FILE, TERMS, check_keys
from discreet.publish.site_folder import is_in_site
from discreet.sources.events.location import FilePath
from discreet.sources.events.periods import UNITS, Unit, open_zone

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
        if os.path.isabs(text) or FilePath.parse(text).is_remote:
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
    from discreet.sources.events.where.grammar import parse_expression, silence_sqlglot

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
