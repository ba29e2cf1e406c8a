"""A fifth mechanism, registered from outside: what it brings itself is enough for all that the library does with one.

To add one to the library is to write it in `mechanisms/`, to name it in `mechanisms/registry.py` and `__init__.py`, and
to say what its law is twice: as the sampler has it (`evidence/law.py`) and by definition (`evidence/definition.py`).
"""

import ast
import random
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import discreet
from discreet.analysis.compare import compare
from discreet.cli.options import parse_mechanism
from discreet.evidence import definition
from discreet.evidence.law import law
from discreet.evidence.verify import verify_witness
from discreet.mechanisms import oneshot
from discreet.mechanisms.base import Mechanism, scale
from discreet.mechanisms.noise import GUMBEL
from discreet.mechanisms.registry import MECHANISMS, all_variants, from_dict, to_dict
from discreet.mechanisms.tally import Selection
from discreet.publish.options import MechanismOptions
from discreet.study.tasks import METHODS
from planted_faults import wrong_scale
from witness_search import search

PACKAGE = Path(discreet.__file__).parent


def shares(k):
    """Half of epsilon for the first item, and the other half for all others alike."""
    return [Fraction(1)] if k == 1 else [Fraction(1, 2)] + [Fraction(1, 2 * (k - 1))] * (k - 1)


@dataclass(frozen=True)
class TopHeavy(Mechanism):
    """Peels one item after the other by exponential mechanisms, the first of which has half of epsilon."""

    name: ClassVar[str] = "top-heavy"
    ordered: ClassVar[bool] = True

    def prepare(self, tally, k, epsilon, sensitivity):
        return Prepared(tally, [share * scale(epsilon, sensitivity) for share in shares(k)])

    def zcdp(self, epsilon, k):
        return sum(((share * epsilon) ** 2 / 8 for share in shares(k)), Fraction(0))

    def parameters(self):
        return {}

    def unit_cost(self, s, k):
        return s * min(shares(k))


@dataclass(frozen=True, eq=False)
class Prepared:
    tally: discreet.mechanisms.tally.Tally
    weights: list

    def select(self, entropy):
        return Selection(self.draw(entropy))

    def draw(self, entropy):
        gone = []
        for _ in self.weights:
            left, once = self.next_round(gone)
            gone.append(int(left.original(once.draw(entropy))[0]))
        return np.array(gone, np.int64)

    def next_round(self, gone):
        left = self.tally.without(np.array(sorted(gone), np.int64))
        return left, oneshot.Prepared(left, 1, self.weights[len(gone)], GUMBEL)


@law.register
def _(prepared: Prepared):
    """Round by round, each as one-shot has it for one item."""
    result = {(): 0}
    for _ in prepared.weights:
        longer = {}
        for gone, log_probability in result.items():
            left, once = prepared.next_round(gone)
            for (rank,), chance in law(once).items():
                longer[*gone, int(left.original(np.array([rank]))[0])] = log_probability + chance
        result = longer
    return result


def by_definition(_, scores, k, s, __):
    result = {(): 0.0}
    for share in shares(k):
        longer = {}
        for gone, log_probability in result.items():
            left = [i for i in range(len(scores)) if i not in gone]
            chances = definition.winner_logs([share * s * scores[i] for i in left], "gumbel")
            longer |= {(*gone, i): log_probability + chance for i, chance in zip(left, chances, strict=True)}
        result = longer
    return result


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(MECHANISMS, TopHeavy.name, TopHeavy)
    monkeypatch.setitem(definition.DEFINITIONS, TopHeavy.name, by_definition)


def test_it_releases_and_its_release_is_read_again():
    release = discreet.top_k({"a": 90, "b": 70, "c": 3}, 2, "1/2", mechanism=TopHeavy(), rng=random.Random(3))
    assert release.order in (["a", "b"], ["b", "a"], ["a", "c"])
    assert release.guarantee.zcdp == Fraction(1, 4) / 8 * (Fraction(1, 4) + Fraction(1, 4))
    assert discreet.Release.from_dict(release.to_dict()) == release
    assert from_dict(to_dict(TopHeavy())) == parse_mechanism(MechanismOptions("top-heavy")) == TopHeavy()


@pytest.mark.some(1)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_it_is_verified_and_a_wrong_scale_is_found(k):
    report = discreet.verify(TopHeavy(), k, scores=[[3, 2, 2, 0], [1, 1, 1, 1]], epsilon=2)
    assert report.holds, report
    assert report.pairs == 2 * (2 * 15 + 80)
    with wrong_scale(Fraction(999, 1000))():
        broken = discreet.verify(TopHeavy(), k, scores=[[3, 2, 2, 0]], epsilon=2, adjacency="add-remove")
    assert {failure.check for verdict in broken.verdicts for failure in verdict.failures} == {"definition"}
    with wrong_scale(Fraction(2))():
        broken = discreet.verify(TopHeavy(), k, scores=[[3, 2, 2, 0]], epsilon=2, adjacency="add-remove")
    assert {failure.check for verdict in broken.verdicts for failure in verdict.failures} >= {"epsilon", "definition"}


def test_all_of_verify_has_it_and_a_search_finds_a_pair_close_to_epsilon():
    assert TopHeavy() in all_variants()
    witness = search(TopHeavy(), starts=2, patience=40)
    assert witness.share > 0.9
    assert verify_witness(TopHeavy(), witness).holds


@pytest.mark.slow
def test_it_is_audited():
    found = discreet.audit(TopHeavy(), 2, draws=300, rng=random.Random(5))
    assert found.holds
    assert found.longer is not None


def test_its_utility_is_estimated_and_what_needs_a_formula_is_refused():
    scores = [90, 80, 5, 1]
    found = discreet.utility(scores, 2, 1, TopHeavy(), width="0.3")
    assert found.top > 0.9
    assert found.confidence == Fraction(99, 100)
    assert discreet.expected(scores, 2, 1, TopHeavy(), width="0.3").recall > 0.9
    for ask in (
        lambda: discreet.epsilon_for(scores, 2, mechanism=TopHeavy()),
        lambda: discreet.subset_probability(scores, [0, 1], 1, TopHeavy()),
        lambda: compare(scores, 2, mechanisms=[TopHeavy()]),
    ):
        with pytest.raises(discreet.Error, match=r"mechanism must be one whose utility is computed.*TopHeavy\(\)"):
            ask()
    # What compares by itself leaves it out.
    assert TopHeavy() not in [choice.mechanism for choice in compare(scores, 2).choices]
    assert TopHeavy.name not in METHODS


def test_what_is_not_registered_is_refused(monkeypatch):
    monkeypatch.delitem(MECHANISMS, TopHeavy.name)
    with pytest.raises(discreet.Error, match=r"mechanism must be one of .*, not TopHeavy"):
        discreet.top_k([3, 2, 1], 1, 1, mechanism=TopHeavy())


def knowing(kind):
    """The modules that name a mechanism: its class, its module or, in a string, its name or a value of it."""
    module = kind.__module__.rpartition(".")[2]
    spelt = re.compile(rf"{re.escape(kind.name)}|{kind.__name__}\(.*\)", re.DOTALL)
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names |= {alias.name for node in imported for alias in node.names}
        modules = {f"{node.module}.{alias.name}" for node in imported for alias in node.names}
        strings = [str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        is_named = f"discreet.mechanisms.{module}" in modules or any(spelt.fullmatch(string) for string in strings)
        if kind.__name__ in names or is_named:
            yield str(path.relative_to(PACKAGE))


@pytest.mark.long
def test_few_modules_know_a_mechanism():
    """Peeling has no formula of its own, no default and no figure: what knows it is what every mechanism needs."""
    needed = {"__init__.py", "mechanisms/registry.py", "evidence/definition.py", "evidence/law.py"}
    assert set(knowing(discreet.Peeling)) == {"mechanisms/peeling.py", *needed}
