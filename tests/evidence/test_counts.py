"""A selection with counts costs what it states, exactly, and the faults planted here are found."""

from dataclasses import replace
from fractions import Fraction

import pytest

import discreet
from discreet.evidence.counts import verify_counts
from discreet.evidence.neighbours import Family, whole
from discreet.exact.discrete import sample_discrete_laplace
from discreet.privacy import Sensitivity
from discreet.release import counts, request
from discreet.release.counts import CountMechanism
from discreet.release.request import Request

VECTORS = (whole(3, 2, 2, 0), whole(1, 1, 1, 1), whole(2, 1, 0, 0))
MECHANISMS = [discreet.Canonical(), discreet.Canonical(gamma=1), discreet.OneShot("gumbel"), discreet.Joint()]
EPSILONS = {"epsilon": Fraction(1, 2), "counts": Fraction(1, 3)}


def family(adjacency="add-remove", sensitivity=(0, 1), vectors=VECTORS):
    return Family(vectors, adjacency, Sensitivity(*sensitivity))


@pytest.mark.some(2)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_both_epsilons_together_hold_and_the_counts_use_all_of_theirs(mechanism, adjacency, k):
    found = verify_counts(mechanism, k, family(adjacency), **EPSILONS)
    assert found.holds, found
    # The noise is no more than it must be: some pair reaches the epsilon of the counts.
    assert found.counts == 1
    assert found.worst > 0.6
    assert found.pairs >= 90


@pytest.mark.corners
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("per_user", [1, 2])
@pytest.mark.parametrize(
    ("adjacency", "sensitivity"),
    [("add-remove", (0, 1)), ("add-remove", (1, 2)), ("swap", (0, 1)), ("swap", (1, 1)),
     pytest.param("swap", (1, 2), marks=pytest.mark.long)],
)  # fmt: skip
def test_users_of_few_items_are_protected_with_less_noise(adjacency, sensitivity, per_user, k):
    vectors = VECTORS[:1]
    found = verify_counts(
        discreet.Canonical(), k, family(adjacency, sensitivity, vectors), **EPSILONS, per_user=per_user
    )
    assert found.holds, found
    assert found.counts == 1


@pytest.mark.long
def test_scores_off_the_grid_are_protected_too():
    """Random real changes, rounded to steps of one half and of one."""
    real = Family(VECTORS[:2], "add-remove", Sensitivity("1/3", "3/4"), random=24)
    for grid in (Fraction(1, 2), Fraction(1)):
        assert verify_counts(discreet.Canonical(), 2, real, **EPSILONS, grid=grid).holds


def broken(**options):
    """The finding on a family, which must be a bad one by the counts and by the whole."""
    found = verify_counts(discreet.Canonical(), 2, **{"family": family(), **EPSILONS, **options})
    assert not found.holds
    assert found.counts > 1
    assert found.worst > 1
    return found


def test_the_centred_sensitivity_is_caught(monkeypatch):
    """(down + up) / 2, which is right for the selection, is half of what counts of users need."""

    def centred(sensitivity, adjacency, grid, k, per_user=None):
        return k * sensitivity.under(adjacency).delta / grid

    monkeypatch.setattr(counts, "l1_steps", centred)
    found = broken()
    assert found.counts == 2
    assert found.pair.adjacency == "add-remove"


def test_one_score_in_place_of_k_is_caught(monkeypatch):
    monkeypatch.setattr(counts, "l1_steps", lambda sensitivity, adjacency, grid, k, per_user=None: 1)
    assert broken().counts == 2


def test_swap_with_the_noise_of_add_remove_is_caught(monkeypatch):
    right = counts.l1_steps
    monkeypatch.setattr(counts, "l1_steps", lambda limit, adjacency, *rest: right(limit, "add-remove", *rest))
    assert broken(family=family("swap", (1, 1))).counts == 2


def test_swap_with_the_items_of_one_user_is_caught(monkeypatch):
    """Two users are involved, of l items each: min(k, l) is too little."""

    def careless(sensitivity, adjacency, grid, k, per_user=None):
        return min(k, per_user) * (sensitivity.down + sensitivity.up) / grid

    monkeypatch.setattr(counts, "l1_steps", careless)
    found = verify_counts(discreet.Canonical(), 3, family("swap"), **EPSILONS, per_user=1)
    assert found.counts == 2
    assert not found.holds


def test_a_selection_that_spends_the_epsilon_of_the_counts_too_is_caught(monkeypatch):
    def prepare(self, tally):
        return self.guarantee.mechanism.prepare(tally, self.k, self.guarantee.epsilon, self.guarantee.sensitivity)

    monkeypatch.setattr(Request, "prepare", prepare)
    # One item, where the selection can use nearly all of its epsilon.
    one = Family((whole(9, 9, 0, 0, 0, 0),), "add-remove")
    assert verify_counts(discreet.Canonical(gamma=1), 1, one, **EPSILONS).worst > 1


def test_the_sampler_adds_what_the_verifier_takes_it_to_add(monkeypatch):
    """`top_k` draws each count's noise by `laplace`, at the one rate of the plan, after the selection."""
    rates = []

    def spied(entropy, rate):
        rates.append(rate)
        return sample_discrete_laplace(entropy, rate)

    monkeypatch.setattr(request, "sample_discrete_laplace", spied)
    discreet.top_k({"a": 3, "b": 2, "c": 0}, k=2, epsilon=1, counts="1/3", adjacency="swap")
    assert rates == [Fraction(1, 6)] * 2


def is_caught(monkeypatch, change):
    """What is found where the counts are made in another way; `change` gets all that the right way gets."""
    monkeypatch.setattr(CountMechanism, "add_noise", change)
    found = verify_counts(discreet.Canonical(), 2, family(), **EPSILONS)
    return found.worst > 1


def test_intervals_around_the_true_scores_are_caught(monkeypatch):
    right = CountMechanism.add_noise

    def centred(self, items, scores, noise):
        true = dict(zip(items, scores, strict=True))
        made = right(self, items, scores, noise)
        return [replace(count, low=true[count.item] - 5, high=true[count.item] + 5) for count in made]

    assert is_caught(monkeypatch, centred)


def test_a_list_in_the_order_of_true_scores_is_caught(monkeypatch):
    right = CountMechanism.add_noise

    def ranked(self, items, scores, noise):
        true = dict(zip(items, scores, strict=True))
        return sorted(right(self, items, scores, noise), key=lambda count: (-true[count.item], count.item))

    assert is_caught(monkeypatch, ranked)


def test_noise_that_is_shared_is_caught(monkeypatch):
    right = CountMechanism.add_noise

    def shared(self, items, scores, noise):
        once = noise(self.rate)
        return right(self, items, scores, lambda rate: once)

    assert is_caught(monkeypatch, shared)


def test_noise_that_is_divided_is_caught(monkeypatch):
    right = CountMechanism.add_noise

    def divided(self, items, scores, noise):
        return right(self, items, scores, lambda rate: noise(rate) // 1000)

    assert is_caught(monkeypatch, divided)
