"""A release as an entry of the public registry of deployments (github.com/opendp/deployments-registry-data), all tiers.

The names of fields and the values to choose from are those of its schema. What the library knows is filled in; what it
cannot know is empty, and asked for in `questions`, by the name of the field. A known text and an answer stand together.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from fractions import Fraction
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, quote, suggestion
from discreet.exact.ball import float_above
from discreet.release.statement import (
    ARITHMETIC,
    DATA,
    NOT_PRIVATE,
    OUTSIDE,
    PROMISE,
    SIDE_CHANNELS,
    Statable,
    Subject,
    check_answers,
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


# The fields of the registry of deployments, by section, in its order, and what is asked where the library cannot know.
#
# Names and choices were read in schemas/deployments-schema.yaml of opendp/deployments-registry-data, November 2026.

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
"""The fields of `deployment`."""

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
"""What an answer can be, where the registry has a list."""

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
"""What the library cannot know, by field."""


# An entry of the registry as YAML, with each question as a comment beside the field that it is about.
#
# Written by hand: no library that discreet needs writes YAML, and none that does would write the comments. Texts are in
# double quotes, as JSON has them, which YAML reads as well; those of several lines are blocks.

_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def entry_to_yaml(entry: Mapping[str, Any]) -> str:
    """The entry as YAML, without its questions but for the comments."""
    questions = entry.get("questions", {})
    rest = {name: value for name, value in entry.items() if name != "questions"}
    return "\n".join(_write_mapping(rest, "", "", questions)) + "\n"


def _write_mapping(mapping: Mapping[str, Any], indent: str, path: str, questions: Mapping[str, str]) -> Iterator[str]:
    for name, value in mapping.items():
        # Questions name a field by its section and its name: all sections are below "deployment".
        field = name if not path or path == "deployment" else f"{path}.{name}"
        comment = f"  # {questions[field]}" if field in questions else ""
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}:{comment}"
            yield from _write_mapping(value, f"{indent}  ", field, questions)
        elif isinstance(value, list) and value:
            yield f"{indent}{name}:{comment}"
            yield from (f"{indent}  - {_quote(each)}" for each in value)
        elif isinstance(value, str) and _is_block(value):
            yield f"{indent}{name}: |-{comment}"
            yield from (f"{indent}  {line}" if line else "" for line in value.split("\n"))
        else:
            yield f"{indent}{name}: {_quote(value)}{comment}"


def _is_block(text: str) -> bool:
    """Whether a text of several lines reads back from a block as it is."""
    first, *others = text.split("\n")
    return (
        bool(others) and "".join([first, *others]).isprintable() and first.strip() == first != "" and bool(others[-1])
    )


def _quote(value: Any) -> str:
    """A value on one line, in a form that JSON and YAML share."""
    if isinstance(value, float):
        return _write_float(value)
    text = json.dumps(value, ensure_ascii=False)
    # YAML does not take these as they are, and their escapes are those of JSON.
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _write_float(value: float) -> str:
    """A float that is not negative, as readers of YAML 1.1 know it: with a point and a signed exponent."""
    mantissa, sign, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{sign}{exponent}"


def make_registry_entry(
    release: Statable,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    answers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The entry of a release, with `questions` as long as there are some.

    Parameters
    ----------
    release
        A release, a release by group, or a sketch.
    ledger
        The ledger that it was charged to, if it was to one.
    answers
        What the library cannot know, by the names that `questions` has, such as "basic.name".
    """
    return write_registry_entry(make_subject(release, ledger), answers)


def write_registry_entry(subject: Subject, answers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The entry of what is known, with what else the answers say."""
    given = check_answers(answers)
    for field, answer in given.items():
        _check_answer(field, answer)
    known = _find_known(subject)
    open_fields = [field for field in QUESTIONS if field not in given and not _is_settled(field, known, subject)]
    values = {field: _join(field, known.get(field), given.get(field)) for field in _list_fields()}
    deployment: dict[str, Any] = {}
    for section, names in SECTIONS.items():
        deployment[section] = {name: values[f"{section}.{name}"] for name in names}
    entry = {"url_slug": values["url_slug"], "status": "Draft", "tier": 3, "deployment": deployment}
    return entry if not open_fields else {**entry, "questions": {field: QUESTIONS[field] for field in open_fields}}


def _list_fields() -> list[str]:
    return ["url_slug", *(f"{section}.{name}" for section, names in SECTIONS.items() for name in names)]


def _check_answer(field: Any, answer: Any) -> None:
    """Raises unless a field is one that is asked for, and its answer one that the registry takes."""
    if field not in QUESTIONS:
        hint = suggestion(field, list(QUESTIONS), private=False)
        raise InvalidValueError(f"answers must be for fields that are asked for, and {quote(field)} is not{hint}")
    texts = answer if field in LISTS and isinstance(answer, list) else [answer]
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        kind = "a text or a list of texts" if field in LISTS else "a text"
        raise InvalidValueError(f"answers must have {kind} for {field}, not {quote(answer)}")
    if field == DATE and not _is_date(answer):
        raise InvalidValueError(f"answers must have a day such as 2026-01-31 for {field}, not {quote(answer)}")
    if field in CHOICES and answer not in CHOICES[field]:
        hint = suggestion(answer, CHOICES[field], private=False)
        allowed = ", ".join(CHOICES[field])
        raise InvalidValueError(f"answers must have one of {allowed} for {field}, not {quote(answer)}{hint}")


def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return date.fromisoformat(text).isoformat() == text
    return False


def _is_settled(field: str, known: Mapping[str, Any], subject: Subject) -> bool:
    """Whether a field needs no answer, given what is known."""
    if field == "accounting.composition":
        return subject.ledger is not None
    return field in known and field not in _TO_BE_COMPLETED


_TO_BE_COMPLETED = ("dp_variant.unprotected_quantities", "implementation.mechanisms")
"""Of what the library knows something, and the publisher the rest."""


def _join(field: str, known: Any, answer: Any) -> Any:
    """What is known of a field and what was answered, or what is empty."""
    if field in LISTS:
        return [answer] if isinstance(answer, str) else list(answer or [])
    if answer is None:
        return "" if known is None else known
    return answer if known is None else f"{known}\n\n{answer}"


def _find_known(subject: Subject) -> dict[str, Any]:
    """What the library knows, by field."""
    terms, ledger = subject.guarantee, subject.ledger
    known = {
        "basic.data_product_type": "Summary statistics",
        "dp_variant.data_domain": _describe_domain(subject),
        "dp_variant.unprotected_quantities": _describe_unprotected(subject),
        "privacy_loss.privacy_unit_details": f"{describe_adjacency(terms.adjacency)} {describe_sensitivity(terms)}",
        "privacy_loss.privacy_parameters": {},
        "deployment_model.model_name": "Central",
        "accounting.composition": _describe_composition(subject),
        "implementation.mechanisms": _describe_mechanisms(subject),
        "administrative.notes": "" if subject.private else NOT_PRIVATE,
    }
    if ledger is not None:
        known["privacy_loss.privacy_unit"] = ledger.budget.unit
    return known | (_find_promise(subject) if subject.private else {})


def _find_promise(subject: Subject) -> dict[str, Any]:
    """The variant and its parameters, which what is not private does not have; no number is below the exact one."""
    terms = subject.guarantee
    rho = f"rho = {decimal_above(terms.zcdp)} of zero-concentrated differential privacy."
    exact = f"epsilon = {decimal_above(terms.epsilon)}{subject.parts}, delta = {decimal_above(terms.delta)}, {rho}"
    people = promise_to_people(terms.epsilon, terms.delta, terms.adjacency, subject.word)
    delta = {"delta": _number_above(terms.delta)} if terms.delta else {}
    return {
        "dp_variant.variant_name": "Approximate DP" if terms.delta else "Pure DP",
        "privacy_loss.privacy_parameters": {"epsilon": _number_above(terms.epsilon), **delta},
        "privacy_loss.privacy_parameters_details": f"{exact} {people}",
    }


def _number_above(exact: Fraction) -> float | int:
    """A number of JSON that is not below an exact one: a whole one where no float is that large."""
    above = float_above(exact)
    return above if isfinite(above) else ceil(exact)


def _describe_domain(subject: Subject) -> str:
    items = "items that nobody listed" if subject.d is None else f"a public list of {subject.d:,} items"
    return f"All scores of {items} that data of the privacy unit can have. {subject.title}."


def _describe_unprotected(subject: Subject) -> str:
    terms = subject.guarantee
    listed = "the list of items, " if terms.discovery is None else ""
    # Where fewer may be released than were asked for, how many are is drawn from the data.
    fewer = terms.mechanism.may_release_fewer or terms.discovery is not None
    size = "how many are asked for" if fewer else "how many are released"
    known = f"Public by assumption: {listed}{size}, the mechanism and all of its parameters."
    limits = [*find_limits(PROMISE, subject.traits), *find_limits(OUTSIDE, subject.traits)]
    return f"{known} Known limits of the library: {' '.join(limits)}"


def _describe_composition(subject: Subject) -> str:
    inside = f"Sequential within the release{subject.parts}." if subject.parts else "One query."
    groups = "" if subject.share is None else f" {subject.share}"
    if subject.ledger is None:
        return inside + groups
    told = " ".join(line for line in describe_ledger(subject.ledger) if line)
    return f"{inside}{groups} {told}"


def _describe_mechanisms(subject: Subject) -> str:
    terms, entry = subject.guarantee, subject.entry
    version = "" if entry is None else f" {printable(entry.version)}"
    rests = " ".join(find_limits(DATA, subject.traits))
    return (
        f"{terms.mechanism!r} of the Python library discreet{version}. {ARITHMETIC} {SIDE_CHANNELS} "
        f"The data holder answers for: {rests}"
    )
