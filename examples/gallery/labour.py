"""Release a monthly labour-market report: the employers that hire most and the skills asked for most, in four regions.

    python examples/gallery/labour.py            prints the releases
    python examples/gallery/labour.py pictures   and draws pictures/labour.svg

Each row is one skill of one hire: a person, an employer, a skill, a region and a day. A person counts in one region, so
the regions do not divide epsilon. Months and the two lists do: a ledger adds them up. Employers come from the public
company register and skills from a public catalogue.

The hires are made up, with a seed. The releases are drawn with the randomness of the operating system.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet

K, EPSILON, BUDGET, SKILLS_OF_A_HIRE = 5, "0.25", 6, 4
MONTHS = discreet.months("2026-01", "2026-03")
HIRES = {"North": 6_000, "East": 4_000, "South": 8_000, "West": 5_000}
EMPLOYERS = [
    f"{name} {branch}"
    for name in ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine")
    for branch in ("Bank", "Foods", "Hospital", "Logistics", "Motors", "Software")
]
SKILLS = [
    "accounting", "bookkeeping", "bricklaying", "care of the elderly", "carpentry", "cooking", "data analysis",
    "driving a lorry", "electrical work", "first aid", "gardening", "German", "nursing", "plumbing", "programming",
    "project management", "sales", "spreadsheets", "teaching", "technical drawing", "warehouse work", "welding",
]  # fmt: skip


DOMAINS = {"employer": (EMPLOYERS, 1), "skill": (SKILLS, SKILLS_OF_A_HIRE)}
"""The public list of each kind of item, and the largest number of items of one person."""


def hires(seed: int = 21) -> pa.Table:
    """Return one row for each skill of each hire. Regions have their own employers, and months their own skills."""
    rng = np.random.default_rng(seed)
    region = np.repeat(np.arange(len(HIRES)), list(HIRES.values()))
    regions = np.concatenate([region for _ in MONTHS])
    month = np.repeat(np.arange(len(MONTHS)), len(region))
    # A person may be hired again in another month.
    person = np.concatenate([rng.permutation(len(region)) for _ in MONTHS])
    size = rng.lognormal(0, 1.1, (len(HIRES), len(EMPLOYERS)))
    asked = rng.lognormal(0, 0.8, (len(HIRES), 1, len(SKILLS))) * rng.lognormal(0, 0.25, (1, len(MONTHS), len(SKILLS)))
    employer = choose(size[regions], 1, rng)
    skill = choose(asked[regions, month], SKILLS_OF_A_HIRE, rng)
    first = np.array(MONTHS, "datetime64[M]").astype("datetime64[D]")
    day = first[month] + rng.integers(0, 28, len(month))
    return pa.table(
        {
            "person": np.repeat(person, SKILLS_OF_A_HIRE),
            "employer": pa.array(EMPLOYERS).take(pa.array(np.repeat(employer, SKILLS_OF_A_HIRE))),
            "skill": pa.array(SKILLS).take(pa.array(skill.ravel())),
            "region": pa.array(list(HIRES)).take(pa.array(np.repeat(regions, SKILLS_OF_A_HIRE))),
            "hired_on": np.repeat(day, SKILLS_OF_A_HIRE),
        }
    )


def choose(weights: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` different columns for each row of weights, the heavy ones more often."""
    keys = rng.exponential(size=weights.shape) / weights
    return np.argsort(keys, axis=1)[:, :count]


# --8<-- [start:release]
def report(table: pa.Table, month: str, item: str, ledger: discreet.Ledger) -> discreet.GroupedRelease:
    """Return one list of one month, by region, with counts of people."""
    domain, most = DOMAINS[item]
    source = discreet.events(
        table,
        user="person",
        item=item,
        domain=domain,
        max_items_per_user=most,
        during=discreet.month("hired_on").only(month),
        by="region",
        groups=list(HIRES),
        each_user="one",
    )
    name = f"{item}s, {month}"
    charge = {"ledger": ledger, "purpose": name, "request_id": name}
    return discreet.top_k(source, k=K, epsilon=EPSILON, split="auto", **charge)


# --8<-- [end:release]


def main() -> None:
    """Release three months, compare with the made-up truth, and draw if a folder is given."""
    table = hires()
    with tempfile.TemporaryDirectory() as folder:
        ledger = discreet.Ledger.create(f"{folder}/budget.db", epsilon=BUDGET, unit="people who were hired")
        lists = {
            (item, month): report(table, month, item, ledger) for month in MONTHS for item in ("employer", "skill")
        }
        print(f"Employers, {MONTHS[-1]}:\n{lists['employer', MONTHS[-1]]}\n")
        print(f"Skills, {MONTHS[-1]}:\n{lists['skill', MONTHS[-1]]}\n")
        print(f"spent {ledger.spent} of {ledger.budget.epsilon} in {len(ledger.history())} releases")

    people = truth(table)
    right = 0
    for (item, month), release in lists.items():
        for region, each in release.items():
            best = sorted(people[item, month, region], key=lambda name: -people[item, month, region][name])[:K]
            right += len(set(best) & set(each.items))
    total = K * len(lists) * len(HIRES)
    print(f"\nIn the made-up truth, {right} of these are among the {K} of their list, of {total} in all.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), lists, people)


def truth(table: pa.Table) -> dict[tuple[str, str, str], dict[str, int]]:
    """Return the people of each employer and skill by month and region. Only made-up data may be shown like this."""
    month = pa.array(np.datetime_as_string(table["hired_on"].to_numpy().astype("datetime64[M]")))
    table = table.append_column("month", month)
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for item in ("employer", "skill"):
        counted = table.group_by([item, "month", "region"]).aggregate([("person", "count_distinct")])
        for row in counted.to_pylist():
            found.setdefault((item, row["month"], row["region"]), {})[row[item]] = row["person_count_distinct"]
    return found


def draw(
    folder: Path, lists: dict[tuple[str, str], discreet.GroupedRelease], people: dict[Any, dict[str, int]]
) -> None:
    """Draw the employers of the last month, and the skills of all months, by region."""
    from picture import draw_counts, drawing, thumbnail

    with drawing(folder, "labour", height=9.6, rows=len(HIRES), columns=2, shared=False) as panels:
        for (left, right), region in zip(panels, HIRES, strict=True):
            counts = lists["employer", MONTHS[-1]][region].counts or []
            draw_counts(left, counts, people["employer", MONTHS[-1], region], "in truth (made up, and never released)")
            left.set_title(f"{region}: employers, {MONTHS[-1]}", fontsize=11)
            left.set_xlim(left=0)
            draw_months(right, lists, region)
            right.set_title(f"{region}: skills", fontsize=11)
        left.set_xlabel("people hired")
        right.set_xlabel("month of the release")
        left.figure.suptitle(
            f"Top {K} by region, epsilon = {EPSILON} a list and month",
            x=0.01,
            horizontalalignment="left",
            weight="bold",
        )
        left.figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2, reverse=True)
    with thumbnail(folder, "labour") as axes:
        draw_months(axes, lists, "South")


def draw_months(axes: Any, lists: dict[tuple[str, str], discreet.GroupedRelease], region: str) -> None:
    """Draw the released counts of the skills of a region by month; a skill has no point in a month without it."""
    from picture import DASHES, GREY, INK, TONES

    series: dict[str, list[float]] = {}
    for place, month in enumerate(MONTHS):
        for count in lists["skill", month][region].counts or []:
            series.setdefault(count.item, [np.nan] * len(MONTHS))[place] = count.value
    last = sorted((name for name in series if series[name][-1] > 0), key=lambda name: -series[name][-1])
    looks = dict(zip(last, zip((*TONES, INK), (*DASHES, "--"), strict=True), strict=False))
    for name, values in series.items():
        colour, dashes = looks.get(name, (GREY, "-"))
        axes.plot(range(len(MONTHS)), values, color=colour, linestyle=dashes, marker="o", markersize=4)
    # A name stands at the end of its line, moved up or down if it would touch another name or leave the panel.
    low, high = axes.get_ylim()
    places = [(series[name][-1] - low) / (high - low) for name in last]
    for at in range(1, len(places)):
        places[at] = min(places[at], places[at - 1] - 0.14)
    for at in range(1, len(places) + 1):
        places[-at] = max(places[-at], 0.05 + 0.14 * (at - 1))
    for name, place in zip(last, places, strict=True):
        axes.text(1.03, place, name, transform=axes.transAxes, fontsize=9, va="center", color=looks[name][0])
    axes.set_xticks(range(len(MONTHS)), MONTHS)
    axes.yaxis.set_major_formatter("{x:,.0f}")


if __name__ == "__main__":
    main()
