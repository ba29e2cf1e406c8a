"""Files as people have them: patterns, folders and lists of paths stand for the same rows."""

import os
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.errors import Error
from discreet.sources.events.location import FilePath, Location

DOMAIN = ["a", "b", "c"]
PARTS = [{"who": [1, 2], "what": ["a", "b"]}, {"who": [2, 3], "what": ["a", "a"]}, {"who": [4], "what": ["b"]}]
EXPECTED = {"a": 3, "b": 2, "c": 0}
NAMES = ["one", "sub/two", "sub/deep/three"]


def scores(table, **options):
    source = discreet.events(table, user="who", item="what", domain=DOMAIN, **options)
    tally, items = source.tally(), source.items(np.arange(3))
    source.close()
    return {item: int(tally.exact(rank)) for rank, item in enumerate(items)}


def write(path, part, ending):
    path.parent.mkdir(parents=True, exist_ok=True)
    if ending == ".parquet":
        pq.write_table(pa.table(part), path)
    else:
        rows = zip(part["who"], part["what"], strict=True)
        path.write_text("who,what\n" + "".join(f"{who},{what}\n" for who, what in rows), encoding="utf-8")


@pytest.fixture(params=[".parquet", ".csv"])
def folder(tmp_path, request):
    """Three files, one of them deeper, and what tools leave beside them."""
    for name, part in zip(NAMES, PARTS, strict=True):
        write(tmp_path / "data" / f"{name}{request.param}", part, request.param)
    for name in ("_SUCCESS", f"_tmp{request.param}", f".hidden{request.param}", "readme.md"):
        (tmp_path / "data" / name).write_text("nothing to see", encoding="utf-8")
    return tmp_path / "data"


def files_of(folder):
    return sorted(
        str(path) for path in folder.rglob("*.*") if path.suffix in (".parquet", ".csv") and path.stem[0].isalpha()
    )


def test_a_folder_a_pattern_and_a_list_have_the_same_rows(folder):
    files = files_of(folder)
    ending = os.path.splitext(files[0])[1]
    listed = [scores(folder), scores(f"{folder}/"), scores(f"{folder}/**/[a-z]*{ending}"), scores(files)]
    assert listed == [EXPECTED] * 4
    assert scores([folder / "sub", files[0]]) == EXPECTED
    # A file that is named twice is read once: a user counts once anyway, but a sum would not.
    assert scores([*files, files[0]]) == EXPECTED


def test_sums_do_not_count_a_file_twice(folder):
    files = files_of(folder)
    options = {"value": "who", "clip": (0, 10), "resolution": 1}
    assert scores([*files, files[0]], **options) == scores(files, **options) == {"a": 6, "b": 6, "c": 0}


def test_folders_that_are_named_after_a_column(tmp_path):
    for item, whos in {"a": [1, 2, 3], "b": [2]}.items():
        write(tmp_path / "data" / f"what={item}" / "x.parquet", {"who": whos, "other": whos}, ".parquet")
    assert scores(tmp_path / "data") == {"a": 3, "b": 1, "c": 0}


def test_what_spark_calls_a_file_is_a_folder(tmp_path):
    write(tmp_path / "events.parquet" / "part-0.parquet", PARTS[0], ".parquet")
    assert scores(tmp_path / "events.parquet") == {"a": 1, "b": 1, "c": 0}


def test_what_no_folder_or_list_can_be_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "both" / "one.csv", PARTS[0], ".csv")
    write(tmp_path / "both" / "two.parquet", PARTS[0], ".parquet")
    one = str(tmp_path / "both" / "one.csv")
    bad = {
        str(tmp_path / "empty"): "table must be a folder with files that end in one of .parquet, .csv,",
        str(tmp_path / "both"): "table must be files of one kind, and ",
        (one, str(tmp_path / "both" / "two.parquet")): "table must be files of one kind, and ",
        (one, str(tmp_path / "none.csv")): "table must be a file that exists, not ",
        (): "table must be a path or a list of paths, ",
        (one, 7): "table must be a path or a list of paths, ",
    }
    for given, message in bad.items():
        with pytest.raises(Error) as raised:
            scores(list(given) if isinstance(given, tuple) else given)
        assert str(raised.value).startswith(message)
        # Which files a folder has is not told.
        assert "two.parquet" not in str(raised.value)


def test_a_domain_inside_the_folder_of_the_events_is_refused(folder):
    for given in (folder, files_of(folder)):
        with pytest.raises(Error, match=r"^domain must be a public list of items, not the events themselves"):
            discreet.events(given, user="who", item="what", domain=f"{files_of(folder)[0]}:what")


def test_a_location_is_parsed_once(tmp_path, monkeypatch, call):
    """Every path is classified once, and what is parsed already stays as it is."""
    (tmp_path / "e.csv").write_text("who,what\n1,a\n", encoding="utf-8")
    (tmp_path / "items.csv").write_text("what\na\nb\n", encoding="utf-8")
    parsed, parse = [], FilePath.parse
    monkeypatch.setattr(FilePath, "parse", lambda text: parsed.append(text) or parse(text))
    domain = Location.parse_list(f"{tmp_path}/items.csv:what", "domain")
    discreet.events(str(tmp_path / "e.csv"), user="who", item="what", domain=domain).close()
    assert parsed == [f"{tmp_path}/items.csv:what", str(tmp_path / "e.csv")]
    assert Location.parse(domain) is Location.parse_list(domain, "domain") is domain
    assert [path.text for path in domain.paths] == [f"{tmp_path}/items.csv"]
    parsed.clear()
    table, items, out = str(tmp_path / "e.csv"), f"{tmp_path}/items.csv:what", str(tmp_path / "out.json")
    options = ("--user", "who", "--item", "what", "--domain", items, "-k", "1", "--epsilon", "1", "--out", out)
    assert call("select", table, *options)[0] == 0
    assert parsed == [table, items]
    parsed.clear()
    connection = sqlite3.connect(tmp_path / "e.db")
    connection.execute("CREATE TABLE seen AS SELECT 'a' what, 1 who")
    connection.commit()
    url = f"sqlite://{tmp_path}/e.db"
    assert call("select", "--connect", url, "--name", "seen", *options)[0] == 0
    assert parsed == [url, items]
