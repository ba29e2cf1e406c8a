"""Corrections and withdrawals: charged or not, shown with their reason, and lost by no kill."""

import csv
import json
import re

import pytest

import discreet
from chart_folder import ARTISTS, HEAD, publish, read_log, read_site, write_charts
from discreet.cli.app import app
from discreet.ledger import store
from discreet.ledger.ledger import Ledger

OCTOBER, NOVEMBER = ("--as-of", "2025-11-01"), ("--as-of", "2025-12-01")
REASON = "a day of events was <missing>"


@pytest.fixture
def site(folder):
    """A site with one chart and two months."""
    write_charts(folder, ARTISTS)
    assert publish(*OCTOBER) == 0
    assert publish(*NOVEMBER) == 0
    return folder


def change(word, period="2025-10", *options, reason=REASON):
    arguments = ["publish", word, "charts.toml", "artists", period, "--reason", reason, *options]
    return app(arguments, standalone_mode=False)


def test_a_correction_is_charged_and_shown_with_both_dates(site, capsys):
    before, first = read_site(), Ledger("budget.db").history()[0]
    capsys.readouterr()
    assert change("correct") == 0
    assert "artists 2025-10: released for epsilon 0.1" in capsys.readouterr().out
    entries = Ledger("budget.db").history()
    assert [entry.request_id for entry in entries] == ["artists/2025-10", "artists/2025-11", "artists/2025-10/2"]
    assert (entries[0], entries[2].edition["reason"]) == (first, REASON)
    after = read_site()
    page = after["artists.2025-10.html"].decode()
    assert re.search(r"Corrected \d+ \w+ 20", page)
    assert re.search(r"a day of events was &lt;missing&gt; \(first released \d+ \w+ 20", page)
    notice = after["data/artists.2025-10.notice.txt"].decode().strip()
    assert json.loads(after["data/artists.2025-10.json"])["notice"] == notice
    assert discreet.Release.from_json(after["data/artists.2025-10.json"].decode()) == entries[2].release
    assert "after seeing this list and all that it replaced." in page
    assert "October 2025 (corrected)</a>" in after["artists.2025-11.html"].decode()
    assert "### Corrected and withdrawn" in after["statement.md"].decode()
    escaped = notice.replace("<", r"\<").replace(">", r"\>")
    assert f"- October 2025: {escaped}" in after["statement.md"].decode()
    assert f"October 2025: {notice}".replace("<", "&lt;").replace(">", "&gt;") in after["statement.html"].decode()
    bound = "Somebody who thought it 50:50 that you are in the data is at most 55.0% sure of it"
    assert f'notes: "October 2025: {notice}. {bound}' in after["statement.yaml"].decode()
    assert after["data/artists.2025-11.csv"] == before["data/artists.2025-11.csv"]
    # The same correction again is done already, as after a kill; and publishing changes nothing.
    assert change("correct") == 0
    assert publish(*NOVEMBER) == 0
    assert (len(Ledger("budget.db").history()), read_site()) == (3, after)


def test_marks_of_markdown_in_a_reason_mean_nothing(site):
    reason = "# ![x](//e) | `y` *z* _w_ &lt; ~~v~~ <b> \\* \n- u"
    assert change("correct", reason=reason) == 0
    assert change("withdraw", "2025-11", reason=reason) == 0
    site = read_site()
    (one, two) = re.findall("20[0-9]{2}: .*<b.*", site["statement.md"].decode().replace(r"\<", "<"))
    for line in (one, two):
        assert not re.search(r"(?<!\\)(\\\\)*[\[\]`*_&|~#]", line)
    page = site["statement.html"].decode()
    shown = reason.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", "\\n")
    assert page.count(shown) == 2
    assert site["statement.yaml"].decode().count(reason.replace("\n", "\\n")) == 2


def test_a_correction_shows_its_price_and_a_new_wording_is_not_drawn(site, capsys):
    before, head = read_site(), Ledger("budget.db").head
    assert change("correct", "2025-10", "--dry-run") == 0
    assert "this run costs epsilon 0.1" in capsys.readouterr().out
    assert (Ledger("budget.db").head, read_site()) == (head, before)
    assert change("correct") == 0
    head = Ledger("budget.db").head
    assert change("correct", reason="a day was missing") == 2
    assert "was corrected before" in capsys.readouterr().err
    assert Ledger("budget.db").head == head
    assert change("correct", "2025-10", "--dry-run") == 0
    assert "this run costs epsilon 0;" in capsys.readouterr().out
    assert change("correct", "2025-10", "--draw-again", reason="another day was missing") == 0
    assert len(Ledger("budget.db").history()) == 4


def test_a_withdrawal_costs_nothing_and_leaves_a_notice(site, capsys):
    before, spent = read_site(), Ledger("budget.db").spent
    items = json.loads(before["data/artists.2025-11.json"])["items"]
    assert change("withdraw", "2025-11") == 0
    assert "artists 2025-11: withdrawn; what it cost stays spent" in capsys.readouterr().out
    after, ledger = read_site(), Ledger("budget.db")
    assert (ledger.spent, len(ledger.history()), ledger.check()) == (spent, 2, 6)
    (withdrawal,) = ledger.withdrawals()
    assert (withdrawal.chart, withdrawal.period, withdrawal.reason) == ("artists", "2025-11", REASON)
    page = after["artists.2025-11.html"].decode()
    assert re.search(r"Withdrawn \d+ \w+ 20", page)
    assert '<section class="list"' not in page
    # The list was out: what it says about a person was seen.
    assert "is at most 52.5% sure of it after seeing what was published here." in page
    assert not any(f">{item}<" in page for item in items)
    rows = list(csv.reader(after["data/artists.2025-11.csv"].decode().splitlines()))
    assert (rows[0], list(json.loads(after["data/artists.2025-11.json"]))) == (["notice"], ["notice"])
    assert re.match(r"Withdrawn \d+ \w+ 20", rows[1][0])
    index = after["index.html"].decode()
    # The card shows the newest list that was not withdrawn.
    assert "October 2025, November 2025 (withdrawn)" in index
    write_charts(site, ARTISTS, 'language = "de"\n' + HEAD)
    assert publish(*NOVEMBER) == 0
    assert read_site()["data/artists.2025-11.csv"] == after["data/artists.2025-11.csv"]
    write_charts(site, ARTISTS)
    # The notice comes before the promise of the list that is gone.
    assert re.search(
        r"## .*\n\n### Corrected and withdrawn\n\n- November 2025: Withdrawn", after["statement.md"].decode()
    )
    assert 'notes: "November 2025: Withdrawn' in after["statement.yaml"].decode()
    assert publish(*NOVEMBER) == 0
    assert change("withdraw", "2025-11") == 0
    assert (ledger.head, read_site()) == (Ledger("budget.db").head, after)
    # A correction takes the place of what was withdrawn.
    assert change("correct", "2025-11", reason="with all events") == 0
    page = read_site()["artists.2025-11.html"].decode()
    assert re.search(r"Corrected \d+ \w+ 20", page)
    assert "Withdrawn" not in page


def test_a_correction_that_is_lost_leaves_the_first_release(site, monkeypatch):
    before = read_site()
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert change("correct") == 130
    assert publish(*NOVEMBER) == 0
    changed = {name for name, text in read_site().items() if text != before[name]}
    # The lost charge is spent, which every page says.
    assert not any(name.startswith("data/") for name in changed)
    assert change("correct") == 0
    ids = [entry.request_id for entry in Ledger("budget.db").history() if entry.stored is not None]
    assert ids == ["artists/2025-10", "artists/2025-11", "artists/2025-10/3"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["charts.toml", "artists", "2025-08"],
            "PERIOD must be a released period of 'artists', such as 2025-10, 2025-11,",
        ),
        (["charts.toml", "artist", "2025-10"], "CHART must be the id of a chart of charts.toml, not 'artist'"),
        (["charts.toml", "artists", "once"], "PERIOD must be a released period of 'artists'"),
    ],
)
@pytest.mark.parametrize("word", ["correct", "withdraw"])
def test_what_is_not_published_cannot_be_changed(site, capsys, word, arguments, sentence):
    head = Ledger("budget.db").head
    assert app(["publish", word, *arguments, "--reason", "x"], standalone_mode=False) == 2
    assert sentence in capsys.readouterr().err
    assert app(["publish", word, *arguments, "--reason", " "], standalone_mode=False) == 2
    assert "reason must have from 1 to" in capsys.readouterr().err
    assert Ledger("budget.db").head == head


def test_what_does_not_fit_is_not_corrected(site, capsys):
    while Ledger("budget.db").left >= 1:
        discreet.top_k({"a": 1, "b": 2}, 1, 1, ledger="budget.db")
    discreet.top_k({"a": 1, "b": 2}, 1, Ledger("budget.db").left, ledger="budget.db")
    before = read_site()
    capsys.readouterr()
    assert change("correct", "2025-10", "--log", "json") == 3
    price, total, event = read_log(capsys.readouterr().out)
    assert (price["due"], total["fits"]) == (["2025-10"], False)
    assert (event["event"], event["code"]) == ("error", "budget-spent")
    assert read_site() == before


@pytest.mark.some(1)
@pytest.mark.parametrize("content", [{"reason": ""}, {"more": 1}, {"time": "2020-01-01T00:00:00Z"}])
def test_a_withdrawal_that_discreet_does_not_write_is_damage(site, content):
    assert change("withdraw") == 0
    ledger = Ledger("budget.db")
    with ledger._store.write(1) as chain:
        *_, last = chain.records()
        chain.append(store.next_record(last, store.WITHDRAW, {**last.content, **content}))
    with pytest.raises(discreet.LedgerError, match="is not one that discreet writes"):
        Ledger(ledger.path)


def test_a_chart_ends_and_its_pages_stay(folder):
    charts = ARTISTS.replace('every = "month"', 'every = "month"\nfrom = "2025-09"\nto = "2025-10"')
    write_charts(folder, charts)
    for moment in (NOVEMBER, ("--as-of", "2026-02-01")):
        assert publish(*moment) == 0
        assert [entry.request_id for entry in Ledger("budget.db").history()] == ["artists/2025-09", "artists/2025-10"]
    assert {"artists.2025-09.html", "artists.2025-10.html"} < set(read_site())
