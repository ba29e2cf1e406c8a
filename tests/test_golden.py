"""The same bits make the same releases and texts, byte for byte, as when they were recorded."""

import json
from functools import partial

import pytest

from golden import cases, features

MAKERS = {"releases": cases.releases, **{kind.__name__: partial(features.texts, kind) for kind in features.KINDS}}


def read_recorded(module):
    return [tuple(json.loads(line)) for line in module.RECORDED.read_text(encoding="utf-8").splitlines()]


RECORDED = {module: read_recorded(module) for module in (cases, features)}


@pytest.mark.parametrize(("module", "least"), [(cases, 200), (features, 450)], ids=["releases", "features"])
def test_every_case_is_recorded_once(module, least):
    recorded = [case for case, _ in RECORDED[module]]
    assert len(recorded) >= least
    assert len(set(recorded)) == len(recorded)
    assert recorded == module.names()


# Neighbours in a list differ in one thing alone, so each third has nearly all that the kind has.
@pytest.mark.corners
@pytest.mark.parametrize("third", range(3))
@pytest.mark.parametrize("kind", MAKERS)
def test_recorded_releases_are_reproduced(kind, third):
    texts = dict(RECORDED[cases if kind == "releases" else features])
    made = list(MAKERS[kind](slice(third, None, 3)))
    assert made
    assert [case for case, text in made if text != texts[case]] == []
