"""The README is short, every block of it runs as printed, and its figures are those that were measured."""

import json
import re
import shlex
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import log
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet import cli
from site_pages import ROOT, run

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


@pytest.fixture(autouse=True)
def demo(tmp_path, monkeypatch):
    """The files that the README names, small."""
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    rows = {"user_id": [i % 97 for i in range(3000)], "movie_id": [i * i % 50 for i in range(3000)]}
    pa.parquet.write_table(pa.table({**rows, "stars": [i % 5 + 1 for i in range(3000)]}), "demo/ratings.parquet")
    movies = "movie_id,title\n" + "".join(f"{i},Movie {i:02}\n" for i in range(50))
    Path("demo/movies.csv").write_text(movies, encoding="utf-8")


def test_it_is_read_in_minutes():
    assert len(README.split()) < 900


def test_the_python_blocks_run(capsys):
    names: dict[str, object] = {}
    found = blocks("python")
    assert found
    for block in found:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page
    printed = capsys.readouterr().out
    assert "Top 20 of 50 items" in printed
    assert printed.endswith("\n1\n")


def test_the_call_in_a_sentence_runs():
    [call] = re.findall(r"`(discreet\.top_k\(.*\))`", README)
    assert len(eval(call, {"discreet": discreet}).items) == 2  # noqa: S307  # our own page


def test_the_command_lines_run(monkeypatch, capsys):
    joined = [line for block in blocks("") for line in block.replace("\\\n", "").splitlines()]
    lines = [line for line in joined if line.startswith("discreet ")]
    assert [line.split()[1] for line in lines] == ["check", "select"]
    for line in lines:
        monkeypatch.setattr("sys.argv", shlex.split(line))
        assert cli.main() == 0, line
    assert "Top 20 of 50 items" in capsys.readouterr().out


def test_the_two_commands_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert f"\n{target}:" in makefile


def test_what_it_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


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


@pytest.mark.parametrize("page", ["README.md", "docs/scale.md"])
@pytest.mark.parametrize("unit", ["times np.sort", "ms", "times faster than OpenDP"])
def test_the_speeds_are_those_of_the_last_committed_run(page, unit):
    """The range over all shapes, rounded outwards to two digits."""
    rows = json.loads((ROOT / "benchmarks/results/shapes.json").read_text(encoding="utf-8"))["rows"]
    measured = [row["measured"] for row in rows if row["unit"] == unit]
    stated = f"{round_outwards(min(measured), ROUND_FLOOR)} to {round_outwards(max(measured), ROUND_CEILING)} "
    assert stated in (ROOT / page).read_text(encoding="utf-8")


def round_outwards(value, rounding):
    digits = Decimal(value).quantize(Decimal(1).scaleb(Decimal(value).adjusted() - 1), rounding)
    return f"{digits.normalize():,f}"
