"""A domain that is a piece of the events is refused, where that can be seen without looking at a value."""

import glob
import shutil
import warnings

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from engines import CONNECT, LONG_ON_SERVERS, on

EVENTS = pa.table({"who": [1, 2, 3], "what": ["a name of many letters", "b", "c"], "n": [7, 8, 9], "on": [True] * 3})
REFUSAL = "domain must be a public list of items, not the events themselves or a column of them: an item that is"


def refused(table, domain, item="what", **options):
    with pytest.raises(discreet.Error) as raised:
        discreet.events(table, user="who", item=item, domain=domain, **options)
    assert str(raised.value).startswith(REFUSAL)


TEXT = {
    "str": None,
    "objects": object,
    "python": pd.StringDtype("python"),
    "arrow": pd.ArrowDtype(pa.string()),
    "category": "category",
}


@pytest.mark.parametrize("dtype", TEXT)
def test_a_column_of_pandas_is_recognised_by_its_memory(dtype):
    frame = EVENTS.to_pandas()
    if TEXT[dtype] is not None:
        frame = frame.astype({"what": TEXT[dtype]})
    for domain in (frame.what, frame[["what"]], pd.Index(frame.what), frame.what.array, frame[["who", "what"]]):
        refused(frame, domain)
    if dtype == "category":
        refused(frame, frame.what.cat.categories)
        refused(frame, frame.set_index("what").index)


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]"])
def test_a_column_of_numbers_in_pandas_too(dtype):
    frame = EVENTS.to_pandas().astype({"n": dtype})
    for domain in (frame.n, frame[["n"]], frame.n.array, frame.n[1:]):
        refused(frame, domain, item="n")
    if dtype == "int64":
        refused(frame, frame.n.to_numpy(), item="n")


def test_a_column_of_polars_or_arrow_is_recognised_by_its_memory():
    frame = pl.from_arrow(EVENTS)
    coded = frame.with_columns(pl.col("what").cast(pl.Categorical))
    for domain in (frame["what"], frame.select("what"), frame["what"][1:], frame["what"].clone()):
        refused(frame, domain)
        refused(frame.lazy(), domain)
    refused(coded, coded["what"])
    priced = frame.select(
        pl.lit("1.5").cast(pl.Decimal(10, 2)).alias("price"), pl.lit(1, pl.Int128).alias("m"), pl.all()
    )
    refused(priced, priced["what"])
    refused(priced.lazy(), priced["what"])
    refused(frame, frame["n"].to_arrow(), item="n")
    for domain in (EVENTS["what"], EVENTS.select(["what"]), EVENTS["what"].chunk(0), EVENTS.slice(1)["what"]):
        refused(EVENTS, domain)
    encoded = EVENTS.set_column(1, "what", EVENTS["what"].dictionary_encode())
    refused(encoded, encoded["what"])
    refused(encoded, encoded["what"].chunk(0).dictionary)
    refused(EVENTS, EVENTS["n"].to_numpy(), item="n")
    refused(EVENTS.to_batches()[0], EVENTS["what"])


def test_one_frame_is_recognised_through_several_libraries():
    refused(EVENTS, pl.from_arrow(EVENTS)["n"], item="n")
    refused(EVENTS.to_pandas(), EVENTS["what"])
    refused(ibis.memtable(EVENTS), EVENTS["what"])
    refused(EVENTS, ibis.memtable(EVENTS).select("what"))


def test_lazy_frames_are_recognised_by_what_they_begin_with(tmp_path):
    frame, path = pl.from_arrow(EVENTS), tmp_path / "e.parquet"
    pa.parquet.write_table(EVENTS, path)
    refused(frame.lazy().filter(pl.col("who") > 1), frame.lazy().select("what").unique())
    refused(pl.scan_parquet(path), pl.scan_parquet(path).select("what").unique())
    refused(pl.scan_parquet(path), f"{path}:what")
    refused(str(path), pl.scan_parquet(tmp_path / "*.parquet").select("what"))


def test_files_are_recognised_by_their_real_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(EVENTS, "e.parquet")
    (tmp_path / "linked.parquet").symlink_to("e.parquet")
    refused("e.parquet", "linked.parquet:what")
    refused("*.parquet", "../" + tmp_path.name + "/e.parquet")
    refused(duckdb.read_parquet("e.parquet"), "e.parquet:what")
    refused("e.parquet", duckdb.sql("SELECT DISTINCT what FROM 'e.parquet'"))


@pytest.mark.parametrize("list_of", [{"domain": ""}, {"domain": ":what"}, {"groups": ":what"}])
def test_a_url_with_an_odd_password_is_recognised_by_its_text(list_of):
    url = "https://ann:p/w@example.org/events.csv"
    options = {"domain": ["a"], **({"by": "what", "each_user": "one"} if "groups" in list_of else {})}
    lists = {argument: url + column for argument, column in list_of.items()}
    with pytest.raises(discreet.Error, match="not the events themselves") as caught:
        discreet.events(str(url), user="who", item="what", **{**options, **lists})
    assert "p/w" not in str(caught.value)


def test_texts_in_a_list_are_items_and_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(EVENTS, "e.parquet")
    monkeypatch.setattr(glob, "glob", lambda path, **_: [path] if path == "e.parquet" else pytest.fail("looked up"))
    split = {"by": "what", "groups": ["e.parquet", "**"], "each_user": "many"}
    for options in ({}, split):
        source = discreet.events("e.parquet", user="who", item="what", domain=["e.parquet", "**", "x.csv"], **options)
        source.close()
    with pytest.raises(discreet.Error, match="delimiter must be left out"):
        discreet.events("e.parquet", user="who", item="what", domain=["x.csv"], delimiter=";")


def test_relations_and_tables_are_recognised_by_name(tmp_path):
    with duckdb.connect(str(tmp_path / "e.ddb")) as connection:
        connection.register("frame", EVENTS)
        connection.execute("CREATE TABLE events AS SELECT * FROM frame")
        relation, scanned = connection.table("events"), connection.from_arrow(EVENTS)
        refused(relation, relation.project("what").distinct())
        refused(relation, connection.sql("SELECT DISTINCT what FROM main.EVENTS"))
        refused(scanned, scanned.project("what"))
        refused(connection.sql("SELECT * FROM EVENTS"), connection.sql("SELECT what FROM EVENTS"))
    backend = ibis.duckdb.connect(tmp_path / "e.ddb")
    table = backend.table("events")
    refused(table.filter(table.n > 7), table.select("what").distinct())
    refused(table, backend.table("events", database="main"))
    refused(f"duckdb://{tmp_path / 'e.ddb'}", table, name="events")
    backend.disconnect()


def test_other_tables_frames_and_files_are_taken(tmp_path):
    """Copies too, which nobody can tell from a list of one's own."""
    pa.parquet.write_table(EVENTS, tmp_path / "e.parquet")
    shutil.copy(tmp_path / "e.parquet", tmp_path / "copy.parquet")
    frame, backend = pl.from_arrow(EVENTS), ibis.duckdb.connect()
    table, items = backend.create_table("events", EVENTS), backend.create_table("items", EVENTS.select(["what"]))
    nobody = pa.table({"who": pa.nulls(3, pa.int64()), "what": pa.nulls(3, pa.string())})
    for events, domain in [
        (EVENTS.to_pandas(), EVENTS.to_pandas().what.unique()),
        (EVENTS, EVENTS["what"].unique()),
        (frame, frame["what"].unique()),
        (frame.lazy(), pl.scan_parquet(tmp_path / "copy.parquet").select("what")),
        (EVENTS, EVENTS["what"].to_pylist()),
        (pl.from_arrow(nobody), pl.DataFrame({"what": ["x"], "no": [None]})),
        (tmp_path / "e.parquet", f"{tmp_path / 'copy.parquet'}:what"),
        (table, items),
        (duckdb.sql("FROM EVENTS"), duckdb.sql("SELECT * FROM (VALUES ('a'), ('b')) AS listed(what)")),
        (duckdb.read_parquet(str(tmp_path / "e.parquet")), duckdb.read_parquet(str(tmp_path / "copy.parquet"))),
    ]:
        assert discreet.events(events, user="who", item="what", domain=domain).d >= 1


SERVERS = LONG_ON_SERVERS


@pytest.mark.parametrize("engine", ["sqlite", *SERVERS])
def test_the_tables_of_servers_are_recognised(engine, tmp_path, request):
    given = on(engine, EVENTS, tmp_path, request)
    if engine == "spark":
        frame, path = given["table"], str(tmp_path / "spark.parquet")
        refused(frame, frame.select("what").distinct())
        refused(frame.select("who", "what"), frame.filter("n > 7").select("what"))
        if not CONNECT:
            refused(frame.filter("n > 7"), frame.select("what"))
        frame.write.saveAsTable("origins")
        refused(frame.sparkSession.table("origins"), frame.sparkSession.table("default.origins").select("what"))
        frame.sparkSession.sql("DROP TABLE origins")
        pa.parquet.write_table(EVENTS, path)
        refused(frame.sparkSession.read.parquet(path), frame.sparkSession.read.parquet(path).select("what"))
        refused(frame.sparkSession.read.parquet(path), f"{path}:what")
        items = frame.sparkSession.createDataFrame([("b",), ("d",)], ["what"])
        assert discreet.events(frame, user="who", item="what", domain=items).d == 2
    else:
        with warnings.catch_warnings(action="ignore"):  # a new server has no table of time zones
            backend = ibis.connect(given["table"])
        refused(given["table"], backend.table("events").select("what").distinct(), name="events")
        refused(backend.table("events"), backend.table("events").select("what"))
        backend.disconnect()


COLUMNS = {
    "pandas": pd.Series(["Straße", "Straße"]),
    "index": pd.Index(["Straße", "Straße"]),
    "polars": pl.Series(["Straße", "Straße"]),
    "arrow": pa.array(["Straße", "Straße"]),
    "numpy": np.array(["Straße", "Straße"]),
    "frame": pd.DataFrame({"what": ["Straße", "Straße"]}),
    "table": pa.table({"what": ["Straße", "Straße"]}),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_no_message_shows_an_item_of_a_column(kind):
    """A column may be a copy of the events, so that its first item that is there twice is somebody's."""
    with pytest.raises(discreet.Error, match=r"^domain must hold each item once, (but|and) one is there twice$"):
        discreet.events(EVENTS, user="who", item="what", domain=COLUMNS[kind])
    with pytest.raises(discreet.Error, match=r"but 'Straße' is there twice$"):
        discreet.events(EVENTS, user="who", item="what", domain=["Straße", "Straße"])


@pytest.mark.parametrize("kind", ["pandas", "index", "polars", "arrow", "numpy"])
def test_no_message_shows_a_label_of_a_column(kind):
    with pytest.raises(discreet.Error, match=r"^labels must all be different, but one is there twice$"):
        discreet.top_k([1, 2], 1, 1, labels=COLUMNS[kind])
    with pytest.raises(discreet.Error, match=r"^labels must be strings, .* or tuples of these, not a float$"):
        discreet.top_k([1, 2], 1, 1, labels=np.array([1.5, np.nan]))
    with pytest.raises(discreet.Error, match=r"^labels must all be different, but one is there twice$"):
        discreet.top_k(pd.Series([1, 2], index=COLUMNS["index"]), 1, 1)
