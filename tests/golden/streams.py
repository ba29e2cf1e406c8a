"""The events of the recorded features: one table of streams, on every engine that needs no server."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ENGINES = ["arrow", "pandas", "polars", "parquet", "csv", "jsonl", "sqlite", "relation", "ibis"]
SONGS = ["ame", "blu", "cor", "dia", "eko", "fado", "gris", "halo", "ida", "jazz", "kite"]
LANDS = ["DE", "FR", "IT"]
START = datetime(2025, 12, 29, 20, 30)


def _make_row(i):
    # Cubes make some songs much more frequent than others, so that the best of every group differ in their scores.
    user, song = i % 307, int(23 * ((i * 7919 + i // 307) % 1009 / 1009) ** 3)
    # Most streams are at home, so that a user has rows in several lands and one of them has most.
    land = [*LANDS, "XX"][(user if i % 5 else i) % 4]
    moment = START + timedelta(hours=5 * i)
    return {
        "who": None if i % 97 == 5 else f"user {user}",
        "song": None if i % 89 == 7 else [*SONGS, "Ame ", "=1+1"][song % 13],
        "number": None if i % 71 == 3 else song,
        "land": land,
        "stars": None if i % 7 == 3 else i % 5 + 1,
        "amount": i % 9 / 4 - 0.5,
        "note": [None, "live", "Live at 5%", "re_mix", "demo "][i % 5],
        "premium": [True, False, None][i % 3],
        "at": moment,
        "day": moment.date(),
    }


ROWS = [_make_row(i) for i in range(1700)]
TYPES = {
    "who": pa.string(), "song": pa.string(), "number": pa.int64(), "land": pa.string(), "stars": pa.int64(),
    "amount": pa.float64(), "note": pa.string(), "premium": pa.bool_(), "at": pa.timestamp("us"), "day": pa.date32(),
}  # fmt: skip
STREAMS = pa.Table.from_pylist(ROWS, pa.schema(TYPES))
SQLITE_TYPES = {
    "who": "TEXT", "song": "TEXT", "number": "INTEGER", "land": "TEXT", "stars": "INTEGER", "amount": "REAL",
    "note": "TEXT", "premium": "BOOLEAN", "at": "TIMESTAMP", "day": "DATE",
}  # fmt: skip


def write_files():
    """Write the streams and the public lists to the working directory."""
    pa.parquet.write_table(STREAMS, "streams.parquet")
    pa.csv.write_csv(STREAMS, "streams.csv")
    rows = [{name: _spell(value) for name, value in row.items()} for row in ROWS]
    Path("streams.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with closing(sqlite3.connect("streams.db")) as connection:
        columns = ", ".join(f"{name} {kind}" for name, kind in SQLITE_TYPES.items())
        connection.execute(f"CREATE TABLE streams ({columns})")
        marks = ", ".join("?" * len(TYPES))
        connection.executemany(f"INSERT INTO streams VALUES ({marks})", [tuple(row.values()) for row in rows])  # noqa: S608  # marks alone
        connection.commit()
    lines = [f"{number},{song},Song of {song}\n" for number, song in enumerate(SONGS)]
    Path("songs.csv").write_text("number,song,title\n" + "".join(lines), "utf-8")
    pa.parquet.write_table(pa.table({"number": range(23), "song": [f"s{i}" for i in range(23)]}), "songs.parquet")
    Path("lands.csv").write_text("code\nFR\nDE\nIT\n", "utf-8")
    Path("pairs.csv").write_text("land,month\nFR,2026-01\nDE,2026-02\nIT,2026-02\n", "utf-8")
    Path("scores.csv").write_text(
        "item,score\n" + "".join(f"{song},{97 * i}\n" for i, song in enumerate(SONGS)), "utf-8"
    )
    Path("scores.json").write_text(json.dumps({song: 97 * i for i, song in enumerate(SONGS)}), "utf-8")


def _spell(value):
    return value.isoformat(*([" "] if isinstance(value, datetime) else [])) if hasattr(value, "isoformat") else value


def open_streams(engine):
    """Return the arguments of `discreet.events` that name the streams on an engine."""
    import duckdb
    import ibis
    import pandas as pd
    import polars as pl

    kinds = {pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype(), pa.bool_(): pd.BooleanDtype()}
    match engine:
        case "arrow":
            return {"table": STREAMS, "name": None}
        case "pandas":
            return {"table": STREAMS.to_pandas(types_mapper=kinds.get), "name": None}
        case "polars":
            return {"table": pl.from_arrow(STREAMS), "name": None}
        case "sqlite":
            return {"table": f"sqlite://{Path('streams.db').resolve()}", "name": "streams"}
        case "relation":
            return {"table": duckdb.arrow(STREAMS, connection=duckdb.connect()), "name": None}
        case "ibis":
            return {"table": ibis.duckdb.connect().create_table("streams", STREAMS), "name": None}
    return {"table": f"streams.{engine}", "name": None}
