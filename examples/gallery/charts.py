"""Release the charts of four countries in three months: the five most played songs of each, with counts of listeners.

    python examples/gallery/charts.py            prints the release
    python examples/gallery/charts.py pictures   and draws pictures/charts.svg

A group is a country and a month. A person who listens all winter is in three groups, one for each month, so the source
has `each_user="many"` and `max_groups_per_user=3`, and each group has a third of epsilon. A traveller is in more groups
and counts in three of them. Without that bound epsilon would be divided by twelve.

The streams are made up, with a seed. The release is drawn with the randomness of the operating system.
"""

import sys
from pathlib import Path

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
    """Return who played what, where and when: twelve streams a person. Few people travel."""
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
    """Return a song for each stream, by how well it is liked in the listener's country and in the month."""
    liked = rng.lognormal(0, 0.6, (len(LISTENERS), 1, len(SONGS))) * rng.lognormal(0, 0.6, (1, len(MONTHS), len(SONGS)))
    chart = liked.reshape(-1, len(SONGS)).cumsum(axis=1)[lives * len(MONTHS) + month]
    return (chart < rng.random((len(month), 1)) * chart[:, -1:]).sum(axis=1)


def truth(table: pa.Table) -> dict[tuple[str, str], dict[str, int]]:
    """Return how many people played each song in each country and month. Only made-up data may be shown like this."""
    month = pa.array(np.datetime_as_string(table["played_at"].to_numpy().astype("datetime64[M]")))
    counted = table.append_column("month", month).group_by(["country", "month", "song"])
    found: dict[tuple[str, str], dict[str, int]] = {(place, month): {} for place in LISTENERS for month in MONTHS}
    for row in counted.aggregate([("listener", "count_distinct")]).to_pylist():
        found[row["country"], row["month"]][row["song"]] = row["listener_count_distinct"]
    return found


# --8<-- [start:release]
def release_charts(table: pa.Table) -> discreet.GroupedRelease:
    """Return a chart for each country and month. A person counts in at most three."""
    source = discreet.events(
        table,
        user="listener",
        item="song",
        domain=SONGS,
        by=["country", discreet.month("played_at")],
        groups=discreet.product(list(LISTENERS), MONTHS),
        each_user="many",
        max_groups_per_user=PER_LISTENER,
    )
    return discreet.top_k(source, k=K, epsilon=EPSILON, split="auto")


# --8<-- [end:release]


def main() -> None:
    """Release, compare with the made-up truth, and draw if a folder is given."""
    table = streams()
    charts = release_charts(table)
    print(charts)

    people = truth(table)
    best = {group: sorted(scores, key=lambda song: -scores[song])[:K] for group, scores in people.items()}
    found = sum(len(set(best[group]) & set(release.items)) for group, release in charts.items())
    print(f"\nIn the made-up truth, {found} of these are among the {K} most played of their country and month.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), charts, people)


def draw(folder: Path, charts: discreet.GroupedRelease, people: dict[tuple[str, str], dict[str, int]]) -> None:
    """Draw a chart for each country and month: the released counts beside the made-up truth."""
    from picture import draw_counts, drawing, thumbnail

    label = "played it in truth (made up, and never released)"
    with drawing(folder, "charts", height=8.8, rows=len(LISTENERS), columns=len(MONTHS)) as panels:
        for axes, (group, release) in zip(panels.flat, charts.items(), strict=True):
            draw_counts(axes, release.counts or [], people[group], label)
            axes.set_title(", ".join(group), fontsize=11)
        for row in panels:
            row[0].set_xlim(left=0)
        for axes in panels[-1]:
            axes.set_xlabel("listeners")
        title = f"{K} songs of {len(SONGS)} in each country and month, epsilon = {EPSILON} in all"
        axes.figure.suptitle(title, x=0.01, horizontalalignment="left", weight="bold")
        # Room between the rows, and for a last number that stands half outside of its chart.
        axes.figure.get_layout_engine().set(h_pad=0.1, rect=(0, 0, 0.98, 1))
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2, reverse=True)
    with thumbnail(folder, "charts", rows=2, columns=2) as panels:
        for axes, (group, release) in zip(panels.flat, charts.items(), strict=False):
            draw_counts(axes, release.counts or [], people[group], label)


if __name__ == "__main__":
    main()
