"""The same bits make the same releases, byte for byte, as when they were recorded."""

import json

from golden.cases import RECORDED, releases


def test_recorded_releases_are_reproduced():
    recorded = [tuple(json.loads(line)) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    assert len(recorded) >= 200
    assert len({case for case, _ in recorded}) == len(recorded)
    made = dict(releases())
    differing = [case for case, release in recorded if made.get(case) != release]
    assert not differing
    assert len(made) == len(recorded)
