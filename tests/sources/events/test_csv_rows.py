"""Rows of CSV files: no row changes how another one is read, whatever its length, its quotes and its bytes are."""

import csv
import gzip
import io
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.events import csv_files
from discreet.sources.events.csv_files import CsvRows, RowSyntax, find_row_ends, find_state, split_rows
from effort import examples

COMMAS, BACKSLASHES = RowSyntax(b","), RowSyntax(b",", b"\\")
SYNTAXES = st.sampled_from([COMMAS, BACKSLASHES])
BYTES = st.lists(st.sampled_from([*b'ab",\n\r\\\0\xff', *"é".encode()]), max_size=60).map(bytes)
PIECES = st.lists(
    st.sampled_from([b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"\\", b"a", b',"', b'",', b'"\n', "é\ufeff".encode()]),
    max_size=40,
).map(b"".join)
TEXTS = BYTES | PIECES


def naive_rows(text, syntax):
    """The complete rows of a text, byte by byte, and what is left of it."""
    rows, row, state = [], b"", "begin"
    for byte in (text[i : i + 1] for i in range(len(text))):
        row += byte
        if state.startswith("escaped"):
            state = state.removeprefix("escaped ")
        elif state == "quoted":
            state = "escaped quoted" if byte == syntax.escape else "quote" if byte == b'"' else "quoted"
        elif byte == b'"' and (state == "begin" or (state == "quote" and syntax.escape is None)):
            state = "quoted"
        elif byte == syntax.escape:
            state = "escaped field"
        elif byte in (b"\n", b"\r"):
            rows, row, state = [*rows, row], b"", "begin"
        else:
            state = "begin" if byte == syntax.delimiter else "field"
    return rows, row


@settings(max_examples=examples(2000), deadline=None)
@given(text=TEXTS, syntax=SYNTAXES)
def test_the_ends_of_rows_are_found_as_byte_by_byte(text, syntax):
    rows, rest = naive_rows(text, syntax)
    assert find_row_ends(text, syntax) == (len(rows[0]) if rows else 0, len(text) - len(rest))


@pytest.mark.parametrize("size", [63, 64, 65, 128, 129, 1000])
def test_the_ends_of_rows_are_found_at_all_places_of_a_word(size):
    for place in range(size):
        text = b'"' + b"a" * place + b'"\n"' + b"b" * (size - place)
        assert find_row_ends(text, COMMAS) == (place + 3, place + 3)
        assert find_row_ends(text + b'"', COMMAS) == (place + 3, place + 3)


@settings(max_examples=examples(1000), deadline=None)
@given(text=TEXTS.filter(len), more=TEXTS, syntax=SYNTAXES)
def test_a_state_stands_for_all_that_came_before(text, more, syntax):
    _, row = naive_rows(text, syntax)
    if not row:
        return
    assert find_row_ends(row, syntax) == (0, 0)
    ends = [len(each) for each in naive_rows(row + more, syntax)[0]]
    state = find_state(row, syntax)
    assert len(state) <= 2
    found = [len(each) for each in naive_rows(state + more, syntax)[0]]
    assert bool(ends) == bool(found)
    assert not ends or (ends[0] - len(row), ends[1:]) == (found[0] - len(state), found[1:])


@settings(max_examples=examples(1000), deadline=None)
@given(header=PIECES, text=TEXTS, syntax=SYNTAXES, longest=st.integers(4, 30), piece_size=st.integers(1, 40))
@example(header=b"", text=b'"aaaaaaaa\n1,b\n""\n2,b\n', syntax=COMMAS, longest=8, piece_size=3)
@example(header=b"", text=b"a", syntax=COMMAS, longest=4, piece_size=1)
def test_a_row_is_left_out_if_and_only_if_it_is_too_long(header, text, syntax, longest, piece_size):
    rows, rest = naive_rows(header + b"\n" + text, syntax)
    # The end of a file ends its last row.
    rows += naive_rows(rest + b"\n", syntax)[0]
    kept = [row.rstrip(b"\r\n") for row in rows[1:] if len(row) <= longest]
    stream = io.BytesIO(header + b"\n" + text)
    if stream.getvalue().startswith(b"\xef\xbb\xbf"):
        return
    blocks = list(split_rows(stream, syntax, longest, piece_size))
    assert all(len(block) <= longest for block in blocks)
    assert all(naive_rows(block, syntax)[1] == b"" for block in blocks)
    found = [row.rstrip(b"\r\n") for block in blocks for row in naive_rows(block, syntax)[0]]
    assert [row for row in found if row] == [row for row in kept if row]


def read(folder, content, delimiter=",", escape=None, wanted=("who", "what")):
    (folder / "e.csv").write_bytes(content)
    stream = CsvRows([str(folder / "e.csv")], ["who", "what", "note"], wanted, delimiter, escape)
    return Counter(tuple(row.values()) for row in pa.RecordBatchReader.from_stream(stream).read_all().to_pylist())


@pytest.mark.parametrize("longest", [2**24, 12])
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, syntax=SYNTAXES, piece_size=st.integers(1, 80))
def test_each_row_is_read_as_if_it_were_alone(tmp_path, longest, text, syntax, piece_size):
    escape = None if syntax.escape is None else "\\"
    rows = [row for row in naive_rows(text, syntax)[0] if len(row) <= longest]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "LONGEST_ROW", longest)
        patch.setattr(csv_files, "PIECE", piece_size)
        whole = read(tmp_path, b"who,what,note\n" + b"".join(naive_rows(text, syntax)[0]), escape=escape)
        alone = [read(tmp_path, b"who,what,note\n" + row, escape=escape) for row in rows]
    assert whole == sum(alone, Counter())


ODD = {
    b"1,a,x": ("1", "a"),
    b'1,"a",x': ("1", "a"),
    b'1,"a""b,\n9,a,z",x': ("1", 'a"b,\n9,a,z'),
    b"1,a,x,more": ("1", "a"),
    b'1,a,"x\n9,a,z","more\n9,a,z"': ("1", "a"),
    b"1,a,x,": ("1", "a"),
    b'1,"a,b",x,"y,z",': ("1", "a,b"),
    b"1,a": None,
    b"1": None,
    b'1,a"b,x': ("1", 'a"b'),
    b'1,5" x 3",x': ("1", '5" x 3"'),
    b'1,"a"b"c,x': ("1", 'ab"c'),
    b'1, "a",x': ("1", ' "a"'),
    b"1,a\0b,x": ("1", "a\0b"),
    b'1,"",x': ("1", None),
    b",,": (None, None),
    b"1,\xff,x": None,
    b'1,"\xff\n9,a,z",x': None,
    b"1,a,\xff": ("1", "a"),
    b"1,a,x,\xff": ("1", "a"),
    b"\xff": None,
    "1,\U0010ffff,x".encode(): None,
    b"\xef\xbb\xbf1,a,x": ("\ufeff1", "a"),
    b"1,a\rb,x": None,
    b"#1,a,x": ("#1", "a"),
    b'""': None,
    b"  ": None,
}


@pytest.mark.some(20)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_row_is_read_by_itself(tmp_path, odd, end):
    rows = [b"who,what,note", b"7,a,x", odd, b'8,"b",y']
    expected = Counter({("7", "a"): 1, ("8", "b"): 1, **({} if ODD[odd] is None else {ODD[odd]: 1})})
    for order in (rows, [rows[0], odd, rows[1], rows[3]], [*rows[:2], rows[3], odd]):
        assert read(tmp_path, end.join(order) + end) == expected
        assert read(tmp_path, end.join(order)) == expected


def test_a_delimiter_that_is_not_ascii_may_stand_in_a_cell(tmp_path):
    content = 'who¦what¦note\n1¦"a¦b"¦x\n2¦a\x1fb¦x\n3¦a¦x\n'.encode()
    (tmp_path / "e.csv").write_bytes(content)
    domain = ["a", "a¦b", "a\x1fb", "b"]
    source = discreet.events(tmp_path / "e.csv", user="who", item="what", domain=domain, delimiter="¦")
    assert scores_of(source) == {"a": 1, "a¦b": 1, "a\x1fb": 0, "b": 0}


def scores_of(source):
    tally, items = source.tally(), source.items(np.arange(source.d))
    source.close()
    return {item: int(tally.exact(rank)) for rank, item in enumerate(items)}


FIELDS = st.text(st.sampled_from('uab",;\n\r\\é'), max_size=6) | st.builds(
    lambda text, times: text * times, st.sampled_from(["x", '"', "\n", "f,a,1\n", '","', "é"]), st.integers(1, 60)
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from("ab"), FIELDS), max_size=6),
    extra=st.lists(st.tuples(FIELDS, FIELDS | st.sampled_from("ab"), FIELDS), min_size=1, max_size=3),
    place=st.integers(0, 6),
    line_end=st.sampled_from(["\n", "\r\n"]),
    piece_size=st.integers(1, 70),
)
def test_the_rows_of_one_more_user_add_one_at_most(tmp_path, rows, extra, place, line_end, piece_size):
    """The bound on the length of a row is small here, and rows are shorter and longer than that."""
    extra = [("z" + user.replace("u", "z"), item, note) for user, item, note in extra]
    added = [(extra[0][0], item, note) for _, item, note in extra]
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "LONGEST_ROW", 64)
        patch.setattr(csv_files, "PIECE", piece_size)
        for each in (rows, [*rows[:place], *added, *rows[place:]]):
            with open(tmp_path / "e.csv", "w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator=line_end).writerows([("who", "what", "note"), *each])
            source = discreet.events(tmp_path / "e.csv", user="who", item="what", domain=["a", "b"])
            found.append(scores_of(source))
    before, after = found
    assert all(0 <= after[item] - before[item] <= 1 for item in before)


BUFFER = 32_000_000
"""The size of DuckDB's buffers, which resumes inside of quotes after a field that spans several of them."""


@pytest.fixture(scope="module", params=["63 MiB", "from the end of a buffer on"])
def long_row(request, tmp_path_factory):
    """A file in which somebody's quoted note, in a column that nobody asked for, holds lines that look like rows."""
    folder, size = tmp_path_factory.mktemp("long"), 63 * 2**20 if request.param == "63 MiB" else BUFFER + 2000
    path = folder / "e.csv"
    with open(path, "wb") as file:
        file.write(b"who,what,note\n")
        file.writelines(b"u%d,a,1\n" % i for i in range(100))
        if request.param != "63 MiB":
            filler = b"w,b,%b\n" % (b"x" * 993)
            file.write(filler * ((BUFFER - 1000 - file.tell()) // len(filler)))
        file.write(b'z,a,"')
        file.writelines(b"f%07d,a,1\n" % i for i in range(size // 13))
        file.write(b'"\nlast,a,1\n')
    return path


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_long_quoted_field_is_no_rows(long_row, ending, tmp_path):
    path = tmp_path / f"e.{ending}"
    path.write_bytes(long_row.read_bytes() if ending == "csv" else gzip.compress(long_row.read_bytes(), 1))
    source = discreet.events(path, user="who", item="what", domain=["a"])
    assert scores_of(source) == {"a": 101}
