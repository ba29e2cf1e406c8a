"""The README is short, every block of it runs as printed, and its figures are those that were measured."""

import json
import re
import shlex
import shutil
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import log
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet import cli
from site_pages import ROOT, run

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


@pytest.fixture(autouse=True)
def demo(tmp_path, monkeypatch):
    """The files that make demo leaves, small."""
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    rows = {"user_id": [i % 97 for i in range(3000)], "movie_id": [i * i % 50 for i in range(3000)]}
    pa.parquet.write_table(pa.table({**rows, "stars": [i % 5 + 1 for i in range(3000)]}), "demo/ratings.parquet")
    movies = "movie_id,title\n" + "".join(f"{i},Movie {i:02}\n" for i in range(50))
    Path("demo/movies.csv").write_text(movies, encoding="utf-8")
    Path("demo/countries.csv").write_text("code\nDE\nFR\n", encoding="utf-8")
    shutil.copy(ROOT / "examples" / "charts.toml", "demo")


def test_it_is_read_in_minutes():
    assert len(README.split()) < 700


def test_a_threshold_shows_one_person(capsys):
    """The same query answers differently with and without Ann."""
    exec(compile(blocks("python")[0], "README.md", "exec"), {})  # noqa: S102  # our own page
    assert capsys.readouterr().out == "[]\n[('soup',)]\n"


@pytest.mark.parametrize(
    ("number", "ends"), [(1, "Drawn by Canonical(gamma='3/4', noise='gumbel')\n"), (2, "[ 3 17]\n")]
)
def test_a_python_block_runs_by_itself(number, ends, capsys):
    assert len(blocks("python")) == 3
    exec(compile(blocks("python")[number], "README.md", "exec"), {})  # noqa: S102  # our own page
    assert capsys.readouterr().out.endswith(ends)


def test_the_command_lines_run(monkeypatch, capsys):
    joined = [line for block in blocks("sh") for line in block.replace("\\\n", "").splitlines()]
    lines = [line for line in joined if line.startswith("discreet ")]
    assert [line.split()[1] for line in lines] == ["check", "select", "publish", "verify"]
    for line in lines:
        monkeypatch.setattr("sys.argv", shlex.split(line))
        assert cli.main() == 0, line
    printed = capsys.readouterr().out
    assert "Top 20 of 50 items" in printed
    assert Path("demo/site-dummy/index.html").is_file()
    assert "holds" in printed


def test_it_installs_by_one_line():
    """`.ci/package` runs the line in a fresh clone."""
    [line] = [line for block in blocks("sh") for line in block.splitlines() if not line.startswith("discreet ")]
    assert line == "python3 -m venv .venv && . .venv/bin/activate && pip install ."


def test_it_addresses_five_people():
    kinds = re.findall(r"^\*\*An? (.*?)\.\*\*", README, re.MULTILINE)
    assert kinds == [
        *("analyst with a table", "publisher", "engineer with a database", "machine learner", "researcher")
    ]


def test_the_commands_of_make_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"`make ([\w-]+)`", README)
    assert targets == ["demo", "test", "docs"]
    for target in targets:
        assert f"\n{target}:" in makefile


def test_what_it_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.long
def test_the_picture_is_what_its_script_draws(tmp_path):
    printed = run(sys.executable, ROOT / "examples" / "one_person.py", tmp_path, folder=tmp_path)
    drawn, shown = (
        re.findall("<!-- (.*) -->", (folder / "one-person.svg").read_text(encoding="utf-8"))
        for folder in (tmp_path, ROOT / "docs" / "assets")
    )
    assert drawn == shown
    assert len(shown) > 40
    private = re.findall(r"([\d.]+)% without Ann +([\d.]+)% with her", printed.partition("epsilon 0.5")[2])
    assert len(private) == 6
    # Each chance is printed to a tenth of a percent.
    assert all(abs(log((float(a) + 0.05) / (float(b) + 0.05))) < 0.5 for a, b in private)


@pytest.mark.parametrize(
    ("page", "unit"),
    [
        ("README.md", "times np.sort"),
        *(("docs/scale.md", unit) for unit in ("times np.sort", "ms", "times faster than OpenDP")),
    ],
)
def test_the_speeds_are_those_of_the_last_committed_run(page, unit):
    """The range over all shapes, rounded outwards to two digits."""
    rows = json.loads((ROOT / "benchmarks/results/shapes.json").read_text(encoding="utf-8"))["rows"]
    measured = [row["measured"] for row in rows if row["unit"] == unit]
    stated = f"{round_outwards(min(measured), ROUND_FLOOR)} to {round_outwards(max(measured), ROUND_CEILING)} "
    assert stated in (ROOT / page).read_text(encoding="utf-8")


def round_outwards(value, rounding):
    digits = Decimal(value).quantize(Decimal(1).scaleb(Decimal(value).adjusted() - 1), rounding)
    return f"{digits.normalize():,f}"
