import json
import os
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.sources.files import file_source


@pytest.fixture
def written(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def parquet(tmp_path):
    def write(item=("a", "b"), score=(1, 2), name="a.parquet", **columns):
        table = pa.table({"item": item, "score": score, **columns})
        pa.parquet.write_table(table, tmp_path / name, row_group_size=2)
        return tmp_path / name

    return write


def pairs(source):
    """Label -> exact score, as the source holds them."""
    return dict(zip(source.every_item(), (score * source.unit for score in source.scores.tolist()), strict=True))


def complaint(path, **columns):
    with pytest.raises(discreet.Error) as caught:
        file_source(path, **columns)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "an exception that may hold private text is chained"
    return str(caught.value)


def test_csv_by_default_reads_the_columns_called_item_and_score(written):
    path = written("a.csv", "score,year,item\n912,1984,dune\n877,1979,alien\n")
    assert pairs(file_source(path)) == {"dune": 912, "alien": 877}


def test_whole_numbers_stay_whole_also_when_spelled_with_a_point(written):
    assert file_source(written("a.csv", "item,score\na,1\nb,-2\n")).scores.dtype == np.int64
    source = file_source(written("b.csv", "item,score\na,1.0\nb, +2e3 \n"))
    assert source.scores.dtype == np.int64
    assert pairs(source) == {"a": 1, "b": 2000}


def test_decimals_are_exact(written):
    spelled = {"a": "0.1", "b": "1/3", "c": "1e-30", "d": "7", "e": "9007199254740993", "f": ".5"}
    path = written("a.csv", "item,score\n" + "".join(f"{item},{text}\n" for item, text in spelled.items()))
    assert pairs(file_source(path)) == {item: Fraction(text) for item, text in spelled.items()}


def test_csv_with_byte_order_mark_quotes_blank_lines_and_windows_line_ends(written):
    path = written("a.CSV", '\ufeffitem,score\r\n"Alien, the ""first""",3\r\n\r\ncafé,4\r\n\r\n')
    assert pairs(file_source(path)) == {'Alien, the "first"': 3, "café": 4}


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_the_header_shows_what_is_between_fields(written, mark):
    text = f'item{mark}score\n"a;b"{mark}1\n"c,d"{mark}2\n'
    assert pairs(file_source(written("a.csv", text))) == {"a;b": 1, "c,d": 2}


def test_tsv_has_tabs(written):
    assert pairs(file_source(written("a.tsv", "item\tscore\na,b\t1\nc\t2\n"))) == {"a,b": 1, "c": 2}


@pytest.mark.parametrize(
    ("header", "columns", "expected"),
    [
        ("title,fans", {}, ("title", "fans")),
        ("score,title", {}, ("title", "score")),
        ("fans,item", {}, ("item", "fans")),
        ("title,fans", {"item": "fans"}, ("fans", "title")),
        ("title,fans", {"score": "title"}, ("fans", "title")),
        ("score,fans", {"item": "score"}, ("score", "fans")),
        ("item,score,fans", {"score": "fans"}, ("item", "fans")),
        ("item,score,fans", {"item": "fans"}, ("fans", "score")),
        ("title,2019,2020", {"item": "title", "score": "2020"}, ("title", "2020")),
    ],
)
def test_which_columns_are_read(written, header, columns, expected):
    names = header.split(",")
    path = written("a.csv", f"{header}\n" + ",".join(str(10 + i) for i in range(len(names))) + "\n")
    item, score = (str(10 + names.index(name)) for name in expected)
    assert pairs(file_source(path, **columns)) == {item: int(score)}


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        (
            "a,b,c",
            {},
            "item must name a column of {}, one of 'a', 'b', 'c', and none was given; of events, name the user too",
        ),
        (
            "item,b,c",
            {},
            "score must name a column of {}, one of 'item', 'b', 'c', and none was given; of events, name the user too",
        ),
        (
            "a",
            {},
            "item must name a column of {}, one of 'a', and none was given; of events, name the user too",
        ),
        ("a,b", {"item": "x"}, "item must name a column of {}, one of 'a', 'b', not 'x'"),
        ("a,b", {"score": "x"}, "score must name a column of {}, one of 'a', 'b', not 'x'"),
        ("a,a,b", {"item": "b", "score": "a"}, "score must name one column of {}, not two that are called 'a'"),
        ("a,b", {"item": "a", "score": "a"}, "item and score must be different columns, not both 'a'"),
    ],
)
def test_columns_that_do_not_fit(written, header, columns, message):
    path = written("a.csv", f"{header}\n1,2,3\n")
    assert complaint(path, **columns) == message.format(repr(str(path)))


def test_many_columns_are_not_all_listed(written):
    message = complaint(written("a.csv", ",".join(f"c{i}" for i in range(500)) + "\n"))
    assert "'c19' and 480 more" in message
    assert "'c20'" not in message


@pytest.mark.parametrize("content", ["dune,91234\nalien,877\n", "dune,91234,5\nalien,877,6\n"])
def test_a_file_without_header_does_not_show_its_first_row(written, content):
    message = complaint(written("a.csv", content))
    assert "first line" in message
    assert "91234" not in message


@pytest.mark.parametrize(
    "bad", ["", "many", "nan", "inf", "-Infinity", "1_0", "٣", "1e999999999", "1/0", "1e²", "TRUE"]
)
def test_scores_that_are_no_numbers_are_not_shown(written, bad):
    path = written("a.csv", f"item,score\ndune,12\nalien,{bad}\n")
    assert complaint(path) == (
        f"scores must be finite numbers, and column 'score' of {str(path)!r} holds one that is not"
    )


@pytest.mark.parametrize("row", ["dune,777,x", "dune", "dune 777"])
def test_rows_of_another_width_are_not_shown(written, row):
    path = written("a.csv", f"item,score\n{row}\n")
    assert complaint(path) == f"rows of {str(path)!r} must have one field for each column, but one has not"


def test_repeated_items(written):
    assert "'dune' is there twice" in complaint(written("a.csv", "item,score\ndune,1\ndune,2\n"))
    assert "'dune' is there twice" in complaint(written("a.json", '{"dune": 1, "dune": 2}'))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "must hold scores, but is empty"),
        ("a.csv", b"\n\n", "must hold scores, but is empty"),
        ("a.csv", b"item,score\n", "must have at least one row below its header, but has none"),
        ("a.csv", b'item,score\n"secret,1\n', "must be a well-formed table in UTF-8, but has a quote"),
        ("a.csv", b"item,score\nsecret,1" + b"0" * 140_000, "must be a well-formed table in UTF-8, but has a quote"),
        ("a.csv", b"item,score\nsecret\xff,1\n", "must be a well-formed table in UTF-8, but is not"),
        ("a.json", b"", "must hold scores, but is empty"),
        ("a.json", b'{"secret": 1', "must be well-formed JSON in UTF-8, but cannot be parsed"),
        ("a.json", b"[" * 100_000, "must be well-formed JSON in UTF-8, but cannot be parsed"),
        ("a.json", b'{"secret\xff": 1}', "must be well-formed JSON in UTF-8, but is not"),
        (
            "a.json",
            b"[" + b"1" * 5000 + b"]",
            "must be well-formed JSON in UTF-8, but holds a number with too many digits",
        ),
        ("a.json", b"3", "must hold a mapping from item to score, a list of scores or of objects"),
        ("a.npy", b"", "must hold scores, but is empty"),
        ("a.npy", b"secret", "must be a whole .npy file that holds an array of numbers, but is not"),
    ],
)
def test_malformed_files(written, name, content, message):
    path = written(name, content)
    text = complaint(path)
    assert text.startswith(f"{str(path)!r} {message}")
    assert "secret" not in text


@pytest.mark.parametrize("content", ["{}", "[]"])
def test_json_without_items(written, content):
    assert complaint(written("a.json", content)) == "scores must hold at least one item, not none"


def test_json_mapping_list_and_objects(written):
    assert pairs(file_source(written("a.json", '{"a": 0.1, "b": 2, "c": 1e2}'))) == {
        "a": Fraction("0.1"),
        "b": 2,
        "c": 100,
    }
    assert pairs(file_source(written("b.json", "[5, 2.5, -1]"))) == {0: 5, 1: Fraction(5, 2), 2: -1}
    objects = [{"item": "a", "score": 1, "note": None}, {"score": 2, "item": 7}]
    assert pairs(file_source(written("c.json", json.dumps(objects)))) == {"a": 1, 7: 2}
    assert file_source(written("d.json", "[1, 2]")).scores.dtype == np.int64


def test_json_objects_with_other_keys(written):
    path = written("a.json", '[{"title": "dune", "fans": 3, "year": 1984}]')
    assert pairs(file_source(path, item="title", score="fans")) == {"dune": 3}
    assert "one of 'title', 'fans', 'year'" in complaint(path)
    path = written("b.json", '[{"item": "dune", "score": 3}, {"item": "alien"}]')
    assert complaint(path) == f"objects in {str(path)!r} must all have the keys 'item' and 'score', but one has not"


@pytest.mark.parametrize("bad", ["NaN", "-Infinity", "true", "null", '"12"', "[1]", '{"a": 1}', "1e999999999"])
def test_json_scores_that_are_no_numbers_are_not_shown(written, bad):
    path = written("a.json", f'{{"dune": 12, "alien": {bad}}}')
    assert complaint(path) == f"scores must be finite numbers, and {str(path)!r} holds one that is not"
    path = written("b.json", f'[{{"item": 1, "score": {bad}}}]')
    assert complaint(path) == f"scores must be finite numbers, and key 'score' of {str(path)!r} holds one that is not"


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", np.array([3, 1, 2], np.int16))
    source = file_source(tmp_path / "a.npy")
    assert pairs(source) == {0: 3, 1: 1, 2: 2}
    assert discreet.top_k(source, k=1, epsilon=1000).items == [0]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 2)), "one dimension"),
        (np.array([], int), "at least one item"),
        (np.array(["secret"]), "scores must be numbers"),
    ],
)
def test_npy_arrays_that_do_not_fit(tmp_path, array, message):
    np.save(tmp_path / "a.npy", array)
    text = complaint(tmp_path / "a.npy")
    assert message in text
    assert "secret" not in text


def test_npy_never_unpickles_and_must_be_whole(tmp_path):
    np.save(tmp_path / "a.npy", np.array([Decimal(1), None], object))
    assert "must be a whole .npy file" in complaint(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.arange(1000))
    os.truncate(tmp_path / "b.npy", 500)
    assert "must be a whole .npy file" in complaint(tmp_path / "b.npy")
    header = (tmp_path / "a.npy").read_bytes()[:128]
    for broken in (header.replace(b"}", b" "), header.replace(b"{", b"("), header.replace(b"descr", b"d\xffscr")):
        (tmp_path / "a.npy").write_bytes(broken)
        assert "must be a whole .npy file" in complaint(tmp_path / "a.npy")
    with (tmp_path / "c.npy").open("wb") as file:
        np.savez(file, scores=np.arange(3))
    assert "must be a whole .npy file" in complaint(tmp_path / "c.npy")


@pytest.mark.parametrize(
    ("kind", "scores"),
    [
        (pa.int8(), [-128, 127, 0]),
        (pa.int64(), [-(2**63), 2**63 - 1, 0]),
        (pa.uint64(), [0, 2**64 - 1, 1]),
        (pa.float16(), np.array([0.5, -2, 1024], np.float16)),
        (pa.float32(), np.array([0.1, 3, 1e30], np.float32)),
        (pa.float64(), [0.1, 1e300, -5e-324]),
        (pa.decimal128(38, 2), [Decimal("0.10"), Decimal("-123456789012345678901234567890.12"), Decimal(7)]),
        (pa.decimal256(76, 40), [Decimal("1e-40"), Decimal(10) ** 30, Decimal("-0.5")]),
        (pa.dictionary(pa.int8(), pa.int64()), [5, 5, 6]),
    ],
)
def test_numbers_of_parquet_are_exact(parquet, kind, scores):
    source = file_source(parquet(["a", "b", "c"], pa.array(scores, kind)))
    assert pairs(source) == {item: Fraction(score.item() if isinstance(score, np.generic) else score)
                             for item, score in zip("abc", scores, strict=True)}  # fmt: skip


def test_whole_numbers_of_parquet_stay_whole(parquet):
    source = file_source(parquet([f"{i}" for i in range(10)], range(10)))
    assert source.scores.dtype == np.int64
    assert discreet.top_k(source, k=1, epsilon=1000).items == ["9"]


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        (pa.string(), ["dune", "café \U0001f3ac"]),
        (pa.large_string(), ["dune", ""]),
        (pa.dictionary(pa.int32(), pa.string()), ["dune", "heat"]),
        (pa.int32(), [-1, 7]),
        (pa.uint64(), [0, 2**64 - 1]),
        (pa.date32(), [date(1984, 12, 14), date(2021, 10, 22)]),
        (pa.date64(), [date(1984, 12, 14), date(2021, 10, 22)]),
        (pa.bool_(), [True, False]),
    ],
)
def test_labels_of_parquet_are_kept_as_they_are(parquet, kind, labels):
    source = file_source(parquet(pa.array(labels, kind), [1, 2]))
    assert [(type(item), item) for item in source.every_item()] == [(type(label), label) for label in labels]
    release = discreet.top_k(source, k=1, epsilon=1000)
    assert discreet.Release.from_json(release.to_json()).items == [labels[1]]


@pytest.mark.parametrize(
    ("names", "columns", "expected"),
    [
        (["title", "fans"], {}, ("title", "fans")),
        (["year", "score", "item"], {}, ("item", "score")),
        (["title", "2020"], {}, ("title", "2020")),
        (["a.b", "a", "a.c"], {"item": "a", "score": "a.b"}, ("a", "a.b")),
        (["item", "score", "fans"], {"score": "fans"}, ("item", "fans")),
    ],
)
def test_which_columns_of_parquet_are_read(tmp_path, names, columns, expected):
    path = tmp_path / "a.PARQUET"
    pa.parquet.write_table(pa.table({name: [i] for i, name in enumerate(names)}), path)
    item, score = map(names.index, expected)
    assert pairs(file_source(path, **columns)) == {item: score}


@pytest.mark.parametrize(
    ("names", "columns", "message"),
    [
        (
            ["a", "b", "3"],
            {},
            "item must name a column of {}, one of 'a', 'b', '3', and none was given; of events, name the user too",
        ),
        (["a", "b"], {"score": "x"}, "score must name a column of {}, one of 'a', 'b', not 'x'"),
        (["a", "a", "b"], {"item": "b", "score": "a"}, "score must name one column of {}, not two that are called 'a'"),
    ],
)
def test_columns_of_parquet_that_do_not_fit(tmp_path, names, columns, message):
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table([[912345]] * len(names), names), path)
    assert complaint(path, **columns) == message.format(repr(str(path)))


@pytest.mark.parametrize(
    "scores",
    [
        pa.array([12, None]),
        pa.array([1.5, None]),
        pa.array([1.5, float("nan")]),
        pa.array([1.5, float("-inf")], pa.float32()),
        pa.array([Decimal("1.5"), None]),
        pa.array([12, None]).dictionary_encode(),
    ],
)
def test_parquet_scores_that_are_no_finite_numbers_are_not_shown(parquet, scores):
    path = parquet(score=scores)
    assert complaint(path) == (
        f"scores must be finite numbers, and column 'score' of {str(path)!r} holds one that is not"
    )


@pytest.mark.parametrize(
    "scores",
    [
        pa.array(["91234", "5"]),
        pa.array([True, False]),
        pa.array([date(2020, 1, 1)] * 2),
        pa.array([[91234], [5]]),
        pa.array([{"x": 91234}, {"x": 5}]),
        pa.array(["91234", "5"]).dictionary_encode(),
        pa.array([b"91234", b"5"]),
        pa.array([None, None]),
    ],
)
def test_a_score_column_of_parquet_must_hold_numbers(parquet, scores):
    path = parquet(score=scores)
    text = complaint(path)
    assert text.startswith(f"score must name a column of numbers, and 'score' of {str(path)!r} is one of ")
    assert "91234" not in text


@pytest.mark.parametrize(
    "labels", [pa.array([1.5, 2.5]), pa.array([b"a", b"b"]), pa.array([datetime(2020, 1, 1)] * 2), pa.array([[1], [2]])]
)
def test_an_item_column_of_parquet_must_hold_labels(parquet, labels):
    text = complaint(parquet(item=labels))
    assert text.startswith("item must name a column of strings, whole numbers, dates or booleans, and 'item' of ")


def test_items_of_parquet_that_repeat_or_are_missing(parquet):
    assert "'dune' is there twice" in complaint(parquet(item=["dune", "dune"]))
    path = parquet(item=["dune", None])
    assert complaint(path) == f"items must not be missing, but one is in column 'item' of {str(path)!r}"
    path = parquet(item=pa.array([], pa.string()), score=pa.array([], pa.int64()))
    assert complaint(path) == f"{str(path)!r} must have at least one row, but has none"


def test_parquet_files_must_be_whole(parquet, written):
    whole = parquet(item=["dune", "secret"], score=[1, 91234]).read_bytes()
    broken_text = parquet(item=pa.array([b"\xff\xfe", b"x"]).view(pa.string())).read_bytes()
    broken_page = whole[:4] + b"secret" * 5 + whole[34:]
    for content in (
        b"",
        b"secret",
        b"PAR1",
        whole[:-5],
        whole[20:],
        whole[: len(whole) // 2],
        broken_page,
        broken_text,
    ):
        path = written("b.parquet", content)
        text = complaint(path)
        assert text in (
            f"{str(path)!r} must be a whole Parquet file, but is not",
            f"{str(path)!r} must hold scores, but is empty",
        )


@pytest.mark.parametrize(("name", "content"), [("a.npy", b"x"), ("a.json", b"[1]"), ("b.json", b'{"a": 1}')])
def test_columns_are_refused_where_there_are_none(written, name, content):
    path = written(name, content)
    assert complaint(path, item="a") == f"item must be left out for {str(path)!r}, which has no columns"
    assert complaint(path, score="a") == f"score must be left out for {str(path)!r}, which has no columns"


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    missing, folder, locked = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"
    folder.mkdir()
    locked.write_text("item,score\na,1\n")
    assert complaint(missing) == f"{str(missing)!r} must be a file that can be read, but does not exist"
    assert complaint(folder) == f"{str(folder)!r} must be a file that can be read, but is a directory"
    # A test may run as root, who may read everything, so the refusal is played.
    monkeypatch.setattr("pathlib.Path.open", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "denied")))
    assert (
        complaint(locked) == f"{str(locked)!r} must be a file that can be read, but you have no permission to read it"
    )


def test_other_endings(written):
    path = written("a.xlsx", "x")
    assert (
        complaint(path)
        == f"a file of scores must end in one of .npy, .csv, .tsv, .json, .parquet, not be {str(path)!r}"
    )
