"""Every Python block of the README runs as printed, in order, and its command lines are real."""

import re
import shlex
import shutil
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet import cli

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


@pytest.fixture(autouse=True)
def demo(tmp_path, monkeypatch):
    """The files that the README names, small."""
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    rows = {"user_id": [i % 97 for i in range(3000)], "movie_id": [i * i % 50 for i in range(3000)]}
    rows["country"] = [["DE", "FR", "XX"][i % 97 % 3] for i in range(3000)]
    rows["rated_at"] = [datetime(2026, 1 + i % 12, 1) for i in range(3000)]
    pa.parquet.write_table(pa.table({**rows, "stars": [i % 5 + 1 for i in range(3000)]}), "demo/ratings.parquet")
    Path("demo/countries.csv").write_text("code\nDE\nFR\n", encoding="utf-8")
    movies = "movie_id,title\n" + "".join(f"{i},Movie {i:02}\n" for i in range(50))
    Path("demo/movies.csv").write_text(movies, encoding="utf-8")
    shutil.copy(Path(__file__).parents[1] / "examples" / "charts.toml", "demo")
    discreet.Ledger.create("demo/budget.db", epsilon=3, unit="users of the demo")


def test_the_python_blocks_run(capsys):
    names: dict[str, object] = {}
    found = blocks("python")
    assert len(found) >= 3
    for block in found:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page
    assert "Top 2 of 6 items" in capsys.readouterr().out
    assert names["release"].order is not None
    assert list(names["charts"]) == ["DE", "FR"]


def test_the_command_lines_run(monkeypatch, capsys):
    Path("demo/scores.csv").write_text(
        "title,five_stars\n" + "".join(f"t{i},{i}\n" for i in range(150)), encoding="utf-8"
    )
    np.save("demo/scores.npy", np.arange(500))
    lines = [line for block in blocks("") for line in block.splitlines() if line.startswith("discreet ")]
    assert len(lines) >= 3
    for line in lines:
        monkeypatch.setattr("sys.argv", shlex.split(line))
        assert cli.main() == 0, line
    assert "one-shot" in capsys.readouterr().out


def test_the_two_commands_are_in_the_makefile():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
