"""Origins of tables and lists: memory, files and database tables, compared to find a list made from the events.

Only addresses, paths and names are compared, never values, because an error that depends on values would reveal private
rows. A copy is therefore not recognised, nor a database view with another name. Validity bitmaps are ignored: libraries
share them between unrelated columns.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from discreet.errors import InvalidValueError
from discreet.labels import is_column
from discreet.sources.events.location import BUCKETS, PREFIX, FilePath, Location, parse_table_name

TableAddress = tuple[str | None, ...]
"""The engine, catalogue, database and name of a table; None for an unknown part."""

Span = tuple[int, int]
"""The first address of a piece of memory, and the address after its last."""

_MEMBERS = {
    "domain": ("item", "an item that is listed because somebody touched it"),
    "groups": ("group", "a group that is listed because somebody is in it"),
}
"""The members of each public list, and the reason why it must not be made from the events."""


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """Frames in memory, real paths of files, and addresses of tables."""

    frames: list[Any] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    tables: set[TableAddress] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Return True if any origin is known."""
        return bool(self.frames or self.files or self.tables)

    def meets(self, other: Origin) -> bool:
        """Return True if two origins share a file, a table or memory; a bucket's pattern shares fitting files."""
        return (
            bool(self.files & other.files)
            or any(
                fnmatchcase(file, pattern)
                for files, patterns in ((self.files, other.files), (other.files, self.files))
                for pattern in patterns
                if "*" in pattern and pattern.partition("://")[0] in BUCKETS
                for file in files
            )
            # An unknown part of an address fits every other.
            or any(
                all(None in pair or pair[0] == pair[1] for pair in zip(one, two, strict=True))
                for one in self.tables
                for two in other.tables
            )
            or any(share_memory(one, two) for one in self.frames for two in other.frames)
        )


def refuse_own_list(argument: str, given: Any, table: Any, name: Any) -> None:
    """Raise if a public list is recognised as the events or as a part of them.

    Parameters
    ----------
    argument, given
        "domain" or "groups", and the list.
    table, name
        The arguments of `discreet.events`.
    """
    beside = given.beside if isinstance(given, Location) else None
    if beside is not None:
        if not isinstance(table, Location) or table.database is None:
            raise InvalidValueError(f"{argument} must not begin with {PREFIX!r} unless table is a connection URL")
        origin = origin_of(table, beside.table)
    else:
        # Texts in a list are items or groups, and no paths.
        origin = Origin() if isinstance(given, list | tuple) else origin_of(given)
    is_table = given is table
    if isinstance(given, Location) and isinstance(table, Location):
        # A URL whose password has a slash has no address to compare, but the same text is the same file.
        is_table = bool({path.text for path in given.paths} & {path.text for path in table.paths})
    # The origin of the events comes second: finding the files of a large table takes time, and a list has no origin.
    if is_table or (origin and origin.meets(origin_of(table, name or None))):
        member, listed = _MEMBERS[argument]
        raise InvalidValueError(
            f"{argument} must be a public list of {member}s, not the events themselves or a column of them: {listed} "
            "tells just that, and no epsilon covers it"
        )


def origin_of(given: Any, name: str | None = None) -> Origin:
    """Return the origin of a table, a domain or a list of groups.

    Parameters
    ----------
    given
        A location, a column, a frame, a relation or a table; the origin of anything else is empty.
    name
        The table's name, if `given` is a database.
    """
    if isinstance(given, Location):
        if given.database is not None:
            engine = given.database.partition("://")[0].replace("postgresql", "postgres")
            # The schema may be the default one, which a caller may leave out, so only the name is compared.
            return Origin(tables={_address(engine, None if name is None else parse_table_name(name).table)})
        return Origin(files={file for path in given.paths for file in path.addresses})
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "ibis" and hasattr(given, "columns"):
        return origin_of_relation(given.op())
    if package in ("duckdb", "_duckdb") and hasattr(given, "sql_query"):
        return _origin_of_sql(given.sql_query())
    if package == "pyspark" and hasattr(given, "inputFiles"):
        origin = Origin()
        with suppress(Exception):
            origin.tables.update(_list_connect_steps(given) if is_connect(given) else _list_spark_columns(given))
        with suppress(Exception):
            origin.files.update(each.removeprefix("file:").replace("///", "/", 1) for each in given.inputFiles())
        return origin
    if (package, kind) == ("polars", "LazyFrame"):
        # polars does not show every query.
        with suppress(Exception):
            plan = plan_of_lazy(given)
            return lazy_origin(plan, plan.get_node())
        return Origin()
    return Origin(frames=[given] if is_column(given) else [])


def origin_of_relation(relation: Any, within: Callable[[Any], bool] | None = None) -> Origin:
    """Return the origin of an ibis operation; `within` selects the operations below it that are visited."""
    import ibis.expr.operations as ops

    origin = Origin()
    for leaf in relation.find(ops.PhysicalTable, filter=within):
        if isinstance(leaf, ops.DatabaseTable):
            origin.tables.add(_address(leaf.source.name, leaf.name, leaf.namespace.database, leaf.namespace.catalog))
        elif isinstance(leaf, ops.InMemoryTable):
            # The unique name identifies an empty frame, which has no memory.
            origin.tables.add(_address("memory", leaf.name))
            origin.frames.append(getattr(leaf.data, "obj", None))
    return origin


def _address(engine: str, name: str | None, database: str | None = None, catalogue: str | None = None) -> TableAddress:
    # Some engines ignore case in names, so here case is always ignored.
    return tuple(part.casefold() if part else None for part in (engine, catalogue, database, name))


def _origin_of_sql(query: str) -> Origin:
    """Return the tables, files and frames in the SQL of a DuckDB relation, or nothing if it cannot be parsed."""
    import sqlglot
    from sqlglot import exp

    origin = Origin()
    with suppress(sqlglot.errors.SqlglotError):
        # sqlglot does not read hexadecimal numbers, which are the addresses of frames.
        decimal = re.sub(r"\b0x([0-9a-f]+)\b", lambda address: str(int(address[1], 16)), query)
        tree = sqlglot.parse_one(decimal, dialect="duckdb")
        # DuckDB names a frame after its variable, and that name looks like a table.
        made = {each.alias for each in tree.find_all(exp.CTE) if not each.this.find(exp.Func)}
        for table in tree.find_all(exp.Table):
            if isinstance(table.this, exp.Func):
                # A function reads files, or the frame whose address is its first argument.
                first = next(table.this.iter_expressions(), exp.Null())
                files = [each.name for each in first.find_all(exp.Literal) if each.is_string]
                origin.files.update(*(FilePath.parse(file).addresses for file in files))
                if not files:
                    origin.tables.add(_address("duckdb", first.sql("duckdb"), table.this.name))
            elif os.path.exists(table.name):
                origin.files.add(os.path.realpath(table.name))
            elif table.name not in made:
                origin.tables.add(_address("duckdb", table.name, table.db, table.catalog))
    return origin


def _list_spark_columns(frame: Any) -> Iterator[TableAddress]:
    """Yield the unique ids of the columns that a Spark DataFrame reads, which stand for tables."""
    for leaf in scala_members(frame._jdf.queryExecution().analyzed().collectLeaves()):
        for each in scala_members(leaf.output()):
            yield _address("spark column", str(each.exprId().id()))


def _list_connect_steps(frame: Any) -> Iterator[TableAddress]:
    """Yield the tables that a DataFrame of Spark Connect names, and the unique ids of its steps.

    Two frames share a step if one is made from the other.
    """
    for step in plan_of_connect(frame):
        yield _address("spark step", str(step.common.plan_id))
        if name := step.read.named_table.unparsed_identifier:
            yield _address("spark table", name.split(".")[-1].strip("`"))


def is_connect(frame: Any) -> bool:
    """Return True if a Spark DataFrame is one of Spark Connect, whose plan is made on a server."""
    return type(frame).__module__.startswith("pyspark.sql.connect")


def plan_of_connect(frame: Any) -> Iterator[Any]:
    """Yield the steps of a DataFrame of Spark Connect, messages of its protocol, from the last one to the first."""

    def walk(message: Any) -> Iterator[Any]:
        if message.DESCRIPTOR.name == "Relation":
            yield message
        for field_, value in message.ListFields():
            if field_.message_type is not None and not field_.message_type.GetOptions().map_entry:
                for each in value if hasattr(value, "__len__") else (value,):
                    yield from walk(each)

    return walk(frame._plan.plan(frame.sparkSession.client))


def scala_members(sequence: Any) -> Iterable[Any]:
    """Return the members of a sequence of Scala."""
    return (sequence.apply(index) for index in range(sequence.size()))


def plan_of_lazy(frame: Any) -> Any:
    """Return the steps of a lazy polars query as they were written, before optimisation."""
    import polars as pl

    return frame._ldf.with_optimizations(pl.QueryOptFlags.none()._pyoptflags).visit()


def lazy_origin(plan: Any, index: int) -> Origin:
    """Return the frames and files below a step of a lazy query; the current node of `plan` does not change."""
    origin, before = Origin(), plan.get_node()
    plan.set_node(index)
    _add_leaves(plan, origin)
    plan.set_node(before)
    return origin


def _add_leaves(plan: Any, origin: Origin) -> None:
    import polars as pl

    node = plan.view_current_node()
    if type(node).__name__ == "DataFrameScan":
        origin.frames.append(pl.DataFrame._from_pydf(node.df))
    elif type(node).__name__ == "Scan":
        origin.files.update(os.path.realpath(str(each)) for each in node.paths)
    for index in plan.get_inputs():
        plan.set_node(index)
        _add_leaves(plan, origin)


def share_memory(one: Any, other: Any) -> bool:
    """Return True if two columns or frames of pandas, polars, pyarrow or NumPy share memory."""
    spans = sorted(set(_spans(one)))
    if not spans:
        return False
    # Spans may lie inside each other, so all that begin before the end of another are compared with it.
    return any(begin < end for begin, until in _spans(other) for _, end in spans[: bisect_left(spans, (until, 0))])


def _spans(given: Any) -> Iterator[Span]:
    """Yield the spans of memory of a column or frame, or nothing if its layout is unknown."""
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "numpy":
        from numpy.lib.array_utils import byte_bounds

        if getattr(given, "size", 0) and hasattr(given, "__array_interface__"):
            yield byte_bounds(given)
    elif package == "pyarrow":
        yield from _spans_of_arrow(given)
    elif package == "polars" and kind in ("DataFrame", "Series"):
        import polars as pl
        import pyarrow as pa

        columns = given.get_columns() if isinstance(given, pl.DataFrame) else [given]
        for column in (each for each in columns if each.dtype != pl.Object):
            # Only Arrow's newest layout keeps text in place, and only codes keep categories in place. Decimals stay as
            # they are because Arrow has no type for their 128-bit integers.
            plain = column if column.dtype.is_decimal() else column.to_physical()
            with suppress(pa.ArrowInvalid):
                yield from _spans_of_arrow(plain.to_arrow(compat_level=pl.CompatLevel.newest()))
    elif package == "pandas":
        yield from _spans_of_pandas(given)


def _spans_of_arrow(given: Any) -> Iterator[Span]:
    import pyarrow as pa

    if isinstance(given, pa.Table | pa.RecordBatch):
        for column in given.columns:
            yield from _spans_of_arrow(column)
    elif isinstance(given, pa.ChunkedArray):
        for chunk in given.chunks:
            yield from _spans_of_arrow(chunk)
    elif isinstance(given, pa.ExtensionArray):
        yield from _spans_of_arrow(given.storage)
    elif isinstance(given, pa.Array):
        yield from ((each.address, each.address + each.size) for each in given.buffers()[1:] if each)
        if isinstance(given, pa.DictionaryArray):
            yield from _spans_of_arrow(given.dictionary)


def _spans_of_pandas(given: Any) -> Iterator[Span]:
    kind = type(given).__name__
    if kind == "DataFrame":
        for index in range(given.shape[1]):
            yield from _spans_of_pandas(given.iloc[:, index])
    elif kind == "MultiIndex":
        for part in (*given.levels, *given.codes):
            yield from _spans(part)
    else:
        array = getattr(given, "array", given)
        # pandas has no public access to the parts of an extension array, and a conversion may copy them.
        for name in ("_ndarray", "_data", "_pa_array", "codes", "categories"):
            yield from _spans(getattr(array, name, None))
