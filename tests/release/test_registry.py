"""The entry of the registry: its fields and choices, what is filled in, what is asked, and the same as YAML."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
import yaml

import discreet
from discreet.release.registry import CHOICES, DATE, QUESTIONS, entry_to_yaml

SCORES = {"dune": 912, "alien": 877, "heat": 410}
REQUIRED = {
    *("name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"),
    "publication_date",
}
"""What the schema of the registry demands of `basic`."""

ANSWERS = {
    field: CHOICES[field][0] if field in CHOICES else f"about {field}: 1 # 2\n\n'x' \"y\"{odd}"
    for field, odd in zip(QUESTIONS, ("", " \x85", "\n  indented", "\n", "\u2028", "\ttab") * 6, strict=False)
}

ANSWERS[DATE] = "2026-01-31"


@pytest.fixture
def release():
    return discreet.top_k(SCORES, k=2, epsilon="1/3", counts="1/3")


def test_what_is_known_is_filled_in_and_never_below_what_is_exact(release):
    deployment = release.registry()["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    [(name, epsilon)] = deployment["privacy_loss"]["privacy_parameters"].items()
    assert name == "epsilon"
    assert release.guarantee.epsilon <= epsilon < release.guarantee.epsilon * (1 + 2**-50)
    assert "at most 66.1% sure" in deployment["privacy_loss"]["privacy_parameters_details"]
    assert deployment["deployment_model"]["model_name"] == "Central"
    assert "Canonical(gamma='3/4', noise='gumbel')" in deployment["implementation"]["mechanisms"]


def test_what_is_empty_is_asked_for_and_nothing_is_guessed(release):
    entry = release.registry()
    asked, sections = entry["questions"], entry["deployment"]
    empty = {f"{section}.{name}" for section, fields in sections.items() for name, value in fields.items() if not value}
    assert empty - set(asked) == {"administrative.notes"}
    assert set(sections["basic"]) >= REQUIRED
    assert set(asked) - empty == {
        *("url_slug", "dp_variant.unprotected_quantities", "accounting.composition", "implementation.mechanisms"),
    }


def test_answers_make_it_complete(release):
    entry = release.registry(answers=ANSWERS)
    assert "questions" not in entry
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    assert entry["deployment"]["basic"]["data_curators"] == [ANSWERS["basic.data_curators"]]
    assert entry["deployment"]["implementation"]["mechanisms"].endswith(ANSWERS["implementation.mechanisms"])
    assert all(entry["deployment"][key.split(".")[0]][key.split(".")[1]] == CHOICES[key][0] for key in CHOICES)
    assert release.registry(answers={"basic.data_curators": ["A", "B"]})["deployment"]["basic"]["data_curators"] == [
        "A",
        "B",
    ]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"basic.nane": "x"}, "'basic.nane' is not; did you mean basic.name?"),
        ({"dp_variant.variant_name": "Pure DP"}, "'dp_variant.variant_name' is not"),
        (
            {"deployment_model.access_type": "open"},
            "one of Interactive, Non-interactive for deployment_model.access_type",
        ),
        ({"basic.publication_date": "31/01/2026"}, "a day such as 2026-01-31 for basic.publication_date"),
        ({"basic.publication_date": "20260131"}, "a day such as 2026-01-31 for basic.publication_date"),
        ({"basic.name": 7}, "a text for basic.name, not 7"),
        ({"basic.data_curators": []}, "a text or a list of texts for basic.data_curators"),
        ([("basic.name", "x")], "answers must be a mapping"),
    ],
)
def test_answers_that_cannot_be_are_refused(release, answers, told):
    with pytest.raises(discreet.Error, match=told.replace("?", r"\?")):
        release.registry(answers=answers)


@pytest.mark.parametrize("answers", [None, ANSWERS])
def test_yaml_reads_back_and_has_the_questions_beside_the_fields(release, answers):
    entry = release.registry(answers=answers)
    text = entry_to_yaml(entry)
    asked = entry.pop("questions", {})
    assert yaml.safe_load(text) == entry
    for field, question in asked.items():
        name = field.rpartition(".")[2]
        assert any(
            line.strip().startswith(f"{name}:") and line.endswith(f"  # {question}") for line in text.split("\n")
        )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *[(1e-8, "1.0e-08"), (1.5e-8, "1.5e-08"), (1e16, "1.0e+16"), (5e-324, "5.0e-324")],
        *[(0.0, "0.0"), (3.0, "3.0"), (0.1, "0.1"), (2.0**53, "9007199254740992.0")],
    ],
)
def test_yaml_reads_every_float_as_a_number(number, text):
    assert entry_to_yaml({"delta": number}) == f"delta: {text}\n"
    assert yaml.safe_load(f"delta: {text}") == {"delta": number}


def test_an_epsilon_beyond_all_floats_is_a_whole_number_that_is_not_below_it():
    entry = discreet.top_k(SCORES, k=1, epsilon=Fraction(3 * 10**400 + 1, 3)).registry()
    for read in (json.loads(json.dumps(entry, allow_nan=False)), yaml.safe_load(entry_to_yaml(entry))):
        assert read["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 10**400 + 1}


def test_a_delta_and_a_ledger_are_told(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "b.db", epsilon=3, unit="readers")
    release = discreet.top_k(SCORES, k=1, epsilon=1, ledger=ledger)
    entry = release.registry(ledger)
    assert entry["deployment"]["privacy_loss"]["privacy_unit"] == "readers"
    assert "at most 95.3% sure" in entry["deployment"]["accounting"]["composition"]
    assert not {"privacy_loss.privacy_unit", "accounting.composition"} & set(entry["questions"])


def test_what_is_not_private_has_no_variant_and_no_epsilon():
    deployment = discreet.top_k(SCORES, k=1, epsilon=1, rng=np.random.default_rng(1)).registry()["deployment"]
    assert deployment["administrative"]["notes"].startswith("NOT PRIVATE")
    assert deployment["dp_variant"]["variant_name"] == ""
    assert deployment["privacy_loss"]["privacy_parameters"] == {}


@pytest.mark.parametrize(("mechanism", "told"), [(discreet.Core(), "asked for"), (discreet.Canonical(), "released")])
def test_how_many_are_released_is_public_only_where_it_is_not_drawn(mechanism, told):
    entry = discreet.top_k(SCORES, k=2, epsilon=1, mechanism=mechanism).registry()
    assert f"the list of items, how many are {told}, the" in entry["deployment"]["dp_variant"]["unprotected_quantities"]


def test_how_many_are_found_is_not_public():
    rows = pa.table({"who": list(range(3000)), "what": ["a", "b", "c"] * 1000})
    source = discreet.events(rows, user="who", item="what", domain=discreet.discovered("1e-6", max_items_per_user=1))
    entry = discreet.top_k(source, k=2, epsilon=1).registry()
    told = entry["deployment"]["dp_variant"]["unprotected_quantities"]
    assert told.startswith("Public by assumption: how many are asked for, the mechanism")


def test_groups_and_sketches_have_entries_too():
    charts = discreet.top_k(discreet.grouped({"DE": SCORES, "FR": SCORES}, each_user="one"), k=1, epsilon=1)
    assert "one group alone" in charts.registry()["deployment"]["accounting"]["composition"]
    curve = discreet.sketch([9, 5, 2], epsilon=1, ranks=[1, 3])
    assert "DiscreteLaplace()" in curve.registry()["deployment"]["implementation"]["mechanisms"]
