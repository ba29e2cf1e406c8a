"""Release the most frequent error codes of a product each month, with counts of devices, from a budget for the year.

    python examples/gallery/errors.py            prints the releases
    python examples/gallery/errors.py pictures   and draws pictures/errors.svg

Each device is one user. `split="auto"` spends half of epsilon on the selection and half on the counts. At most five
codes of a device are scored, so that the counts need less noise. A ledger refuses a release that exceeds the budget.

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
    """Return which device reported which code in a month. Few codes are common; a device may report one often."""
    rng = np.random.default_rng(month)
    order = np.random.default_rng(5).permutation(len(CODES))
    often = (1.0 / (2.0 + order)) ** 1.1
    rows = 50_000
    code = rng.choice(len(CODES), rows, p=often / often.sum())
    return pa.table({"device": rng.integers(0, DEVICES, rows), "code": pa.array(CODES).take(pa.array(code))})


def truth(table: pa.Table) -> dict[str, int]:
    """Return how many devices reported each code. Only made-up data may be shown like this."""
    counted = table.group_by("code").aggregate([("device", "count_distinct")]).to_pylist()
    return dict.fromkeys(CODES, 0) | {row["code"]: row["device_count_distinct"] for row in counted}


# --8<-- [start:release]
def monthly(ledger: discreet.Ledger, month: int) -> discreet.Release:
    """Return the release of one month, charged to the ledger."""
    source = discreet.events(
        reports(month),
        user="device",
        item="code",
        domain=CODES,
        max_items_per_user=PER_DEVICE,
    )
    name = f"error codes, month {month}"
    charge = {"ledger": ledger, "purpose": name, "request_id": name}
    return discreet.top_k(source, k=K, epsilon=EPSILON, split="auto", **charge)


# --8<-- [end:release]


def main() -> None:
    """Release two months, be refused a third, and draw the first month if a folder is given."""
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


def draw(folder: Path, devices: dict[str, int], release: discreet.Release) -> None:
    """Draw the released counts beside the made-up truth."""
    from picture import draw_counts, drawing, thumbnail

    counts, label = release.counts or [], "reported it in truth (made up, and never released)"
    with drawing(folder, "errors") as axes:
        draw_counts(axes, counts, devices, label)
        axes.set(xlabel="devices", ylim=(0.2, len(counts) + 1.8))
        axes.set_title(f"{K} error codes of {len(CODES)}, epsilon = {EPSILON} in all")
        axes.legend(loc="upper right")
    with thumbnail(folder, "errors") as axes:
        draw_counts(axes, counts, devices, label)


if __name__ == "__main__":
    main()
