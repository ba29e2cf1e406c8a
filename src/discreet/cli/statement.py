"""`discreet statement`: the promise of a release in a file, for readers, lawyers and the registry of deployments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.options import complete_from, parse_choice
from discreet.cli.output import check_out, print_text, save
from discreet.cli.stdin import Input
from discreet.errors import InvalidValueError
from discreet.language import LANGUAGES

FORMATS = ("text", "json", "yaml")
HELP = """
\b
Examples:
  discreet statement top.json
  discreet statement top.json --ledger budget.db --out statement.md
  discreet statement top.json --format yaml --out statement.yaml
  discreet statement top.json --format json --answers answers.json
"""

app = typer.Typer(rich_markup_mode=None)


@app.command("statement", short_help="Say what a release promises, and what not.", epilog=HELP)
def statement(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="A release or a sketch in a .json file, as --out or --json writes it. - is standard input.",
        ),
    ],
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The budget that it was charged to: then the statement is about all releases of the budget too.",
        ),
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --format json or yaml: a JSON file of what discreet cannot know, by the names of the fields "
            'that are asked for, such as {"basic.name": "Most played songs"}.',
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="text, which is Markdown; or an entry of the public registry of deployments of differential privacy, "
            "as json or as yaml, in which what discreet cannot know is empty, with the question beside it.",
            autocompletion=complete_from(FORMATS),
        ),
    ] = "text",
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The source of the list, which has limits of its own: scores, csv, json, parquet, pandas, "
            "polars, arrow, duckdb, datafusion, postgresql, mariadb, clickhouse, sqlite, spark or other.",
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The language of the text, en or de. The registry is English.",
            autocompletion=complete_from(LANGUAGES),
        ),
    ] = "en",
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it to this file, whole or not at all, and print nothing.")
    ] = None,
) -> None:
    """Say what a release promises to each person, for how many releases together, and what it does not protect.

    Nothing is drawn or spent, and nothing is read but the release and its budget.
    """
    from discreet.ledger.account import read_stored

    shape, chosen = parse_choice("format", form, FORMATS), parse_choice("language", language, LANGUAGES)
    if answers is not None and shape == "text":
        raise InvalidValueError("answers must be left out with format 'text': they are for the registry, json or yaml")
    read = Input((file,), "json")
    check_out(out, {"release": read.files, "ledger": [ledger or ""], "answers": [answers or ""]})
    with read.open() as path:
        data = _read_json(path, "FILE")
        try:
            release = read_stored(data)
        except InvalidValueError:
            raise InvalidValueError(
                f"FILE must be a release or a sketch as --out writes it, and {path!r} is not"
            ) from None
    if shape == "text":
        text = release.statement(ledger, source, chosen)
    else:
        from discreet.release.registry import entry_to_yaml

        entry = release.registry(ledger, None if answers is None else _read_json(answers, "answers"), source)
        text = entry_to_yaml(entry).removesuffix("\n") if shape == "yaml" else json.dumps(entry, indent=2)
    if out is None:
        print_text(text, heading=shape == "text")
    else:
        save(text, out)


def _read_json(path: str, name: str) -> Any:
    """Return the contents of a JSON file, which is public."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidValueError(f"{name} must be a file that can be read, not {path!r}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidValueError(f"{name} must be a JSON file, and {path!r} is not") from None
