"""Compressed files of events and of domains, alone and in folders, and those that would be read as no rows."""

import bz2
import gzip
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.errors import InvalidValueError

ROWS = [{"who": f"u{i}", "what": "a" if i % 3 else "b"} for i in range(30)]
DELIMITED = {name: sign for sign, name in ((",", "e.csv"), (";", "semicolon.csv"), ("\t", "tab.csv"), ("\t", "e.tsv"))}
TEXTS = {
    **{
        name: "\n".join(sign.join(row) for row in [("who", "what"), *(row.values() for row in ROWS)])
        for name, sign in DELIMITED.items()
    },
    "e.jsonl": "\n".join(map(json.dumps, ROWS)),
    "e.ndjson": "\n".join(map(json.dumps, ROWS)),
    "e.json": json.dumps(ROWS, indent=1),
}
COMPRESSED = {".gz": gzip.compress, ".zst": lambda text: pa.compress(text, codec="zstd", asbytes=True)}


def best_of(table, **options):
    source = discreet.events(table, user="who", item="what", **{"domain": ["a", "b"], **options})
    return discreet.top_k(source, k=1, epsilon=100, counts=100).counts[0]


@pytest.mark.corners
@pytest.mark.parametrize("ending", COMPRESSED)
@pytest.mark.parametrize("name", TEXTS)
def test_text_files_are_read_compressed_and_their_headers_show_the_delimiter(tmp_path, name, ending):
    path = tmp_path / f"{name}{ending}"
    path.write_bytes(COMPRESSED[ending](TEXTS[name].encode()))
    assert best_of(path) == best_of(str(path)) == discreet.Count("a", 20, 20, 20)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy"])
def test_parquet_is_compressed_inside(tmp_path, codec):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "e.parquet", compression=codec)
    assert best_of(tmp_path / "e.parquet").value == 20


def test_a_folder_and_a_pattern_may_hold_files_compressed_in_several_ways(tmp_path):
    header, *lines = TEXTS["semicolon.csv"].splitlines()
    for third, (ending, compress) in enumerate({"": bytes, **COMPRESSED}.items()):
        part = "\n".join([header, *lines[third::3]]).encode()
        (tmp_path / f"part-{third}.csv{ending}").write_bytes(compress(part))
    assert best_of(tmp_path) == best_of(f"{tmp_path}/part-*") == discreet.Count("a", 20, 20, 20)


@pytest.mark.parametrize("ending", COMPRESSED)
def test_a_domain_may_be_compressed(tmp_path, ending):
    (tmp_path / "e.csv").write_text(TEXTS["e.csv"])
    items = tmp_path / f"items.csv{ending}"
    items.write_bytes(COMPRESSED[ending](b"id;title\na;Alpha\nb;Beta\n"))
    assert best_of(tmp_path / "e.csv", domain=f"{items}:id", label="title").item == "Alpha"


@pytest.mark.parametrize(
    ("name", "compress"), [("e.csv.bz2", bz2.compress), ("e.jsonl.xz", lzma.compress), ("e.jsonl.GZ", gzip.compress)]
)
def test_what_would_be_read_as_no_rows_is_refused(tmp_path, name, compress):
    (tmp_path / name).write_bytes(compress(TEXTS[name.rpartition(".")[0]].encode()))
    for given in (tmp_path / name, tmp_path, f"{tmp_path}/*"):
        with pytest.raises(InvalidValueError, match=r"table must end in .gz or .zst where it is compressed, not be '"):
            best_of(given)


DAMAGED = {
    "cut in the middle": lambda whole: whole[: len(whole) // 2],
    "without its last byte": lambda whole: whole[:-1],
    "with another file behind it that is cut": lambda whole: whole + whole[: len(whole) // 2],
    "with something else behind it": lambda whole: whole + b"what is this?",
}


@pytest.mark.corners
@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("ending", COMPRESSED)
@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_a_file_that_is_cut_short_or_damaged_is_refused(tmp_path, name, ending, damage):
    """DuckDB reads what comes before, so that scores would be too low, and nobody would know."""
    path = tmp_path / f"{name}{ending}"
    path.write_bytes(DAMAGED[damage](COMPRESSED[ending](TEXTS[name].encode())))
    (tmp_path / name).write_text(TEXTS[name])
    for given in (path, tmp_path, f"{tmp_path}/e*", [tmp_path / name, path]):
        with pytest.raises(InvalidValueError, match=r"' (and 1 more )?must be whole, and its compressed data are cut"):
            best_of(given)


def test_a_damaged_file_is_refused_in_other_encodings_and_by_its_checksum(tmp_path):
    whole = gzip.compress(TEXTS["e.csv"].encode())
    (tmp_path / "e.csv.gz").write_bytes(whole[:-8] + bytes(4) + whole[-4:])
    for encoding in ("utf-8", "latin-1"):
        with pytest.raises(
            InvalidValueError, match=r"e.csv.gz' must be whole, and its compressed data are cut short or"
        ):
            best_of(tmp_path / "e.csv.gz", encoding=encoding)


def test_parquet_in_another_compression_is_refused(tmp_path):
    (tmp_path / "e.parquet.gz").write_bytes(b"")
    with pytest.raises(InvalidValueError, match=r"table must end in .parquet, which is compressed inside, not be '"):
        best_of(tmp_path / "e.parquet.gz")
