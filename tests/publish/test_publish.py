"""`discreet publish`: the price first, each period once, and a site that is a function of the ledger."""

import json
import re
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from chart_folder import ARTISTS, HEAD, SONGS, TITLES, publish, read_log, read_site, write_charts
from discreet.cli.app import app
from discreet.ledger.file_store import find_lock
from discreet.ledger.ledger import Ledger
from discreet.publish.chart_source import describe_question, name_source
from discreet.publish.charts_file import read_charts
from discreet.publish.site_folder import MARK
from discreet.release.registry import entry_to_yaml, write_registry_entry
from discreet.release.statement import make_subject, write_statement

OCTOBER, NOVEMBER = ("--as-of", "2025-11-01"), ("--as-of", "2025-12-01")


def entries():
    return Ledger("budget.db").history()


def request_ids():
    return [entry.request_id for entry in entries()]


def test_a_dry_run_reads_no_events_and_spends_nothing(folder, capsys):
    shutil.rmtree("streams")
    before = Path("budget.db").read_bytes()
    assert publish("--dry-run", *OCTOBER) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "What people listen to: the privacy of listeners, as of 2025-11-01 00:00 UTC"
    assert [line.split()[:5] for line in lines[1:4]] == [
        ["chart", "period", "epsilon", "released", "this"],
        ["songs", "2025-10", "0.5", "none", "0.5"],
        ["artists", "2025-10", "0.1", "none", "0.1"],
    ]
    assert all("32 more months" in line for line in lines[2:4])  # (20 - 0.6) / 0.6
    assert lines[4].strip() == "this run costs epsilon 0.6; 19.4 of 20 is left after it"
    assert Path("budget.db").read_bytes() == before
    assert not Path("site").exists()


@pytest.mark.slow
def test_each_period_is_released_once(folder, capsys):
    assert publish(*OCTOBER) == 0
    assert request_ids() == ["songs/2025-10", "artists/2025-10"]
    assert entries()[0].purpose == "Most played songs, 2025-10"
    site = read_site()
    assert {"index.html", "songs.html", "songs.2025-10.html", "data/songs.2025-10.csv", "statement.md"} < set(site)
    release = discreet.GroupedRelease.from_json(site["data/songs.2025-10.json"].decode())
    assert release == entries()[0].release
    assert set(release["DE"].items) <= set(TITLES)
    capsys.readouterr()
    assert publish(*OCTOBER) == 0
    assert "this run costs epsilon 0;" in capsys.readouterr().out
    assert read_site() == site
    assert len(entries()) == 2
    assert publish(*NOVEMBER) == 0
    assert request_ids()[2:] == ["songs/2025-11", "artists/2025-11"]
    later = read_site()
    assert later["songs.html"] == later["songs.2025-11.html"]
    assert later["data/songs.2025-10.json"] == site["data/songs.2025-10.json"]


@pytest.mark.long
@pytest.mark.slow
def test_a_statement_has_the_question_while_the_chart_asks_it(folder):
    assert publish(*OCTOBER) == 0
    songs, artists = read_site()["statement.md"].decode().split("\n## Artists")
    assert "| condition | `seconds >= 30` |\n| period | `month(played_at) = 2025-10` |\n" in songs
    assert "| items of a user | All items of a user count: there is no bound. |" in songs
    # 3 counts of one group at epsilon 0.25; the intervals of the release reach as far.
    assert "with s = 12 = L / 0.25. L = 3 is the most" in songs
    count = max(entries()[0].release["DE"].counts, key=lambda count: count.high - count.low)
    assert f"With 95% it is within {count.high - (count.high + count.low) // 2}." in songs or count.low == 0
    assert "condition" not in artists
    assert "Which rows counted" not in songs + artists
    assert "time zones" not in songs + artists
    write_charts(folder, SONGS.replace("seconds >= 30", "seconds >= 40"))
    assert publish(*OCTOBER) == 0
    edited = read_site()["statement.md"].decode()
    assert "seconds >" not in edited
    assert "Which rows counted" in edited


@pytest.mark.parametrize(("zone", "told"), [("", False), ('zone = "Europe/Berlin"', True)])
def test_a_statement_has_no_password_and_time_zones_only_with_a_zone(folder, monkeypatch, zone, told):
    monkeypatch.setenv("PASSWORD", "sesame")
    place = 'connect = "postgres://me:${PASSWORD}@here/db?password=open", name = "plays"'
    write_charts(folder, ARTISTS.replace('table = "streams/*.parquet"', place) + zone)
    (chart,) = read_charts("charts.toml").charts
    release = discreet.top_k({"abba": 9, "bach": 5, "cure": 1}, 2, 1)
    asked = describe_question(chart, "2025-10")
    subject = make_subject(release, None, source=name_source(chart), question=asked)
    text = write_statement(subject) + entry_to_yaml(write_registry_entry(subject))
    assert not re.search("sesame|open\\b|here/db", text + repr(asked))
    assert "month(played_at" in text
    assert ("Days depend on the database of time zones." in text) == told


def test_the_release_is_of_the_events_of_the_period(folder):
    """With an epsilon that leaves no noise, the counts are those of the month, counted here."""
    write_charts(folder, ARTISTS.replace('epsilon = "0.1"', "epsilon = 100\ncounts = 9900").replace("k = 2", "k = 4"))
    Path("budget.db").unlink()
    Ledger.create("budget.db", epsilon=10**5, unit="listeners")
    assert publish(*OCTOBER) == 0
    counts = {count.item: count.value for count in entries()[0].release.counts}
    names = ["abba", "bach", "cure", "dido"]
    assert counts == {name: sum((user + 10) % 4 == place for user in range(40)) for place, name in enumerate(names)}


@pytest.mark.long
def test_a_period_that_is_released_stays_when_the_chart_is_edited(folder):
    publish(*OCTOBER)
    before = read_site()
    write_charts(folder, SONGS.replace("k = 3", "k = 5").replace("Most played songs", "Hits"))
    assert publish(*NOVEMBER) == 0
    site = read_site()
    assert site["data/songs.2025-10.json"] == before["data/songs.2025-10.json"]
    old, new = site["songs.2025-10.html"].decode(), site["songs.2025-11.html"].decode()
    assert "settings changed" not in old
    assert "settings changed from those of October 2025: length of the list 5 (before: 3)." in new
    assert "<h1>Hits</h1>" in old
    assert "artists.html" not in site
    assert "artists/2025-10" in request_ids()


def test_a_charge_without_a_release_is_spent_and_charged_again(folder, capsys, monkeypatch):
    """As after a kill between charge and store, which tests of a year do for real."""

    def end(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "keep", end)
        assert publish(*OCTOBER) == 130
    assert request_ids() == ["songs/2025-10"]
    capsys.readouterr()
    assert publish(*OCTOBER) == 0
    out = capsys.readouterr().out
    assert "songs 2025-10: was charged before and no release was stored" in out
    assert "charged again as songs/2025-10/2" in out
    assert request_ids() == ["songs/2025-10", "songs/2025-10/2", "artists/2025-10"]
    assert [entry.stored is None for entry in entries()] == [True, False, False]
    assert publish(*OCTOBER) == 0
    assert len(entries()) == 3


@pytest.fixture
def mend_events(folder):
    """Events whose file has its schema and no longer its rows, which shows when the release is charged already."""
    path = Path("streams/all.parquet")
    whole = path.read_bytes()
    foot = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[:4] + bytes(foot - 4) + whole[foot:])
    return lambda: path.write_bytes(whole)


@pytest.mark.long
def test_a_query_that_always_fails_is_charged_twice_and_no_more(folder, capsys, mend_events):
    write_charts(folder, SONGS)
    assert [publish(*OCTOBER) for _ in range(4)] == [4, 4, 1, 1]
    assert request_ids() == ["songs/2025-10", "songs/2025-10/2"]
    assert Ledger("budget.db").spent == 1
    capsys.readouterr()
    assert publish("--dry-run", *OCTOBER) == 1
    out = capsys.readouterr().out
    told = "songs/2025-10 was charged twice and not stored; `--charge-again songs` draws it once more"
    assert f"songs: {told}" in out
    assert "this run costs epsilon 0;" in out
    assert publish("--dry-run", *OCTOBER, "--charge-again", "songs") == 0
    out = capsys.readouterr().out
    assert "songs: charged before and not stored, which is spent; charged again as songs/2025-10/3" in out
    assert "this run costs epsilon 0.5;" in out
    assert publish(*OCTOBER, "--charge-again", "songs") == 4
    capsys.readouterr()
    assert publish(*OCTOBER, "--log", "json") == 1
    assert request_ids() == ["songs/2025-10", "songs/2025-10/2", "songs/2025-10/3"]
    assert read_log(capsys.readouterr().out)[0]["error"] == told.replace("twice", "3 times")
    mend_events()
    assert publish(*OCTOBER, "--charge-again", "songs") == 0
    assert request_ids()[3:] == ["songs/2025-10/4"]


@pytest.mark.long
@pytest.mark.usefixtures("mend_events")
def test_of_many_periods_none_is_charged_after_one_that_is_lost_twice(folder):
    write_charts(folder, SONGS.replace('every = "month"', 'every = "month"\nfrom = "2025-08"'))
    assert [publish(*OCTOBER) for _ in range(3)] == [4, 4, 1]
    assert request_ids() == ["songs/2025-08", "songs/2025-08/2"]


@pytest.mark.some(1)
@pytest.mark.parametrize("purpose", ["for the board alone", "Artists, 2025-10 (settings {settings})", None])
def test_a_release_of_somebody_else_is_not_published(folder, capsys, purpose):
    """Ids and purposes are anybody's to choose: no text of a caller makes a release an edition of a chart."""
    secret = {"Merger A": 9, "Merger B": 8, "Merger C": 1}
    (artists,) = [chart for chart in read_charts(folder / "charts.toml").charts if chart.id == "artists"]
    purpose = purpose and purpose.format(settings=artists.fingerprint)
    request = {"ledger": "budget.db", "request_id": "artists/2025-10", "purpose": purpose}
    discreet.top_k(secret, k=2, epsilon=1, **request)
    assert publish(*OCTOBER) == 1
    assert "artists: failed: request id 'artists/2025-10' is used by another release" in capsys.readouterr().out
    assert request_ids() == ["artists/2025-10", "songs/2025-10"]
    site = read_site()
    assert "artists.html" not in site
    assert not any(b"Merger" in text for text in site.values())
    assert publish("--as-of", "2025-10-01") == 0
    assert "artists/2025-09" in request_ids()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("song", "charge_again must be the id of a chart of the file, not 'song'"),
        ("songs", "charge_again must be a chart that was charged twice for a period and not stored, which 'songs' was"),
    ],
)
def test_only_what_was_lost_twice_is_charged_again(folder, capsys, name, message):
    assert publish(*OCTOBER, "--charge-again", name) == 2
    assert message in capsys.readouterr().err
    assert request_ids() == []


def test_one_chart_that_fails_does_not_stop_the_others(folder, capsys):
    write_charts(folder, SONGS.replace('item = "song_id"', 'item = "song"') + ARTISTS)
    assert publish(*OCTOBER) == 2
    assert "songs 2025-10: failed: item must be a column of the table" in capsys.readouterr().out
    assert request_ids() == ["artists/2025-10"]
    assert {"artists.html", "index.html"} < set(read_site())
    write_charts(folder, SONGS.replace("songs.csv", "gone.csv") + ARTISTS)
    assert publish("--dry-run", *NOVEMBER) == 2
    assert publish(*NOVEMBER) == 2
    assert "songs: domain must be a file that exists" in capsys.readouterr().out
    assert request_ids() == ["artists/2025-10", "artists/2025-11"]


def test_charts_that_fail_for_different_causes_have_a_code_of_their_own(folder, capsys):
    write_charts(folder, SONGS.replace('item = "song_id"', 'item = "song"') + ARTISTS.replace('"0.1"', '"400"'))
    assert publish(*OCTOBER, "--log", "json") == 5
    log = read_log(capsys.readouterr().out)
    failed = {each["chart"]: each["code"] for each in log if each["event"] == "failed"}
    assert failed == {"songs": "wrong-usage", "artists": "budget-spent"}


@pytest.mark.parametrize(
    ("options", "code"),
    [(["--as-of", "soon"], "wrong-usage"), (["--dryrun"], "wrong-usage"), (["--wait"], "wrong-usage")],
)
def test_an_error_that_stops_the_run_is_in_the_log(folder, capsys, options, code):
    assert publish("--log", "json", *options) == 2
    captured = capsys.readouterr()
    (event,) = read_log(captured.out)
    assert (event["event"], event["code"], event["exit"], captured.err) == ("error", code, 2, "")
    assert event["error"]


def test_what_the_budget_does_not_allow_is_refused(folder, capsys):
    Path("budget.db").unlink()
    Ledger.create("budget.db", epsilon="0.5", unit="listeners")
    assert publish(*OCTOBER) == 3
    out = capsys.readouterr().out
    assert "more than is left: what does not fit is refused before anything is drawn" in out
    assert "artists 2025-10: failed: epsilon 0.1 does not fit" in out
    assert request_ids() == ["songs/2025-10"]


def test_a_year_ends_and_the_site_keeps_both(folder, capsys):
    Path("budget.db").unlink()
    Ledger.create("budget.db", epsilon="0.1", every="year", since="2025-01-01", unit="listeners")
    write_charts(folder, ARTISTS)
    assert publish("--as-of", "2025-11-02") == 0
    assert "this run costs epsilon 0.1; 0 of 0.1 is left after it in 2025" in capsys.readouterr().out
    assert publish("--as-of", "2025-12-02") == 3
    assert "epsilon 0.1 does not fit: 0 of 0.1 is left in 2025" in capsys.readouterr().out
    assert publish("--as-of", "2026-01-02", "--log", "json") == 0
    (total,) = [each for each in read_log(capsys.readouterr().out) if each["event"] == "total"]
    assert (total["period"], total["left"], total["fits"]) == ("2026", "0", True)
    site = read_site()
    assert {"artists.2025-10.html", "artists.2025-12.html"} < set(site)
    assert (
        b"0.1 for each year for all lists together, to protect the listeners; all releases so far spent 0.1 in 2026"
        in site["statement.html"]
    )
    assert b"after seeing all lists that this privacy budget allows in one calendar year." in site["index.html"]
    assert b"Charged so far: epsilon = 0.2 of 0.2 in 2 years with charges since 2025." in site["statement.html"]
    assert b", counted in the budget of 2025" in site["artists.2025-10.html"]
    head = Ledger("budget.db").head
    assert publish("--as-of", "2026-01-02") == 0
    assert (Ledger("budget.db").head, read_site()) == (head, site)


def test_a_moment_of_a_year_that_ended_is_refused_by_the_price_as_by_the_run(folder, capsys):
    Path("budget.db").unlink()
    Ledger.create("budget.db", epsilon=1, every="year", since="2025-01-01", unit="listeners")
    write_charts(folder, ARTISTS)
    assert publish(*OCTOBER) == 0
    assert publish("--as-of", "2026-01-02") == 0
    site, head = read_site(), Ledger("budget.db").head
    correct = ["publish", "correct", "charts.toml", "artists", "2025-10", "--reason", "wrong"]
    late = "as_of must be in 2026 or later, the period of the last charge, not in 2025, which has ended in the ledger"
    for option in ("--dry-run", "--yes"):
        capsys.readouterr()
        assert publish(*NOVEMBER, option) == 2
        assert late in capsys.readouterr().err
        assert app([*correct, *NOVEMBER, option], standalone_mode=False) == 2
        assert late in capsys.readouterr().err
        assert app([*correct, "--as-of", "2999-01-01", option], standalone_mode=False) == 2
        assert "as_of must not be after now" in capsys.readouterr().err
        # Nothing is due then, so that nothing is charged.
        assert publish(*OCTOBER, option) == 0
        assert "this run costs epsilon 0; 0.9 of 1 is left after it in 2026" in capsys.readouterr().out
    assert (read_site(), Ledger("budget.db").head) == (site, head)


def test_periods_before_the_ledger_was_made_are_not_charged_by_a_backfill(folder, capsys):
    """The price refuses them as the run does, and a ledger with a start that all can see takes them."""
    Path("budget.db").unlink()
    Ledger.create("budget.db", epsilon=1, every="year", unit="listeners")
    write_charts(folder, ARTISTS)
    this = datetime.now(UTC).year
    early = (
        f"as_of must be in {this} or later, the period in which the ledger was made, not in 2025, and nothing was "
        "drawn: leave as_of out, or make a ledger that begins earlier, with 'discreet budget init --since 2025-01-01'"
    )
    for option in ("--dry-run", "--yes"):
        assert publish(*OCTOBER, option) == 2
        assert early in capsys.readouterr().err
    assert publish() == 0
    name = Ledger("budget.db").history()[0].request_id
    correct = ["publish", "correct", "charts.toml", *name.split("/"), "--reason", "wrong"]
    for option in ("--dry-run", "--yes"):
        assert app([*correct, *OCTOBER, option], standalone_mode=False) == 2
        assert f"as_of must be in {this} or later, the period of the last charge" in capsys.readouterr().err
    Path("budget.db").unlink()
    shutil.rmtree(Path("site").resolve())
    Path("site").unlink()
    assert app(["budget", "init", "budget.db", "--epsilon", "1", "--every", "year", "--since", "2025-10-01", "--unit",
                "listeners"], standalone_mode=False) == 0  # fmt: skip
    for moment in (*OCTOBER[1:], *NOVEMBER[1:]):
        assert publish("--as-of", moment) == 0
    assert list(Ledger("budget.db").periods) == ["2025"]


def test_a_moment_without_an_offset_is_of_the_zone_of_the_ledger(folder, capsys):
    Path("budget.db").unlink()
    Ledger.create("budget.db", epsilon=1, every="year", since="2025-01-01", zone="Asia/Tokyo", unit="listeners")
    write_charts(folder, ARTISTS)
    assert publish("--as-of", "2025-11-01") == 0  # the last of October in UTC, which the chart counts in
    assert "as of 2025-11-01 00:00+09:00" in capsys.readouterr().out
    assert publish("--as-of", "2025-11-01T09:00") == 0
    entries = Ledger("budget.db").history()
    assert [(entry.request_id, entry.as_of) for entry in entries] == [
        ("artists/2025-09", "2025-10-31T15:00:00Z"),
        ("artists/2025-10", "2025-11-01T00:00:00Z"),
    ]


def test_a_ledger_that_does_not_hold_what_the_site_shows_is_refused(folder, capsys):
    write_charts(folder, ARTISTS)
    shutil.copy("budget.db", "copy.db")
    assert publish(*OCTOBER) == 0
    site, head = read_site(), Ledger("budget.db").head
    Ledger.create("new.db", epsilon=20, unit="listeners")
    for name in ("new.db", "copy.db"):
        Path("charts.toml").write_text(Path("charts.toml").read_text().replace("budget.db", name))
        for option in ("--yes", "--dry-run"):
            assert publish(*NOVEMBER, option) == 2
            assert (
                f"ledger must hold the releases that the site 'site' shows, and '{name}' does not"
                in capsys.readouterr().err
            )
        assert Ledger(name).history() == []
        Path("charts.toml").write_text(Path("charts.toml").read_text().replace(name, "budget.db"))
    assert (read_site(), Ledger("budget.db").head) == (site, head)
    Path("charts.toml").write_text(
        Path("charts.toml").read_text().replace("budget.db", "new.db").replace('"site"', '"other"')
    )
    assert publish(*NOVEMBER) == 0
    assert Path("other", "index.html").exists()


def test_a_site_without_releases_takes_another_ledger(folder, capsys):
    """A first run that fails writes a site that says so; there is nothing in it to lose."""
    write_charts(folder, ARTISTS)
    Path("streams").rename("elsewhere")
    assert publish(*OCTOBER) == 2
    assert "Nothing is released yet" in Path("site", "index.html").read_text()
    Path("elsewhere").rename("streams")
    Ledger.create("new.db", epsilon=20, unit="listeners")
    Path("charts.toml").write_text(Path("charts.toml").read_text().replace("budget.db", "new.db"))
    assert publish(*OCTOBER) == 0
    assert len(Ledger("new.db").history()) == 1
    # From now on the site has releases, and belongs to its ledger.
    Path("charts.toml").write_text(Path("charts.toml").read_text().replace("new.db", "budget.db"))
    assert publish(*OCTOBER) == 2
    assert "ledger must hold the releases that the site 'site' shows" in capsys.readouterr().err


def test_a_database_in_place_of_files_is_refused_before_the_price(folder, capsys):
    write_charts(folder, ARTISTS.replace("streams/*.parquet", "postgres://ann:secret@h/db"))
    assert publish(*OCTOBER) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "charts.toml, chart 'artists': table must name files, and the URL of a database is none" in told.err
    assert "secret" not in told.err
    assert not Path("site").exists()


@pytest.mark.some(2)
@pytest.mark.parametrize("damage", [None, b"", b"\xff\xfe", b"0" * 63, "a folder"])
def test_a_site_whose_ledger_is_not_known_is_refused(folder, capsys, damage):
    write_charts(folder, ARTISTS)
    assert publish(*OCTOBER) == 0
    mark = Path("site", MARK)
    kept = mark.read_bytes()
    mark.unlink()
    if isinstance(damage, bytes):
        mark.write_bytes(damage)
    elif damage is not None:
        mark.mkdir()
    site, head = read_site(), Ledger("budget.db").head
    Ledger.create("new.db", epsilon=20, unit="listeners")
    charts = Path("charts.toml").read_text()
    for name in ("new.db", "budget.db"):
        Path("charts.toml").write_text(charts.replace("budget.db", name))
        for option in ("--yes", "--dry-run"):
            assert publish(*NOVEMBER, option) == 2
            assert f"the file {MARK} of 'site' is missing or damaged: '{name}' may lack" in capsys.readouterr().err
        assert (
            app(["publish", "withdraw", "charts.toml", "artists", "2025-10", "--reason", "x"], standalone_mode=False)
            == 2
        )
        capsys.readouterr()
    assert (read_site(), Ledger("budget.db").head, Ledger("new.db").history()) == (site, head, [])
    Path("site").rename("away")
    assert publish(*OCTOBER) == 0
    assert (Ledger("budget.db").head, Path("site", MARK).read_bytes()) == (head, kept)


def test_all_periods_from_the_first_are_released(folder):
    write_charts(folder, ARTISTS.replace('every = "month"', 'every = "month"\nfrom = "2025-08"'))
    assert publish(*OCTOBER) == 0
    assert request_ids() == ["artists/2025-08", "artists/2025-09", "artists/2025-10"]
    assert b"Came in since" in read_site()["artists.html"] or b"The same items as in" in read_site()["artists.html"]


def test_a_chart_without_periods_is_released_under_its_id(folder):
    write_charts(folder, ARTISTS.replace('every = "month"\ntime = "played_at"\n', ""))
    for _ in range(2):
        assert publish() == 0
    assert request_ids() == ["artists"]
    assert {"artists.html", "data/artists.once.csv"} < set(read_site())


def test_the_log_is_json_and_holds_what_happened(folder, capsys):
    assert publish(*OCTOBER, "--log", "json") == 0
    log = read_log(capsys.readouterr().out)
    others = [each for each in log if each["event"] != "noted"]
    assert [each["event"] for each in others] == ["price", "price", "total", "released", "released", "written"]
    assert [each["note"] for each in log if each["event"] == "noted" and each["chart"] == "songs"] == NOTES
    assert log[0] | {"time": ""} == {
        "time": "", "event": "price", "chart": "songs", "due": ["2025-10"], "released": 0, "epsilon": "0.5",
        "delta": "0", "cost": "0.5", "lasts": 32,
    }  # fmt: skip
    assert log[3]["request_id"] == "songs/2025-10"
    words = json.dumps(log)
    assert not any(title in words for title in TITLES)


NOTES = [
    "item reads song_id as whole numbers (25), because its type is not declared: rows in another spelling are left out",
    "by reads country as text, whose case and spaces count, because its type is not declared",
    "during reads played_at as dates and times (2026-01-31 or 2026-01-31 12:00:00), because its type is not declared: "
    "rows in another spelling are left out; date_format says otherwise",
    "where reads seconds as numbers (2.5), because its type is not declared: no other spelling meets it; decimal says "
    "otherwise",
]
TOLD = "".join(f"discreet: songs: {note}\n" for note in NOTES)


@pytest.mark.long
def test_what_a_condition_reads_columns_as_is_said_once_unless_all_is_quiet(folder, capsys):
    """Of several files no type is declared, so that a text beside a number in `where` meets it nowhere."""
    write_charts(folder, SONGS)
    for arguments in (["--as-of", "2025-03-02"], ["--as-of", "2025-05-02"]):
        assert publish("--yes", *arguments) == 0
        assert capsys.readouterr().err == TOLD
    for log in ("text", "json"):
        assert publish("--yes", "--as-of", "2025-06-02" if log == "text" else "2025-07-02", "-q", "--log", log) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        assert "where reads" not in captured.out
    check = ["check", "charts.toml", "--as-of", "2025-07-02"]
    app(check, standalone_mode=False)
    assert capsys.readouterr().err == TOLD
    app([*check, "--quiet"], standalone_mode=False)
    assert capsys.readouterr().err == ""


def test_no_password_is_told(folder, capsys, monkeypatch):
    charts = ARTISTS.replace('table = "streams/*.parquet"', 'connect = "${WAREHOUSE}", name = "streams"')
    write_charts(folder, charts)
    monkeypatch.setenv("WAREHOUSE", "postgres://ada:s3cret@127.0.0.1:1/db")
    for log in ("text", "json"):
        assert publish(*OCTOBER, "--log", log) == 4
        captured = capsys.readouterr()
        assert "failed" in captured.out
        assert "does not answer at 127.0.0.1, port 1: try again later, or correct connect" in captured.out
        assert not any(each in captured.out + captured.err for each in ("s3cret", "ada"))
    assert request_ids() == []
    assert "s3cret" not in json.dumps(Ledger("budget.db").export())


def test_events_in_a_database_beside_the_file(folder, capsys):
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table("streams/all.parquet", columns=["listener", "artist", "played_at"]).to_pylist()
    with closing(sqlite3.connect("data.db")) as connection:
        connection.execute("CREATE TABLE streams (listener INTEGER, artist TEXT, played_at TEXT)")
        values = [(row["listener"], row["artist"], str(row["played_at"])) for row in rows]
        connection.executemany("INSERT INTO streams VALUES (?, ?, ?)", values)
        connection.commit()
    connect = 'connect = "sqlite://data.db", name = "streams"'
    charts = ARTISTS.replace('table = "streams/*.parquet"', connect)
    write_charts(folder, charts)
    assert publish(*OCTOBER) == 0
    assert request_ids() == ["artists/2025-10"]
    with closing(sqlite3.connect("data.db")) as connection:
        connection.execute("CREATE TABLE artists (name TEXT)")
        connection.executemany("INSERT INTO artists VALUES (?)", [("abba",), ("bach",), ("cure",)])
        connection.commit()
    write_charts(folder, charts.replace('["abba", "bach", "cure", "dido"]', '"connect:artists.name"'))
    assert publish(*NOVEMBER) == 0
    assert [entry.d for entry in entries()] == [4, 3]
    head = Ledger("budget.db").head
    for items, label in (("name TEXT, shown TEXT", ""), ("name INTEGER, shown TEXT", 'label = "shown"\n')):
        with closing(sqlite3.connect("data.db")) as connection:
            connection.execute("DROP TABLE artists")
            connection.execute(f"CREATE TABLE artists ({items})")
            connection.executemany("INSERT INTO artists VALUES (?, ?)", [(n, f"Shown {n}") for n in range(5)])
            connection.execute("ALTER TABLE streams RENAME TO hidden")
            connection.commit()
        # The rehearsal reads the public list alone, and its items have the type of their column.
        write_charts(folder, charts.replace('["abba", "bach", "cure", "dido"]', f'"connect:artists.name"\n{label}'))
        assert publish("--dummy", *NOVEMBER) == 0
        page = (folder / "site-dummy" / "artists.html").read_text()
        assert ("Shown" in page) == bool(label)
        with closing(sqlite3.connect("data.db")) as connection:
            connection.execute("ALTER TABLE hidden RENAME TO streams")
            connection.commit()
    assert Ledger("budget.db").head == head
    write_charts(folder, charts.replace('["abba", "bach", "cure", "dido"]', '"connect:artists.nam"'))
    assert publish("--dummy", *NOVEMBER) == 2
    assert "domain must be a column of the table, one of name, shown, not 'nam'" in capsys.readouterr().err


@pytest.mark.xdist_group("spark")
def test_events_in_a_table_of_spark(folder, spark, monkeypatch):
    monkeypatch.setenv("SPARK", "pyspark://?spark.sql.shuffle.partitions=2")
    spark.read.parquet(str(folder / "streams")).write.saveAsTable("streams")
    rows = [(name, name.title()) for name in ("abba", "bach", "cure")]
    shown = spark.createDataFrame(rows, "name string, shown string")
    shown.write.saveAsTable("artists")
    charts = ARTISTS.replace('table = "streams/*.parquet"', 'connect = "${SPARK}", name = "streams"')
    write_charts(folder, charts)
    assert publish(*OCTOBER) == 0
    listed = charts.replace('["abba", "bach", "cure", "dido"]', '"connect:artists.name"\nlabel = "shown"')
    write_charts(folder, listed)
    assert publish(*NOVEMBER) == 0
    assert [entry.d for entry in entries()] == [4, 3]
    assert set(entries()[1].release.items) < {"Abba", "Bach", "Cure"}
    assert publish("--dummy", *NOVEMBER) == 0
    # The plan of a table is checked as that of a frame is.
    spark.sql("CREATE TEMPORARY VIEW ranked AS SELECT *, row_number() OVER (ORDER BY listener) AS place FROM streams")
    write_charts(folder, listed.replace('name = "streams"', 'name = "ranked"').replace('"artists"', '"others"'))
    assert publish(*NOVEMBER) == 2
    write_charts(folder, listed.replace('name = "streams"', 'name = "gone"').replace('"artists"', '"others"'))
    assert publish(*NOVEMBER) == 4
    assert len(entries()) == 2


def test_items_can_be_found(folder, capsys):
    listed, found = 'domain = ["abba", "bach", "cure", "dido"]', "discover = { delta = 1e-5, max_items_per_user = 1 }"
    write_charts(folder, ARTISTS.replace(listed, found).replace('epsilon = "0.1"', "epsilon = 60"))
    Path("budget.db").unlink()
    Ledger.create("budget.db", epsilon=100, delta="1e-4", release_delta="5e-5", unit="listeners")
    assert publish(*OCTOBER) == 0
    assert entries()[0].delta == Fraction(1, 10**5)
    assert b"<td>1e-05</td>" in read_site()["statement.html"]
    assert publish("--dummy", *OCTOBER) == 0
    write_charts(folder, Path("charts.toml").read_text().removeprefix(HEAD).replace("1e-5", "1e-4"))
    capsys.readouterr()
    assert publish("--dry-run", *NOVEMBER) == 0
    out = capsys.readouterr().out
    assert "artists: delta is 0.0001: it should be well below one over the number of people" in out
    assert "more than is left" in out


@pytest.mark.some(1)
@pytest.mark.parametrize(("site", "options"), [("site", OCTOBER), ("site-dummy", ("--dummy", *OCTOBER))])
def test_two_runs_do_not_write_one_site_at_once(folder, capsys, site, options):
    """Also where they have different budgets, or none."""
    with closing(sqlite3.connect(find_lock(folder / site), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert publish(*options, "--wait", "0") == 1
        captured = capsys.readouterr()
        assert "another run is at work on this site" in captured.out
        assert f"another run of 'discreet publish' is at work on {site}; the site was not written" in captured.err
        assert not Path(site).exists()
    assert publish(*options) == 0
    for locked in ("budget.db", site) if site == "site" else (site,):
        assert find_lock(folder / locked).stat().st_mode & 0o777 == 0o600


@pytest.mark.long
def test_two_runs_do_not_collide(folder, capsys):
    with closing(sqlite3.connect(find_lock(folder / "budget.db"), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert publish(*OCTOBER, "--wait", "0") == 1
        captured = capsys.readouterr()
        assert "another run is at work on this budget" in captured.out
        assert "another run of 'discreet publish' is at work on budget.db" in captured.err
        assert request_ids() == []
        assert publish("--dry-run", *OCTOBER) == 0
        ending = threading.Timer(1, lambda: Path("ends").touch())
        ending.start()
        codes = []
        waiting = threading.Thread(target=lambda: codes.append(publish(*OCTOBER, "--wait", "60")))
        waiting.start()
        while not Path("ends").exists():
            time.sleep(0.05)
        assert not codes
        other.rollback()
    waiting.join()
    assert codes == [0]
    assert len(entries()) == 2


@pytest.mark.long
@pytest.mark.slow
def test_a_rehearsal_touches_neither_data_nor_ledger(folder, capsys):
    publish(*OCTOBER)
    site = read_site()
    shutil.rmtree("streams")
    Path("budget.db").unlink()
    assert publish("--dummy", *OCTOBER) == 0
    assert read_site() == site
    dummy = read_site("site-dummy")
    assert set(site) == set(dummy)
    pages = [text.decode() for name, text in dummy.items() if name.endswith(".html")]
    assert len(pages) == 6
    assert all("DUMMY: made-up events" in page for page in pages)
    assert "NOT PRIVATE" in dummy["statement.md"].decode()
    again = read_site("site-dummy")
    publish("--dummy", *OCTOBER)
    assert read_site("site-dummy") == again


def test_a_period_that_is_not_over_cannot_be_released(folder, capsys):
    """What it will cost may be asked."""
    soon = (datetime.now(UTC) + timedelta(minutes=10)).isoformat()
    for moment in (soon, "2999-01-01", "2999-12-31T23:59:59-12:00"):
        assert publish("--as-of", moment) == 2
        assert "as_of must not be after now except with --dry-run or --dummy" in capsys.readouterr().err
    assert request_ids() == []
    assert not Path("site").exists()
    for option in ("--dry-run", "--dummy"):
        assert publish("--as-of", "2999-01-01", option) == 0
        assert publish("--as-of", "9999-12-31T23:59:59-12:00", option) == 2
        assert "as_of must be in the years 1900 to 2999" in capsys.readouterr().err
    assert publish("--as-of", (datetime.now(UTC) - timedelta(seconds=1)).isoformat()) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--as-of", "soon"], "as_of must be a day or a time"),
        (["--log", "xml"], "log must be one of text, json, not 'xml'"),
        (["--wait", "-1"], "wait must be from 0 to 86400 seconds"),
    ],
)
def test_bad_use_is_told_and_has_the_code_2(folder, capsys, arguments, message):
    assert publish(*arguments) == 2
    assert message in capsys.readouterr().err


def test_a_bad_file_has_the_code_2_and_nothing_is_released(folder, capsys):
    write_charts(folder, ARTISTS + SONGS.replace("k = 3", "k = -1"))
    assert publish(*OCTOBER) == 2
    assert "charts.toml, chart 'songs': k must be" in capsys.readouterr().err
    assert request_ids() == []
    write_charts(folder, ARTISTS, 'title = "x"\nledger = "none.db"\nout = "site"\n')
    assert publish(*OCTOBER) == 2
    assert "ledger must be a file that exists" in capsys.readouterr().err
    write_charts(folder, ARTISTS, 'title = "x"\nledger = "budget.db"\nout = "streams"\n')
    assert publish(*OCTOBER) == 2
    assert "out must be a new or an empty folder" in capsys.readouterr().err
    assert Path("streams/all.parquet").exists()


@pytest.mark.long
def test_a_charts_file_can_be_checked_without_its_budget(folder, capsys):
    Path("budget.db").unlink()
    write_charts(folder, SONGS + ARTISTS.replace('"abba"', '"Abba"'))
    assert app(["check", "charts.toml", *OCTOBER, "--json"], standalone_mode=False) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["songs", "artists"]
    assert found["songs"]["rows_kept"] == 30  # of 40 people in October, those who played for half a minute
    assert found["artists"]["rows_inside"] == 30  # without the ten who played Abba
    assert app(["check", "charts.toml", "--as-of", "2026-02-01"], standalone_mode=False) == 1
    assert "songs: NOT private, for the data holder alone" in capsys.readouterr().out
    assert app(["check", "charts.toml", "--item", "x"], standalone_mode=False) == 2
    assert "item must be left out with a charts file" in capsys.readouterr().err


def test_a_period_that_is_not_over_cannot_be_checked(folder, capsys):

    for moment in ((datetime.now(UTC) + timedelta(minutes=10)).isoformat(), "2999-01-01"):
        assert app(["check", "charts.toml", "--as-of", moment], standalone_mode=False) == 2
        told = capsys.readouterr()
        assert re.fullmatch(
            r"discreet: as_of must not be after now, not \S+: a period that is not over has .+\n", told.err
        )
        assert told.out == ""
