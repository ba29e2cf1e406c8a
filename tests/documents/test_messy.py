"""The German file of docs/messy.md goes to the right lists in one call, and the checks of three calls lead there."""

import importlib.util
import json
import shlex
import sys

import pytest

import discreet
from site_pages import ROOT, blocks

QUESTION = {
    "table": "purchases.csv",
    "user": "Kunde",
    "item": "Artikel",
    "domain": "articles.csv:Artikel",
    "value": "Preis",
    "clip": (0, 50),
    "resolution": "0.01",
    "each_user": "one",
}
COMMAND = (
    *("purchases.csv", "--user", "Kunde", "--value", "Preis", "--clip", "0,50", "--resolution", "0.01"),
    *("--by", "month(Kaufdatum)", "--groups", "2026-10..2026-12", "--each-user", "one", "--quiet"),
)
SPELLINGS = {
    "item": "fold(trim(Artikel))",
    "domain": "articles.csv:fold(trim(Artikel))",
    "label": "Artikel",
}
GROUPS = {"by": "fold(trim(Land))", "groups": "lands.csv:fold(trim(Land))"}
MONTHS = discreet.months("2026-10", "2026-12")
FORMATS = {"encoding": "latin-1", "date_format": "%d.%m.%Y", "decimal": ",", "thousands": "."}


@pytest.fixture
def messy(tmp_path, monkeypatch):
    """The module of the script, which has written its files to the current folder."""
    specification = importlib.util.spec_from_file_location("messy", ROOT / "examples" / "messy.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["messy.py", "."])
    module.main()
    return module


def right_lists(messy, k):
    return {
        (land.lower(), f"2026-{month}"): messy.ranking(land, month)[:k]
        for land in messy.LANDS
        for month in messy.MONTHS
    }


def question(**changes):
    """The arguments of events, by one Land and one month."""
    given = {**QUESTION, "by": "Land", "groups": "lands.csv:Land", **changes}
    by, groups = [given["by"], discreet.month("Kaufdatum")], discreet.product(given["groups"], MONTHS)
    return {**given, "by": by, "groups": groups}


@pytest.mark.long
def test_three_checks_lead_from_the_naive_call_to_the_right_lists(messy):
    options, seen = {}, []
    for _ in range(3):
        check = discreet.check_events(discreet.events(**question(**options)))
        seen.append({loss.cause: loss.remedies[:1] for loss in check.lost})
        for remedies in seen[-1].values():
            for remedy in remedies:
                options |= remedy
    assert set(seen[0]) == {"encoding", "value", "date", "group"}
    assert seen[1:] == [{"item": (SPELLINGS,)}, {}]
    assert options == FORMATS | SPELLINGS | GROUPS
    assert (check.rows, check.rows_inside, check.groups.rows_outside, check.advice) == (3780, 3780, 0, [])
    release = discreet.top_k(discreet.events(**question(**options)), k=1, epsilon=3)
    assert {key: release[key].items for key in release} == right_lists(messy, 1)


@pytest.mark.long
def test_the_options_that_checks_print_lead_to_the_right_lists(messy, call):
    """Each option is pasted in the place of the one of its name."""
    options = {"--item": "Artikel", "--domain": "articles.csv:Artikel", "--by": "Land", "--groups": "lands.csv:Land"}
    for steps in range(3):
        words = [word for pair in options.items() for word in pair]
        # The Land stands before the month.
        code, out, _ = call("check", *words, *COMMAND)
        causes = out.partition("by cause")[2].partition("What to change")[0].splitlines()
        found = [line[line.index("--") :].partition(" or ")[0] for line in causes if " --" in line]
        pasted = [word for line in found for word in shlex.split(line)]
        options |= dict(zip(pasted[::2], pasted[1::2], strict=True))
        assert bool(pasted) == (steps < 2)
    assert (code, out.partition("What to change:")[2]) == (0, "\n- Nothing stands out.\n")
    words = [word for pair in options.items() for word in pair]
    code, out, err = call("select", *words, *COMMAND, "-k", "1", "--epsilon", "3", "--format", "items")
    assert (code, err) == (0, "")
    found = {tuple(line.split("\t")[:2]): [line.split("\t")[2]] for line in out.splitlines()}
    assert found == right_lists(messy, 1)


@pytest.mark.long
def test_no_text_of_a_row_is_in_a_cause_or_its_remedy(messy):
    found = [
        discreet.check_events(discreet.events(**question(**options))).to_dict()["lost"] for options in ({}, FORMATS)
    ]
    told = json.dumps(found, ensure_ascii=False)
    with open("purchases.csv", encoding="latin-1") as file:
        cells = {cell for line in list(file)[1:] for cell in line.strip().split(";")}
    assert len(cells) > 3000
    assert not [cell for cell in cells if f'"{cell}"' in told or f"'{cell}'" in told]


def test_one_command_has_the_right_lists(messy, call):
    given = SPELLINGS | GROUPS | FORMATS
    options = [word for name, text in given.items() for word in (f"--{name.replace('_', '-')}", text)]
    code, out, err = call("select", *options, *COMMAND[:-1], "-k", "1", "--epsilon", "3", "--format", "items")
    assert code == 0, err
    found = {tuple(line.split("\t")[:2]): [line.split("\t")[2]] for line in out.splitlines()}
    assert found == right_lists(messy, 1)
    assert [note.partition(" as ")[0] for note in err.splitlines()] == [
        "discreet: item reads fold(trim(Artikel))",
        "discreet: by reads fold(trim(Land))",
        "discreet: by reads Kaufdatum",
        "discreet: value reads Preis",
    ]


def test_the_page_has_these_calls():
    text = "\n".join(block for _, _, block in blocks("messy.md"))
    assert all(f'{name}="{value}"' in text for name, value in (FORMATS | SPELLINGS).items())
    assert all(f'"{value}"' in text for value in GROUPS.values())
