# pyright: strict
"""A program that uses discreet, for a type checker to read."""

from fractions import Fraction

import discreet

release: discreet.Release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon="0.5")
epsilon: Fraction = release.guarantee.epsilon
names: list[str] = [str(item) for item in release.items]
again: discreet.Release = discreet.Release.from_json(release.to_json())
ordered = discreet.top_k([3, 2, 9], 1, 1, mechanism=discreet.OneShot(noise="gumbel"), adjacency="swap")
order: list[object] | None = ordered.order
chance: float = discreet.utility([9, 5, 1], k=1, epsilon=1).top
assert again == release
assert epsilon == Fraction(1, 2)
assert len(names) == 2
assert order is not None
assert 0.0 <= chance <= 1.0
