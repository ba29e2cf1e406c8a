"""What the tests of publishing share: a small folder of charts, and how the command is run in this process."""

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

import discreet
from discreet.cli.app import app

SONGS = """
[[chart]]
id = "songs"
title = "Most played songs"
note = "Listeners who played it at least once."
events = { table = "streams/*.parquet", user = "listener", item = "song_id", where = "seconds >= 30" }
domain = "songs.csv:song_id"
label = "title"
by = { column = "country", groups = "countries.csv:code", each_user = "one" }
k = 3
epsilon = "0.25"
counts = "0.25"
every = "month"
time = "played_at"
"""
ARTISTS = """
[[chart]]
id = "artists"
title = "Artists"
events = { table = "streams/*.parquet", user = "listener", item = "artist" }
domain = ["abba", "bach", "cure", "dido"]
k = 2
epsilon = "0.1"
every = "month"
time = "played_at"
"""
HEAD = 'title = "What people listen to"\nledger = "budget.db"\nout = "site"\npictures = false\n'
TITLES = [f"Song {letter}" for letter in "ABCDEFGH"]


def fill_folder(folder, charts=SONGS + ARTISTS, epsilon=20):
    """Writes events of 2025, lists, a charts file and a budget."""
    write_charts(folder, charts)
    rows = [
        {
            "listener": user,
            "song_id": (user * user + month) % 8,
            "artist": ["abba", "bach", "cure", "dido"][(user + month) % 4],
            "country": ["DE", "FR"][user % 2],
            "seconds": 20 + user,
            "played_at": datetime(2025, month, 1 + user % 28, 12),
        }
        for user in range(40)
        for month in range(1, 13)
    ]
    (folder / "streams").mkdir()
    pa.parquet.write_table(pa.Table.from_pylist(rows), folder / "streams" / "all.parquet")
    lines = [f"{number},{title}\n" for number, title in enumerate(TITLES)]
    (folder / "songs.csv").write_text("song_id,title\n" + "".join(lines))
    (folder / "countries.csv").write_text("code\nDE\nFR\n")
    discreet.Ledger.create(folder / "budget.db", epsilon=epsilon, unit="listeners")


def write_charts(folder, charts, head=HEAD):
    Path(folder, "charts.toml").write_text(head + charts, encoding="utf-8")


def publish(*arguments):
    """The exit code of the command."""
    return app(["publish", "charts.toml", *arguments], standalone_mode=False)


def read_site(path="site"):
    """Every file of a site, by its name."""
    return {str(file.relative_to(path)): file.read_bytes() for file in Path(path).rglob("*") if file.is_file()}


def read_log(text):
    """The events of a log of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]
