"""CSV files that are not separated by commas, or do not double their quotes: `delimiter` and `escape`."""

import csv
import gzip
import io
from fractions import Fraction

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.events.csv_files import CsvFormat, sniff_delimiter
from discreet.sources.events.location import Location
from discreet.sources.events.readers import read_delimited
from effort import examples

NOTE = 'they call it "Dune", mostly\n9,dune,yes'
"""A field with quotes, a comma, and a line that would be a row."""
ROWS = [*((str(who), "dune", NOTE) for who in range(5)), ("7", 'the "7"', "no"), ("8", "a;b", "\\ and \\\\")]
NAMES = ("who", "what", "note")
SCORES = {"dune": 5, 'the "7"': 1, "a;b": 1, "heat": 0}


def written(path, delimiter=",", escape=None, header=NAMES, rows=ROWS):
    """The rows as a program writes them that puts an escape, or another quote, before a quote."""
    text = io.StringIO()
    quotes = {"doublequote": escape is None, "escapechar": escape, "quoting": csv.QUOTE_MINIMAL}
    csv.writer(text, delimiter=delimiter, lineterminator="\n", **quotes).writerows([header, *rows])
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def scores(table, domain=tuple(SCORES), **options):
    source = discreet.events(table, user="who", item="what", domain=domain, **options)
    tally, items = source.tally(), source.items(np.arange(source.d))
    source.close()
    return {item: tally.exact(rank) for rank, item in enumerate(items)}


@pytest.mark.some(5)
@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz"])
@pytest.mark.parametrize(
    "dialect",
    [{}, {"escape": '"'}, {"escape": "\\"}, {"delimiter": ";"}, {"delimiter": "|", "escape": "\\"},
     {"delimiter": "\t"}, {"delimiter": "\x1f"}, {"delimiter": "\x01", "escape": "^"},
     {"delimiter": "¦"}, {"delimiter": "'", "escape": "/"}],
)  # fmt: skip
def test_a_file_is_read_as_the_caller_says(tmp_path, name, dialect):
    spelled = {key: mark for key, mark in dialect.items() if mark != '"'}
    path = written(tmp_path / name, **spelled)
    assert scores(path, **dialect) == SCORES
    domain = written(tmp_path / "items.csv", **spelled, header=("what",), rows=[(item,) for item in SCORES])
    assert scores(path, f"{domain}:what", **dialect) == SCORES


def test_backslashes_take_a_file_apart_unless_the_caller_says_so(tmp_path):
    """What the default does: a backslash is a letter like any other, so that the quote after it ends the field."""
    path = written(tmp_path / "e.csv", escape="\\")
    assert scores(path) != SCORES
    assert scores(path, escape="\\") == SCORES


def test_a_tsv_has_tabs_whatever_the_delimiter_of_the_other_file(tmp_path):
    path = written(tmp_path / "e.tsv", delimiter="\t", escape="\\")
    domain = written(tmp_path / "i.csv", ";", "\\", ("n", "what"), [(n, item) for n, item in enumerate(SCORES)])
    assert scores(path, f"{domain}:what", escape="\\") == SCORES
    assert scores(path, f"{domain}:what", domain_delimiter=";", escape="\\") == SCORES


def test_a_domain_in_a_file_may_have_a_dialect_where_the_events_have_none(tmp_path):
    events = pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in ROWS])
    domain = written(tmp_path / "i.csv", ";", None, ("n", "what"), [(n, item) for n, item in enumerate(SCORES)])
    pa.parquet.write_table(events, tmp_path / "e.parquet")
    for table in (events, tmp_path / "e.parquet"):
        assert scores(table, f"{domain}:what") == SCORES
        assert scores(table, f"{domain}:what", domain_delimiter=";") == SCORES


def test_lines_inside_quotes_are_no_rows_after_an_escaped_quote(tmp_path):
    """As MySQL writes them: a backslash before the line break too, and outside of quotes."""
    (tmp_path / "e.csv").write_text('who,what,note\n1,dune,"so \\"big\\"\\\n9,dune,x\n8,dune,y"\n2,du\\ne,z\n')
    assert scores(tmp_path / "e.csv", ["dune", "heat"], escape="\\") == {"dune": 2, "heat": 0}


@pytest.mark.slow
def test_lines_inside_quotes_are_no_rows_however_large_the_file(tmp_path):
    inner = "\n".join(f'fake{i},c,\\"z\\"' for i in range(2000))
    with open(tmp_path / "e.csv", "w", encoding="utf-8") as file:
        file.write("who,what,t\n")
        file.writelines(f"{i},a,hello world hello world\n" for i in range(230_000))
        file.write(f'"eve",b,"hi \\"\n{inner}\nbye"\n')
        file.writelines(f"{i},a,hello world hello world\n" for i in range(230_000, 460_000))
    assert scores(tmp_path / "e.csv", ["a", "b", "c"], escape="\\") == {"a": 460_000, "b": 1, "c": 0}


BACKEND = ibis.duckdb.connect()
FIELD = st.text(st.sampled_from('ab"\\;,\n\r\t é'), max_size=8)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=5), delimiter=st.sampled_from(",;\t"))
def test_what_was_written_is_what_is_read(tmp_path, rows, delimiter):
    """All fields quoted, with a backslash before quotes and backslashes: every row comes back, and no other."""
    marked = [tuple(field.replace("\\", "\\\\").replace('"', '\\"') for field in row) for row in rows]
    lines = "".join(f'"{one}"{delimiter}"{two}"\n' for one, two in marked)
    (tmp_path / "e.csv").write_text(f"one{delimiter}two\n{lines}", encoding="utf-8", newline="")
    found = Location.parse(tmp_path / "e.csv").find_files("table")
    table = read_delimited(BACKEND, found, CsvFormat(None, "\\"), "read", ["one", "two"], [])
    found = [tuple(field or "" for field in row.values()) for row in table.to_pyarrow().to_pylist()]
    assert found == rows


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_what_spark_writes_is_read_with_its_escape(tmp_path, spark):
    spark.createDataFrame([row for row in ROWS if "\n" not in row[2]] + [("9", "dune", 'a "b", c')], NAMES).coalesce(
        1
    ).write.option("header", True).csv(str(tmp_path / "out"))
    found = scores(str(tmp_path / "out" / "*.csv"), escape="\\")
    assert found == {"dune": 1, 'the "7"': 1, "a;b": 1, "heat": 0}


FRAME = pd.DataFrame({"who": [1], "what": ["a"]})
BAD = [
    ({"delimiter": ";;"}, "delimiter must be one character, such as ';', and no letter, digit, quote or line break"),
    ({"delimiter": ""}, "delimiter must be one character"),
    ({"delimiter": "x"}, "delimiter must be one character"),
    ({"delimiter": '"'}, "delimiter must be one character"),
    ({"delimiter": "\n"}, "delimiter must be one character"),
    (
        {"delimiter": 7},
        "and no letter, digit, quote or line break, not 7",
    ),
    ({"escape": "\\\\"}, r"escape must be one character, such as '\\', and no letter"),
    ({"escape": "\0"}, "escape must be one character"),
    ({"escape": True}, "escape must be one character"),
    ({"escape": ","}, "escape must be an ASCII character other than the delimiter, not ','"),
    ({"escape": ";", "delimiter": ";"}, "escape must be an ASCII character other than the delimiter, not ';'"),
    ({"escape": ";"}, "escape must be an ASCII character other than the delimiter, not ';'"),
    ({"encoding": "koi8"}, "encoding must be 'utf-8', 'utf-16', 'latin-1', 'cp1252', not 'koi8'"),
    ({"encoding": 7}, "encoding must be 'utf-8', 'utf-16', 'latin-1', 'cp1252', not 7"),
    ({"table": FRAME, "encoding": "utf-8"}, "encoding must be left out unless the table is a .csv or .tsv file"),
    ({"escape": "¬"}, "escape must be an ASCII character other than the delimiter, not '¬'"),
    ({"table": FRAME, "delimiter": ";"}, "delimiter must be left out unless the table is a .csv file"),
    ({"table": FRAME, "escape": "\\"}, "escape must be left out unless the table or a public list is a .csv or"),
    ({"table": "e.parquet", "delimiter": ";"}, "delimiter must be left out unless"),
    ({"table": "e.tsv", "delimiter": ";"}, "delimiter must be left out unless"),
    ({"table": "e.jsonl", "escape": "\\"}, "escape must be left out unless"),
    ({"table": "duckdb://e.csv", "name": "e", "escape": "\\"}, "escape must be left out unless"),
    (
        {"table": ibis.table({"who": "int64"}), "domain": FRAME, "escape": "\\"},
        "escape must be left out unless",
    ),
    ({"domain_delimiter": ";"}, "domain_delimiter must be left out unless the domain is a .csv file"),
    ({"domain_encoding": "latin-1"}, "domain_encoding must be left out unless the domain is a .csv or .tsv file"),
    ({"groups_delimiter": ";"}, "groups_delimiter must be left out unless a list of groups is a .csv file"),
    ({"groups_encoding": "koi8"}, "groups_encoding must be 'utf-8', 'utf-16', 'latin-1', 'cp1252', not 'koi8'"),
    ({"delimiter": ";"}, "; the header is one column: are its names separated by another delimiter?"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=range(len(BAD)))
def test_what_no_file_can_have_is_refused(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "e.csv")
    with pytest.raises(discreet.Error) as raised:
        discreet.events(**{"table": "e.csv", "user": "who", "item": "what", "domain": ["a", "b"], **change})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_shows_the_delimiter(tmp_path, delimiter):
    path = written(tmp_path / "e.csv", delimiter)
    domain = written(tmp_path / "items.csv", header=("what", "a;b"), rows=[(item, "x") for item in SCORES])
    assert scores(path, f"{domain}:what") == SCORES


HEADERS = {
    "who,what": ",", "who;what": ";", "who\twhat": "\t", "who": ",", "": ",", "a;b,c;d": ",", '"a,b";c': ";",
    '"a;b"\tc': "\t", "a\tb;c": ";", '"say ""a,b""";c': ";",
}  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_a_comma_comes_first_and_quotes_do_not_count(header):
    assert sniff_delimiter(header) == HEADERS[header]


def test_no_row_changes_the_delimiter(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("who;what\n1;a,b\n2;a\n", encoding="utf-8")
    other.write_text("who;what\n9,9,9;a,b\n1;a,b\n2;a\n7,7,7,7,7\n", encoding="utf-8")
    assert scores(one, ["a", "a,b"]) == {"a": 1, "a,b": 1}
    assert scores(other, ["a", "a,b"]) == {"a": 1, "a,b": 2}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1", "latin1", "ISO-8859-1", "UTF8", "utf-8-sig"])
def test_an_encoding_is_what_the_caller_says(tmp_path, encoding):
    text = "who;größe\n1;süß\n2;süß\n3;klein\n"
    (tmp_path / "e.csv").write_text(text, encoding=encoding, newline="")
    source = discreet.events(tmp_path / "e.csv", user="who", item="größe", domain=["süß", "klein"], encoding=encoding)
    tally, items = source.tally(), source.items(np.arange(2))
    source.close()
    assert {item: int(tally.exact(rank)) for rank, item in enumerate(items)} == {"süß": 2, "klein": 1}


@pytest.mark.parametrize("row", ["5,5,1", "5,6,7", "who,what,x", "whoa,what,x"])
def test_a_header_that_is_no_text_is_refused_whatever_the_rows_are(tmp_path, row):
    """An engine would pass over it, and take somebody's row for the header."""
    (tmp_path / "e.csv").write_bytes(f"who,what,été\n{row}\n1,a,b\n".encode("latin-1"))
    with pytest.raises(discreet.Error) as raised:
        scores(tmp_path / "e.csv", ["a", "b"])
    assert str(raised.value).endswith(
        "e.csv' must begin with a header in utf-8, and does not: say its encoding, as 'latin-1'"
    )
    found = scores(tmp_path / "e.csv", ["a", "b"], encoding="latin-1")
    assert found == {"a": 1, "b": 0}


def test_sums_from_a_file_with_semicolons(tmp_path):
    (tmp_path / "e.csv").write_text('who;what;amount\n1;a;"1.5"\n2;a;2\n3;a;1,5\n')
    assert scores(
        tmp_path / "e.csv", ["a", "b"], delimiter=";", value="amount", clip=(0, 5), resolution="0.5"
    ) == {"a": Fraction(7, 2), "b": 0}  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("encoding", "row"),
    [
        ("latin-1", b"9,\x92\n"),
        ("cp1252", b"9,\x81\x92\n"),
        ("utf-16", "9,\U0001f600\n".encode("utf-16-le")),
        ("utf-16", b"9\x00,\x00\x00\xd8\n\x00"),
    ],
)
def test_no_row_in_another_encoding_is_an_error(encoding, row, tmp_path):
    """DuckDB's own decoders fail on the whole file for one character."""
    begin = "who,what\n1,a\n2,a\n3,b\n".encode(encoding)
    for rows in (b"", row, 3000 * row):
        (tmp_path / "e.csv").write_bytes(begin + rows + "4,b\n".encode(encoding).removeprefix(b"\xff\xfe"))
        assert scores(tmp_path / "e.csv", ["a", "b"], encoding=encoding) == {"a": 2, "b": 2}


def test_a_public_list_in_another_encoding_than_is_said_is_refused(tmp_path):
    (tmp_path / "e.csv").write_bytes(b"who,what\n1,a\n")
    (tmp_path / "list.csv").write_bytes(b"what\na\n\x81\n")
    with pytest.raises(
        discreet.Error, match=r"list.csv' must be a file in cp1252, and is not: say its domain_encoding"
    ):
        scores(tmp_path / "e.csv", str(tmp_path / "list.csv"), domain_encoding="cp1252")


def test_public_lists_do_not_follow_the_format_of_the_events(tmp_path):
    (tmp_path / "e.csv").write_text("who|what|land\n1|süß|Köln\n2|süß|Köln\n3|bär|Bonn\n", encoding="latin-1")
    (tmp_path / "items.csv").write_text("no;what\n1;süß\n2;bär\n", encoding="utf-8")
    (tmp_path / "lands.csv").write_text("land,no\nKöln,1\nBonn,2\n", encoding="utf-16")
    by = {"by": "land", "groups": f"{tmp_path / 'lands.csv'}:land", "each_user": "one", "groups_encoding": "utf-16"}
    source = discreet.events(
        tmp_path / "e.csv", user="who", item="what", domain=f"{tmp_path / 'items.csv'}:what", delimiter="|",
        encoding="latin-1", **by,
    )  # fmt: skip
    release = discreet.top_k(source, k=1, epsilon=1000)
    assert {land: release[land].items for land in release} == {"Köln": ["süß"], "Bonn": ["bär"]}
    (tmp_path / "items.csv").write_text("no;what\n1;süß\n2;bär\n", encoding="latin-1")
    told = "domain must be a file in utf-8, .*domain_encoding says otherwise, as 'latin-1'"
    with pytest.raises(ValueError, match=told):
        discreet.events(tmp_path / "e.csv", user="who", item="what", domain=f"{tmp_path / 'items.csv'}:what",
                        delimiter="|", encoding="latin-1")  # fmt: skip
    found = scores(
        tmp_path / "e.csv",
        f"{tmp_path / 'items.csv'}:what",
        delimiter="|",
        encoding="latin-1",
        domain_encoding="cp1252",
    )
    assert found == {"süß": 2, "bär": 1}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("text", "is_twice"), [("Käse", True), ("Rock\u2019n\u2019Roll", True), ("SÃO PAULO", False), ("a", False)]
)
def test_a_list_that_was_decoded_twice_is_warned_of(text, is_twice, tmp_path, recwarn):
    twice = text.encode().decode("cp1252") if is_twice else text
    (tmp_path / "e.csv").write_text("who,what,land\n1,a,b\n", encoding="utf-8")
    (tmp_path / "items.csv").write_text(f"what,name\na,{twice}\n", encoding="utf-8")
    (tmp_path / "lands.csv").write_text(f"land\n{twice}\n", encoding="utf-8")
    columns = {"user": "who", "item": "what", "label": "name"}
    by = {"by": "land", "groups": str(tmp_path / "lands.csv"), "each_user": "one"}
    source = discreet.events(tmp_path / "e.csv", domain=f"{tmp_path / 'items.csv'}:what", **columns, **by)
    told = [str(each.message) for each in recwarn]
    assert [each.partition(" ")[0] for each in told] == (["groups", "domain"] if is_twice else [])
    assert all(f"{each.partition(' ')[0]}_encoding says how it is read" in each for each in told)
    assert source.notes()[: len(told)] == told
    if is_twice:
        # The same appears where a list in UTF-8 is read as another one.
        (tmp_path / "items.csv").write_text(f"what,name\na,{text}\n", encoding="utf-8")
        with pytest.warns(UserWarning, match="domain looks decoded twice"):
            discreet.events(
                tmp_path / "e.csv", domain=f"{tmp_path / 'items.csv'}:what", **columns, domain_encoding="cp1252"
            )


@pytest.mark.parametrize("ending", ["csv.gz", "jsonl.gz"])
def test_a_public_list_that_is_cut_short_is_refused(ending, tmp_path):
    (tmp_path / "e.csv").write_bytes(b"who,what\n1,a1\n")
    lines = [f'{{"what": "a{i}"}}' if "json" in ending else f"a{i}" for i in range(20_000)]
    whole = gzip.compress("\n".join(["what"] * ("csv" in ending) + lines).encode())
    (tmp_path / f"list.{ending}").write_bytes(whole)
    assert len(scores(tmp_path / "e.csv", str(tmp_path / f"list.{ending}"))) == 20_000
    (tmp_path / f"list.{ending}").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(discreet.Error, match="must be whole, and its compressed data are cut short"):
        scores(tmp_path / "e.csv", str(tmp_path / f"list.{ending}"))


@pytest.mark.some(2)
@pytest.mark.parametrize("line", [b'{"what": "\xff"}', b"no record", b"[1]"])
def test_a_line_of_a_public_list_that_is_no_record_is_refused(line, tmp_path):
    (tmp_path / "e.csv").write_bytes(b"who,what\n1,a\n")
    (tmp_path / "list.jsonl").write_bytes(b'{"what": "a"}\n{"what": "b"}\n')
    assert scores(tmp_path / "e.csv", str(tmp_path / "list.jsonl")) == {"a": 1, "b": 0}
    (tmp_path / "list.jsonl").write_bytes(b'{"what": "a"}\n' + line + b'\n{"what": "b"}\n')
    with pytest.raises(discreet.Error, match="must hold one record on each line"):
        scores(tmp_path / "e.csv", str(tmp_path / "list.jsonl"))


UNREADABLE = {
    "in another encoding": ("what,no\nsüß,1\nklein,2\n", "latin-1", {}),
    "with a field too few": ("no,what\n1,klein\n2\n", "utf-8", {}),
    "with a field too many": ("no,what\n1,klein\n2,süß, and more\n", "utf-8", {}),
}


@pytest.mark.parametrize("mistake", UNREADABLE)
def test_a_public_list_is_read_whole_or_refused(tmp_path, mistake):
    """A row of events that cannot be read is passed over; an item of the list would be missing from all releases."""
    text, encoding, options = UNREADABLE[mistake]
    (tmp_path / "list.csv").write_text(text, encoding=encoding)
    (tmp_path / "e.csv").write_text("who,what\n1,klein\n", encoding="utf-8")
    told = f"must be a file in {options.get('encoding', 'utf-8')}, with as many fields in each row as in the header"
    columns = {"user": "who", "item": "what", **options}
    with pytest.raises(discreet.Error, match=f"domain {told}"):
        discreet.events(tmp_path / "e.csv", domain=f"{tmp_path / 'list.csv'}:what", **columns)
    with pytest.raises(discreet.Error, match=f"groups {told}"):
        discreet.events(
            tmp_path / "e.csv",
            domain=["klein"],
            by="what",
            groups=f"{tmp_path / 'list.csv'}:what",
            each_user="one",
            **columns,
        )


def test_rows_of_events_in_another_encoding_are_found_by_a_check(tmp_path):
    (tmp_path / "e.csv").write_text("who,what\n1,süß\n2,süß\n", encoding="latin-1")
    source = discreet.events(tmp_path / "e.csv", user="who", item="what", domain=["süß", "klein"])
    found = discreet.check_events(source)
    assert (found.rows, found.rows_unreadable, found.is_noise) == (2, 2, True)
    assert found.advice[0] == (
        "2 of 2 rows (100.0%) cannot be read and are dropped: is the file in the encoding that was said, by default "
        "utf-8? If not, say its encoding, such as 'latin-1'"
    )


def test_a_check_passes_over_other_columns_of_the_domain_in_another_encoding(tmp_path):
    (tmp_path / "list.csv").write_text("what,name\nsalz,süß\nbrot,klein\n", encoding="latin-1")
    (tmp_path / "e.csv").write_text("who,what\n1,klein\n", encoding="utf-8")
    source = discreet.events(tmp_path / "e.csv", user="who", item="what", domain=f"{tmp_path / 'list.csv'}:what")
    assert discreet.check_events(source).other_columns == []
