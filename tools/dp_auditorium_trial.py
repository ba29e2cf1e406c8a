"""Run DP-Auditorium, an auditor by others, against releases of `discreet` with and without a planted fault.

    python tools/dp_auditorium_trial.py CHECKOUT [--epsilon E] [--draws N] [-k K] [--factors F,F,...]
        [--scores A,B,C,D --neighbour A,B,C,D]

CHECKOUT is the folder `python/dp_auditorium` of a checkout of github.com/google/differential-privacy. The trial needs
tensorflow, google-vizier, etils and absl-py beside discreet, in an environment of its own. It is no part of the tests.

Each sampler promises epsilon and spends epsilon times a factor; factor 1 is the honest release. All auditors see the
same draws of the same two neighbouring inputs, and may raise a false alarm with the same probability. By default the
inputs are the best ones for DP-Auditorium, which tests delta: of all counts up to 6 of four items, and all users, those
with the largest hockey-stick divergence at the promised epsilon when the largest factor is spent.

The table of docs/trust.md is of checkout b5b0286, tensorflow 2.15, google-vizier 0.1.6 and etils 1.5, by the commands

    python tools/dp_auditorium_trial.py CHECKOUT --factors 1,1.1,3 --scores 4,3,1,0 --neighbour 5,4,2,0
    python tools/dp_auditorium_trial.py CHECKOUT --factors 1,1.1,1.5,2,3

which take two to ten minutes each. The first inputs are those of `discreet audit`; there a factor of 3 breaks epsilon 1
with a delta of only 0.0016. The second inputs, which the search finds, are 6, 3, 3, 1 and 7, 4, 3, 2; there a factor of
2 still keeps epsilon 1. The Renyi and MMD testers run with settings of ours, the others with their defaults. The search
of DP-Auditorium for inputs was not tried.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product, repeat
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.evidence.visible_laws import Input, expected_law, label, label_scores
from discreet.text import align_columns

ALARM = Fraction(1, 1000)
"""The probability that an auditor accuses a correct sampler, as in `discreet audit`."""

D, HIGHEST = 4, 6
"""The number of items, and the largest score, of the inputs that are tried."""

Scores = tuple[Fraction, ...]
Draws = np.ndarray[Any, Any]
"""One row for each draw: the number of the released set, or one column for each item that is 1 if it was released."""


def main() -> None:
    """Print one row for each auditor and one column for each factor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(1))
    parser.add_argument("--draws", type=int, default=50_000)
    parser.add_argument("-k", type=int, default=2)
    parser.add_argument("--factors", default="1,1.1,3")
    parser.add_argument("--scores")
    parser.add_argument("--neighbour")
    options = parser.parse_args()
    start = time.monotonic()
    if not (Path(options.checkout) / "dp_auditorium").is_dir():
        place = "the folder python/dp_auditorium of google/differential-privacy"
        parser.error(f"checkout must be {place}, not {options.checkout}")
    sys.path.insert(0, options.checkout)
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    factors = [Fraction(factor) for factor in options.factors.split(",")]
    if options.scores:
        pair = parse_scores(options.scores), parse_scores(options.neighbour)
    else:
        pair = best_pair(options.epsilon, options.epsilon * max(factors), options.k)
    shown = " and ".join(",".join(str(score) for score in scores) for scores in pair)
    print(f"Canonical(), k = {options.k}, {shown}, epsilon {options.epsilon} promised,")
    print(f"{options.draws:,} draws of each input, false alarms with probability {float(ALARM)}\n")
    columns = [
        audit_all(pair, options.epsilon, options.epsilon * factor, options.k, options.draws) for factor in factors
    ]
    rows = [["auditor", *(f"factor {float(factor):g}" for factor in factors)]]
    rows += [[name, *(column[name] for column in columns)] for name in columns[0]]
    print("\n".join(align_columns(rows)))
    print("\nIn brackets: the lower bound on delta (Renyi: on the divergence; epsilon: on epsilon), or the p-value.")
    print(f"{time.monotonic() - start:.0f} s")


def parse_scores(text: str) -> Scores:
    """Return the scores of D items from numbers between commas."""
    scores = tuple(Fraction(score) for score in text.split(","))
    if len(scores) != D:
        raise SystemExit(f"scores and neighbour must have {D} numbers each")
    return scores


def best_pair(promised: Fraction, spent: Fraction, k: int) -> tuple[Scores, Scores]:
    """Return the neighbours with the largest hockey-stick divergence at `promised` if releases spend `spent`."""

    def law(scores: Scores) -> dict[Any, float]:
        if scores not in laws:
            given = Input(scores, k, spent, discreet.Canonical(), discreet.Sensitivity(), "add-remove")
            laws[scores] = expected_law(given).probabilities
        return laws[scores]

    laws: dict[Scores, dict[Any, float]] = {}
    factor = math.exp(promised)
    best: tuple[float, Scores, Scores] = (-1.0, (), ())
    for counts in combinations_with_replacement(range(HIGHEST, -1, -1), D):
        for touched in product((0, 1), repeat=D):
            one = tuple(map(Fraction, counts))
            other = tuple(score + touch for score, touch in zip(one, touched, strict=True))
            for p, q in ((law(one), law(other)), (law(other), law(one))):
                best = max(best, (sum(max(p[y] - factor * q[y], 0.0) for y in p), one, other))
    return best[1:]


def audit_all(pair: tuple[Scores, Scores], promised: Fraction, spent: Fraction, k: int, draws: int) -> dict[str, str]:
    """Return the verdict of each auditor on a sampler that promises one epsilon and spends another."""
    mechanism = discreet.Canonical()
    sets = [frozenset(map(label, each)) for each in combinations(range(D), k)]
    shown: dict[frozenset[Any], discreet.Release] = {}
    drawn = []
    for scores in pair:
        given, numbers = label_scores(scores), []
        for _ in repeat(None, draws):
            release = discreet.top_k(given, k=k, epsilon=spent, mechanism=mechanism)
            shown.setdefault(frozenset(release.items), release)
            numbers.append(sets.index(frozenset(release.items)))
        drawn.append(np.array(numbers))
    verdicts: dict[str, str] = {}
    for name, tester, form in testers(float(promised), k):
        verdicts[f"DP-Auditorium, {name}"] = judge(tester, *(form(one) for one in drawn))

    # The audit gets the draws above again, one after the other.
    again = {str(label_scores(scores)): iter(one) for scores, one in zip(pair, drawn, strict=True)}
    audit = discreet.audit(
        mechanism, k, epsilon=promised, scores=pair[0], neighbour=pair[1], draws=draws, confidence=1 - ALARM,
        sampler=lambda given: shown[sets[next(again[str(given)])]],
    )  # fmt: skip
    verdicts["discreet audit, epsilon"] = f"{'REJECTS' if audit.overspent else 'accepts'} ({audit.spent:.3f})"
    chance = f"p = {audit.fits:.1g}" if audit.fits > 1e-300 else "p < 1e-300"
    verdicts["discreet audit, fit"] = f"{'accepts' if audit.fits > ALARM / 2 else 'REJECTS'} ({chance})"
    return verdicts


def testers(epsilon: float, k: int) -> list[tuple[str, Any, Callable[[Draws], Draws]]]:
    """Return the four testers of DP-Auditorium, and the form of the draws that each one reads."""
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import histogram_tester, hockey_stick_tester, mmd_tester, renyi_tester

    members = np.array([[item in each for item in range(D)] for each in combinations(range(D), k)], np.float32)
    approximate = privacy_property.ApproximateDp(epsilon=epsilon, delta=0.0)
    pure = privacy_property.PrivacyProperty(pure_dp=privacy_property.PureDp(epsilon=epsilon))
    histogram = histogram_tester.HistogramTester(
        property_tester_config.HistogramPropertyTesterConfig(
            test_discrete_mechanism=True, histogram_size=len(members), min_value=0.0, max_value=float(len(members)),
            approximate_dp=approximate,
        )
    )  # fmt: skip
    hockey_stick = hockey_stick_tester.HockeyStickPropertyTester(
        config=property_tester_config.HockeyStickPropertyTesterConfig(
            training_config=hockey_stick_tester.make_default_hs_training_config(), approximate_dp=approximate
        ),
        base_model=hockey_stick_tester.make_default_hs_base_model(),
    )
    renyi = renyi_tester.RenyiPropertyTester(
        config=property_tester_config.RenyiPropertyTesterConfig(
            alpha=2.0,
            training_config=property_tester_config.TrainingConfig(
                training_epochs=20, batch_size=1000, optimizer_learning_rate=1e-3, model_output_coordinate_bound=1.0
            ),
            privacy_property=pure,
        ),
        base_model=renyi_tester.make_default_renyi_base_model(),
    )
    mmd = mmd_tester.MMDPropertyTester(
        property_tester_config.MMDPropertyTesterConfig(
            kernel=property_tester_config.Kernel.KERNEL_RBF, bandwidth=1.0, approximate_dp=approximate
        )
    )
    return [
        ("histogram", histogram, lambda drawn: drawn),
        ("hockey-stick", hockey_stick, lambda drawn: members[drawn]),
        ("Renyi", renyi, lambda drawn: members[drawn]),
        ("MMD", mmd, lambda drawn: members[drawn]),
    ]


def judge(tester: Any, one: Draws, other: Draws) -> str:
    """Return the verdict of one tester in both directions, with its larger lower bound."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounds = [tester.estimate_lower_bound(*each, float(ALARM)) for each in ((one, other), (other, one))]
    bound = float(max(bounds))
    return f"{'REJECTS' if tester.reject_property(bound) else 'accepts'} ({bound:.3f})"


if __name__ == "__main__":
    main()
