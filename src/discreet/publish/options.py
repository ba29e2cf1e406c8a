"""The options of a release: the name, the kind and the help of each, written once.

The command line makes its options from the fields of these dataclasses, and `charts_file` makes its keys from them. A
field holds the value as it was given. A name in braces in a help text stands for another option: `{domain}` is
`--domain` on the command line and `domain` in a charts file. The classes have no `repr`, because a URL may hold a
password, and no equality, because its code would delay the start of the program.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING, dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import FALLBACKS, MECHANISMS
from discreet.privacy import ADJACENCIES, MANY, ONE
from discreet.sources.discovered import KINDS, METHODS, SPELLINGS
from discreet.sources.events.csv_files import ENCODINGS
from discreet.sources.events.formats import DECIMALS, DIRECTIVES


class Kind(NamedTuple):
    """The kind of a value in a charts file: in words, as the types that tomllib returns, and as JSON Schema.

    `members` is the kind of the members of a list.
    """

    words: str
    types: tuple[type, ...]
    schema: dict[str, Any]
    members: "Kind | None" = None

    def fits(self, value: Any) -> bool:
        """Return True if a value is of the kind; true and false are no numbers."""
        if not isinstance(value, self.types) or (isinstance(value, bool) and bool not in self.types):
            return False
        return not isinstance(value, list) or self.members is None or all(map(self.members.fits, value))


_STRING = {"type": "string", "minLength": 1}
TEXT = Kind("a text", (str,), _STRING)
WHOLE = Kind("a whole number", (int,), {"type": "integer"})
NUMBER = Kind('a number, best as a text such as "0.25" or "1/3"', (str, int, Decimal), {"type": ["string", "number"]})
FLAG = Kind("true or false", (bool,), {"type": "boolean"})
TABLE = Kind("a table", (dict,), {"type": "object"})
NAMES = Kind("a text or a list of texts", (str, list), {"type": ["string", "array"], "items": _STRING}, TEXT)
PAIR = Kind(
    "a list of two numbers", (list,), {"type": "array", "items": NUMBER.schema, "minItems": 2, "maxItems": 2}, NUMBER
)
_MEMBER = Kind("a text or a whole number", (str, int), {"type": ["string", "integer"]})
PUBLIC_LIST = Kind(
    "FILE:COLUMN, a range, or a list",
    (str, list),
    {"type": ["string", "array"], "items": _MEMBER.schema, "minItems": 1},
    _MEMBER,
)
GROUP_LIST = Kind(
    "FILE:COLUMN, a range, or a list, of which there is one for each column where by has several",
    (str, list),
    {"type": ["string", "array"], "items": {"type": ["string", "integer", "array"]}, "minItems": 1},
    Kind("a text, a whole number or a list", (str, int, list), {}, _MEMBER),
)


class Option(NamedTuple):
    """The declaration of an option, in the metadata of its field.

    Attributes
    ----------
    help
        The sentences that the command line and the charts file share.
    metavar
        The placeholder of the value on the command line; "" for a switch.
    kind
        The kind of the value in a charts file; None for an option that a charts file does not have.
    cli, charts
        Sentences for the command line alone, and for the charts file alone.
    needs
        The option without which this one has no meaning on the command line.
    choices
        The values that are allowed, where they are few. A registry may grow after the declaration.
    flags
        The spellings on the command line; by default the name of the field.
    key
        The name in a charts file; by default the name of the field.
    is_required
        True if a charts file must have the key.
    """

    help: str
    metavar: str = ""
    kind: Kind | None = None
    cli: str = ""
    charts: str = ""
    needs: str | None = None
    choices: Collection[str] = ()
    flags: tuple[str, ...] = ()
    key: str | None = None
    is_required: bool = False

    def describe(self, text: str, spell: Callable[[str], str]) -> str:
        """Return the help followed by a text, with `spell` applied to the names in braces."""
        return re.sub(r"\{([a-z_]+)\}", lambda found: spell(found[1]), f"{self.help} {text}".strip())


def option(help: str, metavar: str = "", kind: Kind | None = None, default: Any = None, **more: Any) -> Any:  # noqa: A002
    """Return a dataclass field that declares an option; `more` are further attributes of `Option`."""
    return field(default=default, metadata={"option": Option(help, metavar, kind, **more)})


def join_choices(names: Iterable[str]) -> str:
    """Return names as they stand in a sentence: a, b or c."""
    *first, last = names
    return f"{', '.join(first)} or {last}"


@dataclass(frozen=True, eq=False, repr=False)
class EventOptions:
    """The events: their place, their columns, and the text format of their files."""

    connect: str | None = option(
        "In place of {table}: the URL of a database.",
        "URL",
        TEXT,
        cli="For example postgres://USER@HOST/DATABASE, duckdb://FILE or sqlite://FILE.",
        charts="${VAR} stands for a variable of the environment.",
    )
    name: str | None = option(
        "With {connect}: the table of the events in the database.",
        "TABLE",
        TEXT,
        cli="For example events or mart.events.",
    )
    user: str | None = option(
        "The column of users.",
        "COLUMN",
        TEXT,
        cli="With it FILE holds events: one row for something a user did. Here and for --item, --by and --value, an "
        "expression of columns may stand for a column, such as 'lower(trim(mail))'.",
        is_required=True,
    )
    item: str | None = option(
        "The column of items.",
        "COLUMN",
        TEXT,
        cli='In a file of scores: the column of the items, by default "item", or the first of two.',
        is_required=True,
    )
    where: str | None = option("A condition on single events, in DuckDB's SQL.", "SQL", TEXT, needs="user")
    during: str | None = option(
        "One period of a column of dates or times; the events of others are left out.",
        "PERIOD",
        cli="For example month(COLUMN)=2026-11, or on the calendar of a zone month(COLUMN, Europe/Berlin)=2026-11.",
        needs="user",
    )
    value: str | None = option(
        "A column to add up. Without it, distinct users are counted.",
        "COLUMN",
        TEXT,
        needs="user",
    )
    clip: str | None = option(
        "With {value}: the range to which the total of one user and item is clipped.", "LOW,HIGH", PAIR
    )
    resolution: str | None = option(
        "With {value}: the step to which values are rounded.",
        "R",
        NUMBER,
        cli="By default 1, if --clip allows.",
    )
    max_items_per_user: str | None = option(
        "Score at most this many items of each user.",
        "L",
        WHOLE,
        cli="Counts then need less noise, and a histogram can be had. With --discover: so many items of a user count "
        "for finding them.",
        needs="user",
    )
    delimiter: str | None = option(
        "The character between the fields of .csv files.",
        "CHAR",
        TEXT,
        cli="It holds for the events; \\t is a tab. By default the comma, semicolon or tab that the header has.",
        needs="user",
    )
    escape: str | None = option(
        "The character before a quote inside quotes in .csv files.",
        "CHAR",
        TEXT,
        cli="It holds for .tsv files too, and for public lists. By default another quote; MySQL and others write a "
        "backslash.",
        needs="user",
    )
    encoding: str | None = option(
        "The encoding of .csv files.",
        "NAME",
        TEXT,
        cli=f"It holds for .tsv files too, and for the events alone: {join_choices(ENCODINGS)}. By default utf-8.",
        choices=ENCODINGS,
        needs="user",
    )
    date_format: str | None = option(
        "The spelling of dates in text, such as %d.%m.%Y.",
        "FORMAT",
        TEXT,
        cli=f"Of {join_choices(f'%{each}' for each in DIRECTIVES)}; dates in another spelling are left out. By default "
        "dates are read like 2026-11-03.",
        needs="user",
    )
    decimal: str | None = option(
        "The character before the decimal places of numbers in text.",
        "CHAR",
        TEXT,
        cli="A comma or a point, the default.",
        choices=DECIMALS,
        needs="user",
    )
    thousands: str | None = option(
        "The character between groups of three digits of numbers in text: a point, a comma, a space or an apostrophe.",
        "CHAR",
        TEXT,
        cli="By default none.",
        needs="user",
    )


@dataclass(frozen=True, eq=False, repr=False)
class ItemOptions:
    """The public list of items."""

    domain: str | None = option(
        "The public items:",
        "LIST",
        PUBLIC_LIST,
        cli="FILE:COLUMN, connect:TABLE.COLUMN, integers:LO:HI or strings:ALPHABET:MAX. connect: is a table "
        "in the database of --connect, integers:0:999 are all whole numbers from 0 to 999, and "
        "strings:a-z:8 all strings of up to 8 letters (any characters, and a-z, A-Z or 0-9). The list must not come "
        "from the events, whose other items are left out.",
        charts="FILE:COLUMN, connect:TABLE.COLUMN, integers:LO:HI, or a list.",
        needs="user",
    )
    label: str | None = option(
        "A column of the domain that is shown in place of the item.", "COLUMN", TEXT, needs="user"
    )
    domain_delimiter: str | None = option(
        "The character between the fields of a domain in a .csv file.",
        "CHAR",
        TEXT,
        cli="By default the comma, semicolon or tab that its header has, whatever the events have.",
        needs="domain",
    )
    domain_encoding: str | None = option(
        "The encoding of a domain in a .csv file.",
        "NAME",
        TEXT,
        cli="By default utf-8, whatever the events have.",
        choices=ENCODINGS,
        needs="domain",
    )


@dataclass(frozen=True, eq=False, repr=False)
class DiscoveryOptions:
    """The terms of partition selection: items that nobody listed are found in the events."""

    discover: bool = option(
        "In place of {domain}: find the items in the events, at the cost of a delta.",
        kind=TABLE,
        cli="It is for events whose items nobody has listed, and needs --delta.",
        default=False,
    )
    delta: str | None = option(
        "The probability that the guarantee of epsilon may fail, such as 1e-8.",
        "D",
        NUMBER,
        cli="It should be far below one over the number of people, and is at most 1e-3.",
        needs="discover",
        is_required=True,
    )
    discovery_epsilon: str | None = option(
        "The part of epsilon that is spent on finding the items.",
        "E1",
        NUMBER,
        cli="By default a half, and up to a quarter more if -k is small.",
        needs="discover",
        key="epsilon",
    )
    kind: str | None = option(
        "The type of the items.",
        "NAME",
        TEXT,
        cli=f"One of {join_choices(KINDS)}. By default {KINDS[0]}.",
        choices=KINDS,
        needs="discover",
    )
    spelling: str | None = option(
        "The rule by which two texts are one item.",
        "NAME",
        TEXT,
        cli="exact, the default; casefold, whatever the case of A to Z; trim, whatever the spaces at their ends; "
        "both; or fold, as both in every script.",
        choices=SPELLINGS,
        needs="discover",
    )
    method: str | None = option(
        "The method by which items are found.",
        "NAME",
        TEXT,
        cli="gaussian, for which --max-items-per-user is 100 by default and hardly matters; laplace, which needs it; "
        "or auto, the default without a bound or a part, a private choice between gaussian and one vote of each user, "
        "which up to three items share.",
        choices=METHODS,
        needs="discover",
    )


@dataclass(frozen=True, eq=False, repr=False)
class GroupOptions:
    """The public groups, each of which has a list of its own."""

    by: list[str] | None = option(  # noqa: RUF009
        "The column of groups, or several columns.",
        "COLUMN",
        NAMES,
        cli="Each group has a list of its own. A period of a date or time is day(COLUMN), week(...), month(...), "
        "quarter(...) or year(...), in UTC, or in a zone as in month(COLUMN, Europe/Berlin). Give --by once for each "
        "column where several make a group.",
        needs="user",
        key="column",
        is_required=True,
    )
    groups: list[str] | None = option(  # noqa: RUF009
        "The public list of groups.",
        "LIST",
        GROUP_LIST,
        cli="FILE:COLUMN or FIRST..LAST, of whole numbers or periods, such as 2026-01..2026-12. Give it once for each "
        "--by, for all combinations, or once as a FILE that has all the columns. Rows of other groups are left out.",
        needs="by",
        is_required=True,
    )
    each_user: str | None = option(
        "Count a user in one group or in many.",
        "NAME",
        TEXT,
        cli="With one, it is the group of most of the user's rows, and each group has all of epsilon. With many, the "
        "groups divide epsilon. There is no default.",
        choices=(ONE, MANY),
        needs="by",
        is_required=True,
    )
    max_groups_per_user: str | None = option(
        "With many: count a user in at most this many groups.",
        "G",
        WHOLE,
        cli="Each group then has epsilon/G. By default all.",
        needs="by",
    )
    groups_delimiter: str | None = option(
        "The character between the fields of groups in a .csv file.",
        "CHAR",
        TEXT,
        cli="By default the comma, semicolon or tab that their header has, whatever the events have.",
        needs="by",
    )
    groups_encoding: str | None = option(
        "The encoding of groups in a .csv file.",
        "NAME",
        TEXT,
        cli="By default utf-8, whatever the events have.",
        choices=ENCODINGS,
        needs="by",
    )


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseOptions:
    """The size of a release and its cost."""

    k: str = option("The number of items to release.", "K", WHOLE, flags=("-k",), is_required=True, default=MISSING)
    epsilon: str = option(
        "The cost of one release; counts and a shortfall cost more, unless auto takes them from it.",
        "E",
        NUMBER,
        cli="Taken exactly: 1, 0.5, 1/3 or 1e-2.",
        is_required=True,
        default=MISSING,
    )
    counts: str | None = option("Release noisy counts too, at this additional epsilon.", "E2", NUMBER)
    split: str | None = option("With auto: spend half of epsilon on counts.", "auto", TEXT, choices=("auto",))
    shortfall: str | None = option(
        "Release a bound on how far the best item left out is ahead of the weakest item released, at this additional "
        "epsilon. With auto: spend a tenth of epsilon on it.",
        "E3",
        NUMBER,
    )
    adjacency: str = option(
        "The difference between neighbouring datasets.",
        "NAME",
        TEXT,
        cli=f"One user is added or removed, or swapped for another: {join_choices(ADJACENCIES)}.",
        choices=ADJACENCIES,
        default="add-remove",
    )
    pad_to: str | None = option(
        "Write and end only at multiples of this many seconds.",
        "S",
        NUMBER,
        cli="The clock runs from the start, and errors wait too. With 'auto', multiples of a period that fits; for "
        "scores in .npy and .parquet alone.",
    )


@dataclass(frozen=True, eq=False, repr=False)
class MechanismOptions:
    """The mechanism and its parameters."""

    mechanism: str | None = option(
        "The mechanism.",
        "NAME",
        TEXT,
        cli=f"One of {join_choices(MECHANISMS)}. By default canonical.",
        choices=MECHANISMS,
    )
    gamma: str | None = option(
        "For canonical: the weight of the worst item taken.",
        "G",
        NUMBER,
        cli="From 0 to 1. By default 3/4, with --ceil 1/2.",
    )
    noise: str | None = option(
        "The noise of canonical, one-shot and peeling.",
        "NAME",
        TEXT,
        cli=f"One of {join_choices(NOISES)}. By default gumbel, with one-shot exponential.",
        choices=NOISES,
    )
    ceil: bool = option("For canonical: round losses up to multiples of the sensitivity.", kind=FLAG, default=False)
    precision: str | None = option(
        "For core: the share of the items that should be among the true k.",
        "P",
        NUMBER,
        cli="Up to 1. By default 0.6.",
    )
    otherwise: str | None = option(
        "For core: the release if the data support no core.",
        "NAME",
        TEXT,
        cli=f"{join_choices(FALLBACKS)}. By default the first.",
        choices=FALLBACKS,
    )


@dataclass(frozen=True, eq=False, repr=False)
class LedgerOptions:
    """The budget that a release is charged to, and the terms of the charge."""

    ledger: str | None = option(
        "The budget, which 'discreet budget init' makes: a file, or postgres://HOST/DATABASE.",
        "FILE",
        TEXT,
        cli="The release is charged to it.",
        charts="${VAR} stands for a variable of the environment.",
        is_required=True,
    )
    purpose: str | None = option("The purpose of the release, in words.", "TEXT", needs="ledger")
    request_id: str | None = option(
        "A name for the request; repeating it costs nothing and returns the same release.",
        "TEXT",
        needs="ledger",
    )
    dataset: str | None = option("The name of the dataset, as in the budget.", "NAME", TEXT, needs="ledger")
    part: str | None = option(
        "The part of the budget that pays, which 'discreet budget part' makes. By default what is in no part.",
        "NAME",
        TEXT,
        needs="ledger",
    )
