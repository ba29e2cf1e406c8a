"""Allow-lists of the operations that a caller may apply to the events before discreet reads them, in ibis and Spark.

The sensitivity of a score assumes that one user's rows do not affect the rows of others. A limit, a row number, a
window or an aggregate breaks that assumption, and an operation that can fail on a cell lets one user cause an error.
Therefore only operations that read one row and fail on no row are accepted, depending on the types of their arguments,
and all others are refused. Rows are never read. The history of a stored table, an eager frame or a checkpoint is not
visible and not checked. `rowwise_polars` has the lists for polars.
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
from discreet.sources.events.provenance import is_connect, origin_of_relation, plan_of_connect, scala_members
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
"""The accepted operations of ibis, by module. Joins, subqueries and types are checked further."""

_KEEPING_LEFT = {"inner", "cross", "left", "semi", "anti", "asof"}
_KEEPING_RIGHT = {"inner", "cross", "right"}
"""The joins that neither fill the columns of the left (or right) side with NULL nor choose among its rows."""

_SPARK_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_SPARK_VALUES = {
    "Add", "Alias", "And", "AtLeastNNonNulls", "AttributeReference", "CaseWhen", "Cast", "Coalesce", "Concat",
    "ConcatWs", "Contains", "DayOfMonth", "Divide", "EndsWith", "EqualNullSafe", "EqualTo", "Explode", "GetStructField",
    "GreaterThan", "GreaterThanOrEqual", "Hour", "If", "In", "IsNaN", "IsNotNull", "IsNull", "Left", "Length",
    "LessThan", "LessThanOrEqual", "Like", "Literal", "Lower", "Minute", "Month", "Multiply", "NaNvl", "Not", "NullIf",
    "Nvl", "Or", "Quarter", "Second", "SortOrder", "StartsWith", "StringTrim", "StringTrimLeft", "StringTrimRight",
    "Substring", "Subtract", "TypedNullLiteral", "Upper", "Year",
}  # fmt: skip
"""The accepted expressions of Spark; outside of ANSI mode they fail on no row."""

_SPARK_STEPS = {
    "DataSourceV2Relation", "Deduplicate", "Distinct", "Except", "Filter", "Generate", "HiveTableRelation", "Intersect",
    "Join", "LocalRelation", "LogicalRDD", "LogicalRelation", "OneRowRelation", "Project", "Range",
    "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort", "SubqueryAlias", "Union",
    "View",
}  # fmt: skip
"""The accepted steps of a Spark plan. Joins, scans and the removal of duplicates are checked further."""

_SPARK_JOINS = {"Inner", "Cross", "LeftSemi", "LeftAnti"}
_SPARK_FORMATS = {"ParquetFileFormat", "DeltaParquetFileFormat", "OrcFileFormat"}
"""The file formats that declare the types of their columns."""
_SPARK_EXACT = r"string|binary|boolean|(tiny|small|big)?int|float|double|decimal\(\d+,\d+\)|date|timestamp(_ntz)?"
"""The types whose equal values are the same value."""
_SPARK_WORDS = {
    "GlobalLimit": "a limit", "LocalLimit": "a limit", "Offset": "a limit", "Tail": "a limit", "Sample": "a sample",
    "Window": "a window", "Aggregate": "an aggregate", "PythonUDF": "a function of your own",
    "ScalaUDF": "a function of your own", "InSubquery": "a subquery", "ScalarSubquery": "a subquery",
    "Exists": "a subquery", "ListQuery": "a subquery",
}  # fmt: skip
"""The names in messages of common refused steps; the first one found is reported."""

_INFERRED_PARTITIONS = "spark.sql.sources.partitionColumnTypeInference.enabled"
_SCAN_OF_TEXT = "a scan of text, whose types and errors follow from rows (pass the path of the file as table instead)"
_SCAN_OF_PARTITIONS = f"a scan of partitions, whose types follow from rows (set {_INFERRED_PARTITIONS} to false)"

_CONNECT = "this DataFrame of Spark Connect"
_CONNECT_STEPS = {
    "cached_local_relation", "chunked_cached_local_relation", "drop", "local_relation", "project", "range", "read",
    "subquery_alias", "to_df", "with_columns_renamed",
}  # fmt: skip
"""The accepted steps of a plan of Spark Connect."""
_CONNECT_FORMATS = {"parquet", "orc", "delta"}
_CONNECT_OPTIONS = {"basepath", "mergeschema", "pathglobfilter", "recursivefilelookup", "timestampasof", "versionasof"}
"""The accepted settings of a read."""
_HIDDEN_COLUMN = "a column that is hidden, such as the number of a row in its file, or not spelled as the table has it"
_CONNECT_WORDS = {
    "limit": "a limit", "offset": "a limit", "tail": "a limit", "sample": "a sample", "aggregate": "an aggregate",
    "deduplicate": "one row of several that are not equal", "join": "a join", "filter": "a filter",
    "with_columns": "a computed column", "sql": "a query in SQL",
}  # fmt: skip
"""The names in messages of common refused steps of Spark Connect; the last step that is refused is reported."""


def refuse(what: str, thing: str = "this ibis expression") -> NoReturn:
    """Raise the error about a table whose rows may affect each other."""
    raise InvalidValueError(
        f"table must keep one user's rows independent of other users' rows, and {thing} holds {what}: "
        "do that in the source data, or use where"
    )


def check_rowwise(table: Any, dialect: Dialect, user: Any = None) -> None:
    """Raise unless every operation of an ibis table reads one row, fails on no row, and makes no row without a user.

    Parameters
    ----------
    table
        The ibis table of the events.
    dialect
        The dialect of its engine.
    user
        The column of the users; any other value is ignored.
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
    # A table that is joined to itself lets one user's row keep or remove the row of another.
    outside = origin_of_relation(root, within=lambda node: not isinstance(node, ops.InSubquery))
    meetings = [(outside, origin_of_relation(each.rel)) for each in root.find(ops.InSubquery)]
    for chain in root.find(ops.JoinChain):
        meetings += combinations([origin_of_relation(side) for side in chain.tables], 2)
    if any(one.meets(other) for one, other in meetings):
        refuse(ITSELF)
    if not isinstance(user, str) or user not in root.schema:
        return
    # A join may make rows without a user, which a later step could assign to one, or choose among the rows of users.
    for chain, side in _joins_of(root, user):
        index = chain.tables.index(side)
        for number, link in enumerate(chain.rest, 1):
            # The joins before this side are among tables without users.
            kept = _KEEPING_LEFT if number > index else _KEEPING_RIGHT
            if number >= index and link.how not in kept:
                refuse(f"the users on the open side of a join ({link.how}), where an inner one would do")


def _joins_of(relation: Any, column: str) -> Iterator[tuple[Any, Any]]:
    """Yield the joins that a column comes through, each with the side that holds the column."""
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


def _refusal_words() -> dict[str, tuple[type, ...]]:
    """Return the names in messages of common refused operations; the first one found is reported."""
    import ibis.expr.operations as ops

    return {
        "a limit": (ops.Limit,),
        "a sample": (ops.Sample,),
        "the number of a row": (ops.RowID,),
        "SQL of your own": (ops.SQLQueryResult, ops.SQLStringView),
        "a function of your own": (ops.ScalarUDF, ops.AggUDF, ops.ElementWiseVectorizedUDF),
        # Windows and subqueries contain aggregates, and so come first.
        "a window": (ops.WindowFunction, ops.WindowAggregate, ops.Analytic),
        "an aggregate": (ops.Aggregate, ops.Reduction),
        "a random number or the clock": (ops.Impure,),
        "a subquery about single rows": (ops.ExistsSubquery, ops.ScalarSubquery),
        "arithmetic, which can fail on a row": (ops.NumericBinary, ops.Negate, ops.Abs, ops.Round, ops.MathUnary),
    }


def _describe_unlisted(node: Any) -> str | None:
    """Return the name in messages of an operation that is not accepted, or None."""
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
    """Raise if the types of an operation's arguments let it fail on a cell or treat rows of two users as equal."""
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
        import ibis

        if not isinstance(node.replacements, Mapping):
            refuse("fill_null without columns, which can fail on a row (name them)")
        for name, value in node.replacements.items():
            literal = value if hasattr(value, "dtype") else ibis.literal(value).op()
            _check_one_kind([ops.Field(node.parent, name), literal])
    elif isinstance(node, ops.Substring | ops.StrRight):
        sizes = [each for each in node.__children__ if each is not node.arg]
        if not all(isinstance(each, ops.Literal) and (each.value or 0) >= 0 for each in sizes):
            refuse("a part of a text whose place is negative or from a column, which can fail on a row")
    elif isinstance(node, ops.StringSQLLike | ops.StringSQLILike):
        # A pattern that ends in a backslash fails only on rows that match the pattern up to there.
        if not isinstance(node.pattern, ops.Literal) or "\\" in str(node.pattern.value) or node.escape is not None:
            refuse("LIKE with a backslash, ESCAPE or a pattern from a column, which can fail on a row")
    elif isinstance(node, ops.Distinct | ops.Intersection | ops.Difference) or getattr(node, "distinct", False) is True:
        # The engine keeps one of several rows that it treats as equal, and that one may be another user's.
        exact = (each.is_integer() or each.is_floating() or each.is_decimal() or each.is_boolean() or each.is_date()
                 or each.is_timestamp() for each in node.schema.types)  # fmt: skip
        if not dialect.has_typed_columns or not all(exact):
            refuse(
                "equal rows once, where text may be compared without case (leave it out: a user counts once for each "
                "item)"
            )


def _check_one_kind(values: list[Any]) -> None:
    """Raise unless all values are of one kind; the engine would convert them, which can fail on a row."""
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
    """Return the kind of a type; conversions within a kind never fail."""
    return "number" if dtype.is_integer() or dtype.is_floating() else str(dtype.copy(nullable=True))


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


def check_plan(given: Any) -> None:
    """Raise if a Spark DataFrame or a lazy polars query has a step that is not accepted; ignore anything else."""
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "pyspark" and is_connect(given):
        ask("Spark", "reading the plan of table", lambda: _check_connect(given))
    elif package == "pyspark" and getattr(given, "_jdf", None) is not None:
        plan = given._jdf.queryExecution().analyzed()
        ask("Spark", "reading the plan of table", lambda: _check_spark(plan))
    elif (package, kind) == ("polars", "LazyFrame"):
        check_lazy(given, partial(refuse, thing="this lazy frame"))


def _check_connect(frame: Any) -> None:
    """Raise unless a DataFrame of Spark Connect is a table, files or given rows, with some of their columns.

    Only the server knows the types and modes of other steps, and they may fail on a row.
    """
    for step in plan_of_connect(frame):
        kind = step.WhichOneof("rel_type")
        if kind not in _CONNECT_STEPS:
            refuse(_CONNECT_WORDS.get(kind, f"the step {kind}, which is not known to keep rows apart"), _CONNECT)
        if kind == "read":
            _check_connect_read(step.read, frame)
    # The first step alone has hidden columns, and its plan is the innermost.
    first, names, aliases = frame._plan, set[str](), set[str]()
    while first._child is not None:
        first = first._child
    names.update(type(frame)(first, frame.sparkSession).columns)
    for step in reversed(list(plan_of_connect(frame))):
        kind = step.WhichOneof("rel_type")
        columns = step.project.expressions if kind == "project" else step.drop.columns
        for each in columns:
            _check_connect_column(each, names, aliases)
        names.update(name for each in columns for name in each.alias.name)
        names.update(each.new_col_name for each in step.with_columns_renamed.renames)
        names.update(step.to_df.column_names)
        aliases.add(step.subquery_alias.alias)


def _check_connect_read(read: Any, frame: Any) -> None:
    """Raise unless Spark Connect reads a table of the catalog, or files that declare the types of their columns."""
    table, files, session = read.named_table, read.data_source, frame.sparkSession
    is_files = read.HasField("data_source")
    if is_files and files.format.lower() not in _CONNECT_FORMATS:
        refuse(_SCAN_OF_TEXT, _CONNECT)
    options = {name.lower() for name in (*table.options, *files.options)} - _CONNECT_OPTIONS
    if options or files.schema or files.predicates or read.is_streaming:
        refuse("a read with settings of its own, by which it can fail on a row", _CONNECT)
    if is_files:
        # Spark reads the setting without regard to case.
        infers = session.conf.get(_INFERRED_PARTITIONS).strip().lower() != "false"
        if infers and any("=" in folder for file in frame.inputFiles() for folder in file.split("/")[:-1]):
            refuse(_SCAN_OF_PARTITIONS, _CONNECT)
    elif not session.catalog.tableExists(table.unparsed_identifier):
        # A name such as json.`path` stands for files, whose types follow from rows.
        refuse("a name that is no table of the catalog (pass the path of files as table instead)", _CONNECT)
    elif session.catalog.getTable(table.unparsed_identifier).isTemporary:
        refuse("a temporary view, whose steps are not seen", _CONNECT)


def _check_connect_column(expression: Any, names: set[str], aliases: set[str]) -> None:
    """Raise unless an expression of Spark Connect is one of the named columns, or all, perhaps with another name."""
    kind = expression.WhichOneof("expr_type")
    if kind == "alias":
        _check_connect_column(expression.alias.expr, names, aliases)
    elif kind == "unresolved_attribute":
        found = expression.unresolved_attribute
        # Parts are divided by dots outside of backquotes; a frame with a name may come first.
        parts = [part.strip("`") for part in re.findall(r"`[^`]*`|[^.`]+", found.unparsed_identifier)]
        column = parts[1] if len(parts) > 1 and parts[0] in aliases else parts[0]
        if found.is_metadata_column or column not in names:
            refuse(_HIDDEN_COLUMN, _CONNECT)
    elif kind != "unresolved_star":
        refuse("a computed column", _CONNECT)


def _check_spark(plan: Any) -> None:
    """Raise unless all classes of a Spark plan are listed and none of its steps and expressions can fail on a row."""
    thing = "this Spark DataFrame"
    if not plan.deterministic():
        refuse("a random number or the number of a row", thing)
    unlisted = set()
    for name in _classes(json.loads(plan.toJSON())):
        package, _, short = name.rpartition(".")
        if short not in (_SPARK_VALUES if package == _SPARK_EXPRESSIONS else _SPARK_STEPS):
            unlisted.add(short)
    for name in [*_SPARK_WORDS, *sorted(unlisted)]:
        if name in unlisted:
            refuse(_SPARK_WORDS.get(name, f"{name}, which is not known to keep rows apart"), thing)
    for node in _nodes(plan):
        kind = _class_of(node)
        if kind == "Deduplicate" and node.keys().size() < node.output().size():
            refuse("one row of several that are not equal", thing)
        if kind in ("Deduplicate", "Distinct", "Except", "Intersect") and not all(
            re.fullmatch(_SPARK_EXACT, each.dataType().simpleString()) for each in scala_members(node.output())
        ):
            refuse("equal rows once, of a type that may be compared without case", thing)
        if kind == "Join":
            if node.joinType().toString() not in _SPARK_JOINS:
                refuse("an outer join, where an inner one would do", thing)
            left, right = (list(scala_members(side.collectLeaves())) for side in scala_members(node.children()))
            if any(one.sameResult(other) for one in left for other in right):
                refuse(ITSELF, thing)
        # The types and errors of text follow from rows, and so do the types of partitions.
        relation: Any = node.relation() if kind == "LogicalRelation" else None
        is_files = relation is not None and _class_of(relation) == "HadoopFsRelation"
        is_text = kind == "DataSourceV2Relation" and _class_of(node.table()) in ("CSVTable", "JsonTable", "TextTable")
        if is_text or (is_files and _class_of(relation.fileFormat()) not in _SPARK_FORMATS):
            refuse(_SCAN_OF_TEXT, thing)
        is_partitioned = is_files and not node.catalogTable().isDefined() and not relation.partitionSchema().isEmpty()
        if is_partitioned and relation.sparkSession().sessionState().conf().partitionColumnTypeInferenceEnabled():
            refuse(_SCAN_OF_PARTITIONS, thing)
        for value in scala_members(node.expressions()):
            _check_spark_value(value, thing)


def _check_spark_value(value: Any, thing: str) -> None:
    """Raise if an expression of Spark, or one inside it, can fail on a row."""
    kind = _class_of(value)
    if kind in ("Cast", "Add", "Subtract", "Multiply", "Divide") and value.evalMode().toString() == "ANSI":
        refuse("what was made in ANSI mode, which can fail on a row (set spark.sql.ansi.enabled to false)", thing)
    if kind == "AttributeReference" and value.metadata().contains("__metadata_col"):
        refuse(_HIDDEN_COLUMN, thing)
    if kind == "Like" and (_class_of(value.right()) != "Literal" or "\\" in str(value.right().toString())):
        refuse("LIKE with a backslash or a pattern from a column, which can fail on a row", thing)
    for each in scala_members(value.children()):
        _check_spark_value(each, thing)


def _class_of(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def _classes(tree: Any) -> Iterator[str]:
    """Yield the classes in the JSON of a Spark plan."""
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _classes(part)
    if isinstance(tree, dict) and "class" in tree:
        yield str(tree["class"])


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in scala_members(plan.children()):
        yield from _nodes(child)
