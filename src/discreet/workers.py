"""Processes that share a computation."""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor


def make_pool(jobs: int) -> ProcessPoolExecutor:
    """So many processes, none of which collects the garbage of the one that it is a copy of.

    What a process leaves behind may be a connection of an engine with threads, which a copy does not have: to let it go
    there ends the copy.
    """
    return ProcessPoolExecutor(jobs, initializer=gc.freeze)
