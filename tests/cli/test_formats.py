"""The same release as a table, as JSON, as CSV and as lines."""

import codecs
import csv
import io
import json
import re
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from command_line import FROM_EVENTS, SCORES, SELECT, write_table
from discreet.cli.output import format_csv, format_items

SURE = (*SELECT[:-1], "1000")
ODD = [
    "a,b",
    'say "hi"',
    "two\nlines",
    "back\\slash",
    "back\\nslash",
    "tab\there",
    "esc\x1b[31m",
    "car\rriage",
    "sep\u2028",
    " x ",
]


def rows(text):
    return list(csv.reader(io.StringIO(text), strict=True))


def odd_release(**options):
    return discreet.top_k({**dict.fromkeys(ODD, 10**6), "low": 0}, k=len(ODD), epsilon=1000, **options)


def test_table_is_the_default(done):
    assert done(*SURE) == done(*SURE, "--format", "table") == f"{discreet.top_k(SCORES, k=2, epsilon=1000)}\n"


def test_json_has_a_short_name(done):
    text = done(*SURE, "--format", "json")
    assert text == done(*SURE, "--json") == done(*SURE, "--json", "--format", "json")
    assert discreet.Release.from_json(text) == discreet.top_k(SCORES, k=2, epsilon=1000)


def test_items_are_lines_and_nothing_else(done):
    assert done(*SURE, "--format", "items") == "alien\ndune\n"
    assert done(*SURE, "--format", "items", "--mechanism", "joint") == "dune\nalien\n"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "item\nalien\ndune\n"),
        (("--mechanism", "peeling"), "item,order\ndune,1\nalien,2\n"),
        (("--counts", "1000"), "item,count,low,high\ndune,912345,912345,912345\nalien,877,877,877\n"),
        (
            ("--counts", "1000", "--mechanism", "joint"),
            "item,order,count,low,high\ndune,1,912345,912345,912345\nalien,2,877,877,877\n",
        ),
    ],
)
def test_csv_has_a_column_for_each_thing_that_is_released(done, options, text):
    assert done(*SURE, "--format", "csv", *options) == text


def test_csv_spells_counts_exactly(done, ratings):
    text = done(
        *FROM_EVENTS, "--value", "stars", "--clip", "0,4.5", "--resolution", "0.5", "--counts", "1000",
        "--format", "csv",
    )  # fmt: skip
    assert rows(text) == [["item", "count", "low", "high"], ["7", "90", "90", "90"]]
    third = discreet.Count("a", Fraction(1, 3), Fraction(-5, 2), Fraction(10**30 + 1, 3))
    release = discreet.Release(["a"], None, 2, discreet.top_k({"a": 1, "b": 2}, 1, 1).guarantee, counts=[third])
    assert rows(format_csv(release))[1] == ["a", "1/3", "-2.5", str(Fraction(10**30 + 1, 3))]


def test_odd_labels_come_back_from_csv():
    release = odd_release()
    assert [row[0] for row in rows(format_csv(release))[1:]] == release.items


ARMED = [
    *("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1", "'=1", "''-1", " =1"),
    *("x;=cmd|' /C calc'!A0", "x,=1", "x\t=1", "x; =1", "x;'=1", "x;'' '=1", 'x;"=1"', "x\n=1", "x,\t\r\n=1", ";=1;@2"),
    *("\ufeff=1", "x;\u00a0\uff0b1", "x;\x00=1"),
]
HARMLESS = ["1+1", "'twas", "a=b", "", " x", "a;b", "a, b", "c;'d", 'say "=1"', "x;y=1"]
BEGINS_FORMULA = r"""['"\s\x00-\x20\ufeff\u00a0]*[=+\-@\t\r\n\uff1d\uff0b]"""


@pytest.mark.parametrize("grouped", [False, True])
def test_what_users_wrote_is_no_formula_in_csv_and_comes_back(grouped):
    """A spreadsheet computes what begins so; one apostrophe more keeps it from that, and is taken away again."""
    rows_of = [(f"{item} {i}", item, "DE") for item in ARMED + HARMLESS for i in range(30)]
    events = pa.table(dict(zip(("who", "what", "land"), zip(*rows_of, strict=True), strict=True)))
    by = {"by": "land", "groups": ["DE"], "each_user": "one"} if grouped else {}
    source = discreet.events(events, user="who", item="what", domain=discreet.discovered("1e-6", 1), **by)
    text = format_csv(discreet.top_k(source, k=99, epsilon=1000, counts=1))
    for delimiter in ",;\t":
        # A reader that splits elsewhere, and one that knows nothing of quotes.
        cells = [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) for cell in row]
        cells += [cell for line in text.splitlines() for cell in line.split(delimiter)]
        assert not [cell for cell in cells if re.match(BEGINS_FORMULA, cell) and "'" not in cell[:2]]
    header, *records = rows(text)
    items = [row[header.index("item")] for row in records]
    restored = [re.sub(rf"(?:^|(?<=[,;\t\r\n]))'(?={BEGINS_FORMULA})", "", item) for item in items]
    assert sorted(restored) == sorted(ARMED + HARMLESS)
    assert set(HARMLESS) < set(items)


@pytest.mark.parametrize("item", ["a;b", "a,b", "a\tb", 'a"b', "a\rb", "a\nb"])
def test_a_field_is_quoted_for_readers_that_split_at_semicolons_or_tabs(item):
    release = discreet.top_k({item: 10**6, "x": 0}, k=1, epsilon=1000, counts=1000)
    for delimiter in ",;\t":
        (record,) = list(
            csv.reader(io.StringIO(format_csv(release).partition("\n")[2], newline=""), delimiter=delimiter)
        )
        assert record[0].partition(",1000000,")[0] == item


def test_a_list_of_items_is_in_csv_as_it_was_written():
    release = discreet.top_k(dict.fromkeys(ARMED, 5), k=len(ARMED), epsilon=1)
    assert sorted(row[0] for row in rows(format_csv(release))[1:]) == sorted(ARMED)


def test_odd_labels_stay_on_their_lines_and_come_back():
    release = odd_release()
    lines = format_items(release).split("\n")
    assert all(line.isprintable() for line in lines)
    assert [codecs.decode(line.encode(), "unicode_escape") for line in lines] == release.items


@pytest.mark.parametrize("label", ["half \ud800", "amélie \U0001f3ac"])
@pytest.mark.parametrize("form", ["table", "json", "csv", "items"])
def test_every_format_can_be_written_whatever_the_label(done, label, form):
    Path("scores.json").write_text(json.dumps({label: 10**6, "b": 1}))
    text = done("select", "scores.json", "-k", "1", "--epsilon", "1000", "--format", form, "--out", "top.txt")
    shown = label.encode("utf-8", "backslashreplace").decode()
    assert shown in text or discreet.Release.from_json(text).items == [label]
    written = Path("top.txt").read_text(encoding="utf-8")
    assert shown in written or discreet.Release.from_json(written).items == [label]


def test_labels_of_other_types_are_spelt(done):
    Path("days.json").write_text(json.dumps([{"item": 1, "score": 10**6}, {"item": 2, "score": 1}]))
    assert done("select", "days.json", "-k", "1", "--epsilon", "1000", "--format", "csv") == "item\n1\n"
    release = discreet.top_k({1: 10**6, "1": 10**6, "x": 0}, k=2, epsilon=1000, mechanism=discreet.Joint())
    assert sorted(row[1] for row in rows(format_csv(release))[1:]) == ["1", "2"]


@pytest.mark.parametrize("form", ["csv", "items"])
def test_out_is_written_in_the_format(done, form):
    text = done(*SURE, "--format", form, "--out", "top.txt")
    assert Path("top.txt").read_text() == text


def test_out_of_a_table_is_json(done):
    done(*SURE, "--format", "table", "--out", "top.json")
    assert discreet.Release.from_json(Path("top.json").read_text()).k == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--json", "--format", "csv"), "json must be left out with format 'csv': it is short for --format json"),
        (("--format", "item"), "format must be one of table, json, csv, items, not 'item'; did you mean items?"),
        (("--format", "yaml"), "format must be one of table, json, csv, items, not 'yaml'"),
        (("--out", "-"), "out must be a file, not '-': what is printed goes to standard output without it"),
    ],
)
def test_what_cannot_be_is_refused(refused, options, sentence):
    assert refused(*SELECT, *options) == sentence


@pytest.mark.long
def test_a_plan_as_json(done, refused):
    write_table("many.csv", ("item", "score"), {f"film {i}": 100 - 9 * i for i in range(10)})
    plan = ("plan", "many.csv", "-k", "2", "--epsilon", "0.5", "--goal", "good")
    found = json.loads(done(*plan, "--format", "json"))
    best = found["recommended"]
    assert Fraction(best["epsilon"]) <= Fraction(best["decimals"]["epsilon"]) < Fraction(best["epsilon"]) * 1.0001
    assert [one["decimals"].keys() for one in found["mechanisms"]] == [
        one["needs"].keys() for one in found["mechanisms"]
    ]
    assert f"epsilon = {float(Fraction(best['epsilon'])):g}" in done(*plan)
    needs = {json.dumps(one["mechanism"]): one["needs"]["good"] for one in found["mechanisms"]}
    assert (
        min(map(Fraction, needs.values()))
        == Fraction(best["epsilon"])
        == Fraction(needs[json.dumps(best["mechanism"])])
    )
    assert all(0 <= one["reaches"]["top"] <= one["reaches"]["good"] <= 1 for one in found["mechanisms"])
    assert (found["private"], found["k"], found["d"], len(found["curve"])) == (False, 2, 10, 33)
    assert refused(*plan, "--format", "csv") == "format must be one of table, json, not 'csv'"


def test_a_budget_as_json(done):
    done("budget", "init", "budget.db", "--epsilon", "3", "--unit", "users")
    done(*SELECT, "--ledger", "budget.db")
    found = json.loads(done("budget", "show", "budget.db", "--json"))
    ledger = discreet.Ledger("budget.db")
    assert (found["epsilon"], found["spent"], found["left"], found["delta"]) == ("3", "1", "2", None)
    assert (found["rho"], found["by_zcdp"], found["releases"], found["without_release"]) == ("1/8", None, 1, 0)
    assert (found["head"], found["unit"], found["adjacency"]) == (ledger.head, "users", "add-remove")


def test_a_budget_never_tells_less_than_is_spent_or_more_than_is_left(done):
    done("budget", "init", "budget.db", "--epsilon", "1", "--unit", "users")
    done(*SELECT[:-1], "1/3", "--ledger", "budget.db")
    shown = done("budget", "show", "budget.db")
    assert "  spent     0.3334\n  left      0.6666\n" in shown
    assert "epsilon 0.3334" in done("budget", "history", "budget.db")
    found = json.loads(done("budget", "show", "budget.db", "--json"))
    assert (found["spent"], found["left"]) == ("1/3", "2/3")
    assert (
        Fraction(found["decimals"]["spent"])
        > Fraction(1, 3)
        > Fraction(found["decimals"]["spent"]) - Fraction(1, 10**9)
    )
    assert Fraction(found["decimals"]["left"]) <= Fraction(2, 3)


def test_evidence_as_json(done):
    found = json.loads(done("verify", "--scores", "3,2,0", "-k", "1", "--json"))
    assert (found["holds"], found["pairs"]) == (True, found["verdicts"][0]["pairs"])
    assert found["verdicts"][0]["mechanism"]["name"] == "canonical"
    assert 0 < found["verdicts"][0]["worst"] <= 1
    assert (found["verdicts"][0]["reachable"], found["verdicts"][0]["failures"]) == (None, [])
    assert "counts" not in found
    options = "--scores 2,1,0 --neighbour 2,1,1 -k 1 --epsilon 0.5 --draws 200 --confidence 0.9999999"
    audit = json.loads(done("audit", *options.split(), "--format", "json"))
    assert (audit["holds"], audit["epsilon"], audit["neighbour"]) == (True, "1/2", ["2", "1", "1"])
    assert 0 <= audit["spent"] <= 0.5


def test_a_plan_has_null_where_there_is_no_number(done):
    write_table("many.csv", ("item", "score"), {f"film {i}": 100 - 9 * i for i in range(10)})
    text = done("plan", "many.csv", "-k", "2", "--epsilon", "0.5", "--goal", "recall", "--probability", "0.9", "--json")
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert None in [one["reaches"]["top"] for one in found["mechanisms"]]
