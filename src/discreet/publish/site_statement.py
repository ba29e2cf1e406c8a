"""What a site says about privacy: three sentences on every page, and a statement of each chart."""

from __future__ import annotations

import re
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from discreet.publish.chart_page import ChartPages
from discreet.release.registry import entry_to_yaml, write_registry_entry
from discreet.release.statement import make_subject, promise_to_people, write_statement
from discreet.text import decimal_above, printable

if TYPE_CHECKING:
    from discreet.ledger.account import Budget
    from discreet.publish.site import Site

_LINK = '<a href="statement.html">the statement</a>'


def protect_in_words(site: Site) -> str:
    """How people are protected, in three sentences of HTML."""
    if site.ledger is None:
        return f"These pages are a rehearsal. Nobody's data were read for them. What will be promised is in {_LINK}."
    budget = site.ledger.budget
    delta = budget.delta or Fraction(0)
    lists = "all lists that are ever charged to this budget"
    promise = escape(promise_to_people(budget.epsilon, delta, budget.adjacency, lists))
    beside = "" if budget.delta is None else f" and delta = {decimal_above(budget.delta)}"
    spent = escape(decimal_above(site.ledger.spent))
    terms = escape(f"epsilon = {decimal_above(budget.epsilon)}{beside}")
    return (
        "Every list is drawn at random in a way that hides, as far as the next sentence says, "
        f"{escape(_name_secret(budget))}. {promise} That budget is {terms}, of which {spent} is spent: {_LINK} says "
        "what that means, and what it does not protect."
    )


def _name_secret(budget: Budget) -> str:
    """What is hidden of a person: with swap it is no secret who is in the data."""
    person = f"any single one of the {printable(budget.unit)}"
    return f"whether {person} is in the data" if budget.adjacency == "add-remove" else f"what the rows of {person} are"


def make_statements(site: Site) -> dict[str, str]:
    """The statement of each chart's last release, as text and as entries of the public registry of deployments."""
    texts = [f"# {printable(site.file.title)}: what is promised"]
    entries = []
    for pages in site.charts:
        subject = make_subject(pages.latest.release, site.ledger, pages.latest.entry)
        texts.append(_lower_headings(write_statement(subject), pages.chart.title))
        entries.append(entry_to_yaml(write_registry_entry(subject, _answer(pages))))
    nothing = [] if entries else ["Nothing is released yet."]
    return {"statement.md": "\n\n".join([*texts, *nothing]) + "\n", "statement.yaml": "---\n".join(entries) or "[]\n"}


def _lower_headings(statement: str, title: str) -> str:
    """A statement as a part of a longer text, under the title of its chart."""
    lowered = re.sub("^(#+ )", r"#\1", statement, flags=re.MULTILINE)
    return re.sub("^## ", lambda found: f"## {printable(title)}: ", lowered, count=1)


def _answer(pages: ChartPages) -> dict[str, Any]:
    """What a charts file knows, and a release does not."""
    chart = pages.chart
    again = chart.unit is not None
    return {
        "basic.name": chart.title,
        **({} if chart.note is None else {"basic.description": chart.note}),
        "deployment_model.release_type": "Many releases" if again else "One release",
        **({"deployment_model.release_type_details": f"One release for each {chart.get('every')}."} if again else {}),
    }
