"""The top error codes that a product reports, about how many devices hit each, and a budget for the year.

    python examples/gallery/errors.py            prints the releases
    python examples/gallery/errors.py pictures   and draws pictures/errors.svg

Each device is one user. `split="auto"` spends half of epsilon on which codes, and half on how many; at most five codes
of a device are scored, so that the counts need less noise. A ledger refuses what the budget does not allow.

The reports are made up, with a seed. The releases are drawn with the randomness of the operating system.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet

DEVICES, K, EPSILON, PER_DEVICE = 20_000, 8, "0.5", 5
CODES = [f"E{area}{number:02}" for area in range(1, 6) for number in range(1, 61)]


def reports(month: int) -> pa.Table:
    """Which device reported which code in a month: few codes are common, and one crash may report a code often."""
    rng = np.random.default_rng(month)
    order = np.random.default_rng(5).permutation(len(CODES))
    often = (1.0 / (2.0 + order)) ** 1.1
    rows = 50_000
    code = rng.choice(len(CODES), rows, p=often / often.sum())
    return pa.table({"device": rng.integers(0, DEVICES, rows), "code": pa.array(CODES).take(pa.array(code))})


def truth(table: pa.Table) -> dict[str, int]:
    """How many devices reported each code. Only made-up data may be shown like this."""
    counted = table.group_by("code").aggregate([("device", "count_distinct")]).to_pylist()
    return dict.fromkeys(CODES, 0) | {row["code"]: row["device_count_distinct"] for row in counted}


def main() -> None:
    """Releases two months, is refused a third, and draws the first where a folder is given."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = discreet.Ledger.create(f"{folder}/budget.db", epsilon=1, unit="devices of the product")
        first = monthly(ledger, 1)
        print(first)
        for month in (2, 3):
            try:
                print(f"\nmonth {month}: {', '.join(monthly(ledger, month).items)}")
            except discreet.Error as error:
                print(f"\nmonth {month}: refused. {error}")
        print(f"\nspent {ledger.spent} of {ledger.budget.epsilon} in {len(ledger.history())} releases")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), truth(reports(1)), first)


def monthly(ledger: discreet.Ledger, month: int) -> discreet.Release:
    """Return the release of one month; asked for twice, it is paid once."""
    table = reports(month)
    source = discreet.events(table, user="device", item="code", domain=CODES, max_items_per_user=PER_DEVICE)
    name = f"error codes, month {month}"
    return discreet.top_k(source, k=K, epsilon=EPSILON, split="auto", ledger=ledger, purpose=name, request_id=name)


def draw(folder: Path, devices: dict[str, int], release: discreet.Release) -> None:
    """Draw the release with its intervals, beside the made-up truth."""
    from picture import MISSED, RELEASED, drawing

    counts = release.counts or []
    places = range(len(counts), 0, -1)
    values = [count.value for count in counts]
    errors = [[count.value - count.low for count in counts], [count.high - count.value for count in counts]]
    with drawing(folder, "errors") as axes:
        label = "released, with its 95% interval"
        axes.errorbar(values, places, xerr=errors, fmt="o", color=RELEASED, capsize=4, label=label)
        true, label = [devices[count.item] for count in counts], "reported it in truth (made up, and never released)"
        axes.scatter(true, places, marker="x", color=MISSED, zorder=3, label=label)
        axes.set_yticks(places, [count.item for count in counts])
        axes.set(xlabel="devices", ylim=(0.2, len(counts) + 1.8))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_title(f"{K} error codes of {len(CODES)}, epsilon = {EPSILON} in all")
        axes.legend(loc="upper right")


if __name__ == "__main__":
    main()
