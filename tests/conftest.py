"""Settings and fixtures shared by all tests."""

import gc
import os
import re

import pytest
from hypothesis import HealthCheck, settings

from command_line import without_notes
from effort import LONG, examples, mark_long_cases

pytest_plugins = ["engines", "places"]
"""The servers of the contract suite, and the places of a ledger.

A module that imported such a fixture would have one of its own, and so a server of its own.
"""

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Let `-n auto` be one more than the cores: in a fifth of the time a worker waits for servers, disks and programs.

    A long run has a worker for each core: it calculates more, and Spark and ClickHouse need the memory.
    """
    workers = yield
    return workers if LONG or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else workers + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What is asked of Spark waits for the long tests: its session takes long to start, and each query seconds."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)
    mark_long_cases(items)


def pytest_collection_finish():
    """Keep objects made before the first test out of garbage collection, which would visit them thousands of times."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def call(monkeypatch, capsys):
    """Runs the command line in this process: (exit code, standard output, standard error)."""
    # Most tests do without the command line, and should not wait for its imports.
    from discreet import cli

    def run(*args):
        monkeypatch.setattr("sys.argv", ["discreet", *args])
        code = cli.main()
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def done(call):
    """Runs what must work, and returns what is printed; standard error may have notes about columns alone."""

    def run(*args):
        code, out, err = call(*args)
        assert (code, without_notes(err)) == (0, "")
        return out

    return run


@pytest.fixture
def refused(call):
    """Runs what must be refused, and returns the sentence."""

    def run(*args, code=2):
        actual, out, err = call(*args)
        assert (actual, out) == (code, "")
        assert re.fullmatch(r"discreet: .+\n", err)
        return err.removeprefix("discreet: ").rstrip("\n")

    return run
