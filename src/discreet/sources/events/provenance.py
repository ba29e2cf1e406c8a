"""Where a table or a list comes from, as far as that can be seen: its memory, its files, its tables in databases.

Only addresses, paths and names are compared, never values: an error that depends on values would tell about private
rows. So a copy is not recognised, and neither is a view of a database by another name. Of memory, bits of validity are
left out, which libraries share between columns that have nothing else in common.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from discreet.labels import is_column
from discreet.sources.events.location import FilePath, Location, parse_table_name, share_files

TableAddress = tuple[str | None, ...]
"""Engine, catalogue, database and name of a table; what is not known is None."""


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """Frames in memory, real paths of files, and places of tables."""

    frames: list[Any] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    tables: set[TableAddress] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.frames or self.files or self.tables)

    def meets(self, other: Origin) -> bool:
        """Whether both have a file, a table or a piece of memory in common."""
        return (
            share_files(self.files, other.files)
            or any(_may_be_same_table(one, two) for one in self.tables for two in other.tables)
            or any(share_memory(one, two) for one in self.frames for two in other.frames)
        )


def origin_of(given: Any, name: str | None = None) -> Origin:
    """Where something that `discreet.events` takes as a table or a domain comes from.

    Parameters
    ----------
    given
        A path, a connection URL, a column, a frame, a relation or a table; of anything else nothing is known.
    name
        The table's name in the database, where `given` is a URL.
    """
    if isinstance(given, Location):
        if given.database is not None:
            engine = given.database.partition("://")[0].replace("postgresql", "postgres")
            # The schema may be the usual one, which need not be said, so that the name alone tells.
            return Origin(tables={_address(engine, None if name is None else parse_table_name(name).table)})
        return Origin(files={file for path in given.paths for file in path.addresses})
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "ibis" and hasattr(given, "columns"):
        return origin_of_relation(given.op())
    if package in ("duckdb", "_duckdb") and hasattr(given, "sql_query"):
        return _origin_of_sql(given.sql_query())
    if package == "pyspark" and hasattr(given, "inputFiles"):
        return _origin_of_spark(given)
    if (package, kind) == ("polars", "LazyFrame"):
        return _origin_of_lazy(given)
    return Origin(frames=[given] if is_column(given) else [])


def origin_of_relation(relation: Any, within: Callable[[Any], bool] | None = None) -> Origin:
    """Where the rows of an ibis operation come from; `within` says which operations below it are looked at."""
    import ibis.expr.operations as ops

    origin = Origin()
    for leaf in relation.find(ops.PhysicalTable, filter=within):
        if isinstance(leaf, ops.DatabaseTable):
            origin.tables.add(_address(leaf.source.name, leaf.name, leaf.namespace.database, leaf.namespace.catalog))
        elif isinstance(leaf, ops.InMemoryTable):
            # By its name too, which is its own: an empty frame has no memory to tell it by.
            origin.tables.add(_address("memory", leaf.name))
            origin.frames.append(getattr(leaf.data, "obj", None))
    return origin


def _address(engine: str, name: str | None, database: str | None = None, catalogue: str | None = None) -> TableAddress:
    # Engines differ in whether they tell capitals apart in names, so here they never are.
    return tuple(part.casefold() if part else None for part in (engine, catalogue, database, name))


def _may_be_same_table(one: TableAddress, other: TableAddress) -> bool:
    """Whether two places can be one, where what is not known of them fits anything."""
    return all(None in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True))


def _origin_of_sql(query: str) -> Origin:
    """The tables, files and frames in the SQL of a DuckDB relation; none where it cannot be parsed."""
    import sqlglot
    from sqlglot import exp

    origin = Origin()
    with suppress(sqlglot.errors.SqlglotError):
        # Frames are there as hexadecimal addresses, which sqlglot does not read.
        tree = sqlglot.parse_one(re.sub(r"\b0x([0-9a-f]+)\b", _hex_to_decimal, query), dialect="duckdb")
        # DuckDB names a frame by the variable that it was in, which is a name like that of a table.
        made = {each.alias for each in tree.find_all(exp.CTE) if not each.this.find(exp.Func)}
        for table in tree.find_all(exp.Table):
            if isinstance(table.this, exp.Func):
                _add_scan(table.this, origin)
            elif os.path.exists(table.name):
                origin.files.add(os.path.realpath(table.name))
            elif table.name not in made:
                origin.tables.add(_address("duckdb", table.name, table.db, table.catalog))
    return origin


def _hex_to_decimal(address: re.Match[str]) -> str:
    return str(int(address[1], 16))


def _add_scan(scan: Any, origin: Origin) -> None:
    """Adds the files that a function of DuckDB reads, or the frame whose address is its first argument."""
    from sqlglot import exp

    first = next(scan.iter_expressions(), exp.Null())
    files = [each.name for each in first.find_all(exp.Literal) if each.is_string]
    origin.files.update(*(FilePath.parse(file).addresses for file in files))
    if not files:
        origin.tables.add(_address("duckdb", first.sql("duckdb"), scan.name))


def _origin_of_spark(frame: Any) -> Origin:
    """The files that a Spark DataFrame reads, and the columns that it is made of, which have numbers of their own."""
    origin = Origin()
    with suppress(Exception):
        origin.files.update(each.removeprefix("file:").replace("///", "/", 1) for each in frame.inputFiles())
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
        for leaf in scala_members(leaves):
            origin.tables.update(
                _address("spark column", str(each.exprId().id())) for each in scala_members(leaf.output())
            )
    return origin


def scala_members(sequence: Any) -> Iterable[Any]:
    """The members of a sequence of Scala."""
    return (sequence.apply(index) for index in range(sequence.size()))


def _origin_of_lazy(frame: Any) -> Origin:
    """The frames and files at the ends of a lazy polars query; none where polars does not show them."""
    origin = Origin()
    with suppress(Exception):
        plan = plan_of_lazy(frame)
        return lazy_origin(plan, plan.get_node())
    return origin


def plan_of_lazy(frame: Any) -> Any:
    """The steps of a lazy polars query as they were written, before polars rearranges them."""
    import polars as pl

    return frame._ldf.with_optimizations(pl.QueryOptFlags.none()._pyoptflags).visit()


def lazy_origin(plan: Any, index: int) -> Origin:
    """The frames and files at the ends of a lazy query below a step; the traversal stands where it stood, after."""
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


Span = tuple[int, int]
"""The first address and the one after the last."""


def share_memory(one: Any, other: Any) -> bool:
    """Whether a column or frame of pandas, polars, pyarrow or NumPy shares memory with another."""
    spans = sorted(set(_spans(one)))
    return any(_overlaps(span, spans) for span in _spans(other)) if spans else False


def _overlaps(span: Span, spans: list[Span]) -> bool:
    """Whether a span overlaps one of some sorted ones."""
    # Spans of one allocation may lie inside each other, so those before the first that begins later are all asked.
    return any(span[0] < end for _, end in spans[: bisect_left(spans, (span[1], 0))])


def _spans(given: Any) -> Iterator[Span]:
    """The spans of memory of a column or frame; none where it is unknown how it lies there."""
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "numpy":
        yield from _spans_of_numpy(given)
    elif package == "pyarrow":
        yield from _spans_of_arrow(given)
    elif package == "polars" and kind in ("DataFrame", "Series"):
        yield from _spans_of_polars(given)
    elif package == "pandas":
        yield from _spans_of_pandas(given)


def _spans_of_numpy(array: Any) -> Iterator[Span]:
    from numpy.lib.array_utils import byte_bounds

    if getattr(array, "size", 0) and hasattr(array, "__array_interface__"):
        yield byte_bounds(array)


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


def _spans_of_polars(given: Any) -> Iterator[Span]:
    import polars as pl
    import pyarrow as pa

    columns = given.get_columns() if isinstance(given, pl.DataFrame) else [given]
    for column in (each for each in columns if each.dtype != pl.Object):
        # Text stays where it is in the newest of Arrow's forms alone, and categories only as their codes.
        # Arrow has no type for the 128-bit integers that decimals are made of.
        plain = column if column.dtype.is_decimal() else column.to_physical()
        with suppress(pa.ArrowInvalid):
            yield from _spans_of_arrow(plain.to_arrow(compat_level=pl.CompatLevel.newest()))


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
        # pandas has no public way to what an extension array is made of, and converting one may copy it.
        for name in ("_ndarray", "_data", "_pa_array", "codes", "categories"):
            yield from _spans(getattr(array, name, None))
