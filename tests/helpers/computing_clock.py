"""A clock that counts what the process computes and how long it sleeps; sleeping takes no time."""

import threading
import time

_slept = [0.0]
_really_sleep = time.sleep


def install():
    """Makes it the clock of the process, as the thread that calls this sleeps by it; others sleep as ever."""
    installer = threading.get_ident()

    def sleep(duration):
        if threading.get_ident() == installer:
            _slept.append(duration)
        else:
            # A driver's own thread may wait in a loop, and would count for ever.
            _really_sleep(duration)

    time.monotonic, time.sleep = seconds, sleep


def seconds():
    """Seconds computed, by all threads, and slept."""
    return time.process_time() + sum(_slept)
