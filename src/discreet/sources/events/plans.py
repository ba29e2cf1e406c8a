"""Refuses a Spark DataFrame or a lazy polars query in which one user's rows can depend on those of others.

As `rowwise` does for ibis: the steps that are known to look at one row are listed, and all others are refused. What has
been computed before, an eager frame, a checkpoint or a table, does not show how it was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from discreet.sources.engine import ask
from discreet.sources.events.origin import lazy_origin, plan_of_lazy, scala_members
from discreet.sources.events.rowwise import ITSELF, refuse

_CATALYST = "org.apache.spark.sql.catalyst."
_SPARK_STEPS = {
    "DataSourceV2Relation", "Deduplicate", "Distinct", "Except", "Filter", "Generate", "HiveTableRelation", "Intersect",
    "Join", "LocalRelation", "LogicalRDD", "LogicalRelation", "OneRowRelation", "Project", "Range",
    "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort", "SubqueryAlias", "Union",
    "View",
}  # fmt: skip
_SPARK_WORDS = {
    "GlobalLimit": "a limit", "LocalLimit": "a limit", "Offset": "a limit", "Tail": "a limit", "Sample": "a sample",
    "Window": "a window", "Aggregate": "an aggregate", "PythonUDF": "a function of your own",
    "ScalaUDF": "a function of your own", "InSubquery": "a subquery", "ScalarSubquery": "a subquery",
    "Exists": "a subquery", "ListQuery": "a subquery",
}  # fmt: skip
"""What the usual steps that look across rows are called, the most telling first."""

_LAZY_STEPS = {"Cache", "DataFrameScan", "Distinct", "Filter", "HStack", "Join", "Scan", "Select", "SimpleProjection",
               "Sort", "Union"}  # fmt: skip
_LAZY_VALUES = {"Alias", "BinaryExpr", "Cast", "Column", "Literal", "Ternary"}
_LAZY_FUNCTIONS = {
    "abs", "ceil", "clip", "coalesce", "exp", "fill_null", "floor", "hash", "log", "negate", "pow", "replace",
    "replace_strict", "round", "sign", "sqrt",
    "AllHorizontal", "AnyHorizontal", "IsBetween", "IsFinite", "IsIn", "IsInfinite", "IsNan", "IsNotNan", "IsNotNull",
    "IsNull", "Not",
}  # fmt: skip
_LAZY_FAMILIES = {"StringFunction", "TemporalFunction"}
_LAZY_WORDS = {"Slice": "a limit", "Window": "a window", "GroupBy": "an aggregate", "Agg": "an aggregate",
               "Len": "an aggregate"}  # fmt: skip


def check_plan(given: Any) -> None:
    """Raises where a Spark DataFrame or a lazy polars query looks across rows; anything else is not looked at."""
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "pyspark" and getattr(given, "_jdf", None) is not None:
        plan = given._jdf.queryExecution().analyzed()
        ask("Spark", "reading the plan of table", lambda: _check_spark(plan))
    elif (package, kind) == ("polars", "LazyFrame"):
        _check_lazy(given)


def _check_spark(plan: Any) -> None:
    thing = "this Spark DataFrame"
    found = {name for name in _classes(json.loads(plan.toJSON())) if not _keeps_rows_apart(name)}
    short = {name.rpartition(".")[2] for name in found}
    for name in [*_SPARK_WORDS, *sorted(short)]:
        if name in short:
            refuse(_SPARK_WORDS.get(name, f"{name}, which is not known to keep rows apart"), thing)
    if not plan.deterministic():
        refuse("a random number or the number of a row", thing)
    for node in _nodes(plan):
        kind = node.getClass().getSimpleName()
        if kind == "Deduplicate" and node.keys().size() < node.output().size():
            refuse("one row of several that are not equal", thing)
        if kind == "Join" and _meet(*scala_members(node.children())):
            refuse(ITSELF, thing)


def _keeps_rows_apart(name: str) -> bool:
    """Whether a class of Spark is a step that is listed, or an expression that is no subquery, window or function."""
    package, _, short = name.rpartition(".")
    if package == f"{_CATALYST}expressions":
        return short not in _SPARK_WORDS and not short.startswith("Window") and not short.endswith(("UDAF", "UDTF"))
    return short in _SPARK_STEPS


def _classes(tree: Any) -> Iterator[str]:
    """The classes in what Spark writes of a plan as JSON."""
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _classes(part)
    if isinstance(tree, dict) and "class" in tree:
        yield str(tree["class"])


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in scala_members(plan.children()):
        yield from _nodes(child)


def _meet(left: Any, right: Any) -> bool:
    """Whether both sides of a join read one table."""
    ends = list(scala_members(right.collectLeaves()))
    return any(one.sameResult(two) for one in scala_members(left.collectLeaves()) for two in ends)


def _check_lazy(frame: Any) -> None:
    thing = "this lazy frame"
    try:
        plan = plan_of_lazy(frame)
        found = set(_lazy_words(plan))
    except (AttributeError, NotImplementedError):
        # polars shows neither functions of Python nor some of its own, and shows nothing by a public name.
        found = {"a function of your own, or one that polars does not show"}
    for what in sorted(found):
        refuse(what, thing)


def _lazy_words(plan: Any) -> Iterator[str]:
    """The words for what looks across rows in a lazy query, from the step where the traversal stands."""
    node, inputs = plan.view_current_node(), plan.get_inputs()
    name = type(node).__name__
    if name not in _LAZY_STEPS:
        yield _LAZY_WORDS.get(name, f"{name}, which is not known to keep rows apart")
    if name == "Scan" and (node.file_options.n_rows or node.file_options.row_index):
        yield "a limit" if node.file_options.n_rows else "the number of a row"
    if name == "Distinct" and node.options[1] is not None:
        yield "one row of several that are not equal"
    for each in plan.get_exprs():
        yield from _lazy_value_words(plan, each.node)
    if name == "Join" and any(one.meets(two) for one, two in combinations([lazy_origin(plan, at) for at in inputs], 2)):
        yield ITSELF
    for place in inputs:
        plan.set_node(place)
        yield from _lazy_words(plan)


def _lazy_value_words(plan: Any, place: int) -> Iterator[str]:
    value = plan.view_expression(place)
    name = type(value).__name__
    if name == "Literal" and type(value.value).__name__ == "PySeries":
        yield "a column that is joined by position"
    if name == "Function":
        family, _, function = str(value.function_data[0]).rpartition(".")
        if function not in _LAZY_FUNCTIONS and (family not in _LAZY_FAMILIES or function == "ConcatVertical"):
            yield f"{function}, which is not known to keep rows apart"
    elif name not in _LAZY_VALUES:
        yield _LAZY_WORDS.get(name, f"{name}, which is not known to keep rows apart")
    for part in ("left", "right", "expr", "predicate", "truthy", "falsy", "input"):
        below = getattr(value, part, [])
        for each in below if isinstance(below, list) else [below]:
            yield from _lazy_value_words(plan, each)
