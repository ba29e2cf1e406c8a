"""`discreet select`: a release from a file of scores or from events."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.budget import opened
from discreet.cli.complain import EXAMPLES
from discreet.cli.options import as_count, as_mechanism, as_sensitivity
from discreet.cli.output import check_out, deliver
from discreet.errors import InvalidValueError, shown
from discreet.mechanisms.registry import MECHANISMS
from discreet.noise import NOISES
from discreet.privacy import ADJACENCIES, Sensitivity, check_adjacency, positive
from discreet.sources.base import Source
from discreet.sources.domain import Integers, integers
from discreet.sources.events import events
from discreet.sources.files import file_source
from discreet.topk import top_k

HELP = """
\b
Examples with scores:
  discreet select scores.csv -k 10 --epsilon 1
  discreet select films.csv -k 5 --epsilon 0.5 --item title --score fans
  discreet select scores.json -k 10 --epsilon 1 --json
  discreet select counts.npy -k 10 --epsilon 1/3 --out top.json
  discreet select scores.csv -k 3 --epsilon 1 --mechanism one-shot --noise gumbel
  discreet select points.tsv -k 3 --epsilon 1 --sensitivity 2,5 --adjacency swap
  discreet select scores.parquet -k 10 --epsilon 1
  discreet select scores.csv -k 10 --epsilon 1 --ledger budget.db --purpose "monthly chart"
  discreet select scores.csv -k 10 --epsilon 1 --counts 0.5

\b
Examples with events:
  discreet select ratings.parquet --user user_id --item movie_id --where "stars = 5" \\
    --domain movies.csv:movie_id --label title -k 100 --epsilon 1
  discreet select "ratings-*.csv" --user user_id --item movie_id \\
    --value stars --clip 0,5 --resolution 0.5 --domain movies.csv:movie_id -k 3 --epsilon 1
  discreet select ratings.parquet --user user_id --item movie_id \\
    --domain integers:0:999999 -k 3 --epsilon 1 --adjacency swap --out top.json
  discreet select ratings.parquet --user user_id --item movie_id --max-items-per-user 2 \\
    --domain movies.csv:movie_id -k 3 --epsilon 1 --split auto
  discreet select --connect sqlite://ratings.db --name ratings --user user_id --item movie_id \\
    --domain movies.csv:movie_id --label title -k 3 --epsilon 1 --json
"""

# What belongs to one kind of input, and why it has no place beside the other.
_SCORES_ONLY = {
    "score": "the scores are made from the events",
    "sensitivity": "the events tell how far one user can move a score",
}
_EVENTS_ONLY = {
    "domain": "a file of scores lists its own items",
    "label": "a file of scores has its own labels",
    "where": "a file of scores has no rows of users to choose from",
    "value": "a file of scores is added up already",
    "clip": "a file of scores is added up already",
    "resolution": "a file of scores is added up already",
    "max_items_per_user": "a file of scores is added up already",
    "connect": "a database is read as events, not as scores",
    "name": "it is the table of a database, which is read as events",
}


def _is_url(text: str) -> bool:
    return "://" in text


def _check_file(context: typer.Context, file: str | None) -> str | None:
    """The input must be named once. What was given on the command line has been parsed before this."""
    connect = context.params.get("connect")
    if file is None and connect is None:
        raise InvalidValueError(f"FILE is missing; for example: {EXAMPLES['discreet select']}")
    if file is not None and connect is not None:
        raise InvalidValueError("connect must be left out with FILE: the input is one of the two")
    if file is not None and _is_url(file):
        raise InvalidValueError("FILE must be a file; the URL of a database goes with --connect")
    return file


def select(
    k: Annotated[str, typer.Option("-k", metavar="K", help="How many items to release.")],
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The privacy budget to spend, taken exactly: 1, 0.5, 1/3 or 1e-2.")
    ],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            callback=_check_file,
            show_default=False,
            help="The scores: .npy, .csv, .tsv, .json or .parquet. With --user the events: .parquet, .csv, .tsv or "
            ".json, compressed or not, or a quoted pattern of such files.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help='The column of the items. By default "item", or the first of two; with --user there is no default.',
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help='The column of the scores. By default "score", or the second of two.'),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Read events: one row for something a user did. The column that says which user."
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="With --user: the public list of items, as FILE:COLUMN or, for all whole numbers from LO to HI, as "
            "integers:LO:HI. It must not come from the events. Events of other items are dropped without a word.",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --user: a column of the domain to show for the item.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="With --user: a condition on single events, in DuckDB's SQL."),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With --user: a column to add up. By default, distinct users are counted."),
    ] = None,
    clip: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="With --value: the range of what one user may add to an item in all."),
    ] = None,
    resolution: Annotated[
        str | None,
        typer.Option(metavar="R", help="With --value: the steps values are rounded to. By default 1, if clip allows."),
    ] = None,
    max_items_per_user: Annotated[
        str | None,
        typer.Option(
            metavar="L", help="With --user: score at most L items of each user, so that counts need less noise."
        ),
    ] = None,
    connect: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="In place of FILE: a database with the events, postgres://USER@HOST/DATABASE, duckdb://FILE or "
            "sqlite://FILE.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TABLE", help="With --connect: the table of the events in the database.")
    ] = None,
    mechanism: Annotated[
        str, typer.Option(metavar="NAME", help=f"How to draw: {', '.join(MECHANISMS)}.")
    ] = "canonical",
    gamma: Annotated[
        str | None,
        typer.Option(metavar="G", help="For canonical: the weight of the worst item taken, 0 to 1. By default 1/2."),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"For all but joint: {', '.join(NOISES)}. By default gumbel, with one-shot exponential.",
        ),
    ] = None,
    ceil: Annotated[
        bool, typer.Option("--ceil", help="For canonical: round losses up to multiples of the sensitivity.")
    ] = False,
    sensitivity: Annotated[
        str | None,
        typer.Option(
            metavar="DOWN,UP",
            help="How far adding one user can move a score down and up. By default 0,1; events know their own.",
        ),
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(metavar="E2", help="Release a noisy score for each item too, at this epsilon beside the other."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="auto", help="With 'auto': release noisy scores too, for half of epsilon."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Charge the release to this budget, which 'discreet budget init' makes."),
    ] = None,
    purpose: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --ledger: what the release is for, in words.")
    ] = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="With --ledger: a name for the request; asked again, it costs nothing and answers the same.",
        ),
    ] = None,
    pad_to: Annotated[
        str | None,
        typer.Option(metavar="S", help="Return only at a multiple of S seconds, or of a period that fits with 'auto'."),
    ] = None,
    adjacency: Annotated[
        str, typer.Option(metavar="NAME", help=f"What may differ by one user: {' or '.join(ADJACENCIES)}.")
    ] = "add-remove",
    as_json: Annotated[bool, typer.Option("--json", help="Print the release as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the release to this file, as JSON, whole or not at all.")
    ] = None,
) -> None:
    """Releases which K items score highest, with epsilon-differential privacy for each user behind the scores.

    FILE holds scores, or with --user events, from which scores are made: how many distinct users an item has, or what
    they add to it. Scores are not shown, but for noisy ones with --counts or --split.

    The list of items must be public. In a file of scores, keep items that no user touched, with a score of zero. In a
    .npy file and in a JSON list the items are positions, counted from 0; where the scores are sorted, positions are
    ranks and tell about scores.
    """
    # Everything public is checked before the scores or the events are read.
    drawn_by = as_mechanism(mechanism, {"gamma": gamma, "noise": noise, "ceil": ceil or None})
    count = as_count(k)
    positive(epsilon, "epsilon")
    if counts is not None:
        positive(counts, "counts")
    check_adjacency(adjacency)
    book = opened(ledger, out)
    options = {
        "domain": domain, "label": label, "where": where, "value": value,
        "clip": clip, "resolution": resolution, "max_items_per_user": max_items_per_user,
        "connect": connect, "name": name,
    }  # fmt: skip
    if user is None:
        _refuse(options, _EVENTS_ONLY, "without user")
        limits = Sensitivity() if sensitivity is None else as_sensitivity(sensitivity)
        source = _scores(str(file), item, score, out)
    else:
        _refuse({"score": score, "sensitivity": sensitivity}, _SCORES_ONLY, "with user")
        limits = None
        source = _events(file, user, item, adjacency, options, out)
    release = top_k(
        source, count, epsilon, mechanism=drawn_by, sensitivity=limits, adjacency=adjacency, counts=counts,
        split=split, pad_to=pad_to, ledger=book, purpose=purpose, request_id=request_id,
    )  # fmt: skip
    deliver(release, as_json, out)


def _refuse(options: dict[str, str | None], reasons: dict[str, str], when: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise InvalidValueError(f"{option} must be left out {when}: {reasons[option]}")


def _scores(file: str, item: str | None, score: str | None, out: Path | None) -> Source:
    check_out(out, {"scores": [file]})
    return file_source(file, item, score)


def _events(
    file: str | None, user: str, item: str | None, adjacency: str, options: dict[str, str | None], out: Path | None
) -> Source:
    """The source of events that the options describe, each of which is checked before the events are opened."""
    if item is None:
        raise InvalidValueError("item must be given with user: the column that says what the user did it to")
    if (domain := options["domain"]) is None:
        raise InvalidValueError(
            "domain must be given with user: a public list of items, such as movies.csv:movie_id or integers:0:999, "
            "because a list made from the events would tell what somebody touched"
        )
    most = options["max_items_per_user"]
    table, listed, clip = _table(file, options["connect"], options["name"]), _domain(domain), _clip(options["clip"])
    check_out(out, {"events": _files(table), "domain": _files(domain) + _files(domain.rpartition(":")[0])})
    return events(
        table, user=user, item=item, domain=listed, label=options["label"], where=options["where"],
        value=options["value"], clip=clip, resolution=options["resolution"], adjacency=adjacency, name=options["name"],
        max_items_per_user=None if most is None else as_count(most, "max_items_per_user"),
    )  # fmt: skip


def _table(file: str | None, connect: str | None, name: str | None) -> str:
    """Where the events are: the path of a file, or the URL of a database beside the name of a table."""
    if connect is None:
        if name is not None:
            raise InvalidValueError("name must be left out without connect: it is the table of a database")
        return str(file)
    if not _is_url(connect):
        raise InvalidValueError("connect must be the URL of a database, such as postgres://...")
    if not name:
        raise InvalidValueError("name must be given with connect: the table of the events in the database")
    return connect


def _domain(text: str) -> str | Integers:
    if _is_url(text):
        raise InvalidValueError("domain must be FILE:COLUMN or integers:LO:HI, not the URL of a database")
    if not text.startswith("integers:"):
        return text
    ends = re.fullmatch(r"integers:([+-]?[0-9]{1,20}):([+-]?[0-9]{1,20})", text)
    if ends is None:
        raise InvalidValueError(f"domain must be integers:LO:HI such as integers:0:999, not {shown(text)}")
    return integers(int(ends[1]), int(ends[2]))


def _clip(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    low, comma, high = text.partition(",")
    if not comma or "," in high:
        raise InvalidValueError(f"clip must be two numbers LOW,HIGH such as 0,5, not {shown(text)}")
    return low, high


def _files(table: str) -> list[str]:
    """The files behind a path, a pattern of paths or the URL of a database in a file."""
    path = table.partition("://")[2].partition("?")[0] if _is_url(table) else table
    return [path, *glob.glob(path)]
