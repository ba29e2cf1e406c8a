"""Processes that release with a ledger, for the tests to kill, trace and race: python releasing.py TASK ARGUMENTS."""

import os
import sys
from pathlib import Path

import discreet
from discreet.ledger import file_store

SCORES = {f"film {i}": i * i % 101 for i in range(40)}


def release(ledger, epsilon="1/100"):
    return discreet.top_k(SCORES, k=3, epsilon=epsilon, ledger=ledger, purpose="test")


def nursery(path):
    """For every line that is read: a child that releases until it is killed, and says so after every release."""
    discreet.top_k(SCORES, k=3, epsilon=1)
    discreet.Ledger(path)  # so that no child has anything left to import
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            os.write(1, f"born {os.getpid()}\n".encode())
            while True:
                release(path)
                os.write(1, b"released\n")
        os.waitpid(child, 0)
        os.write(1, b"dead\n")


def traced(folder, releases, setting):
    """Makes a ledger and releases, and says so in the file "seen" beside it, by one byte each."""
    if setting != "as it is":
        connected = file_store._connect
        file_store._connect = lambda *args: weakened(connected(*args), setting)
    seen = os.open(Path(folder) / "seen", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger = discreet.Ledger.create(Path(folder) / "budget.db", epsilon=1000, unit="test")
    os.write(seen, b"m")
    for _ in range(int(releases)):
        release(ledger)
        os.write(seen, b"r")


def weakened(connection, setting):
    connection.execute(f"PRAGMA synchronous = {setting}")
    return connection


def race(path, processes, releases, epsilon):
    """Processes that all start at once and divide some releases among them; prints how many succeed."""
    processes, releases = int(processes), int(releases)
    ready, go = os.pipe()
    answers, ask = os.pipe()
    for i in range(processes):
        if not os.fork():
            os.close(go)
            ledger = discreet.Ledger(path, wait=600)
            os.read(ready, 1)  # ends when the parent closes the other end
            share = releases // processes + (i < releases % processes)
            os.write(ask, b"".join(attempt(ledger, epsilon) for _ in range(share)))
            os._exit(0)
    os.close(ask)
    os.close(go)
    with os.fdopen(answers, "rb") as every:
        answered = every.read()
    print(answered.count(b"y"), answered.count(b"n"), len(answered))


def attempt(ledger, epsilon):
    try:
        release(ledger, epsilon)
    except discreet.Error as error:
        return b"n" if "does not fit" in str(error) else b"?"
    return b"y"


if __name__ == "__main__":
    {"nursery": nursery, "traced": traced, "race": race}[sys.argv[1]](*sys.argv[2:])
