"""What shells complete, asked for in the way that each of them asks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.analysis.goals import GOALS
from discreet.cli.app import MODULES
from discreet.cli.options import INPUT_FORMATS
from discreet.cli.output import FORMATS
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import MECHANISMS

L_NOISES = [name for name in NOISES if name.startswith("l")]
ASKED = [
    (["sel"], ["select"]),
    (["budget", "s"], ["show"]),
    (["select", "--mechanism", ""], list(MECHANISMS)),
    (["select", "scores.csv", "--noise", "l"], L_NOISES),
    (["select", "--format", ""], list(FORMATS)),
    (["select", "--each-user", ""], ["one", "many"]),
    (["select", "-", "--input-format", ""], list(INPUT_FORMATS)),
    (["select", "--adjacency", "s"], ["swap"]),
    (["plan", "--goal", ""], list(GOALS)),
    (["select", "--req"], ["--request-id"]),
    (["verify", "--adj"], ["--adjacency"]),
    (["select", "sc"], []),  # files are left to the shell
    (["select", "--item", ""], []),
]


@pytest.fixture
def environment(monkeypatch):
    folder = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([folder, os.environ["PATH"]]))
    return os.environ


def run(*command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | variables)
    return done.returncode, done.stdout.split(), done.stderr


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash(environment):
    """Its own script, sourced, and called as bash calls it."""
    calls = [
        f"COMP_WORDS=(discreet {' '.join(repr(word) for word in words)}); COMP_CWORD={len(words)}; COMPREPLY=(); "
        '_discreet_completion discreet; echo "${COMPREPLY[@]}"'
        for words, _ in ASKED
    ]
    script = "\n".join(["source <(_DISCREET_COMPLETE=source_bash discreet)", *calls, "complete -p discreet"])
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    *answers, registered = done.stdout.splitlines()
    assert [answer.split() for answer in answers] == [expected for _, expected in ASKED]
    assert registered == "complete -o default -F _discreet_completion discreet"


def test_zsh(environment):
    asked = {"_DISCREET_COMPLETE": "complete_zsh"}
    code, words, err = run("discreet", _TYPER_COMPLETE_ARGS="discreet select --noise l", **asked)
    assert (code, err) == (0, "")
    assert " ".join(words) == "_arguments '*: :((" + " ".join(f'"{name}"' for name in L_NOISES) + "))'"
    assert run("discreet", _TYPER_COMPLETE_ARGS="discreet select sc", **asked)[1] == ["_files"]


def test_fish(environment):
    asked = {"_DISCREET_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    code, words, err = run("discreet", _TYPER_COMPLETE_ARGS="discreet plan --goal ", **asked)
    assert (code, words, err) == (0, list(GOALS), "")
    asked["_TYPER_COMPLETE_FISH_ACTION"] = "is-args"
    assert run("discreet", _TYPER_COMPLETE_ARGS="discreet select sc", **asked)[0] == 1


def test_the_options_that_set_it_up_are_in_the_help(done):
    text = done("--help")
    assert "--install-completion" in text
    assert "--show-completion" in text
    assert all(f"\n  {name} " in text for name in MODULES)
