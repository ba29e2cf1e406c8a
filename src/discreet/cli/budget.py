"""`discreet budget`: a privacy budget in a file or a database, made, shown, checked and handed on."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import AdjacencyOption, OutputOptions, complete_from, parse_adjacency, parse_format, spread
from discreet.cli.output import check_out, print_json, print_text, save
from discreet.errors import redact_url
from discreet.privacy import RENEWALS, spell_exactly
from discreet.release.grouped import count_groups
from discreet.text import align_columns, printable, round_down, round_up

if TYPE_CHECKING:
    from discreet.ledger.account import Account, Entry, Spending
    from discreet.ledger.ledger import Ledger

_BAR = 20
"""The width of the bar of a part, in characters."""

EXAMPLES = {
    "init": [
        'discreet budget init budget.db --epsilon 3 --unit "users of ratings"',
        'discreet budget init years.db --epsilon 3 --every year --zone Europe/Berlin --unit "users of ratings"',
        'discreet budget init past.db --epsilon 3 --every year --since 2023-01-01 --unit "users of ratings"',
        'discreet budget init films.db --epsilon 3 --unit "users of ratings" --dataset ratings',
        'discreet budget init found.db --epsilon 3 --delta 1e-6 --release-delta 5e-7 --unit "devices"',
        'discreet budget init yearly.db --epsilon 3 --delta 1e-6 --adjacency swap --unit "users of ratings"',
    ],
    "part": ["discreet budget part budget.db charts --epsilon 1"],
    "show": ["discreet budget show budget.db", "discreet budget show budget.db --format json"],
    "history": ["discreet budget history budget.db", "discreet budget history budget.db --json"],
    "check": ["discreet budget check budget.db"],
    "reopen": ['discreet budget reopen budget.db --reason "mended in 0.9.1"'],
    "export": ["discreet budget export budget.db --out budget.json"],
}


def _list_examples(*names: str) -> str:
    """Return the examples of some commands, as the end of a help text."""
    lines = [line for name in names for line in EXAMPLES[name]]
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="The file of the budget, or postgres://HOST/DATABASE for several hosts.",
    ),
]

group = typer.Typer(help="Keep a privacy budget in a file, which releases are charged to before they are drawn.")
app = typer.Typer(rich_markup_mode=None)
app.add_typer(group, name="budget", short_help="Keep a privacy budget in a file.", epilog=_list_examples(*EXAMPLES))


@group.command("init", short_help="Make a new budget.", epilog=_list_examples("init"))
def init(
    file: FileArgument,
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The epsilon to spend in all, taken exactly: 3, 0.5 or 1/3.")
    ],
    unit: Annotated[
        str, typer.Option(metavar="TEXT", help='The people whose privacy it is, such as "users of ratings".')
    ],
    delta: Annotated[
        str | None,
        typer.Option(
            metavar="D", help="Promise (epsilon, delta); then many small releases cost less. By default none."
        ),
    ] = None,
    release_delta: Annotated[
        str | None,
        typer.Option(
            metavar="D1",
            help="The part of delta for releases of items that nobody listed. By default none, and they are refused.",
        ),
    ] = None,
    adjacency: AdjacencyOption = "add-remove",
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The data that it is for; a release must give the same name. By default any."
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="PERIOD",
            help="Renew the budget every year, quarter or month; nothing carries over. By default it is for all "
            "releases ever.",
            autocompletion=complete_from(RENEWALS),
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --every: the time zone of the periods. By default UTC."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="DAY",
            help="With --every: let --as-of charge periods from that of this day on, such as 2023-01-01; all of their "
            "budgets can be spent on the people of today. By default from that of today on.",
        ),
    ] = None,
) -> None:
    """Make a new budget in FILE, which must not exist yet. Only you may read it."""
    from discreet.ledger.ledger import Ledger

    ledger = Ledger.create(
        file, epsilon=epsilon, delta=delta, release_delta=release_delta, adjacency=parse_adjacency(adjacency),
        unit=unit, dataset=dataset, every=every, zone=zone, since=since,
    )  # fmt: skip
    print_text(_summarize(ledger, file), heading=True)


@group.command("part", short_help="Reserve a part for a team.", epilog=_list_examples("part"))
def part(
    file: FileArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="The name of the part.")],
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The epsilon of the part, in each period if the budget renews.")
    ],
    delta: Annotated[str | None, typer.Option(metavar="D", help="The delta of the part. By default none.")] = None,
    release_delta: Annotated[
        str | None, typer.Option(metavar="D1", help="The part of delta for releases that have one. By default none.")
    ] = None,
) -> None:
    """Reserve a part of FILE for a team: a release that names it with --part can spend that part alone.

    Releases without --part spend the rest. A part can be made larger or smaller, and with --epsilon 0 it is given back.
    """
    ledger = _open_ledger(file)
    ledger.reserve_part(name, epsilon=epsilon, delta=delta, release_delta=release_delta)
    print_text(_summarize(ledger, file), heading=True)


@group.command("show", short_help="Show what is spent and what is left.", epilog=_list_examples("show"))
@spread(without=["quiet"])
def show(file: FileArgument, output: OutputOptions) -> None:
    """Show the budget in FILE, what is spent of it by both ways of adding up, what is left, and the head.

    Keep the head elsewhere, in a mail to yourself for example: 'discreet budget check' compares it.
    """
    shape, ledger = parse_format(output), _open_ledger(file)
    if shape == "json":
        from discreet.exact.ball import float_above, float_below

        # Exact numbers are strings, as in a release. The float of what is spent is rounded up, that of the rest down.
        account, entries = ledger.current(), ledger.history()
        budget, composition = account.budget, account.spent
        spending = account.spending
        spent, left = spending.spent(), spending.left()
        zcdp = None if spending.parts else composition.by_zcdp(budget.conversion_delta)
        data = {
            "unit": budget.unit,
            "dataset": budget.dataset,
            "adjacency": budget.adjacency,
            "epsilon": str(budget.epsilon),
            "delta": None if budget.delta is None else str(budget.delta),
            **({"release_delta": str(budget.release_delta)} if budget.release_delta else {}),
            **({"spent_delta": spell_exactly(composition.delta)} if budget.release_delta else {}),
            **({} if budget.every is None else {"every": budget.every, "zone": budget.zone}),
            **({} if budget.since is None else {"since": str(budget.since)}),
            **({} if account.period is None else {"period": account.period}),
            "spent": spell_exactly(spent),
            "left": spell_exactly(left),
            "by_sum": spell_exactly(composition.epsilon),
            "rho": spell_exactly(composition.rho),
            "by_zcdp": None if zcdp is None else spell_exactly(zcdp),
            "decimals": {"spent": float_above(spent), "left": float_below(left)},
            **({"locked": True} if ledger.is_locked else {}),
            **({} if account.period is None else {"periods": _list_periods(account)}),
            **({"parts": [_describe_part(spending, part) for part in spending.budgets]} if spending.parts else {}),
            "releases": len(entries),
            "without_release": sum(entry.stored is None for entry in entries),
            "head": ledger.head,
        }
        print_json(data)
    else:
        print_text(_summarize(ledger, file), heading=True)


@group.command("history", short_help="List what the budget was spent on.", epilog=_list_examples("history"))
@spread(without=["quiet"])
def history(file: FileArgument, output: OutputOptions) -> None:
    """List the charges to FILE in order. One without a stored release is spent all the same."""
    shape, entries = parse_format(output), _open_ledger(file).history()
    if shape == "json":
        print_json([_describe_entry(entry) for entry in entries])
        return
    lines = []
    for entry in entries:
        each = "" if entry.groups is None else f" in each of {count_groups(entry.groups)}"
        what = f"sketch of {entry.k:,} ranks" if entry.is_sketch else f"top {entry.k:,}"
        words = [f"{entry.number:>5}", entry.time, f"epsilon {round_up(entry.epsilon)}"]
        words += [] if entry.part is None else [f"part {printable(entry.part)}"]
        words += [] if entry.period is None else [f"in {entry.period}"]
        words += [f"delta {round_up(entry.delta)}"] if entry.delta else []
        words += [f"{what} of {'those found' if entry.d is None else f'{entry.d:,}'}{each}"]
        words += [entry.mechanism["name"], printable(entry.purpose or "no purpose given")]
        words += [] if entry.request_id is None else [f"request {printable(entry.request_id)}"]
        words += ["NO RELEASE STORED, SPENT"] if entry.stored is None else []
        lines.append("  ".join(words))
    print_text("\n".join(lines) or "nothing is spent yet")


@group.command(
    "check", short_help="Find records that were edited, removed or reordered.", epilog=_list_examples("check")
)
def check(
    file: FileArgument,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="The head that 'discreet budget show' printed at some time.")
    ] = None,
) -> None:
    """Check every record of FILE. With --head it also finds that records at the end were removed."""
    ledger = _open_ledger(file)
    count = ledger.check(head)
    if head is None:
        print_text(f"{count} records, none edited, removed from between or reordered; their head is {ledger.head}")
    else:
        print_text(f"no record was edited, removed or reordered; {count} came after the head given")


@group.command("reopen", short_help="Allow releases again after a fault.", epilog=_list_examples("reopen"))
def reopen(
    file: FileArgument,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it is safe to go on; it is written to the ledger.")],
) -> None:
    """Allow releases from FILE again, after discreet found a fault in its own work and locked it."""
    _open_ledger(file).reopen(reason)
    print_text(f"{printable(redact_url(file))} is open again")


@group.command("export", short_help="Write all records as JSON.", epilog=_list_examples("export"))
def export(
    file: FileArgument,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write to this file, whole or not at all; else it is printed.")
    ] = None,
) -> None:
    """Write all records of FILE as JSON, with their hashes, so that others can check the chain."""
    check_out(out, {"budget": [file]})
    text = json.dumps(_open_ledger(file).export(), indent=2)
    if out is None:
        print_text(text)
    else:
        save(text, out)


def _list_periods(account: Account) -> list[dict[str, str]]:
    """Return the cost of each period of a budget that renews, for programs."""
    return [
        {
            "period": period,
            "spent": spell_exactly(spending.spent()),
            "by_sum": spell_exactly(spending.cost.epsilon),
            "delta": spell_exactly(spending.cost.delta),
        }
        for period, spending in account.every_spending.items()
    ]


def _describe_part(spending: Spending, part: str | None) -> dict[str, str | None]:
    """Return a part for programs; the remainder has the name null."""
    budget, cost = spending.budgets[part], spending.cost_of(part)
    return {
        "part": part,
        "epsilon": str(budget.epsilon),
        "delta": None if budget.delta is None else str(budget.delta),
        "release_delta": str(budget.release_delta),
        "spent": spell_exactly(spending.spent(part)),
        "left": spell_exactly(spending.left(part)),
        "by_sum": spell_exactly(cost.epsilon),
        "rho": spell_exactly(cost.rho),
        "spent_delta": spell_exactly(cost.delta),
    }


def _describe_entry(entry: Entry) -> dict[str, Any]:
    """Return a charge for programs: as the ledger has it, and whether its release is stored."""
    facts = {each.name: getattr(entry, each.name) for each in fields(entry) if each.name != "stored"}
    numbers = {name: spell_exactly(facts[name]) for name in ("epsilon", "zcdp", "delta")}
    return {**facts, **numbers, "has_release": entry.stored is not None}


def _open_ledger(file: str) -> Ledger:
    from discreet.ledger.ledger import Ledger

    return Ledger(file)


def _summarize(ledger: Ledger, file: str) -> str:
    from discreet.ledger.account import describe_whose, list_parts, summarize_budget
    from discreet.ledger.store import is_url

    rows, parts = summarize_budget(ledger), list_parts(ledger.current())
    title = f"{printable(ledger.path if is_url(file) else file)}: {describe_whose(ledger)}"
    lines = [f"{name:<9} {text}" for name, text in rows.items()]
    if parts:
        cells = [
            (printable(name), round_up(whole), round_up(spent), round_down(left), _draw_bar(spent, whole))
            for name, whole, spent, left in parts
        ]
        lines += ["", *align_columns([("part", "epsilon", "spent", "left", ""), *cells])]
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])


def _draw_bar(spent: Fraction, whole: Fraction) -> str:
    """Return a bar of `_BAR` characters, filled by the spent share, rounded up."""
    filled = math.ceil(_BAR * spent / whole) if whole else 0
    return "█" * filled + "░" * (_BAR - filled)
