"""The charts of four countries in three months: the five most played songs of each, with about how many listeners.

    python examples/gallery/charts.py            prints the release
    python examples/gallery/charts.py pictures   and draws pictures/charts.svg

Can a person be in two groups? Here a group is a country and a month, and who listens all winter is in three: one for
each month. So `each_user="many"`, with `max_groups_per_user=3`, and each group has a third of epsilon. Who travels is
in more, and then counts in three of them; without that bound there would be twelve groups to divide epsilon by.

The streams are made up, with a seed. The release is drawn with the randomness of the operating system.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet

K, EPSILON, PER_LISTENER = 5, 1, 3
LISTENERS = {"BR": 5_000, "DE": 4_000, "FR": 3_000, "JP": 2_000}
MONTHS = discreet.months("2026-01", "2026-03")
FIRST = ["Blue", "Cold", "Late", "Old", "Red", "Slow"]
SECOND = ["Bus", "Kiss", "Moon", "Rain", "Sun", "Town"]
SONGS = [f"{first} {second}" for first in FIRST for second in SECOND]


def streams(seed: int = 16) -> pa.Table:
    """Who played what, where and when: twelve times each. Songs have their countries and their months; few travel."""
    rng = np.random.default_rng(seed)
    lives = np.repeat(np.arange(len(LISTENERS)), list(LISTENERS.values()))
    listener = np.repeat(np.arange(len(lives)), 12)
    month = rng.integers(0, len(MONTHS), len(listener))
    travels = rng.random(len(listener)) < 0.005
    country = np.where(travels, rng.integers(0, len(LISTENERS), len(listener)), lives[listener])
    first = np.array(MONTHS, "datetime64[M]").astype("datetime64[us]")
    return pa.table(
        {
            "listener": listener,
            "song": pa.array(SONGS).take(pa.array(choose_songs(lives[listener], month, rng))),
            "country": pa.array(list(LISTENERS)).take(pa.array(country)),
            "played_at": pa.array(first[month] + rng.integers(0, 28 * 24 * 3600 * 10**6, len(listener))),
        }
    )


def choose_songs(lives: np.ndarray, month: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a song for each stream, by how well it is liked in the listener's country, and in the month."""
    liked = rng.lognormal(0, 0.6, (len(LISTENERS), 1, len(SONGS))) * rng.lognormal(0, 0.6, (1, len(MONTHS), len(SONGS)))
    chart = liked.reshape(-1, len(SONGS)).cumsum(axis=1)[lives * len(MONTHS) + month]
    return (chart < rng.random((len(month), 1)) * chart[:, -1:]).sum(axis=1)


def truth(table: pa.Table) -> dict[tuple[str, str], dict[str, int]]:
    """How many people played each song in each country and month. Only made-up data may be shown like this."""
    month = pa.array(np.datetime_as_string(table["played_at"].to_numpy().astype("datetime64[M]")))
    counted = table.append_column("month", month).group_by(["country", "month", "song"])
    found: dict[tuple[str, str], dict[str, int]] = {(place, month): {} for place in LISTENERS for month in MONTHS}
    for row in counted.aggregate([("listener", "count_distinct")]).to_pylist():
        found[row["country"], row["month"]][row["song"]] = row["listener_count_distinct"]
    return found


def main() -> None:
    """Releases, compares with the truth, which is made up, and draws where a folder is given."""
    table = streams()

    source = discreet.events(
        table, user="listener", item="song", domain=SONGS,
        by=["country", discreet.month("played_at")], groups=discreet.product(list(LISTENERS), MONTHS),
        each_user="many", max_groups_per_user=PER_LISTENER,
    )  # fmt: skip
    charts = discreet.top_k(source, k=K, epsilon=EPSILON, split="auto")
    print(charts)

    people = truth(table)
    best = {group: sorted(scores, key=lambda song: -scores[song])[:K] for group, scores in people.items()}
    found = sum(len(set(best[group]) & set(release.items)) for group, release in charts.items())
    print(f"\nIn the made-up truth, {found} of these are among the {K} most played of their country and month.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), charts, people)


def draw(folder: Path, charts: discreet.GroupedRelease, people: dict[tuple[str, str], dict[str, int]]) -> None:
    """Draw a chart for each country and month: what was released, with its intervals, beside the made-up truth."""
    from picture import drawing

    with drawing(folder, "charts", height=8.8, rows=len(LISTENERS), columns=len(MONTHS)) as panels:
        for panel, (group, release) in zip(panels.flat, charts.items(), strict=True):
            draw_chart(panel, release.counts or [], people[group])
            panel.set_title(", ".join(group), fontsize=11)
        for row in panels:
            row[0].set_xlim(left=0)
        for panel in panels[-1]:
            panel.set_xlabel("listeners")
        title = f"{K} songs of {len(SONGS)} in each country and month, epsilon = {EPSILON} in all"
        panel.figure.suptitle(title, x=0.01, horizontalalignment="left", weight="bold")
        # Room between the rows, and for a last number that stands half outside of its chart.
        panel.figure.get_layout_engine().set(h_pad=0.1, rect=(0, 0, 0.98, 1))
        panel.figure.legend(*panel.get_legend_handles_labels(), loc="outside lower left", ncols=2, reverse=True)


def draw_chart(panel: Any, counts: list[discreet.Count], people: dict[str, int]) -> None:
    """One of the charts, the first song at the top."""
    from picture import MISSED, RELEASED

    places, values = range(K, 0, -1), [count.value for count in counts]
    errors = [[count.value - count.low for count in counts], [count.high - count.value for count in counts]]
    label = "released, with its 95% interval"
    panel.errorbar(values, places, xerr=errors, fmt="o", color=RELEASED, capsize=3, markersize=4, label=label)
    true, label = [people[count.item] for count in counts], "played it in truth (made up, and never released)"
    panel.scatter(true, places, marker="x", color=MISSED, s=24, zorder=3, label=label)
    panel.set_yticks(places, [count.item for count in counts])
    panel.set_ylim(0.4, K + 0.6)
    panel.xaxis.set_major_formatter("{x:,.0f}")


if __name__ == "__main__":
    main()
