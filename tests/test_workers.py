"""Processes that share a computation leave alone what the process before them left behind."""

import gc
import os

import pytest

from discreet.jobs import make_pool


class Unmovable:
    """Something that must not be let go in a copy of its process, as a connection with threads must not."""

    def __init__(self):
        self.itself, self.process = self, os.getpid()

    def __del__(self):
        if os.getpid() != self.process:
            os._exit(3)


@pytest.fixture
def garbage():
    """A cycle that nothing refers to, not collected yet."""
    gc.collect()
    gc.disable()
    Unmovable()
    yield
    gc.enable()
    gc.collect()


@pytest.mark.usefixtures("garbage")
def test_garbage_of_the_first_process_is_not_collected_in_others():
    with make_pool(2) as pool:
        assert len(list(pool.map(collect, range(4)))) == 4


def collect(_):
    return gc.collect()
