"""The second implementation stands alone, and is exact to where it says."""

import ast
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.evidence import definition

NOISES = {
    "gumbel": stats.gumbel_r,
    "exponential": stats.expon,
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "half-logistic": stats.halflogistic,
}


def test_it_imports_nothing_of_the_library():
    assert packages_of(definition) == {"numpy"}


def packages_of(module):
    """The packages that a module imports, but for those of Python itself."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [node for node in froms if node.level] == []
    packages = {name.partition(".")[0] for name in [*names, *(node.module for node in froms)]}
    return packages - sys.stdlib_module_names


@pytest.mark.parametrize("noise", NOISES)
def test_the_noises_are_those_of_another_library(noise):
    v = np.array([-3.0, -0.1, 0.2, 1.0, 7.0, 30.0])
    for mine, name in ((definition.LOG_PDF, "logpdf"), (definition.LOG_CDF, "logcdf"), (definition.LOG_ABOVE, "logsf")):
        with np.errstate(divide="ignore"):
            assert np.allclose(mine[noise](v), getattr(NOISES[noise], name)(v), rtol=1e-9, atol=1e-15)


@pytest.mark.some(4)
@pytest.mark.parametrize("noise", [name for name in NOISES if name != "gumbel"])
@pytest.mark.parametrize("values", [(0, 0, -1), (0, Fraction(-1, 3), -9), (0, -300)])
def test_the_winner_is_who_another_integration_says(noise, values):
    other = NOISES[noise]
    logs = definition.winner_logs([Fraction(value) for value in values], noise)
    assert sum(map(math.exp, logs)) == pytest.approx(1, abs=1e-12)
    for i, log in enumerate(logs):
        rest = [float(v) for j, v in enumerate(values) if j != i]

        def density(v, own=float(values[i]), rest=rest):
            return other.pdf(v - own) * math.prod(other.cdf(v - r) for r in rest)

        kinks = sorted({float(v) for v in values})
        parts = [integrate.quad(density, a, b, epsrel=1e-10, epsabs=0, limit=500)[0] for a, b in panels(kinks)]
        assert math.exp(log) == pytest.approx(sum(parts), rel=1e-8, abs=1e-200)


def panels(kinks):
    cuts = [kinks[0] - 30, *kinks, kinks[-1] + 8, kinks[-1] + 40]
    return list(itertools.pairwise(cuts))


def test_chances_far_below_the_smallest_float_keep_their_logarithm():
    # Laplace against -M: the chance is (M/4 + 1/2) e^-M, for any M.
    for far in (10, 800, 10**6):
        _, log = definition.winner_logs([Fraction(0), Fraction(-far)], "laplace")
        assert log == pytest.approx(-far + math.log(far / 4 + 0.5), rel=1e-12)


def test_noise_of_counts_adds_up_to_one():
    rate = Fraction(1, 3)
    logs = [definition.discrete_laplace_log(n, rate) for n in range(-120, 121)]
    assert sum(map(math.exp, logs)) == pytest.approx(1, abs=1e-12)
    assert logs[120] - logs[123] == pytest.approx(1)


def test_what_has_no_definition_is_refused():
    with pytest.raises(ValueError, match="no definition of the order of 3 items by one-shot with laplace noise"):
        definition.oneshot([3, 2, 1, 0], 3, Fraction(1), "laplace")
    with pytest.raises(ValueError, match="no definition of 'lottery'"):
        definition.law({"name": "lottery"}, [1, 0], 1, 1)
    with pytest.raises(ValueError, match="no definition of the sets of 'joint'"):
        definition.law({"name": "joint"}, [1, 0], 1, 1, as_sets=True)
