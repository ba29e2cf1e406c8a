"""Every snippet of docs/integrations.md runs, and says what the page says."""

import re
from pathlib import Path

import pandas
import polars
import pytest

import discreet

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^```python title=\"(\w+)\"\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))

MOVIES = ["dune"] * 600 + ["alien"] * 400 + ["heat"]
"""With a hundred people between one movie and the next in either country, chance has no say."""

RATINGS = {
    "user_id": list(range(len(MOVIES))),
    "movie": MOVIES,
    "country": [("de", "fr")[i % 2] for i in range(len(MOVIES))],
}


def run(name, **names):
    scope = {"discreet": discreet, "pandas": pandas, "polars": polars, **names}
    exec(compile(SNIPPETS[name], f"integrations.md {name}", "exec"), scope)  # noqa: S102  # our own page
    return scope


def test_all_snippets_are_known():
    assert set(SNIPPETS) == {"value_counts", "groupby", "polars", "opendp", "accounting"}
    assert len(SNIPPETS) == PAGE.count("```python")


@pytest.mark.parametrize(
    ("name", "frame", "items"),
    [
        ("value_counts", pandas.DataFrame, ["alien", "dune"]),
        ("groupby", pandas.DataFrame, [("de", "dune"), ("fr", "dune")]),
        ("polars", polars.DataFrame, ["alien", "dune"]),
    ],
)
def test_frames(name, frame, items):
    release = run(name, ratings=frame(RATINGS))["release"]
    assert release.d == (8 if name == "groupby" else 4)
    assert release.private
    assert release.items == items


def test_opendp():
    dp = pytest.importorskip("opendp.prelude", reason="needs OpenDP, which is not installed")
    try:
        scope = run("opendp", ages=[31.0, 36.0, 44.0, 52.0, 39.0, 41.0, 18.0])
        assert len(set(scope["positions"])) == 2
        assert set(scope["positions"]) <= set(range(5))
        assert [scope["select"].map(d_in) for d_in in (1, 3)] == [0.5, 1.5]
    finally:
        dp.disable_features("honest-but-curious")


def test_accounting():
    pytest.importorskip("dp_accounting", reason="needs Google's dp-accounting, which is not installed")
    from dp_accounting.rdp import RdpAccountant

    scope = run("accounting")
    assert scope["accountant"].get_epsilon(0) == pytest.approx(5, abs=0.005)
    assert scope["accountant"].get_epsilon(1e-6) == pytest.approx(3.2, abs=0.05)
    event = scope["release"].guarantee.to_dp_event("rdp")
    assert RdpAccountant().compose(event, 50).get_epsilon(1e-6) == pytest.approx(1.7, abs=0.05)
