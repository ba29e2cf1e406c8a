"""The harnesses of fuzz/ pass what is right and flag what is planted wrong; and what they found stays mended."""

import os
import random
import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import ibis
import numpy as np
import pytest
from sqlglot import exp

import discreet
import discreet.sources.events.domain
import test_properties as properties
from discreet.sources.events.where.grammar import COMPARISONS

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the folder fuzz is
from fuzz import conditions, domains, rationals, run, sensitivities
from fuzz.contract import Finding, mutated
from fuzz.run import Report

ROOT = Path(__file__).parents[2]
HARNESSES = [rationals, sensitivities, domains, conditions]


def named(value):
    return value.__name__ if hasattr(value, "__name__") else str(value)[:30].encode("unicode_escape").decode()


@pytest.mark.some(24)
@pytest.mark.parametrize(
    ("harness", "text"),
    [(harness, text) for harness in HARNESSES for text in harness.SEEDS if text not in conditions.FOUND],
    ids=named,
)
def test_every_seed_passes(harness, text):
    assert harness.check(text) in (True, False)


@pytest.mark.parametrize("harness", HARNESSES, ids=named)
def test_many_seeds_are_accepted(harness):
    """A harness that only ever sees complaints would find nothing."""
    assert sum(harness.check(text) for text in harness.SEEDS[:20]) >= 5


@pytest.mark.some(5)
@pytest.mark.parametrize("text", conditions.SEEDS[:20])
def test_conditions_pass_through_events(text):
    assert conditions.check_events(text)


def test_most_accepted_conditions_are_compared_with_duckdb():
    texts = [text for text in conditions.SEEDS[:30] if conditions.plain_sql(text) is None]
    assert texts == ["f >= 0.1 AND f < 1e300"]


def as_floats(text, name):
    """A reader of numbers that rounds."""
    try:
        return Fraction(float(Fraction(text)))
    except (ValueError, ZeroDivisionError):
        raise discreet.Error(name) from None


def raises_instead(*arguments):
    raise KeyError("an error that is not discreet's")


@pytest.mark.parametrize("harness", [rationals, sensitivities], ids=named)
def test_a_reader_of_numbers_that_rounds_is_flagged(harness, monkeypatch):
    text = "0.1" if harness is rationals else "0,0.1"
    assert harness.check(text)
    monkeypatch.setattr("discreet.privacy._from_text", as_floats)
    with pytest.raises(Finding, match="read as"):
        harness.check(text)


def test_another_error_and_an_unjust_complaint_are_flagged(monkeypatch):
    monkeypatch.setattr("discreet.privacy._from_text", raises_instead)
    with pytest.raises(Finding, match="KeyError came out"):
        rationals.check("0.1")
    monkeypatch.undo()
    monkeypatch.setattr("discreet.privacy._MAX_CHARACTERS", 2)
    with pytest.raises(Finding, match="refused"):
        rationals.check("0.1")


def test_a_swap_that_is_not_doubled_is_flagged(monkeypatch):
    monkeypatch.setattr("discreet.privacy.Sensitivity.under", lambda self, adjacency: self)
    with pytest.raises(Finding, match="read as"):
        sensitivities.check("0,1")


@pytest.mark.parametrize("text", ["integers(0, 9)", "integers:0:9"])
def test_a_range_that_is_one_short_is_flagged(text, monkeypatch):
    assert domains.check(text)
    monkeypatch.setattr("discreet.sources.events.ranges.Integers.d", property(lambda self: self.hi - self.lo))
    with pytest.raises(Finding):
        domains.check(text)


def test_a_domain_whose_items_are_changed_is_flagged(monkeypatch):
    assert domains.check("['a ', 'b']")
    monkeypatch.setattr("discreet.sources.events.domain.unwrap_label", str.strip)
    with pytest.raises(Finding, match="became"):
        domains.check("['a ', 'b']")
    with pytest.raises(Finding, match="refused"):
        domains.check("['a', 'a ']")


def test_a_comparison_that_includes_its_end_is_flagged(monkeypatch):
    assert conditions.check("i < 5")
    monkeypatch.setitem(COMPARISONS, exp.LT, "<=")
    for check in (conditions.check, conditions.check_events):
        with pytest.raises(Finding, match="to DuckDB"):
            check("i < 5")


@pytest.mark.parametrize(
    "text",
    [
        "random() < 0.5",
        "i = (SELECT max(i) FROM events)",
        "sum(i) OVER () > 1",
        "max(i) = 1",
        "now() > stamp",
        "abs(i) = 1",
        "TRUE) FROM events, (SELECT 1",
        "i IN (1, , 2)",
    ],
)
def test_what_looks_beyond_a_row_is_flagged_if_it_is_accepted(text, monkeypatch):
    monkeypatch.setattr(conditions, "condition", lambda where, table: ibis.literal(True))
    with pytest.raises(Finding, match="accepted"):
        conditions.check(text)


def test_a_condition_that_fails_on_a_row_is_flagged(monkeypatch):
    failing = lambda where, table: table.s.cast("int64") == 1  # noqa: E731
    monkeypatch.setattr(conditions, "condition", failing)
    with pytest.raises(Finding, match="fails"):
        conditions.check("i = 1")


def test_where_another_meaning_is_documented_nothing_is_compared():
    assert conditions.plain_sql("i = 1e2 OR i < 25e-1") == "i = 100 OR i < 2.5"
    for text in (
        "lower(s) = 'É'",
        "big + 1 > 0",
        "i * 99999999999999999 > 1",
        "f = 0.12345678901234567",
        "s = '1e2' AND i = 1e2",
    ):
        assert conditions.plain_sql(text) is None


REQUEST = {
    "scores": [3, 9, 5], "labels": ["c", "a", "b"], "as_mapping": False, "k": 2, "epsilon": "1/3", "seed": 0,
    "mechanism": ("canonical", {}), "sensitivity": None, "adjacency": "swap",
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "wrong"),
    {
        "discreet.release.request.sort_labels": lambda items: sorted(items, reverse=True),
        "discreet.release.request.positive": lambda value, name: Fraction(value) * 2,
        "discreet.sources.scores.array_source": raises_instead,
        "discreet.release.request.find_sensitivity": lambda source, given: discreet.Sensitivity(0, 2),
        "discreet.release.release.label_from_json": lambda data: f"{data} ",
        "discreet.sources.arrays.array.ArraySource.draw_items": lambda self, selection: ["a", "a"],
        "discreet.sources.arrays.positions.PositionFinder.find_selected": lambda self, selection: np.arange(2),
    }.items(),
    ids=named,
)
def test_a_wrong_release_is_flagged(place, wrong, monkeypatch):
    assert properties.check_top_k(REQUEST)
    monkeypatch.setattr(place, wrong)
    with pytest.raises(Finding):
        properties.check_top_k(REQUEST)


CASE = {
    "kind": "string", "number": "float", "frame": "arrow", "adjacency": "swap", "where": "stars = 5",
    "domain": ["dune", "é"], "sums": (("-0.5", "2.5"), "0.5"), "more": [{"what": "dune", "amount": 9.0, "stars": 5}],
    "other": [], "rows": [{"who": who, "what": "dune", "amount": 3.0, "stars": 5} for who in ("ann", "ann", "bob")],
}  # fmt: skip


def test_wrong_scores_of_events_are_flagged(monkeypatch):
    assert properties.check_events(CASE)
    assert properties.check_neighbours(CASE)
    with monkeypatch.context() as patch:
        narrow = property(lambda steps: discreet.Sensitivity(0, 1))
        patch.setattr("discreet.sources.events.scoring.Steps.sensitivity", narrow)
        with pytest.raises(Finding, match="adding a user"):
            properties.check_neighbours(CASE)
    sums = lambda self, by_user, key: by_user.group_by(*key).agg(score=by_user.total.sum().cast("int64"))  # noqa: E731
    monkeypatch.setattr("discreet.sources.events.scoring.Scoring.add_users", sums)
    for check in (properties.check_events, properties.check_neighbours):
        with pytest.raises(Finding):
            check(CASE)


def test_amounts_between_two_steps_are_left_out():
    near = CASE | {"rows": [{"who": "ann", "what": "dune", "amount": 0.25 - 1e-12, "stars": 5}]}
    assert properties.is_clear(CASE)
    assert not properties.is_clear(near)


def test_a_command_line_that_breaks_is_flagged(monkeypatch):
    call = ["select", "scores.csv", "-k", "1", "--epsilon", "1", "--json"]
    assert properties.check_command(call)
    monkeypatch.setattr("discreet.cli.main", lambda: 3)
    with pytest.raises(Finding, match="exit code 3"):
        properties.check_command(call)
    monkeypatch.setattr("discreet.cli.main", raises_instead)
    with pytest.raises(Finding, match="KeyError came out"):
        properties.check_command(call)


def test_a_release_text_that_breaks_is_flagged(monkeypatch):
    assert not properties.check_release_text("{}")
    monkeypatch.setattr("discreet.release.release.json.loads", raises_instead)
    with pytest.raises(Finding, match="KeyError came out"):
        properties.check_release_text("{}")


def test_findings_are_kept_one_of_a_kind_and_the_shortest(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzz.run.FOUND", tmp_path)
    report = Report("command line")
    for data in (b"long one", b"short", b"longer again"):
        try:
            raise Finding(f"{data!r} is refused")
        except Finding as error:
            report.found(run._kind(error), data, "how")
    assert len(report.kinds) == 1
    assert [file.read_bytes() for file in tmp_path.glob("*.input")] == [b"short"]
    assert len(list(tmp_path.glob("*.txt"))) == 1


def test_changes_of_words_go_far_and_come_from_a_seed():
    made = {mutated("i = 5 AND b", conditions.WORDS, conditions.SEEDS, random.Random(seed)) for seed in range(200)}
    assert len(made) > 150
    again = mutated("i = 5", conditions.WORDS, conditions.SEEDS, random.Random(3))
    assert again == mutated("i = 5", conditions.WORDS, conditions.SEEDS, random.Random(3))


def test_without_atheris_the_runner_says_so_and_draws_properties_alone(monkeypatch, capsys):
    monkeypatch.setattr("fuzz.run.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("fuzz.run._in_a_process", lambda target, seconds: Report(target, 5, 1, seconds))
    assert run._run_all(10) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("atheris is not there for Python 3.")
    assert [line.split(" ...")[0] for line in lines if line.endswith("...")] == list(properties.PROPERTIES)


def test_a_process_that_dies_is_a_finding(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("fuzz.run.FOUND", tmp_path / "found")
    monkeypatch.setattr("fuzz.run.ROOT", tmp_path)
    monkeypatch.setattr("fuzz.run.PARSERS", ("rationals",))
    monkeypatch.setattr("fuzz.run.PROPERTIES", ())
    monkeypatch.setattr("fuzz.run._ended", lambda program, environment, limit: (-11, "a segmentation fault"))
    monkeypatch.setattr("fuzz.run.importlib.util.find_spec", lambda name: "found")
    assert run._run_all(10) == 1
    assert "FOUND in rationals: the process ended with -11" in capsys.readouterr().out
    assert [file.read_text() for file in tmp_path.glob("found/*.txt")] == ["a segmentation fault"]


@pytest.mark.long
@pytest.mark.slow
def test_the_runner_runs_a_property_and_reports_it(tmp_path):
    report = tmp_path / "report.json"
    program = [sys.executable, "-m", "fuzz.run", "2", "--target", "release text", "--report", str(report)]
    ended = subprocess.run(program, cwd=ROOT, env=paths(), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert '"target": "release text"' in report.read_text()


def paths():
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests" / "helpers")))}


def accepted(call):
    try:
        return call()
    except discreet.Error:
        return "refused"


@pytest.mark.parametrize(
    "text",
    [
        "i !IN (5)",
        "5 !BETWEEN i AND j",
        "!b",
        "5 BETWEEN i j",
        "i IN (5, , 1)",
        "CASE WHEN b i END IS NULL",
        "b NOT",
        "i <=> 5",
    ],
)
def test_found_conditions_that_are_not_sql_to_duckdb_are_refused(text):
    assert not conditions.check(text)


@pytest.mark.parametrize("text", ["IF b", "random(1) < 0.5"])
def test_found_conditions_are_refused_in_one_line(text):
    """The parser's own warnings were a second one."""
    assert not conditions.check(text)


@pytest.mark.parametrize("function", [rationals.exact, rationals.positive])
def test_found_a_signalling_nan_is_no_number(function):
    assert accepted(lambda: function(Decimal("sNaN"), "epsilon")) == "refused"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000], ids=["list", "object"])
def test_found_a_release_nested_without_end_is_refused(text):
    assert accepted(lambda: discreet.Release.from_json(text)) == "refused"


def test_found_the_second_hour_of_a_clock_set_back_survives_json():
    label = datetime(2024, 10, 27, 2, 30, fold=1)
    release = discreet.top_k({label: 5, "other": 0}, 1, 10**6)
    assert discreet.Release.from_json(release.to_json()).items[0].fold == 1
