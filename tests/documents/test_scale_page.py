"""The pages on speed say what the committed results of the benchmark say."""

import json
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import pytest

import appendix
from site_pages import DOCS, ROOT

PAGE = (DOCS / "scale.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("unit", ["times np.sort", "ms", "times faster than OpenDP"])
def test_the_speeds_are_those_of_the_last_committed_run(unit):
    """The range over all shapes, rounded outwards to two digits."""
    rows = json.loads((ROOT / "benchmarks/results/shapes.json").read_text(encoding="utf-8"))["rows"]
    measured = [row["measured"] for row in rows if row["unit"] == unit]
    assert f"{round_outwards(min(measured), ROUND_FLOOR)} to {round_outwards(max(measured), ROUND_CEILING)} " in PAGE


def round_outwards(value, rounding):
    digits = Decimal(value).quantize(Decimal(1).scaleb(Decimal(value).adjusted() - 1), rounding)
    return f"{digits.normalize():,f}"


def test_the_appendix_has_the_last_committed_run():
    page = (appendix.PAGES / "speed.md").read_text(encoding="utf-8")
    assert appendix.write_speed(page) == page
    met = appendix.speed_table(appendix.read_results()).partition(" targets are met.")[0]
    assert f"{met} targets were met " in " ".join(PAGE.split())


def test_printed_columns_become_tables():
    first = "| name | share |\n| --- | --- |\n| one | 0.5 * |\n\n\\* a star"
    second = "| few | many |\n| --- | --- |\n| 1 | 2 |\n\n3 in all"
    printed = "name  share\none   0.5 *\n* a star\n\nfew  many\n1    2\n3 in all\n"
    assert appendix.printed_tables(printed) == f"{first}\n\n{second}"
