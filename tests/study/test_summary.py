"""What a study says in sentences: who was cheapest, by how much, why joint rests, and what was left out."""

from math import nan

import numpy as np

from discreet.study.curves import NeededEpsilon, Point, Results, Time
from discreet.study.tasks import METHODS, left_out_tasks, study_tasks, summarise
from discreet.study.vectors import Vector, make_vectors

PAPERS, DEFAULT, PEELING, JOINT = "canonical, gamma = 1/2", "canonical, gamma = 3/4", "peeling", "joint, sequences"


def needs(vector, k, **epsilons):
    names = {"papers": PAPERS, "default": DEFAULT, "peeling": PEELING, "joint": JOINT}
    base = epsilons["papers"]
    return [NeededEpsilon(vector, 99, k, names[name], 0.9, one, one / base) for name, one in epsilons.items()]


def points(vector, k, method=PAPERS, levels=(0.0, 1.0)):
    return [Point("methods", vector, 99, k, method, 1.2**i, "top", level, 0.0) for i, level in enumerate(levels)]


def test_sentences_name_the_cheapest_and_by_how_much():
    budgets = needs("A", 10, papers=1.0, default=0.8, peeling=4.0) + needs("A", 100, papers=1.0, default=0.8)
    budgets += needs("B", 10, papers=1.0, default=0.9, peeling=0.5)
    told = summarise(Results(points("A", 10) + points("A", 100) + points("B", 10), budgets, []))
    assert told[0].startswith("Canonical was cheapest in 2 of 3 cases, peeling in 1: ")
    assert "Peeling took 2.2 times as much at k = 10." in told
    assert any(
        note.startswith("Canonical with gamma = 3/4, the default, took 0.85 times as much at k = 10 and 0.8 t")
        for note in told
    )
    assert not any(word in note for note in told for word in ("Left out", "Not counted", "rest"))


def test_what_is_left_out_or_never_reached_is_said():
    budgets = needs("A", 10, papers=1.0)
    told = summarise(Results(points("A", 10) + points("TIED", 10) + points("TIED", 1000), budgets, []))
    assert any(note.startswith("Not counted above: TIED at k = 10 and 1,000. There the k-th best") for note in told)
    vectors = make_vectors([])
    left = left_out_tasks(vectors, full=False)
    assert left_out_tasks(vectors, full=True) == []
    assert {task.key for task in left} == {
        task.key for task in study_tasks(vectors, full=True) if task.figure in ("shapes", "flat") and task.heavy
    }
    assert left
    [note] = [note for note in summarise(Results([], [], []), left) if note.startswith("Left out: joint on ZIPF")]
    assert "at k = 1,000" in note
    assert "--full" in note
    few = left_out_tasks([Vector("FEW", np.arange(40))], full=True)
    [note] = summarise(Results([], [], []), few)
    assert note.startswith("Left out: FEW at k = 100 and 1,000, where there are no more items")


def test_a_rest_of_joint_is_explained_where_it_is():
    levels = (0.0, 0.2, 0.5, 0.5, 0.5, 0.5, 0.9, 1.0)
    told = summarise(Results(points("A", 10, JOINT, levels), [], []))
    [note] = [note for note in told if note.startswith("Joint's curves rest")]
    assert "On A at k = 10 TOP stays near 50% from epsilon = 1.44 to 2.49." in note
    assert not any("rest on" in note for note in summarise(Results(points("A", 10, PEELING, levels), [], [])))


def test_speed_and_nothing():
    told = summarise(Results([], [], [Time("A", 9, 1000, PEELING, 0.5, "d")]))
    assert len(told) == 1
    assert told[0].startswith("One release took 500.0 to 500.0 ms on this machine, ")
    assert told[0].endswith("; the slowest was peeling on A at k = 1,000.")
    assert summarise(Results([], [NeededEpsilon("A", 9, 1, DEFAULT, 0.5, 1.0, nan)], [])) == []
    assert set(METHODS) >= {PAPERS, DEFAULT, PEELING, JOINT}
