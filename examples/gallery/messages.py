"""Release the most frequent error messages of a log. No list of messages exists: partition selection finds them.

    python examples/gallery/messages.py            prints the releases
    python examples/gallery/messages.py pictures   and draws pictures/messages.svg

Each device is one user. Some messages are common, many are rare, and tens of thousands hold a path or a name that only
one device has. Such a message must not be released. Versions of the program spell the same message in three ways.

The log is made up, with a seed. The releases are drawn with the randomness of the operating system.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet

DEVICES, K, EPSILON, DELTA = 40_000, 12, 1, "1e-8"
PARTS = [
    "backup", "calendar", "camera", "editor", "login", "mail", "map", "network", "player", "printer", "scanner",
    "search", "sync", "updater", "viewer",
]  # fmt: skip
PROBLEMS = [
    "disk full", "out of memory", "permission denied", "connection refused", "no answer in 30 s", "file is locked",
    "certificate has expired", "unknown format", "checksum does not match", "clock is wrong", "no such device",
    "licence not found",
]  # fmt: skip
MESSAGES = [f"{part}: {problem}" for part in PARTS for problem in PROBLEMS]
OWNERS = ["anouk", "bilal", "carla", "deniz", "esra", "femi", "greta", "hugo"]
FILES = ["diary.odt", "notice-to-quit.odt", "scan-of-the-knee.png", "loan.pdf", "passwords.txt", "letter-to-mum.odt"]
SPELLINGS = (str, str.upper, "{}  ".format)
"""The spellings of a message by the versions of the program."""


def log(seed: int = 4) -> pa.Table:
    """Return which device wrote what: each has one version, some of the common messages, and often one of its own."""
    rng = np.random.default_rng(seed)
    rows = 100_000
    often = 1.0 / (3.0 + rng.permutation(len(MESSAGES)))
    device = rng.integers(0, DEVICES, rows)
    message = rng.choice(len(MESSAGES), rows, p=often / often.sum())
    version = rng.choice(len(SPELLINGS), DEVICES, p=[0.5, 0.3, 0.2])
    texts = [[spell(text) for text in MESSAGES] for spell in SPELLINGS]
    common = [texts[version[at]][which] for at, which in zip(device.tolist(), message.tolist(), strict=True)]
    alone = rng.integers(0, DEVICES, DEVICES)
    owner, file = rng.integers(0, len(OWNERS), DEVICES), rng.integers(0, len(FILES), DEVICES)
    private = [
        f"backup: cannot read /home/{OWNERS[who]}{at}/{FILES[what]}"
        for at, who, what in zip(alone.tolist(), owner.tolist(), file.tolist(), strict=True)
    ]
    return pa.table({"device": np.concatenate([device, alone]), "message": common + private})


def truth(table: pa.Table) -> dict[str, int]:
    """Return how many devices wrote each message, spelt exactly so. Only made-up data may be shown like this."""
    counted = table.group_by("message").aggregate([("device", "count_distinct")]).to_pylist()
    return {row["message"]: row["device_count_distinct"] for row in counted}


# --8<-- [start:release]
def find(table: pa.Table, spelling: str) -> discreet.Release:
    """Find the messages that enough devices wrote, and select among those found."""
    domain = discreet.discovered(delta=DELTA, spelling=spelling)
    source = discreet.events(table, user="device", item="message", domain=domain)
    return discreet.top_k(source, k=K, epsilon=EPSILON)


# --8<-- [end:release]


def main() -> None:
    """State the threshold, release with each spelling, compare with the made-up truth, draw if a folder is given."""
    planned = discreet.discovered(delta=DELTA).plan(k=K, epsilon=EPSILON)
    print(f"Before anything is read: {planned.describe_threshold()}\n")

    table = log()
    exact, folded = find(table, "exact"), find(table, "fold")
    print(f'With spelling="exact":\n{exact}\n\nWith spelling="fold":\n{folded}\n')

    spelt, meant = truth(table), truth(table.set_column(1, "message", fold(table["message"])))
    print(f"The {len(exact.items)} spellings are {len({item.strip().lower() for item in exact.items})} messages.")
    alone = {message for message, devices in meant.items() if devices == 1}
    print(
        f"{len(alone):,} messages are of one device alone, and {len(alone & set(folded.items))} of them are released."
    )
    ranked = sorted(meant, key=lambda message: -meant[message])
    found = len(set(ranked[:K]) & set(folded.items))
    print(f"In the made-up truth, {found} of these are the {K} that most devices wrote.")
    if len(sys.argv) > 1:
        draw(
            Path(sys.argv[1]),
            spelt,
            {message: meant[message] for message in ranked},
            set(folded.items),
            planned.threshold,
        )


def fold(messages: pa.ChunkedArray) -> pa.Array:
    """Return the item that `spelling="fold"` takes a text for, here for the made-up truth."""
    return pa.array([message.strip(" ").lower() for message in messages.to_pylist()])


def draw(folder: Path, spelt: dict[str, int], meant: dict[str, int], released: set[str], threshold: int) -> None:
    """Draw the first messages with their spellings, and all messages by rank with the threshold."""
    from picture import drawing, thumbnail

    is_released = [message in released for message in meant]
    with drawing(folder, "messages", height=8.6, rows=2) as (above, below):
        title = f"{K} messages that nobody listed, epsilon = {EPSILON}, delta = {DELTA}"
        above.figure.suptitle(title, x=0.01, horizontalalignment="left", weight="bold")
        draw_first(above, spelt, meant, released)
        draw_ranks(below, list(meant.values()), is_released, threshold)
    with thumbnail(folder, "messages") as axes:
        draw_ranks(axes, list(meant.values()), is_released, threshold)


def draw_first(axes: Any, spelt: dict[str, int], meant: dict[str, int], released: set[str]) -> None:
    """Draw bars for the first messages, and crosses for the devices that wrote the most common spelling."""
    from picture import FAINT, MISSED, RELEASED

    first = list(meant)[: K + 4]
    places = range(len(first), 0, -1)
    axes.barh(places, [meant[text] for text in first], color=[RELEASED if t in released else FAINT for t in first])
    most = [max(spelt.get(spell(text), 0) for spell in SPELLINGS) for text in first]
    axes.scatter(most, places, marker="x", color=MISSED, zorder=3, label="in its most common spelling")
    axes.set_yticks(places, first)
    axes.set(xlabel="devices that wrote it (made up, and never released)")
    axes.bar(0, 0, color=RELEASED, label="released")
    axes.bar(0, 0, color=FAINT, label="not released")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="lower right")


def draw_ranks(axes: Any, devices: list[int], is_released: list[bool], threshold: int) -> None:
    """Draw every message at its true rank and number of devices; those of one device alone are one line."""
    from picture import INK, MISSED, QUIET, RELEASED

    shared = [
        (rank, count, out) for rank, (count, out) in enumerate(zip(devices, is_released, strict=True), 1) if count > 1
    ]
    for out, colour, marker, label in ((True, RELEASED, "o", "released"), (False, QUIET, "x", "not released")):
        dots = [(rank, count) for rank, count, is_out in shared if is_out == out]
        axes.scatter(*zip(*dots, strict=True), color=colour, marker=marker, s=20, label=label)
    axes.plot([len(shared) + 1, len(devices)], [1, 1], color=MISSED, linewidth=4, label="of one device alone")
    axes.axhline(threshold, color=INK, linewidth=1, linestyle="--")
    axes.text(len(devices), threshold * 1.15, f"threshold: {threshold} devices", ha="right", color=INK)
    axes.set(
        xscale="log", yscale="log", xlabel="true rank of the message (made up, and never released)", ylabel="devices"
    )
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="lower left")


if __name__ == "__main__":
    main()
