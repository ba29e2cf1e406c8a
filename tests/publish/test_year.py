"""A year of publishing, month after month, with runs that are killed at any moment and started again.

One stored release for each chart and month; every other charge is of a run that was killed between charge and store;
and the site is a function of the ledger, whole at every moment.
"""

import multiprocessing
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from chart_folder import ARTISTS, HEAD, fill_folder, publish, read_site, write_charts
from discreet.cli.app import app
from discreet.ledger.ledger import Ledger
from discreet.publish.site_folder import MARK
from places import PLACES

MOMENTS = {
    "before the charge": (Ledger, "charge", "before"),
    "between charge and draw": (Ledger, "charge", "after"),
    # A period that is lost twice is not charged again: the next one loses the other chart.
    "after the store": (Ledger, "keep", "after"),
    "between draw and store": (Ledger, "keep", "before"),
    "while files are written": (os, "fsync", "before"),
    "before the link": (Path, "symlink_to", "before"),
    "before the site is replaced": (Path, "replace", "before"),
    "after the site is replaced": (Path, "replace", "after"),
    "while the old site is removed": (shutil, "rmtree", "before"),
}
"""Where a run can be killed: a function, and on which side of its first call."""

PRELOADED = [
    *("discreet.cli.publish", "discreet.publish.run", "discreet.publish.pages", "discreet.publish.site_folder"),
    *("discreet.sources.events.where", "ibis.backends.duckdb", "pyarrow.parquet", "pandas"),
]
"""What takes time to import, for all runs once."""

CHARTS = ARTISTS + ARTISTS.replace('"artists"', '"songs"').replace("k = 2", 'k = 1\ncounts = "0.1"')

LOSES = {"between charge and draw", "between draw and store"}

SOME = ["between charge and draw", "after the store", "before the site is replaced"]
"""The moments of a short run: one that loses a charge, one that loses nothing, one with two sites."""


def start(folder, month, moment=None, options=()):
    """A run in a process of its own, which kills itself at a moment where one is named."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(PRELOADED)
    process = processes.Process(target=run, args=(str(folder), month, moment, options))
    process.start()
    return process


def run(folder, month, moment, options):
    os.chdir(folder)
    if moment is not None:
        plant_kill(*MOMENTS[moment])
    os._exit(publish("--as-of", first_day_after(month), *options))


def first_day_after(month):
    """The first of the next month, at which the month is over; month 1 is January 2025."""
    return f"{2025 + month // 12}-{month % 12 + 1:02}-01"


def change(folder, month, word, chart, period, moment=None):
    """A correction or a withdrawal in a process of its own, which kills itself at a moment where one is named."""
    arguments = ["publish", word, "charts.toml", chart, period, "--reason", f"{word} {period}"]
    arguments += ["--as-of", first_day_after(month)] if word == "correct" else []
    process = multiprocessing.get_context("forkserver").Process(
        target=run_command, args=(str(folder), arguments, moment)
    )
    process.start()
    return process


def run_command(folder, arguments, moment):
    os.chdir(folder)
    if moment is not None:
        plant_kill(*MOMENTS[moment])
    os._exit(app(arguments, standalone_mode=False))


def plant_kill(owner, name, side):
    call = getattr(owner, name)

    def killed(*args, **options):
        if side == "after":
            call(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)


def finish(process):
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def look(folder, seen):
    """Looks at the site as a reader may at any time: whole, and what was published stays."""
    site = folder / "site"
    if not site.exists():
        return
    files = read_site(site)
    assert MARK in files
    for name, text in files.items():
        if name.endswith(".html"):
            links = re.findall(r'href="([^"#:]+)"', text.decode())
            assert set(links) <= set(files), name
        if name.startswith("data/"):
            assert seen.setdefault(name, text) == text


def check_ledger(folder, months):
    """One release for each chart and month; all other charges have none. Returns how many those are."""
    entries = Ledger(folder / "budget.db").history()
    stored = Counter("/".join(entry.request_id.split("/")[:2]) for entry in entries if entry.stored is not None)
    assert stored == {f"{chart}/2025-{month:02}": 1 for chart in ("songs", "artists") for month in months}
    return len(entries) - sum(stored.values())


def charge_again(folder, month):
    """Whether a month is published when each chart may be charged again that kills have lost twice."""
    runs = (start(folder, month, options=("--charge-again", chart)) for chart in ("artists", "songs"))
    return any(finish(process) == 0 for process in runs)


def live_through(folder, months, kills, seed):
    """Publishes month after month, each run but the last of a month being killed; returns how many charges are lost."""
    rng, seen, usual = random.Random(seed), {}, 1.0
    for month in months:
        for moment in kills:
            process = start(folder, month, moment)
            if moment is None:
                time.sleep(rng.uniform(0, usual))
                process.kill()
            assert finish(process) in (0, 1, -signal.SIGKILL)
            look(folder, seen)
        begun = time.monotonic()
        assert finish(start(folder, month)) == 0 or charge_again(folder, month)
        usual = 1.2 * (time.monotonic() - begun)
        look(folder, seen)
    return check_ledger(folder, months)


def assert_site_is_of_the_ledger(folder, month, ledger="budget.db"):
    """A site that is made anew, from the ledger alone, is the same, and costs nothing."""
    place = ledger if "://" in ledger else folder / ledger
    site, head = read_site(folder / "site"), Ledger(place).head
    shutil.rmtree(os.path.realpath(folder / "site"))
    shutil.rmtree(folder / "streams")
    for path in folder.glob(".site-*"):
        # What killed runs left goes once it is so old that nobody can be reading it.
        os.utime(path, (0, 0), follow_symlinks=False)
    assert finish(start(folder, month)) == 0
    assert read_site(folder / "site") == site
    assert Ledger(place).head == head
    assert not [path for path in folder.iterdir() if path.name.startswith(".site-")][1:]


@pytest.mark.slow
@pytest.mark.parametrize("moments", [SOME, pytest.param(list(MOMENTS), marks=pytest.mark.long)], ids=["some", "every"])
def test_a_run_can_be_killed_at_every_moment(moments, tmp_path):
    fill_folder(tmp_path, CHARTS, epsilon=40)
    assert live_through(tmp_path, [1], moments, 0) == len(LOSES.intersection(moments))
    assert_site_is_of_the_ledger(tmp_path, 1)


@pytest.mark.long
def test_a_year_of_charts(tmp_path):
    fill_folder(tmp_path, CHARTS, epsilon=40)
    lost = live_through(tmp_path, range(1, 13), ["between draw and store", None, None], 1)
    assert lost >= 12
    assert_site_is_of_the_ledger(tmp_path, 12)


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_three_years_of_a_budget_that_renews(place, tmp_path):
    """Runs killed at random, a correction and a withdrawal in each year, and all pages of all years to the end."""
    fill_folder(tmp_path, CHARTS)
    (tmp_path / "budget.db").unlink()
    write_charts(tmp_path, CHARTS, HEAD.replace("budget.db", place))
    Ledger.create(place, epsilon=9, every="year", since="2023-01-01", unit="listeners")
    rng, seen = random.Random(5), {}
    months = range(-23, 13)  # from January 2023
    if place.startswith("postgres"):
        months = [month for month in months if month % 12 in (5, 6, 0)]  # three periods in each year
    names = {month: f"{2025 + (month - 1) // 12}-{(month - 1) % 12 + 1:02}" for month in months}
    for month in months:
        if rng.random() < 0.5:
            assert finish(start(tmp_path, month, rng.choice(list(MOMENTS)))) in (0, -signal.SIGKILL)
            look(tmp_path, seen)
        assert finish(start(tmp_path, month)) == 0 or charge_again(tmp_path, month)
        look(tmp_path, seen)
        if month % 12 == 6:
            for word, period in (("correct", names[month]), ("withdraw", names[month - 1])):
                for moment in (rng.choice(list(MOMENTS)), None):
                    process = change(tmp_path, month, word, "songs", period, moment)
                    assert finish(process) in ((0,) if moment is None else (0, -signal.SIGKILL))
                    for name in [name for name in seen if f"songs.{period}" in name]:
                        del seen[name]
                    look(tmp_path, seen)

    ledger = Ledger(place)
    entries, withdrawn = ledger.history(), ledger.withdrawals()
    corrected = {names[month] for month in months if month % 12 == 6}
    assert {each.period for each in withdrawn} == {names[month - 1] for month in months if month % 12 == 6}
    stored = Counter((each.edition["chart"], each.edition["period"]) for each in entries if each.stored is not None)
    assert stored == {
        (chart, name): 1 + (chart == "songs" and name in corrected)
        for chart in ("songs", "artists")
        for name in names.values()
    }
    # December is published on the first of January, and counts in the new year.
    assert list(ledger.periods)[:4] == ["2023", "2024", "2025", "2026"]
    assert ledger.check()
    assert all(ledger.budget.fits(cost) for cost in ledger.periods.values())
    site = read_site(tmp_path / "site")
    assert {f"{chart}.{name}.html" for chart in ("songs", "artists") for name in names.values()} < set(site)
    for name in corrected:
        assert re.search(rb"Corrected \d+ \w+ 20", site[f"songs.{name}.html"])
    for each in withdrawn:
        assert re.search(rb"Withdrawn \d+ \w+ 20", site[f"songs.{each.period}.html"])
    assert_site_is_of_the_ledger(tmp_path, 12, place)
