"""The statement of a release in a file, on the command line: text, JSON and YAML, and what is no release."""

import json
from pathlib import Path

import pytest
import yaml

import discreet
from command_line import SCORES


@pytest.fixture(autouse=True)
def release(folder):
    made = discreet.top_k(SCORES, k=2, epsilon=1)
    Path("top.json").write_text(made.to_json())
    return made


def test_the_text_is_that_of_the_release(done, release):
    assert done("statement", "top.json") == release.statement() + "\n"
    assert done("statement", "top.json", "--out", "statement.md") == ""
    assert Path("statement.md").read_text() == release.statement() + "\n"


def test_the_text_can_be_german(done, release):
    assert done("statement", "top.json", "--language", "de") == release.statement(language="de") + "\n"


def test_json_and_yaml_are_the_entry_of_the_registry(done, release):
    Path("answers.json").write_text(json.dumps({"basic.name": "Films"}))
    entry = json.loads(done("statement", "top.json", "--format", "json", "--answers", "answers.json"))
    assert entry == release.registry(answers={"basic.name": "Films"})
    told = yaml.safe_load(done("statement", "top.json", "--format", "yaml"))
    assert told == {name: value for name, value in release.registry().items() if name != "questions"}


@pytest.mark.parametrize("made", ["groups", "sketch"])
def test_releases_by_group_and_sketches_are_read(done, made):
    groups = discreet.grouped({"DE": SCORES, "FR": SCORES}, each_user="one")
    found = discreet.sketch(list(SCORES.values()), 1) if made == "sketch" else discreet.top_k(groups, k=1, epsilon=1)
    Path("other.json").write_text(found.to_json())
    assert done("statement", "other.json") == found.statement() + "\n"


def test_a_ledger_is_told_of(done):
    discreet.Ledger.create("budget.db", epsilon=3, unit="readers of the library")
    done("select", "scores.csv", "-k", "1", "--epsilon", "1", "--ledger", "budget.db", "--out", "charged.json")
    text = done("statement", "charged.json", "--ledger", "budget.db")
    assert "at most 95.3% sure" in text
    assert "readers of the library" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("none.json",), "FILE must be a file that can be read, not 'none.json': No such file or directory"),
        (("scores.csv",), "FILE must be a JSON file, and 'scores.csv' is not"),
        (("list.json",), "FILE must be a release or a sketch as --out writes it, and 'list.json' is not"),
        (("top.json", "--format", "xml"), "format must be one of text, json, yaml, not 'xml'"),
        (("top.json", "--language", "fr"), "language must be one of en, de, not 'fr'"),
        (("top.json", "--answers", "list.json"), "answers must be left out with format 'text'"),
        (("top.json", "--format", "json", "--answers", "list.json"), "answers must be a mapping from field to answer"),
        (("top.json", "--ledger", "other.db"), "does not hold the release"),
        (("top.json", "--out", "top.json"), "out must be another file than the release"),
    ],
)
def test_what_cannot_be_is_one_sentence(refused, arguments, told):
    Path("list.json").write_text("[1]")
    discreet.Ledger.create("other.db", epsilon=3, unit="readers")
    assert told in refused("statement", *arguments)
