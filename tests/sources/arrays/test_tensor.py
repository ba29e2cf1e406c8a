"""Tensors of torch, and arrays that come by DLPack: the same releases as the same scores in an array."""

import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.errors import Error
from discreet.exact.entropy import Entropy
from discreet.sources.arrays.array import array_source
from discreet.sources.arrays.tensor import TensorSource, tensor_source
from discreet.sources.scores import as_source

torch = pytest.importorskip("torch", reason="torch is not installed here; make test-torch has it")

COUNTS = discreet.Sensitivity(down=0, up=1)
MECHANISMS = [
    discreet.Canonical(),
    discreet.Canonical(gamma=1, noise="laplace"),
    discreet.Canonical(ceil=True),
    discreet.OneShot("gumbel"),
    discreet.Peeling("exponential"),
    discreet.Joint(),
    discreet.Core(),
]
integers = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=1, max_size=30).map(
    lambda values: torch.tensor(values, dtype=torch.int64)
)
floats = st.lists(
    st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 0.1]), min_size=1, max_size=30
).map(lambda values: torch.tensor(values, dtype=torch.float64))
narrow = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=30).map(
    lambda values: torch.tensor(values, dtype=torch.float32)
)


@given(integers | floats | narrow, st.sampled_from([0.5, 1.5, 3.0, 1e300, float("inf")]))
def test_a_sorted_tensor_answers_as_a_sorted_array(tensor, reach):
    """What is asked of a GPU, asked of a tensor on the host."""
    one, other = TensorSource(tensor).tally(), array_source(tensor.numpy()).tally()
    ranks = np.arange(len(tensor))
    assert one.d == other.d
    assert [one.exact(rank) for rank in ranks.tolist()] == [other.exact(rank) for rank in ranks.tolist()]
    assert (one.last_of_run(ranks) == other.last_of_run(ranks)).all()
    assert (one.gaps(ranks, ranks[::-1], Fraction(1)) == other.gaps(ranks, ranks[::-1], Fraction(1))).all()
    reaches = np.full(len(ranks), reach)
    assert (one.within(ranks, reaches) == other.within(ranks, reaches)).all()
    assert one.largest_gap(ranks, ranks[::-1]) == other.largest_gap(ranks, ranks[::-1])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("kind", ["int64", "float32", "float64"])
def test_the_same_bits_release_the_same_items(mechanism, kind):
    scores = np.random.default_rng(2).permutation(5 * np.arange(400) // 3).astype(kind)
    for seed in range(5):
        releases = [
            discreet.top_k(source, 20, "0.5", mechanism=mechanism, sensitivity=COUNTS, rng=Entropy(random.Random(seed)))
            for source in (TensorSource(torch.from_numpy(scores)), torch.from_numpy(scores), scores)
        ]
        assert releases[1] == releases[2]
        # Of whole numbers in memory it is known that rounding up changes nothing, and they are drawn in another way.
        assert releases[0] == releases[1] or (kind == "int64" and "ceil" in repr(mechanism))


@pytest.mark.parametrize("mechanism", [*MECHANISMS, discreet.Histogram()], ids=repr)
@pytest.mark.parametrize("epsilon", ["1/100", "4"])
def test_the_same_bits_release_the_same_shortfall(mechanism, epsilon):
    """At the smaller epsilon the lead is that of a list of noise; ties are drawn before the lead is read."""
    scores = np.random.default_rng(2).permutation(5 * np.arange(400) // 3)
    limit = discreet.Sensitivity(down=0, up=1, items=3)
    for seed in range(5):
        on_device, handed, array = (
            discreet.top_k(
                source, 20, epsilon, mechanism=mechanism, sensitivity=limit, shortfall="1/2",
                rng=Entropy(random.Random(seed)),
            )
            for source in (TensorSource(torch.from_numpy(scores)), torch.from_numpy(scores), scores)
        )  # fmt: skip
        assert array.shortfall is not None
        assert handed == array
        assert on_device == handed or "ceil" in repr(mechanism)
    with pytest.raises(Error, match="whole numbers for a shortfall"):
        discreet.top_k(torch.from_numpy(scores).double(), 20, epsilon, sensitivity=limit, shortfall="1/2")


@pytest.mark.parametrize("kind", ["int64", "float32"])
def test_the_same_bits_release_the_same_values(kind):
    scores = np.random.default_rng(2).permutation(5 * np.arange(400)).astype(kind)
    few = {"mechanism": discreet.Histogram(), "sensitivity": discreet.Sensitivity(items=3)}
    one, other = (
        discreet.top_k(source, 20, "0.5", rng=Entropy(random.Random(1)), **few)
        for source in (TensorSource(torch.from_numpy(scores)), scores)
    )
    assert one == other
    assert (one.counts is None) == (kind == "float32")


@pytest.mark.parametrize(
    "kind", ["bool", "uint8", "int8", "int16", "int32", "float16", "bfloat16", "float32", "float64"]
)
def test_every_kind_of_number_is_taken_as_what_it_denotes(kind):
    values = [0, 1, 1, 0] if kind == "bool" else [3, 100, 7, 7]
    tensor = torch.tensor(values).to(getattr(torch, kind))
    tally = as_source(tensor).tally()
    assert [tally.exact(rank) for rank in range(4)] == sorted(values, reverse=True)


def test_a_tensor_that_is_trained_is_read_as_it_is():
    scores = torch.tensor([1.0, 900.0, 2.0], requires_grad=True)
    assert discreet.top_k(scores, 1, 10, sensitivity=COUNTS).items == [1]
    assert scores.requires_grad


def test_labels_and_counts_go_with_a_tensor():
    scores = torch.tensor([5, 900, 7])
    release = discreet.top_k(TensorSource(scores, ["a", "b", "c"]), 1, 5, counts=5)
    assert release.items == ["b"]
    assert 800 < release.counts[0].value < 1000
    assert discreet.top_k(scores, 1, 5, labels=["a", "b", "c"]).items == ["b"]
    with pytest.raises(Error, match="counts"):
        discreet.top_k(scores.double(), 1, 5, sensitivity=COUNTS, counts=5)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: torch.tensor(3.0), "one dimension, not 0"),
        (lambda: torch.zeros(2, 2), "one dimension, not 2"),
        (lambda: torch.zeros(0), "at least one item"),
        (lambda: torch.zeros(3, dtype=torch.complex64), "complex64"),
        (lambda: torch.zeros(3, dtype=torch.uint64), "uint64"),
        (lambda: torch.zeros(3).to_sparse(), "sparse"),
        (lambda: torch.tensor([1.0, float("nan")]), "finite"),
        (lambda: torch.tensor([1.0, float("-inf")]), "finite"),
        (lambda: TensorSource(torch.tensor([1.0, float("nan"), 2.0])), "finite"),
        (lambda: TensorSource(torch.tensor([1.0, float("-inf"), 2.0])), "finite"),
    ],
    ids=["scalar", "matrix", "empty", "complex", "uint64", "sparse", "nan", "inf", "sorted nan", "sorted inf"],
)
def test_what_cannot_be_scores_is_named(bad, words):
    with pytest.raises(Error, match=words):
        discreet.top_k(bad(), 1, 1, sensitivity=COUNTS)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_a_tensor_of_floats_has_no_sensitivity_of_its_own(kind):
    """Not even where all of its numbers are whole: the type decides, and nothing that it holds."""
    scores = torch.tensor([3.0, 900.0, 2.0]).to(getattr(torch, kind))
    for handed in (scores, TensorSource(scores.to(torch.float32))):
        with pytest.raises(Error, match="sensitivity must be given for scores that are not whole numbers"):
            discreet.top_k(handed, 1, 10)
        assert discreet.top_k(handed, 1, 10, sensitivity=COUNTS).items == [1]


def test_dlpack_arrays_of_the_host_are_arrays():
    class Foreign:
        """An array of another library."""

        def __init__(self, values):
            self._held = torch.tensor(values)

        def __dlpack__(self, **options):
            return self._held.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._held.__dlpack_device__()

    assert discreet.top_k(Foreign([1, 900, 2]), 1, 10).items == [1]
    with pytest.raises(Error, match="NumPy knows"):
        tensor_source(Odd())


def test_the_page_on_scale_runs_as_printed():
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
    [snippet] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(compile(snippet, "scale.md", "exec"), names)  # noqa: S102  # our own page
    assert len(names["release"].items) == 100


class Odd:
    """What says that it has memory to hand over, and does not."""

    dtype = "bfloat16"

    def __dlpack__(self, **options):
        raise BufferError("no")

    def __dlpack_device__(self):
        return (1, 0)


def test_a_source_that_outlives_a_call_does_not_follow_its_tensor():
    counts = torch.zeros(1000, dtype=torch.int64)
    counts[:3] = 1000
    source, on_device = discreet.grouped({"DE": counts}, each_user="one"), TensorSource(counts).freeze()
    counts[:] = 0
    counts[100:107] = 1000
    assert discreet.top_k(source, k=3, epsilon=50)["DE"].items == [0, 1, 2]
    assert discreet.top_k(on_device, k=3, epsilon=50).items == [0, 1, 2]
    assert TensorSource(counts).tally().exact(6) == 1000
