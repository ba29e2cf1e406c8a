"""The dialect of ClickHouse, a server or chdb in the process; its text is bytes, compared by bytes.

ibis compiles some functions to ones that ClickHouse computes approximately or by byte, and some that fail on a value.
The events are read through a backend of ibis of our own on the caller's client, whose compiler mends them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from functools import cache, reduce
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from discreet.sources.events.cells import LONGEST_TEXT, engine_function, null_unless
from discreet.sources.events.dialects.base import Dialect, connect_by_ibis, declare_columns, fold_below

_COLUMN_TYPES = {"int64": "Int64", "string": "String", "date32[day]": "Date32", "bool": "Bool"}

_TRIMS = {"trim": "trimBoth", "ltrim": "trimLeft", "rtrim": "trimRight"}

_PLAIN_TEXT = ("String", "Nullable(String)", "LowCardinality(String)", "LowCardinality(Nullable(String))")

_SETTINGS = {
    # A row without a partner has NULL, not 0.
    "join_use_nulls": 1,
    # With other values a query leaves out rows without an error.
    **{f"{limit}_overflow_mode": "throw" for limit in (
        "distinct", "group_by", "join", "read", "result", "set", "sort", "timeout", "transfer",
    )},
    **{f"{limit}_overflow_mode_leaf": "throw" for limit in ("read", "timeout")},
    **dict.fromkeys(("skip_unavailable_shards", "limit", "offset", "extremes", "use_query_cache"), 0),
    **dict.fromkeys(("transform_null_in", "group_by_use_nulls", "empty_result_for_aggregation_by_empty_set"), 0),
    # Otherwise a sum over no rows is NULL, which would make a release fail.
    "aggregate_functions_null_for_empty": 0,
    "join_default_strictness": "ALL",
    "decimal_check_overflow": 1,
    "additional_result_filter": "",
}  # fmt: skip
"""The settings with which a query computes what its text says, whatever those of the connection are."""

_mended: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def connect(url: str) -> tuple[Any, Any]:
    """Return a connection whose temporary tables last for an hour without a query, not for a minute."""
    if "session_timeout=" not in url:
        url += f"{'&' if '?' in url else '?'}session_timeout=3600"
    return connect_by_ibis(url)


@cache
def _compiler() -> Any:
    """Return ibis' compiler, with functions that are exact, that count characters, and that fail on no value."""
    import sqlglot as sg
    import sqlglot.expressions as sge
    from ibis.backends.sql.compilers.clickhouse import ClickHouseCompiler
    from ibis.backends.sql.datatypes import ClickHouseType

    class Types(ClickHouseType):  # type: ignore[misc]  # ibis has no types
        @classmethod
        def _from_ibis_Date(cls, dtype: Any) -> Any:
            # Date begins in 1970.
            return sge.DataType(this=sge.DataType.Type.DATE32)

    class Compiler(ClickHouseCompiler):  # type: ignore[misc]  # ibis has no types
        __slots__ = ()

        type_mapper = Types
        # The methods of a subclass would be made anew from this.
        SIMPLE_OPS: ClassVar[dict[Any, str]] = {}

        def to_sqlglot(self, expr: Any, **options: Any) -> Any:
            query = super().to_sqlglot(expr, **options)
            query = query if isinstance(query, sge.Select) else sg.select("*").from_(query.subquery("t"))
            settings = {sg.to_identifier(name): sge.convert(value) for name, value in _SETTINGS.items()}
            query.set("settings", [sge.EQ(this=name, expression=value) for name, value in settings.items()])
            return query

        def visit_CountDistinct(self, op: Any, *, arg: Any, where: Any) -> Any:
            return self.agg.uniqExact(arg, where=where)

        def visit_Greater(self, op: Any, *, left: Any, right: Any) -> Any:
            # NaN is the largest number, and equals itself.
            if not (op.left.dtype.is_floating() and op.right.dtype.is_floating()):
                return left > right
            return sg.or_(left > right, sg.and_(self.f.isNaN(left), sg.not_(self.f.isNaN(right))))

        def visit_GreaterEqual(self, op: Any, *, left: Any, right: Any) -> Any:
            return left >= right if not op.left.dtype.is_floating() else sg.or_(left >= right, self.f.isNaN(left))

        def visit_Less(self, op: Any, *, left: Any, right: Any) -> Any:
            return self.visit_Greater(op, left=right, right=left)

        def visit_LessEqual(self, op: Any, *, left: Any, right: Any) -> Any:
            return self.visit_GreaterEqual(op, left=right, right=left)

        def visit_Equals(self, op: Any, *, left: Any, right: Any) -> Any:
            if not (op.left.dtype.is_floating() and op.right.dtype.is_floating()):
                return left.eq(right)
            return sg.or_(left.eq(right), sg.and_(self.f.isNaN(left), self.f.isNaN(right)))

        def visit_NotEquals(self, op: Any, *, left: Any, right: Any) -> Any:
            return sg.not_(sge.Paren(this=self.visit_Equals(op, left=left, right=right)))

        def visit_StringLength(self, op: Any, *, arg: Any) -> Any:
            return self.f.anon.lengthUTF8(arg)

        def visit_Substring(self, op: Any, *, arg: Any, start: Any, length: Any) -> Any:
            return self.f.anon.substringUTF8(arg, start + 1, *(() if length is None else (length,)))

        def visit_StringFind(self, op: Any, *, arg: Any, substr: Any, start: Any, end: Any) -> Any:
            return self.f.anon.positionUTF8(arg, substr)

        def visit_Translate(self, op: Any, *, arg: Any, from_str: Any, to_str: Any) -> Any:
            return self.f.anon.translateUTF8(arg, from_str, to_str)

        def visit_RegexExtract(self, op: Any, *, arg: Any, pattern: Any, index: Any) -> Any:
            return self.f.nullIf(self.f.anon.regexpExtract(arg, pattern, index), "")

        def visit_TryCast(self, op: Any, *, arg: Any, to: Any) -> Any:
            # A decimal beyond all integers fails, and its text does not.
            arg = self.f.toString(arg) if op.arg.dtype.is_decimal() and to.is_integer() else arg
            return super().visit_TryCast(op, arg=arg, to=to)

        def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
            if op.arg.dtype.is_decimal() and to.is_integer():
                # A decimal beyond 64 bits fails even where it is NULL, because ClickHouse keeps the value beneath.
                arg = self.f.toInt256(arg)
            return super().visit_Cast(op, arg=arg, to=to)

        def visit_NonNullLiteral(self, op: Any, *, value: Any, dtype: Any) -> Any:
            if dtype.is_date():
                return self.f.anon.toDate32(value.isoformat())
            if dtype.is_timestamp():
                if value.tzinfo is not None:
                    value = value.astimezone(UTC).replace(tzinfo=None)
                return self.f.anon.toDateTime64(value.isoformat(" "), 6 if dtype.scale is None else dtype.scale, "UTC")
            return super().visit_NonNullLiteral(op, value=value, dtype=dtype)

    return Compiler()


def _mend(backend: Any) -> Any:
    """Return a backend on the client of another, with our compiler, whose cached tables are temporary."""
    if backend not in _mended:
        again = type(backend).from_connection(backend.con)
        again.compiler, again.supports_temporary_tables = _compiler(), True
        _mended[backend] = _mended[again] = again
    return _mended[backend]


def adapt_table(table: Any) -> Any:
    """Return the table on our backend.

    Enums and fixed strings become text. ClickHouse reports the types without reading a row.
    """
    backend = _mend(table.get_backend())

    def rebind(node: Any, kwargs: Any) -> Any:
        kwargs = kwargs or dict(zip(node.__argnames__, node.__args__, strict=True))
        return node.__recreate__(kwargs | {"source": backend} if "source" in kwargs else kwargs)

    table = table.op().replace(rebind).to_expr()
    described = backend.con.query(f"DESCRIBE ({backend.compile(table.limit(0))})")
    odd = [name for name, kind, *_ in described.result_rows if kind not in _PLAIN_TEXT]
    spell = engine_function("toString", "string", "string")
    return table.mutate(**{name: spell(table[name]) for name in odd if table[name].type().is_string()})


@contextmanager
def send_unlogged(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """Yield a temporary table, filled by an INSERT whose rows follow its text, which alone is logged."""
    columns = declare_columns(rows, [_COLUMN_TYPES[str(field.type)] for field in rows.schema])
    backend.con.command(f"CREATE TEMPORARY TABLE {name} ({columns}) ENGINE = Memory")
    backend.con.insert_arrow(name, rows)
    try:
        yield backend.table(name)
    finally:
        backend.con.command(f"DROP TEMPORARY TABLE {name}")


def drop_broken_text(text: Any) -> Any:
    """Return a text, NULL if its bytes are not UTF-8."""
    return null_unless(engine_function("isValidUTF8", "boolean", "string")(text), text)


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it is no UTF-8, has a NUL or is too long."""
    length = engine_function("length", "int64", "string")(text)
    return null_unless((length <= LONGEST_TEXT) & ~text.re_search(r"\x00"), drop_broken_text(text))


def digest(value: Any) -> Any:
    """Return the MD5 of a text or of bytes, which are the same to ClickHouse, in hexadecimal digits."""
    kind = str(value.type().copy(nullable=True))
    hashed = engine_function("hex", "string", "binary")(engine_function("MD5", "binary", kind)(value))
    return engine_function("lower", "string", "string")(hashed)


def hash_number(*texts: Any) -> Any:
    """Return the first 48 bits of MD5 as a number, which is faster to sort than their digits."""
    first = engine_function("substring", "binary", "binary", "int64", "int64")(
        engine_function("MD5", "binary", "string")(reduce(operator.add, texts)), 1, 6
    )
    backwards = engine_function("reverse", "binary", "binary")(first)
    return engine_function("reinterpretAsUInt64", "uint64", "binary")(backwards)


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds since 1970, rounded down, of a moment, which is a point in time with or without a zone.

    ClickHouse rounds moments before 1970 towards zero; its whole number of fractions of a second does not.
    """
    kind, places = str(moment.type()), moment.type().scale
    if not places:
        return engine_function("toInt64", "int64", kind)(moment)
    count, unit = engine_function("reinterpretAsInt64", "int64", kind)(moment), 10**places
    whole = engine_function("intDiv", "int64", "int64", "int64")(count, unit)
    return whole - (count % unit < 0).ifelse(1, 0)


DIALECT = Dialect(
    name="clickhouse",
    title="ClickHouse",
    packages=("ibis-framework[clickhouse]",),
    connect=connect,
    adapt_table=adapt_table,
    copies_local_tables=True,
    send_unlogged=send_unlogged,
    text_bytes=lambda text: text,
    bytes_text=lambda spelled: spelled,
    digest=digest,
    hash_number=hash_number,
    drop_broken_text=drop_broken_text,
    # These functions remove spaces alone.
    trim=lambda text, name: engine_function(_TRIMS[name], "string", "string")(text),
    clean_text=clean_text,
    fold=fold_below,
    substring="substringUTF8",
    count_days=lambda day: engine_function("toInt32", "int32", "date")(day).cast("int64"),
    count_seconds=count_seconds,
)
