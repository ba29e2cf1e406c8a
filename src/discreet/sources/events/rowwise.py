"""Refuse a table of ibis, Spark or polars in which one user's rows can depend on those of others.

A limit, the number of a row, a window or an aggregate lets one user push out or change the rows of many, and no bound
on what one user can do to a score holds. An operation that fails on a cell lets one user choose an error. So the
operations that look at one row and fail on none are listed, with the types that they are given, and all others are
refused. A table of the engine itself, an eager frame or a checkpoint does not show how it was made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import Any, NoReturn

from discreet.errors import InvalidValueError
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.engine import ask
from discreet.sources.events.provenance import origin_of_relation, scala_members
from discreet.sources.events.rowwise_polars import ITSELF, check_lazy

_LISTED = {
    "core": {"Alias"},
    "generic": {
        "Cast", "Coalesce", "E", "Greatest", "Hash", "IsNull", "Least", "Literal", "NotNull", "NullIf", "Pi",
        "SearchedCase", "SimpleCase", "TryCast", "TypeOf",
    },
    "logical": {
        "And", "Between", "Equals", "Greater", "GreaterEqual", "IdenticalTo", "IfElse", "InValues", "Less", "LessEqual",
        "Not", "NotEquals", "Or", "Xor",
    },
    "numeric": {"IsInf", "IsNan"},
    "strings": {
        "EndsWith", "LStrip", "Lowercase", "RStrip", "StartsWith", "StrRight", "StringConcat", "StringContains",
        "StringLength", "StringReplace", "StringSQLILike", "StringSQLLike", "Strip", "Substring", "Uppercase",
    },
    "structs": {"StructColumn", "StructField"},
    "arrays": {"ArrayLength"},
    "sortkeys": {"SortKey"},
    "relations": {
        "DatabaseTable", "Difference", "Distinct", "DropColumns", "DropNull", "DummyTable", "Field", "FillNull",
        "Filter", "InMemoryTable", "Intersection", "JoinChain", "JoinLink", "JoinReference", "Project", "SelfReference",
        "Sort", "TableUnnest", "Union",
    },
    "subqueries": {"InSubquery"},
}  # fmt: skip
"""The operations that are accepted, by their modules; joins, subqueries and types are looked at further."""

_KEEPING_LEFT = {"inner", "cross", "left", "semi", "anti", "asof"}
_KEEPING_RIGHT = {"inner", "cross", "right"}
"""The joins in which no row of that side stands for the absence or the choice of others."""


def check_rowwise(table: Any, dialect: Dialect, user: Any = None) -> None:
    """Raise unless the expression of an ibis table looks at one row alone, fails on none, and keeps its users inside.

    Parameters
    ----------
    table
        The ibis table of the events.
    dialect
        That of its engine.
    user
        The column of the users, where it is one.
    """
    import ibis.expr.operations as ops

    root = table.op()
    nodes = root.find(ops.Node)
    found = {what for node in nodes if (what := _describe_unlisted(node)) is not None}
    for what in [*_refusal_words(), *sorted(found)]:
        if what in found:
            refuse(what)
    for node in nodes:
        _check_types(node, dialect)
    _check_meetings(root)
    if isinstance(user, str) and user in root.schema:
        _check_outer_joins(root, user)


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
        "arithmetic, which can fail on a row": (ops.NumericBinary, ops.Negate, ops.Abs, ops.Round, ops.MathUnary),
    }


def _describe_unlisted(node: Any) -> str | None:
    """The words for an operation that is not known to look at one row alone; None for the others."""
    import ibis.expr.operations as ops

    package, _, module = type(node).__module__.rpartition(".")
    name = type(node).__name__
    if package == ops.__name__ and not isinstance(node, ops.Reduction | ops.Analytic | ops.Impure):
        if isinstance(node, ops.DatabaseTable) and node.name.startswith("ibis_cached_"):
            return "a table that ibis has cached"
        if isinstance(node, ops.JoinLink) and node.how not in _KEEPING_LEFT | _KEEPING_RIGHT | {"outer"}:
            return "a join by position" if node.how == "positional" else f"a join that picks rows ({node.how})"
        if name in _LISTED.get(module, ()):
            return None
    named = (what for what, kinds in _refusal_words().items() if isinstance(node, kinds))
    return next(named, f"{name}, which is not known to keep rows apart")


def _check_types(node: Any, dialect: Dialect) -> None:
    """Raise where the types that an operation is given let it fail on a cell, or take rows of two users for equal."""
    import ibis.expr.operations as ops

    if isinstance(node, ops.InMemoryTable) and type(node.data).__name__ == "PandasDataFrameProxy":
        refuse("a table made of a pandas frame or a list, whose types follow from rows (pass the frame itself)")
    if isinstance(node, ops.Cast | ops.TryCast) and not _is_safe_cast(node):
        remedy = "" if isinstance(node, ops.TryCast) else " (try_cast does not)"
        refuse(f"a cast from {node.arg.dtype} to {node.to}, which can fail on a row{remedy}")
    if isinstance(
        node, ops.Comparison | ops.Between | ops.InValues | ops.NullIf | ops.Coalesce | ops.Greatest | ops.Least
    ):
        _check_one_kind([each for each in node.__children__ if isinstance(each, ops.Value)])
    elif isinstance(node, ops.SimpleCase | ops.SearchedCase):
        _check_one_kind([*node.results, node.default])
        _check_one_kind([node.base, *node.cases] if isinstance(node, ops.SimpleCase) else [])
    elif isinstance(node, ops.IfElse):
        _check_one_kind([node.true_expr, node.false_null_expr])
    elif isinstance(node, ops.InSubquery):
        _check_one_kind([node.needle, *node.rel.fields.values()])
    elif isinstance(node, ops.FillNull):
        _check_filling(node)
    elif isinstance(node, ops.Substring | ops.StrRight):
        sizes = [each for each in node.__children__ if each is not node.arg]
        if not all(isinstance(each, ops.Literal) and (each.value or 0) >= 0 for each in sizes):
            refuse("a part of a text whose place is negative or from a column, which can fail on a row")
    elif isinstance(node, ops.StringSQLLike | ops.StringSQLILike):
        # A backslash at the end of a pattern fails on those rows alone that match up to there.
        if not isinstance(node.pattern, ops.Literal) or "\\" in str(node.pattern.value) or node.escape is not None:
            refuse("LIKE with a backslash, ESCAPE or a pattern from a column, which can fail on a row")
    elif isinstance(node, ops.Distinct | ops.Intersection | ops.Difference) or getattr(node, "distinct", False) is True:
        _check_equality(node.schema, dialect)


def _check_one_kind(values: list[Any]) -> None:
    """Raise where values are not of one kind, so that the engine converts some of them, which can fail on a row."""
    import ibis.expr.operations as ops

    literals = [each.dtype for each in values if isinstance(each, ops.Literal) and not each.dtype.is_null()]
    columns = [each.dtype for each in values if not isinstance(each, ops.Literal) and not each.dtype.is_null()]
    kinds = {_kind(dtype) for dtype in columns}
    odd = [
        each
        for each in literals
        if kinds != {_kind(each)}
        and not (each.is_integer() and all(dtype.is_decimal() for dtype in columns))
        and not (each.is_string() and all(dtype.is_temporal() for dtype in columns))
    ]
    if len(kinds) > 1 or (columns and odd):
        listed = " and ".join(sorted({str(each.copy(nullable=True)) for each in (*columns, *odd)}))
        refuse(f"a comparison or choice between {listed}, which can fail on a row")


def _kind(dtype: Any) -> str:
    """Return the kind of a type; the engine converts types of one kind into each other without a failure."""
    return "number" if dtype.is_integer() or dtype.is_floating() else str(dtype.copy(nullable=True))


def _check_filling(node: Any) -> None:
    import ibis

    if not isinstance(node.replacements, Mapping):
        refuse("fill_null without columns, which can fail on a row (name them)")
    for name, value in node.replacements.items():
        literal = value if hasattr(value, "dtype") else ibis.literal(value).op()
        _check_one_kind([ibis.expr.operations.Field(node.parent, name), literal])


def _check_equality(schema: Any, dialect: Dialect) -> None:
    """Raise where rows that differ can be equal to the engine: it then keeps one of them, maybe another user's."""
    exact = (each.is_integer() or each.is_floating() or each.is_decimal() or each.is_boolean() or each.is_date()
             or each.is_timestamp() for each in schema.types)  # fmt: skip
    if not dialect.has_typed_columns or not all(exact):
        refuse(
            "equal rows once, where text may be compared without case (leave it out: a user counts once for each item)"
        )


def _is_safe_cast(node: Any) -> bool:
    """Return True if a cast fails on no cell."""
    import ibis.expr.operations as ops

    source, target = node.arg.dtype, node.to
    plain = source.is_integer() or source.is_floating() or source.is_boolean() or source.is_string()
    if source.is_null() or source.copy(nullable=True) == target.copy(nullable=True):
        return True
    if target.is_string() and (plain or source.is_decimal() or source.is_date() or source.is_timestamp()):
        return True
    if isinstance(node, ops.TryCast):
        number = target.is_integer() or target.is_floating() or target.is_boolean()
        moment = target.is_date() or (target.is_timestamp() and target.timezone is None and target.scale is None)
        return bool((plain and number) or (source.is_string() and moment))
    if source.is_integer() and target.is_integer():
        return bool(target.bounds.lower <= source.bounds.lower and source.bounds.upper <= target.bounds.upper)
    return bool((source.is_integer() or source.is_float32()) and target.is_float64())


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
_SPARK_VALUES = {
    "Add", "Alias", "And", "AtLeastNNonNulls", "AttributeReference", "CaseWhen", "Cast", "Coalesce", "Concat",
    "ConcatWs", "Contains", "DayOfMonth", "Divide", "EndsWith", "EqualNullSafe", "EqualTo", "Explode", "GetStructField",
    "GreaterThan", "GreaterThanOrEqual", "Hour", "If", "In", "IsNaN", "IsNotNull", "IsNull", "Left", "Length",
    "LessThan", "LessThanOrEqual", "Like", "Literal", "Lower", "Minute", "Month", "Multiply", "NaNvl", "Not", "NullIf",
    "Nvl", "Or", "Quarter", "Second", "SortOrder", "StartsWith", "StringTrim", "StringTrimLeft", "StringTrimRight",
    "Substring", "Subtract", "TypedNullLiteral", "Upper", "Year",
}  # fmt: skip
"""The expressions that are accepted: outside of ANSI mode they fail on no row."""

_SPARK_JOINS = {"Inner", "Cross", "LeftSemi", "LeftAnti"}
_SPARK_FORMATS = {"ParquetFileFormat", "DeltaParquetFileFormat", "OrcFileFormat"}
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


def check_plan(given: Any) -> None:
    """Raises where a Spark DataFrame or a lazy polars query looks across rows; anything else is not looked at."""
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "pyspark" and getattr(given, "_jdf", None) is not None:
        plan = given._jdf.queryExecution().analyzed()
        ask("Spark", "reading the plan of table", lambda: _check_spark(plan))
    elif (package, kind) == ("polars", "LazyFrame"):
        check_lazy(given, partial(refuse, thing="this lazy frame"))


def _check_spark(plan: Any) -> None:
    thing = "this Spark DataFrame"
    if not plan.deterministic():
        refuse("a random number or the number of a row", thing)
    found = {name for name in _classes(json.loads(plan.toJSON())) if not _keeps_rows_apart(name)}
    short = {name.rpartition(".")[2] for name in found}
    for name in [*_SPARK_WORDS, *sorted(short)]:
        if name in short:
            refuse(_SPARK_WORDS.get(name, f"{name}, which is not known to keep rows apart"), thing)
    for node in _nodes(plan):
        kind = node.getClass().getSimpleName()
        if kind == "Deduplicate" and node.keys().size() < node.output().size():
            refuse("one row of several that are not equal", thing)
        if kind in ("Deduplicate", "Distinct", "Except", "Intersect") and not all(
            re.fullmatch(_SPARK_EXACT, each.dataType().simpleString()) for each in scala_members(node.output())
        ):
            refuse("equal rows once, of a type that may be compared without case", thing)
        if kind == "Join" and node.joinType().toString() not in _SPARK_JOINS:
            refuse("an outer join, where an inner one would do", thing)
        if kind == "Join" and _share_a_leaf(*scala_members(node.children())):
            refuse(ITSELF, thing)
        if _reads_text(node):
            refuse(
                "a scan of text, whose types and errors follow from rows (pass the path of the file as table instead)",
                thing,
            )
        if _guesses_partitions(node):
            refuse(
                "a scan of partitions, whose types follow from rows (set "
                "spark.sql.sources.partitionColumnTypeInference.enabled to false)",
                thing,
            )
        for value in scala_members(node.expressions()):
            _check_spark_value(value, thing)


_SPARK_EXACT = r"string|binary|boolean|(tiny|small|big)?int|float|double|decimal\(\d+,\d+\)|date|timestamp(_ntz)?"


def _reads_text(node: Any) -> bool:
    """Return True if a step reads files of another format than those that declare the types of their columns."""
    if node.getClass().getSimpleName() == "DataSourceV2Relation":
        return str(node.table().getClass().getSimpleName()) in ("CSVTable", "JsonTable", "TextTable")
    if node.getClass().getSimpleName() != "LogicalRelation":
        return False
    relation = node.relation()
    is_files = relation.getClass().getSimpleName() == "HadoopFsRelation"
    return is_files and relation.fileFormat().getClass().getSimpleName() not in _SPARK_FORMATS


def _guesses_partitions(node: Any) -> bool:
    """Return True if a step takes the types of columns from the names of folders, which are somebody's values."""
    if node.getClass().getSimpleName() != "LogicalRelation" or node.catalogTable().isDefined():
        return False
    relation = node.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation" or relation.partitionSchema().isEmpty():
        return False
    return bool(relation.sparkSession().sessionState().conf().partitionColumnTypeInferenceEnabled())


def _check_spark_value(value: Any, thing: str) -> None:
    """Raise where an expression of Spark, or one in it, can fail on a row."""
    kind = value.getClass().getSimpleName()
    if kind in ("Cast", "Add", "Subtract", "Multiply", "Divide") and value.evalMode().toString() == "ANSI":
        refuse("what was made in ANSI mode, which can fail on a row (set spark.sql.ansi.enabled to false)", thing)
    if kind == "Like" and (
        value.right().getClass().getSimpleName() != "Literal" or "\\" in str(value.right().toString())
    ):
        refuse("LIKE with a backslash or a pattern from a column, which can fail on a row", thing)
    for each in scala_members(value.children()):
        _check_spark_value(each, thing)


def _keeps_rows_apart(name: str) -> bool:
    """Return True if a class of Spark is an expression or a step that is listed."""
    package, _, short = name.rpartition(".")
    return short in (_SPARK_VALUES if package == f"{_CATALYST}expressions" else _SPARK_STEPS)


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
