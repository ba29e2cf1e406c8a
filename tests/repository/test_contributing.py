"""The guide for contributors: its recipe for a noise is followed to the letter, and the files it names are there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
VALUE, DEFINITION, TRIAL = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def follow_recipe(folder, value=VALUE, definition=DEFINITION, trial=TRIAL):
    """What the trial of the recipe does in a copy of the package with a new noise: exit code, output and errors."""
    package = folder / "discreet"
    shutil.copytree(ROOT / "src" / "discreet", package, ignore=shutil.ignore_patterns("__pycache__"))
    [name] = re.findall(r"^(\w+) = Noise\(", value, re.MULTILINE)
    noise = (package / "mechanisms/noise.py").read_text(encoding="utf-8")
    above, table, below = re.split(r"^(NOISES = .*)$", noise, flags=re.MULTILINE)
    listed = table.replace("HALF_LOGISTIC", f"HALF_LOGISTIC, {name}")
    assert listed != table
    (package / "mechanisms/noise.py").write_text(f"{above}{value}\n{listed}{below}", encoding="utf-8")
    with (package / "evidence" / "definition.py").open("a", encoding="utf-8") as file:
        file.write(f"\n\n{definition}")
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", trial],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_the_recipe_for_a_noise_works_as_printed(tmp_path):
    done = follow_recipe(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "OneShot(noise='larger-exponential')" in done.stdout
    assert "(off by at most" in done.stdout


ROWS = """
import dataclasses

from discreet.evidence.report import Verification
from discreet.evidence.verify import Task, plan
from discreet.mechanisms.noise import noise_of

tasks = plan(None, None, epsilon=1, scores=None, adjacency=None, deep=False)
rows = [task for task in tasks if isinstance(task, Task) and noise_of(task.mechanism).name == "larger-exponential"]
assert len(rows) >= 8 and all(task.witness is None for task in rows)
row = next(task for task in rows if task.mechanism.name == "one-shot")
print(Verification([dataclasses.replace(row, trials=row.trials[:1]).examine()]))
"""


@pytest.mark.long
@pytest.mark.slow
def test_all_is_verified_with_a_noise_before_pairs_are_searched_for(tmp_path):
    done = follow_recipe(tmp_path, trial=ROWS)
    assert done.returncode == 0, done.stderr
    row, note = done.stdout.splitlines()[1:3]
    assert row.split()[:2] == ["one-shot", "larger-exponential"]
    assert row.split()[-2:] == ["same", "holds"]
    assert note.startswith("- no pair has been searched for: ")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "definition", "error"),
    [
        (VALUE.replace("Fraction(1, 2)", "Fraction(1, 3)"), DEFINITION, "whose inverse is its inverse"),
        (VALUE, DEFINITION.replace("2.0 * np.log(", "3.0 * np.log("), "AssertionError"),
    ],
    ids=["the value", "the definition"],
)
def test_a_slip_in_the_recipe_is_found(tmp_path, value, definition, error):
    assert (value, definition) != (VALUE, DEFINITION)
    done = follow_recipe(tmp_path, value, definition)
    assert done.returncode == 1
    assert error in done.stderr.splitlines()[-1]


def test_the_files_of_the_guide_are_there():
    named = set(re.findall(r"`([\w/.]+(?:\.py|\.md|\.toml|/))`", GUIDE)) - {"src/discreet/"}
    assert len(named) > 15
    missing = {name for name in named if not any((root / name).exists() for root in (ROOT, ROOT / "src" / "discreet"))}
    assert not missing


def test_the_layers_of_the_design_are_there():
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    layers = set(re.findall(r"`([\w/]+(?:\.py|/))`", design.partition("## The layers")[2].partition("\n## ")[0]))
    assert len(layers) > 15
    missing = {layer for layer in layers if not any((root / layer).exists() for root in (ROOT, ROOT / "src/discreet"))}
    assert not missing


def test_the_targets_of_the_guide_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)", GUIDE))
    assert targets >= {"quick", "lint", "test", "house"}
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


MODELS = {"mechanisms/noise.py": "LOGISTIC", "sources/events/dialects/postgres.py": "DIALECT", "cli/app.py": "MODULES"}


@pytest.mark.parametrize("file", MODELS)
def test_the_models_of_the_guide_are_there(file):
    text = (ROOT / "src" / "discreet" / file).read_text(encoding="utf-8")
    assert f"`{MODELS[file]}`" in GUIDE
    assert re.search(rf"^{MODELS[file]} = ", text, re.MULTILINE)
