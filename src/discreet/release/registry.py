"""Write a release as an entry of the public registry of deployments (github.com/opendp/deployments-registry-data).

Field names and choices are those of schemas/deployments-schema.yaml there, read in November 2026. Known fields are
filled in; the others are empty and listed in `questions`. YAML is written by hand, because no dependency writes it with
the questions as comments: texts stand in double quotes as in JSON, texts of several lines in blocks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from fractions import Fraction
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote, suggestion
from discreet.exact.ball import float_above
from discreet.language import ENGLISH
from discreet.release.statement import (
    DATA,
    OUTSIDE,
    PROMISE,
    SIDE_CHANNELS,
    Statable,
    Subject,
    describe_adjacency,
    describe_ledger,
    describe_sensitivity,
    find_limits,
    make_subject,
    promise_to_people,
)
from discreet.text import decimal_above, printable

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


SECTIONS = {
    "basic": (
        "name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description",
        "publication_date", "data_product_sector",
    ),
    "dp_variant": ("variant_name", "data_domain", "unprotected_quantities"),
    "privacy_loss": (
        "privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details",
    ),
    "deployment_model": (
        "model_name", "model_name_details", "actors", "release_type", "release_type_details", "data_source_type",
        "data_source_type_details", "access_type", "access_type_details",
    ),
    "accounting": ("post_processing", "composition"),
    "implementation": ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
    "administrative": ("sources", "notes", "registry_authors"),
}  # fmt: skip
"""The fields of `deployment` by section, in the order of the registry."""

LISTS = ("basic.data_curators", "administrative.registry_authors")
"""The fields that hold several texts."""

DATE = "basic.publication_date"
"""The field that holds a day."""

CHOICES = {
    "basic.data_product_sector": ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    "deployment_model.release_type": ("One release", "Many releases"),
    "deployment_model.data_source_type": ("Static", "Dynamic"),
    "deployment_model.access_type": ("Interactive", "Non-interactive"),
}
"""The values that an answer can have, where the registry has a list."""

QUESTIONS = {
    "url_slug": "By which short name should the entry be found?",
    "basic.name": "What is the published product called?",
    "basic.data_curators": "Who publishes it?",
    "basic.intended_use": "What is it meant to be used for?",
    "basic.data_product_region": "Which region are the data about, or whose law holds?",
    "basic.description": "What does it show, in a few sentences?",
    "basic.publication_date": "On which day was it first published, as YYYY-MM-DD?",
    "basic.data_product_sector": "Which industry is it about?",
    "dp_variant.unprotected_quantities": "Is anything else published that comes from the data without noise?",
    "privacy_loss.privacy_unit": "Who is one user: a person, an account, a household, a device?",
    "deployment_model.model_name_details": "Who collects the data, and who runs the release?",
    "deployment_model.actors": "Who can see the data or the lists, and what are they trusted with?",
    "deployment_model.release_type": "Is it published once or again and again?",
    "deployment_model.release_type_details": "How often, and when does the budget start anew, if ever?",
    "deployment_model.data_source_type": "Do new data come in over time?",
    "deployment_model.data_source_type_details": "If so, how?",
    "deployment_model.access_type": "Can readers ask for releases of their own?",
    "deployment_model.access_type_details": "If so, how is the budget divided among them?",
    "accounting.post_processing": "Is anything done to the lists after the release, before people see them?",
    "accounting.composition": "What else was released about the same people, and what did it cost?",
    "implementation.preprocessing_and_hyperparameter_tuning":
        "How were the events prepared, and were k, epsilon or the condition chosen by looking at the data?",
    "implementation.mechanisms":
        "Which version of discreet was used, with which pad_to, and how are the data themselves kept safe?",
    "implementation.justification": "Why these terms: epsilon, the unit, the list of items?",
    "administrative.sources": "Where can people read about it, and find the lists?",
    "administrative.registry_authors": "Who filled in this entry?",
}  # fmt: skip
"""The question for each field that the library cannot know."""


_TO_BE_COMPLETED = ("dp_variant.unprotected_quantities", "implementation.mechanisms")
"""Fields that the library fills in part, and the publisher completes."""

_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""The characters that YAML does not allow in a text."""


def make_registry_entry(
    release: Statable,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    answers: Mapping[str, Any] | None = None,
    source: str | None = None,
) -> dict[str, Any]:
    """Return the entry of a release, with `questions` as long as fields are open.

    Parameters
    ----------
    release
        A release, a release by group, or a sketch.
    ledger
        The ledger that the release was charged to, if any.
    answers
        Facts that the library cannot know, by the names in `questions`, such as "basic.name".
    source
        The kind of source, as for `make_statement`.
    """
    return write_registry_entry(make_subject(release, ledger, source=source), answers)


def write_registry_entry(subject: Subject, answers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the entry of a subject; a field that is known and answered holds both texts."""
    if answers is not None and not isinstance(answers, Mapping):
        raise InvalidTypeError(f"answers must be a mapping from field to answer, not {quote(answers)}")
    given, known = _check_answers(dict(answers or {})), _find_known(subject)
    settled = known.keys() - set(_TO_BE_COMPLETED)
    if subject.ledger is None:
        settled -= {"accounting.composition"}

    def fill(field: str) -> Any:
        said, answer = known.get(field), given.get(field)
        if field in LISTS:
            return [answer] if isinstance(answer, str) else list(answer or [])
        if answer is None:
            return "" if said is None else said
        return answer if said is None else f"{said}\n\n{answer}"

    deployment = {section: {name: fill(f"{section}.{name}") for name in names} for section, names in SECTIONS.items()}
    entry = {"url_slug": fill("url_slug"), "status": "Draft", "tier": 3, "deployment": deployment}
    questions = {field: text for field, text in QUESTIONS.items() if field not in given and field not in settled}
    return {**entry, "questions": questions} if questions else entry


def _check_answers(answers: dict[Any, Any]) -> dict[Any, Any]:
    """Return the answers; raise unless each is for an open field and has a value that the registry takes."""
    for field, answer in answers.items():
        if field not in QUESTIONS:
            hint = suggestion(field, list(QUESTIONS), private=False)
            raise InvalidValueError(f"answers must be for fields that are asked for, and {quote(field)} is not{hint}")
        texts = answer if field in LISTS and isinstance(answer, list) else [answer]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            kind = "a text or a list of texts" if field in LISTS else "a text"
            raise InvalidValueError(f"answers must have {kind} for {field}, not {quote(answer)}")
        day = answer
        if field == DATE:
            try:
                day = date.fromisoformat(answer).isoformat()
            except ValueError:
                day = None
        if day != answer:
            raise InvalidValueError(f"answers must have a day such as 2026-01-31 for {field}, not {quote(answer)}")
        if field in CHOICES and answer not in CHOICES[field]:
            hint = suggestion(answer, CHOICES[field], private=False)
            allowed = ", ".join(CHOICES[field])
            raise InvalidValueError(f"answers must have one of {allowed} for {field}, not {quote(answer)}{hint}")
    return answers


def _find_known(subject: Subject) -> dict[str, Any]:
    """Return the facts that the library knows, by field."""
    terms, ledger, found = subject.guarantee, subject.ledger, subject.guarantee.discovery is not None
    noise = "" if terms.discovery is None else f"{terms.discovery.describe_noise()} ".lstrip()
    items = "items that nobody listed" if subject.d is None else f"a public list of {subject.d:,} items"
    # The number of released items is drawn from the data if it may be smaller than requested.
    size = "how many are asked for" if terms.mechanism.may_release_fewer or found else "how many are released"
    limits = " ".join([*find_limits(PROMISE, subject.traits), *find_limits(OUTSIDE, subject.traits)])
    composition = f"Sequential within the release{subject.parts}." if subject.parts else "One query."
    composition += "" if subject.share is None else f" {subject.share}"
    if ledger is not None:
        composition += f" {' '.join(describe_ledger(ledger))}"
    arithmetic = ENGLISH.text("statement.arithmetic")
    version = "" if subject.entry is None else f" {printable(subject.entry.version)}"
    known = {
        "basic.data_product_type": "Summary statistics",
        "dp_variant.data_domain":
            f"All scores of {items} that data of the privacy unit can have. {subject.title}.",
        "dp_variant.unprotected_quantities":
            f"Public by assumption: {'' if found else 'the list of items, '}{size}, the mechanism and all of its "
            f"parameters. Known limits of the library: {limits}",
        "privacy_loss.privacy_unit_details": f"{describe_adjacency(terms.adjacency)} {describe_sensitivity(terms)}",
        "privacy_loss.privacy_parameters": {},
        "deployment_model.model_name": "Central",
        "accounting.composition": composition,
        "implementation.mechanisms":
            f"{terms.mechanism!r} of the Python library discreet{version}. {noise}{arithmetic} {SIDE_CHANNELS} "
            f"The data holder answers for: {' '.join(find_limits(DATA, subject.traits))}",
        "administrative.notes": "" if subject.private else ENGLISH.text("statement.not_private"),
    }  # fmt: skip
    if ledger is not None:
        known["privacy_loss.privacy_unit"] = ledger.budget.unit
    if subject.private:
        # A release that is not private has no variant and no parameters; no number is below the exact one.
        zcdp = "zero-concentrated differential privacy"
        if terms.zcdp_delta:
            zcdp = f"delta-approximate {zcdp} with delta = {decimal_above(terms.zcdp_delta)}"
        rho = f"rho = {decimal_above(terms.zcdp)} of {zcdp}."
        exact = f"epsilon = {decimal_above(terms.epsilon)}{subject.parts}, delta = {decimal_above(terms.delta)}, {rho}"
        people = promise_to_people(terms.epsilon, terms.delta, terms.adjacency, ENGLISH.text(f"seen.{subject.seen}"))
        delta = {"delta": _number_above(terms.delta)} if terms.delta else {}
        known |= {
            "dp_variant.variant_name": "Approximate DP" if terms.delta else "Pure DP",
            "privacy_loss.privacy_parameters": {"epsilon": _number_above(terms.epsilon), **delta},
            "privacy_loss.privacy_parameters_details": f"{exact} {people}",
        }
    return known


def _number_above(exact: Fraction) -> float | int:
    """Return the float that is spelt as the exact number, or else the least one that is not below it, or an int."""
    if exact < 10**300 and Fraction(repr(float(exact))) == exact:
        return float(exact)
    above = float_above(exact)
    return above if isfinite(above) else ceil(exact)


def entry_to_yaml(entry: Mapping[str, Any]) -> str:
    """Return the entry as YAML, with each question as a comment beside its field."""
    questions = entry.get("questions", {})
    rest = {name: value for name, value in entry.items() if name != "questions"}
    return "\n".join(_write_mapping(rest, "", "", questions)) + "\n"


def _write_mapping(mapping: Mapping[str, Any], indent: str, path: str, questions: Mapping[str, str]) -> Iterator[str]:
    for name, value in mapping.items():
        # Questions name a field by its section and its name; all sections are inside "deployment".
        field = name if not path or path == "deployment" else f"{path}.{name}"
        comment = f"  # {questions[field]}" if field in questions else ""
        lines = value.split("\n") if isinstance(value, str) else []
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}:{comment}"
            yield from _write_mapping(value, f"{indent}  ", field, questions)
        elif isinstance(value, list) and value:
            yield f"{indent}{name}:{comment}"
            yield from (f"{indent}  - {_quote(each)}" for each in value)
        elif len(lines) > 1 and "".join(lines).isprintable() and lines[0].strip() == lines[0] != "" and lines[-1]:
            # A block reads back as it is if its first line has no blanks around it and its last line is not empty.
            yield f"{indent}{name}: |-{comment}"
            yield from (f"{indent}  {line}" if line else "" for line in lines)
        else:
            yield f"{indent}{name}: {_quote(value)}{comment}"


def _quote(value: Any) -> str:
    """Return a value on one line, in a form that JSON and YAML share."""
    if isinstance(value, float):
        # Readers of YAML 1.1 take a float for a text unless it has a point.
        mantissa, sign, exponent = repr(value).partition("e")
        return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{sign}{exponent}"
    text = json.dumps(value, ensure_ascii=False)
    # YAML allows these characters only as escapes, which it shares with JSON.
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
