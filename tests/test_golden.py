"""The same bits make the same releases and texts, byte for byte, as when they were recorded."""

import json

import pytest

from golden import cases, features


@pytest.mark.parametrize(
    ("recorded", "make", "least"),
    [(cases.RECORDED, cases.releases, 200), (features.RECORDED, features.texts, 450)],
    ids=["releases", "features"],
)
def test_recorded_releases_are_reproduced(recorded, make, least):
    lines = [tuple(json.loads(line)) for line in recorded.read_text(encoding="utf-8").splitlines()]
    assert len(lines) >= least
    assert len({case for case, _ in lines}) == len(lines)
    made = list(make())
    assert [case for case, _ in made] == [case for case, _ in lines]
    differing = [case for (case, text), (_, again) in zip(lines, made, strict=True) if text != again]
    assert not differing
