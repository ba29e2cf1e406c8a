"""Refuses a table of ibis, Spark or polars in which one user's rows can depend on those of others.

A limit, the number of a row, a window or an aggregate lets one user push out or change the rows of many, and no bound
on what one user can do to a score holds. So the operations that are known to look at one row are listed, and all
others are refused. Removing equal rows is among the former, because rows of two users are never equal. What has
been computed before, a table of the engine itself, an eager frame or a checkpoint, does not show how it was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NoReturn

from discreet.errors import InvalidValueError
from discreet.sources.engine import ask
from discreet.sources.events.dialect import dialect_of
from discreet.sources.events.origin import lazy_origin, origin_of_relation, plan_of_lazy, scala_members

_VALUE_MODULES = {
    "arrays", "geospatial", "histograms", "json", "logical", "maps", "numeric", "sortkeys", "strings", "structs",
    "temporal",
}  # fmt: skip
"""The modules of ibis.expr.operations whose values are made of one row, but for aggregates and what is impure."""

_ONE_BY_ONE = {
    "core": {"Alias", "Argument"},
    "generic": {
        "Cast", "Coalesce", "E", "Greatest", "Hash", "HashBytes", "HexDigest", "IsNull", "Least", "Literal", "NotNull",
        "NullIf", "Pi", "SearchedCase", "SimpleCase", "TryCast", "TypeOf",
    },
    "relations": {
        "DatabaseTable", "Difference", "Distinct", "DropColumns", "DropNull", "DummyTable", "Field", "FillNull",
        "Filter", "InMemoryTable", "Intersection", "JoinChain", "JoinLink", "JoinReference", "Project", "SelfReference",
        "Sort", "TableUnnest", "Union",
    },
    "subqueries": {"InSubquery"},
}  # fmt: skip
"""Of other modules, what keeps the rows of users apart; joins and subqueries are looked at further."""

_KEEPING_LEFT = {"inner", "cross", "left", "semi", "anti", "asof", "any_inner", "any_left"}
_KEEPING_RIGHT = {"inner", "cross", "right"}
"""The joins in which no row of that side stands for the absence or the choice of others."""

ITSELF = "a join or isin of a table with itself"


def check_rowwise(table: Any, user: Any = None) -> None:
    """Raises where the expression of an ibis table looks across rows, or takes its users from the outer side of a join.

    Parameters
    ----------
    table
        The ibis table of the events.
    user
        The column of the users, where it is one.
    """
    import ibis.expr.operations as ops

    root = table.op()
    found = {what for node in root.find(ops.Node) if (what := _describe_unlisted(node)) is not None}
    for what in [*_refusal_words(), *sorted(found)]:
        if what in found:
            refuse(what)
    _check_meetings(root)
    if isinstance(user, str) and user in root.schema:
        _check_outer_joins(root, user)


def compare_rows_by_bytes(table: Any) -> Any:
    """Return an ibis table whose steps that find equal rows, such as `distinct`, compare the bytes of their text.

    A collation may equate the rows of two users, of which one would then push out the other.
    """
    import ibis.expr.operations as ops

    steps, dialect = (ops.Distinct, ops.Set), dialect_of(table)

    def drop_collations(relation: Any) -> Any:
        rows, types = relation.to_expr(), relation.schema
        for dtype in types.values():
            if dtype.is_string() or dtype.is_unknown():
                dialect.check_column("table", dtype)
        texts = {name: dialect.drop_collation(rows[name]) for name, dtype in types.items() if dtype.is_string()}
        return rows.mutate(**texts).op() if texts else relation

    def recreate(node: Any, known: dict[str, Any] | None) -> Any:
        parts = dict(zip(node.argnames, node.args, strict=True)) | (known or {})
        if not isinstance(node, steps):
            return node if known is None else node.__recreate__(parts)
        sides = [name for name in ("parent", "left", "right") if name in parts]
        return node.__recreate__(parts | {name: drop_collations(parts[name]) for name in sides})

    return table.op().replace(recreate).to_expr() if table.op().find(steps) else table


def _refusal_words() -> dict[str, tuple[type, ...]]:
    """What the usual operations that look across rows are called, the most telling first."""
    import ibis.expr.operations as ops

    return {
        "a limit": (ops.Limit,),
        "a sample": (ops.Sample,),
        "the number of a row": (ops.RowID,),
        "SQL of your own": (ops.SQLQueryResult, ops.SQLStringView),
        "a function of your own": (ops.ScalarUDF, ops.AggUDF, ops.ElementWiseVectorizedUDF),
        # Aggregates are parts of windows and of subqueries.
        "a window": (ops.WindowFunction, ops.WindowAggregate, ops.Analytic),
        "an aggregate": (ops.Aggregate, ops.Reduction),
        "a random number or the clock": (ops.Impure,),
        "a subquery about single rows": (ops.ExistsSubquery, ops.ScalarSubquery),
    }


def _describe_unlisted(node: Any) -> str | None:
    """The words for an operation that is not known to look at one row alone; None for the others."""
    import ibis.expr.operations as ops

    package, _, module = type(node).__module__.rpartition(".")
    name = type(node).__name__
    if package == ops.__name__ and not isinstance(node, ops.Reduction | ops.Analytic | ops.Impure):
        if isinstance(node, ops.DatabaseTable) and node.name.startswith("ibis_cached_"):
            return "a table that ibis has cached"
        if isinstance(node, ops.JoinLink) and node.how == "positional":
            return "a join by position"
        if module in _VALUE_MODULES or name in _ONE_BY_ONE.get(module, ()):
            return None
    named = (what for what, kinds in _refusal_words().items() if isinstance(node, kinds))
    return next(named, f"{name}, which is not known to keep rows apart")


def _check_meetings(root: Any) -> None:
    """Raises where a table meets itself, in a join or a subquery: one user's row is then there for another's."""
    import ibis.expr.operations as ops

    outside = origin_of_relation(root, within=lambda node: not isinstance(node, ops.InSubquery))
    meetings = [(outside, origin_of_relation(each.rel)) for each in root.find(ops.InSubquery)]
    for chain in root.find(ops.JoinChain):
        meetings += combinations([origin_of_relation(side) for side in chain.tables], 2)
    if any(one.meets(other) for one, other in meetings):
        refuse(ITSELF)


def _check_outer_joins(root: Any, user: str) -> None:
    """Raises where a join makes rows without a user, which a later step could give one, or picks among users' rows."""
    for chain, side in _joins_of(root, user):
        index = chain.tables.index(side)
        for number, link in enumerate(chain.rest, 1):
            # Joins before the side came in are among tables without users.
            kept = _KEEPING_LEFT if number > index else _KEEPING_RIGHT
            if number >= index and link.how not in kept:
                refuse(f"the users on the open side of a join ({link.how}), where an inner one would do")


def _joins_of(relation: Any, column: str) -> Iterator[tuple[Any, Any]]:
    """The joins that a column comes through, each with the side that it is from."""
    import ibis.expr.operations as ops

    if isinstance(relation, ops.Set):
        below = [ops.Field(side, column) for side in (relation.left, relation.right)]
    elif column in relation.values:
        below = relation.values[column].find(ops.Field, filter=ops.Value)
    else:
        below = [ops.Field(relation.parent, column)] if hasattr(relation, "parent") else []
    for field in below:
        if isinstance(relation, ops.JoinChain):
            yield relation, field.rel
        yield from _joins_of(field.rel, field.name)


def refuse(what: str, thing: str = "this ibis expression") -> NoReturn:
    """Raises the error about a table that looks across rows."""
    raise InvalidValueError(
        f"table must keep one user's rows independent of other users' rows, and {thing} holds {what}: "
        "do that in the source data, or use where"
    )


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
        if kind == "Join" and _share_a_leaf(*scala_members(node.children())):
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


def _share_a_leaf(left: Any, right: Any) -> bool:
    """Whether both sides of a join read one table."""
    ends = list(scala_members(right.collectLeaves()))
    return any(one.sameResult(two) for one in scala_members(left.collectLeaves()) for two in ends)


def _check_lazy(frame: Any) -> None:
    thing = "this lazy frame"
    try:
        plan = plan_of_lazy(frame)
        found = set(_describe_lazy_steps(plan))
    except (AttributeError, NotImplementedError):
        # polars shows neither functions of Python nor some of its own, and shows nothing by a public name.
        found = {"a function of your own, or one that polars does not show"}
    for what in sorted(found):
        refuse(what, thing)


def _describe_lazy_steps(plan: Any) -> Iterator[str]:
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
        yield from _describe_lazy_values(plan, each.node)
    if name == "Join" and any(one.meets(two) for one, two in combinations([lazy_origin(plan, at) for at in inputs], 2)):
        yield ITSELF
    for index in inputs:
        plan.set_node(index)
        yield from _describe_lazy_steps(plan)


def _describe_lazy_values(plan: Any, index: int) -> Iterator[str]:
    value = plan.view_expression(index)
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
            yield from _describe_lazy_values(plan, each)
