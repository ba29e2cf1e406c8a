"""Each engine has the features that the table of docs/engines.md says, and refuses the others in one sentence."""

import ibis
import pytest

import discreet
from discreet.errors import InvalidTypeError, InvalidValueError
from engine_features import EVENTS, FEATURES
from engines import LONG_ON_SERVERS, ON_CLICKHOUSE, SUPPORTED, on
from engines_table import BEGIN, PAGE, make_table, write_table

MARKS = {each.values[0]: [*each.marks, pytest.mark.long] for each in LONG_ON_SERVERS} | {"clickhouse": ON_CLICKHOUSE}
CASES = [
    pytest.param(each, feature, marks=MARKS.get(each.name, []), id=f"{each.name}-{feature}")
    for each in {each.name: each for each in SUPPORTED if each.name is not None}.values()
    for feature in FEATURES
]

OWN_SENTENCE = r"\A[a-z_ ]+ must (be|have|hold|not) [^\n]+\Z"
"""A refusal names the argument and what is allowed."""


def find_first(engine, feature, folder, request):
    """The most frequent item, in the first group if there are groups."""
    options, _ = FEATURES[feature]
    release = discreet.top_k(discreet.events(**on(engine, EVENTS, folder, request), **options), k=1, epsilon=1000)
    return (release[True] if "by" in options else release).items[0]


@pytest.mark.some(12)
@pytest.mark.parametrize(("engine", "feature"), CASES)
def test_an_engine_has_a_feature_or_refuses_it(engine, feature, tmp_path, request):
    if feature not in engine.refused:
        assert find_first(engine.name, feature, tmp_path, request) == FEATURES[feature][1]
        return
    # An error of the engine is none of these.
    with pytest.raises((InvalidTypeError, InvalidValueError), match=OWN_SENTENCE):
        find_first(engine.name, feature, tmp_path, request)


BROKEN = """
SELECT * FROM VALUES ('u1', 'a'), ('u2', 'a'), ('u3', 'a'), ('u4', 'b') AS t(who, what)
UNION ALL SELECT 'z', CAST(unhex('61FF') AS STRING) UNION ALL SELECT CAST(unhex('FF') AS STRING), 'b'
"""
"""Events of which one item and one user are no UTF-8."""


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "a"),
        ({"item": "concat(lower('A'), what)", "domain": ["aa", "ab"]}, "aa"),
        ({"user": "lower(who)"}, "a"),
        ({"item": "lower(what)"}, "a"),
        ({"item": "fold(what)"}, "a"),
        ({"item": "cast(what AS BIGINT)", "domain": [1, 2]}, None),
        ({"domain": discreet.strings("ab", 2)}, "a"),
        ({"domain": discreet.discovered("1e-8", 1)}, None),
    ],
    ids=str,
)
def test_broken_text_is_missing_on_spark(options, expected, tmp_path, spark):
    """The decode of Spark 4 fails on bytes that are no UTF-8, which that of Spark 3 replaces; views go with sources."""
    # A table of a file: functions that make such text are not among the steps that a release accepts.
    spark.sql(BROKEN).write.parquet(f"{tmp_path}/broken")
    before = spark.catalog.listTables()
    asked = {"user": "who", "item": "what", "domain": ["a", "b"], **options}
    release = discreet.top_k(discreet.events(spark.read.parquet(f"{tmp_path}/broken"), **asked), k=1, epsilon=1000)
    assert expected is None or release.items == [expected]
    assert spark.catalog.listTables() == before


@pytest.mark.some(8)
@pytest.mark.parametrize("engine", [name for each in SUPPORTED for name in each.compiled])
@pytest.mark.parametrize("feature", FEATURES)
def test_statements_are_compiled_for_a_feature_or_refused(engine, feature):
    refused = next(each.refused for each in SUPPORTED if engine in each.compiled)
    types = {name: str(kind) for name, kind in ibis.Schema.from_pyarrow(EVENTS.schema).items()}
    table = discreet.compiled(engine, "events", types)
    if feature in refused:
        with pytest.raises((InvalidTypeError, InvalidValueError), match=OWN_SENTENCE):
            discreet.events(table, **FEATURES[feature][0]).sql()
    else:
        assert "SELECT" in discreet.events(table, **FEATURES[feature][0]).sql()


def test_the_table_of_the_page_is_made_of_the_contract():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == 1
    assert write_table(page, make_table()) == page
    assert write_table(page, make_table()[:-1]) != page


def test_every_engine_that_the_tests_start_is_in_the_table():
    assert {*MARKS, "duckdb", "sqlite", "datafusion"} <= {each.name for each in SUPPORTED}
    assert all(each.refused <= set(FEATURES) for each in SUPPORTED)
