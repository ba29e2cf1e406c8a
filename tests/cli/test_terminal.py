"""What is shown in a terminal alone: colours, and how far a long job is."""

import os
import pty
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import ibis
import pyarrow as pa
import pytest

import discreet
from chart_folder import ARTISTS, fill_folder
from command_line import PROGRAM, SELECT, process
from discreet import jobs
from discreet.cli.output import progress_bar
from discreet.ledger.ledger import Ledger

VERIFY = ("verify", "--scores", "3,2,2,0", "-k", "2", "--jobs", "1")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NONE = [{"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"TERM": "dumb"}]


def in_terminal(*args, stdin=None, **environment):
    """Runs the command line where all its streams are a terminal: the exit code and what is shown."""
    ours, theirs = pty.openpty()
    settings = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "FORCE_COLOR")}
    settings |= {"TERM": "xterm-256color", **environment}
    running = subprocess.Popen([*PROGRAM, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    limit = threading.Timer(60, running.kill)
    limit.start()
    if stdin is not None:
        os.write(ours, stdin)
    shown = bytearray()
    # At the end of the program Linux gives an error, other systems nothing.
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass
    os.close(ours)
    limit.cancel()
    return running.wait(timeout=60), shown.decode().replace("\r\n", "\n")


def test_a_heading_is_bold_in_a_terminal():
    code, shown = in_terminal(*SELECT)
    assert code == 0
    assert re.match(r"\x1b\[1mTop 2 of 4 items, .+:\x1b\[0m\n  ", shown)
    assert re.search(r"\n\x1b\[2mDrawn by Canonical\(.+\)\x1b\[0m\n$", shown)
    assert len(COLOUR.findall(shown)) == 4


@pytest.mark.long
def test_what_other_programs_read_has_no_colours_even_there():
    for form in ("json", "csv", "items"):
        assert not COLOUR.search(in_terminal(*SELECT, "--format", form)[1])


def test_a_complaint_is_red_in_a_terminal():
    code, shown = in_terminal("select", "scores.csv", "-k", "2")
    assert code == 2
    assert shown.startswith("\x1b[1;31mdiscreet:\x1b[0m --epsilon is missing; for example: ")


@pytest.mark.some(1)
@pytest.mark.parametrize("environment", NONE, ids=str)
def test_no_colours_where_they_are_not_wanted(environment):
    assert not COLOUR.search(in_terminal(*SELECT, **environment)[1])
    code, shown = in_terminal(*VERIFY[:-2], "--k", **environment)
    assert code == 2
    assert shown.startswith("discreet: no such option: --k")


@pytest.mark.long
def test_an_empty_wish_for_no_colours_is_none():
    assert COLOUR.search(in_terminal(*SELECT, NO_COLOR="")[1])


@pytest.mark.some(1)
@pytest.mark.parametrize("wish", ["FORCE_COLOR", "CLICOLOR_FORCE"])
def test_pipes_have_no_colours_and_no_progress(wish):
    done = process(*VERIFY, env=os.environ | {wish: "1", "TERM": "xterm-256color"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    done = process(*VERIFY, "--fast", env=os.environ | {wish: "1", "TERM": "xterm-256color"})
    assert done.stderr.startswith("discreet: no such option: --fast")


def test_progress_is_shown_in_a_terminal_and_taken_back():
    code, shown = in_terminal(*VERIFY)
    assert code == 0
    assert re.search(r"verifying .*1/1", shown)
    assert re.search(r"\x1b\[2K(\x1b\[1m)?mechanism  noise", shown)


@pytest.mark.some(1)
@pytest.mark.parametrize("silence", [("--quiet",), ("-q",)])
def test_quiet_shows_the_result_alone(silence):
    assert in_terminal(*VERIFY, *silence, NO_COLOR="1") == (0, process(*VERIFY).stdout)


@pytest.mark.long
def test_a_dumb_terminal_is_shown_no_progress():
    assert in_terminal(*VERIFY, TERM="dumb") == (0, process(*VERIFY).stdout)


@pytest.mark.long
def test_a_bar_without_colours():
    shown = in_terminal(*VERIFY, NO_COLOR="1")[1]
    assert "verifying" in shown
    assert not COLOUR.search(shown)


def test_who_types_is_told_how_to_end():
    content = b"item,score\na,1000000\nb,1\n\x04"
    read = ("select", "-", "-k", "1", "--epsilon", "1000", "--format", "items")
    code, shown = in_terminal(*read, stdin=content)
    assert (code, shown.splitlines()[-1]) == (0, "a")
    assert "discreet: reading what you type, until Ctrl-D on a line of its own\n" in shown
    assert "reading" not in in_terminal(*read, "--quiet", stdin=content)[1]


class Terminal(SimpleNamespace):
    """A stream that says it is a terminal."""

    text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize(("quiet", "shown"), [(False, True), (True, False)])
def test_stages_are_shown_unless_silence_is_wanted(monkeypatch, quiet, shown):
    monkeypatch.setattr(jobs, "_PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with jobs.show_progress(not quiet):
        assert jobs.is_shown() is shown
        with jobs.stage("counting the domain"):
            end = 100
            while shown and not terminal.text and end:
                end -= 1
                jobs.time.sleep(0.05)
    assert ("counting the domain ... 0 s" in terminal.text) is shown


def test_a_library_shows_nothing_unless_it_is_asked_to(monkeypatch):
    monkeypatch.setattr(jobs, "_PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert not jobs.is_shown()
    with jobs.stage("counting the domain"):
        jobs.time.sleep(0.3)
    assert not terminal.text
    with jobs.show_progress():
        assert jobs.is_shown()
        with jobs.show_progress(False):
            assert not jobs.is_shown()
        assert jobs.is_shown()
    assert not jobs.is_shown()


def test_a_bar_that_is_not_shown_counts_nothing():
    with progress_bar("waiting", 2) as step:
        assert step() is None


@pytest.mark.slow
@pytest.mark.long
def test_publishing_asks_in_a_terminal(folder):
    fill_folder(folder, ARTISTS)
    for answer, said, released in ((b"n\n", "nothing was released", 0), (b"y\n", "artists 2025-10: released", 1)):
        code, shown = in_terminal("publish", "charts.toml", "--as-of", "2025-11-01", stdin=answer)
        assert code == 0
        assert "Release them? [y/N]" in shown
        assert said in shown
        assert len(Ledger("budget.db").history()) == released
    # There is nothing to ask about any more.
    assert "Release them?" not in in_terminal("publish", "charts.toml", "--as-of", "2025-11-01")[1]


def test_what_takes_minutes_tells_a_pipe_in_a_few_plain_lines(monkeypatch, capsys):
    monkeypatch.setattr(jobs, "_FIRST_LINE", 0.01)
    monkeypatch.setattr(jobs, "_LINES_APART", 0.05)
    with jobs.show_progress(), progress_bar("studying", 3, in_lines=True) as step:
        step()
        time.sleep(0.2)
        step()
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 6
    assert all(re.fullmatch(r"studying: \d of 3 done, \d+ s", line) for line in lines)
    assert lines[0].startswith("studying: 1 of 3")
    with jobs.show_progress(False), progress_bar("studying", 3, in_lines=True) as step:
        time.sleep(0.1)
        step()
    with jobs.show_progress(), progress_bar("verifying", 3) as step:
        time.sleep(0.1)
        step()
    assert capsys.readouterr().err == ""


def test_a_reader_of_progress_who_left_stops_nothing(monkeypatch):
    monkeypatch.setattr(jobs, "_FIRST_LINE", 0.0)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: False, write=refuse, flush=refuse))
    with jobs.show_progress(), progress_bar("studying", 3, in_lines=True) as step:
        time.sleep(0.05)
        step()


def refuse(*_):
    raise BrokenPipeError


EVENTS = ("visits.csv", "--user", "who", "--item", "page", "--where", "page <> 'x y'", "--domain", "pages.csv:page")
CHECK = "discreet: rows that do not fit are left out without a word; to count them: discreet check "


@pytest.mark.long
def test_a_release_of_events_ends_with_its_check_whatever_the_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pages.csv").write_text("page\na\nb\n")
    costs = ("-k", "1", "--epsilon", "1000", "--json", "--out", "top.json")
    discreet.Ledger.create("budget.db", epsilon=5000, unit="visitors")
    shown = []
    for rows in ("who,page\n1,a\n", "who,page\n,\nx,zzz\n\xff,a\n"):
        Path("visits.csv").write_text(rows, encoding="latin-1")
        code, text = in_terminal("select", *EVENTS, *costs, "--ledger", "budget.db", NO_COLOR="1")
        assert code == 0
        shown.append(text.splitlines()[-1])
    assert shown == 2 * [f"{CHECK}{shlex.join(EVENTS)}"]
    assert process("check", *shlex.split(shown[0].removeprefix(CHECK))).returncode == 1
    assert "discreet check" not in in_terminal("select", *EVENTS, *costs, "--quiet")[1]
    assert "discreet check" not in process("select", *EVENTS, *costs).stderr
    assert "discreet check" not in in_terminal(*SELECT)[1]


def test_the_check_that_is_named_has_no_password(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ibis.duckdb.connect("v.ddb").create_table("v", pa.table({"who": [1], "page": ["a"]}))
    Path("pages.csv").write_text("page\na\nb\n")
    place = ("--connect", "duckdb://v.ddb?access_mode=read_only", "--name", "v", "--user", "who", "--item", "page")
    code, text = in_terminal("select", *place, "--domain", "pages.csv:page", "-k", "1", "--epsilon", "9", NO_COLOR="1")
    assert code == 0, text
    assert "--connect duckdb://... --name v" in text.splitlines()[-1]
