"""Readers of files: CSV, TSV and JSON as tables of text, and Parquet with partitions of folders as text.

No row makes reading fail or changes how another row is read. The format of a text file follows from its ending, its
header and the caller's settings, and unreadable rows are skipped. `CsvRows` reads private CSV files; DuckDB reads
public ones and refuses a file with a broken row. A JSON array is one value, and broken as a whole. The columns of
several Parquet files have no declared type, even if the files agree, because the schema of one file, and values in the
names of folders, may be private: every cell is converted to the type of cells without a declared type (`cells.py`).
"""

from __future__ import annotations

import codecs
import csv
import glob
import os
import re
import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from sqlglot import exp

from discreet.errors import InvalidTypeError, InvalidValueError, quote, redact_url
from discreet.sources.events.cells import (
    CELL_FIELDS,
    LARGEST_EXACT,
    engine_function,
    is_whole_type,
    null_unless,
    read_cell,
)
from discreet.sources.events.csv_files import DELIMITERS, QUOTE, CsvFormat, CsvRows, recode_files, sniff_delimiter
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.location import FilePath, FoundFiles

_FIXED = {"auto_detect": False, "null_padding": False}
_SKIP_UNREADABLE = {"strict_mode": False, "ignore_errors": True}
_REFUSE_UNREADABLE = {"strict_mode": True}
"""In a public list, a row with too many fields or broken quotes is an error."""
_LONGEST_LINE = 2**24
"""The most characters of a header and bytes of a line of JSON."""
_LARGEST_IN_ARRAY = 2**26
"""The most bytes of a JSON array's element."""
_UNREADABLE = "\ufffd"
"""The character that replaces bytes that are no text."""
_SAMPLE = 1000
"""The columns of a public JSON file are at most this many keys of at most this many first records."""
_NANOSECONDS = 9
"""The scale of a timestamp in nanoseconds."""


@dataclass(frozen=True, repr=False)
class _Layout:
    """The names of a file's columns, and the delimiter of its fields."""

    header: tuple[str, ...]
    delimiter: str


def read_delimited(
    connection: Any,
    found: FoundFiles,
    csv_format: CsvFormat,
    name: str,
    wanted: Collection[str] | None,
    streams: list[CsvRows],
) -> Any:
    """Return a table of CSV or TSV files, each read by its own header.

    Parameters
    ----------
    connection, found, csv_format, name
        The embedded DuckDB, the files, the caller's settings, and the name of a view of several files.
    wanted
        The columns of private rows that may be read, whose spelling names the columns of several files. None for a
        public file, in which an unreadable row is an error of the query.
    streams
        The list that receives the streams of private rows.
    """
    import ibis

    groups = defaultdict(list)
    for file in found.files:
        # A .tsv has tabs, and a .csv the delimiter that its header shows unless the caller names one.
        delimiter = csv_format.delimiter if found.ending == ".csv" else DELIMITERS[found.ending]
        layout = _read_layout(file.text, delimiter, csv_format)
        header = layout.header
        if any(_UNREADABLE in each for each in header):
            spelled = csv_format.encoding or "utf-8"
            raise InvalidValueError(
                f"{found.given} must begin with a header in {spelled}, and does not: say its "
                f"{csv_format.prefix}encoding, as 'latin-1'"
            )
        if not header or not all(header) or len(set(header)) < len(header):
            # The message shows the caller's pattern, because the names of the files may be private.
            raise InvalidValueError(f"{found.given} must begin with a header of different column names, and does not")
        groups[layout].append(file.text)
    parts = []
    for layout, group in groups.items():
        if wanted is not None:
            parts.append(_read_private(connection, group, layout, csv_format, wanted, streams))
            continue
        if csv_format.encoding not in (None, "utf-8"):
            try:
                group = recode_files(connection, group, csv_format.encoding)
            except UnicodeError:
                raise InvalidValueError(
                    f"{found.given} must be a file in {csv_format.encoding}, and is not: "
                    f"say its {csv_format.prefix}encoding, as 'latin-1'"
                ) from None
        options = {"header": True, "columns": dict.fromkeys(layout.header, "VARCHAR"), "delim": layout.delimiter}
        # Not in parallel, because a part that begins inside a quoted field would take its lines for rows.
        quotes = {"quote": QUOTE, "escape": csv_format.escape or QUOTE, "parallel": False}
        # The strict mode allows no escapes outside of quotes.
        on_error = _REFUSE_UNREADABLE if csv_format.escape in (None, QUOTE) else {"strict_mode": False}
        parts.append(connection.read_csv(list(map(glob.escape, group)), **options, **quotes, **_FIXED, **on_error))
    spelled_as = (wanted or ()) if found.several else ()
    if len(parts) == 1 and not spelled_as:
        return parts[0]
    columns = {column.casefold(): column for part in reversed(parts) for column in part.columns}
    columns |= {column.casefold(): column for column in spelled_as if column.casefold() in columns}
    parts = [spell_columns(part, columns) for part in parts]
    empty = ibis.null("string")
    unions = [
        part.select(**{each: part[each] if each in part.columns else empty for each in columns.values()})
        for part in parts
    ]
    return connection.create_view(name, unions[0].union(*unions[1:]) if len(unions) > 1 else unions[0])


def spell_columns(table: Any, spelled: dict[str, str]) -> Any:
    """Return a table with the columns renamed by their case-folded names; DuckDB ignores case in names."""
    return table.rename({spelled[each.casefold()]: each for each in table.columns if each.casefold() in spelled})


def _read_layout(file: str, delimiter: str | None, csv_format: CsvFormat) -> _Layout:
    """Return the header of a file and its delimiter, from the first line alone.

    Bytes of the line that cannot be decoded are replaced. An engine would skip such a line and take somebody's row for
    the header.
    """
    import pyarrow as pa

    first, decoder = "", codecs.getincrementaldecoder(csv_format.encoding or "utf-8")(errors="replace")
    with pa.input_stream(file) as stream:
        while len(first) < _LONGEST_LINE:
            part = stream.read(2**16)
            first += decoder.decode(part, final=not part)
            line, *rest = re.split("[\r\n]", first, maxsplit=1)
            if rest or not part:
                first = line
                break
    own = delimiter or sniff_delimiter(first)
    escape = None if csv_format.escape in (None, QUOTE) else csv_format.escape
    reader = csv.reader([first], delimiter=own, escapechar=escape, doublequote=escape is None)
    return _Layout(tuple(name.removeprefix("\ufeff") for name in next(reader, [])), own)


def _read_private(
    connection: Any,
    files: list[str],
    layout: _Layout,
    csv_format: CsvFormat,
    wanted: Collection[str],
    streams: list[CsvRows],
) -> Any:
    """Return private files of one layout as a view of text; a query of a column that is not wanted fails."""
    encoding = csv_format.encoding or "utf-8"
    if encoding != "utf-8" or not layout.delimiter.isascii():
        files = recode_files(connection, files, encoding, layout.delimiter)
    folded = {name.casefold() for name in wanted}
    read = [name for name in layout.header if name.casefold() in folded]
    escape = None if csv_format.escape == QUOTE else csv_format.escape
    rows = CsvRows(files, layout.header, read, layout.delimiter, escape)
    streams.append(rows)
    stream = f"discreet_rows_{uuid.uuid4().hex}"
    connection.con.register(stream, rows)
    columns = [
        quote_identifier(name) if name in rows.columns else f"error('not read')::VARCHAR AS {quote_identifier(name)}"
        for name in layout.header
    ]
    connection.con.execute(f"CREATE TEMP VIEW {stream}_view AS SELECT {', '.join(columns)} FROM {stream}")  # noqa: S608  # all quoted
    return connection.table(f"{stream}_view")


def read_json(
    connection: Any, found: FoundFiles, wanted: Collection[str] | None, name: str, user: str | None = None
) -> Any:
    """Return a table of JSON whose columns are the wanted ones in exactly that spelling, NULL for absent keys.

    The keys of private records are private, so every name that the caller gives is a column. The columns of a public
    file, for which no names are given, are the keys of its first records. DuckDB's own reader of fields fails on some
    broken records, loses the line after others, and reads a whole array in another way if one element is no record.
    Therefore a record is read as text, and each field is extracted from it; a broken record has no fields.
    """
    import pyarrow as pa

    arrays, lines = list[FilePath](), list[FilePath]()
    for file in found.files:
        begin = b""
        if found.ending == ".json":
            with pa.input_stream(file.text) as stream:
                begin = stream.read(2**16)
        (arrays if begin.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[") else lines).append(file)
    view, records = "", []
    if lines:
        # A record of JSON has no control characters, and so never the delimiter of this table.
        plain = {"header": False, "columns": {"line": "VARCHAR"}, "delim": "\x1f", "quote": "", "escape": ""}
        sizes = {"max_line_size": _LONGEST_LINE, "buffer_size": 2 * _LONGEST_LINE}
        on_error = _REFUSE_UNREADABLE if wanted is None else _SKIP_UNREADABLE
        paths = [file.literal for file in lines]
        view = connection.read_csv(paths, **plain, **sizes, **_FIXED, **on_error).get_name()
        records.append(f"SELECT line FROM {quote_identifier(view)}")  # noqa: S608  # a view of our own
    if arrays:
        listed = ", ".join(_literal(file.literal) for file in arrays)
        elements = f"read_json_objects([{listed}], format = 'array', maximum_object_size = {_LARGEST_IN_ARRAY})"
        records.append(f"SELECT json AS line FROM {elements}")  # noqa: S608  # all quoted
    union = " UNION ALL ".join(records)
    names = _find_public_columns(connection, view, union, found) if wanted is None else list(dict.fromkeys(wanted))
    seen: dict[str, str] = {}
    for each in names:
        if seen.setdefault(each.casefold(), each) != each:
            raise InvalidValueError(
                f"columns of JSON must not differ in case alone, as {quote(seen[each.casefold()])} and {quote(each)} do"
            )
    fields = ", ".join(f"{_select_field(each, each == user)} AS {quote_identifier(each)}" for each in names)
    connection.con.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS SELECT {fields} FROM ({union})")  # noqa: S608  # all quoted
    return connection.table(name)


def _find_public_columns(connection: Any, view: str, records: str, found: FoundFiles) -> list[str]:
    """Return the keys of the first records, most frequent first, that can be columns of one table."""
    import duckdb

    if view:
        others = f"SELECT 1 FROM {quote_identifier(view)} WHERE trim(line) <> '' AND TRY(json_type(line)) IS DISTINCT FROM 'OBJECT'"  # noqa: S608, E501
        try:
            are_records = connection.con.execute(f"{others} LIMIT 1").fetchone() is None
        except duckdb.Error:
            are_records = False
        if not are_records:
            raise InvalidValueError(f"{found.given} must hold one record on each line in utf-8, and a line is none")
    objects = f"SELECT line FROM ({records}) WHERE TRY(json_type(line)) = 'OBJECT' LIMIT {_SAMPLE}"  # noqa: S608
    listed = f"SELECT unnest(json_keys(line)) AS key FROM ({objects})"  # noqa: S608
    query = f"SELECT key FROM ({listed}) GROUP BY key ORDER BY count(*) DESC, key LIMIT {_SAMPLE}"  # noqa: S608
    keys: dict[str, str] = {}
    for (key,) in connection.con.execute(query).fetchall():
        if key and key.isprintable():
            keys.setdefault(key.casefold(), key)
    if not keys:
        raise InvalidValueError(
            f"{found.given} must hold one record on each line or one array of records, and none can be read"
        )
    return list(keys.values())


def quote_identifier(name: str) -> str:
    """Return a name as an identifier of DuckDB's SQL."""
    return str(exp.to_identifier(name, quoted=True).sql("duckdb"))


def _select_field(key: str, is_user: bool) -> str:
    """Return the SQL of a field's text; a whole number is its digits, written as 7, 7.0, 70e-1 or 7e0.

    DuckDB writes a float with the fewest digits, and from 10^21 on with an exponent. It leaves integers beyond 64 bits,
    and numbers beyond the range of floats, as they are written. A float that is not whole or is beyond 2^53 is no user,
    because different numbers may have become the same float.
    """
    pointer = _literal("/" + key.replace("~", "~0").replace("/", "~1"))
    text = f"TRY(json_extract_string(line, {pointer}))"
    is_float = f"TRY(json_type(line, {pointer})) = 'DOUBLE'"
    if is_user:
        value, digits = f"TRY_CAST({text} AS DOUBLE)", f"regexp_matches({text}, '^-?[0-9]+$')"
        is_whole = f"abs({value}) <= {LARGEST_EXACT} AND floor({value}) = {value}"
        number = f"CASE WHEN {digits} THEN {text} WHEN {is_whole} THEN {value}::BIGINT::VARCHAR END"
        return f"CASE WHEN {is_float} THEN {number} ELSE {text} END"
    exponent = f"TRY_CAST(regexp_extract({text}, '[eE][+]?([0-9]{{1,3}})$', 1) AS INTEGER)"
    zeros = f"({exponent} - length(regexp_extract({text}, '[.]([0-9]+)', 1)))"
    digits = f"regexp_replace({text}, '[.]|[eE].*$', '', 'g')"
    plain = f"regexp_replace(regexp_replace({text}, '[.]0+$', ''), '^-0$', '0')"
    number = f"CASE WHEN {zeros} >= 0 THEN {digits} || repeat('0', {zeros}) ELSE {plain} END"
    return f"CASE WHEN {is_float} THEN {number} ELSE {text} END"


def _literal(text: str) -> str:
    return str(exp.Literal.string(text).sql("duckdb"))


def read_parquet(
    connection: Any,
    files: Sequence[FilePath],
    wanted: Collection[str],
    several: bool,
    name: str,
    user: str | None = None,
) -> tuple[Any, frozenset[str]]:
    """Return a table of Parquet files, and the names of its columns without a declared type.

    Parameters
    ----------
    connection
        An ibis connection to DuckDB.
    files
        The files.
    wanted
        The columns that will be queried; the other columns of several files are empty.
    several
        True if the caller gave a pattern, a folder or a list, regardless of the number of files.
    name
        A name for the view.
    user
        The column of the users.
    """
    paths = [file.literal for file in files]
    if not several:
        if _cuts_nanoseconds(connection, paths[0], user):
            raise InvalidTypeError(
                f"user must not be a column of nanoseconds with a time zone, as {quote(user)} is: DuckDB cuts them to "
                "microseconds; write it without the zone"
            )
        table = connection.read_parquet(paths, hive_partitioning=True, hive_types_autocast=False)
        return table, frozenset(_partition_columns(files[0]))
    import ibis

    empty = ibis.null("string")
    spelled = {column.casefold(): column for column in wanted}
    parts, columns = [], dict[str, str]()
    # Files with the same columns, types and partitions are read together.
    listed = connection.con.execute(
        "SELECT file_name, name, coalesce(duckdb_type, ''), coalesce(num_children, 0) FROM parquet_schema(?)",
        [paths],
    ).fetchall()
    schemas, groups = defaultdict(list), defaultdict(list)
    for file_name, *column in listed:
        schemas[file_name].append(tuple(column))
    for file in files:
        groups[tuple(schemas[file.text]), tuple(_partition_columns(file))].append(file.literal)
    for (_, partitions), group in groups.items():
        listed_here = ", ".join(map(_literal, group))
        partitioned = str(bool(partitions)).lower()
        reader = f"read_parquet([{listed_here}], hive_partitioning = {partitioned}, hive_types_autocast = false)"
        types = {row[0]: row[1] for row in connection.con.execute(f"DESCRIBE FROM {reader}").fetchall()}
        # Other columns are not selected, because ibis would fail on a type that it does not know.
        selected = []
        for each, dtype in types.items():
            if each.casefold() in spelled:
                quoted = quote_identifier(each)
                # ibis does not know all nested types, so a nested value is the bytes of its text.
                is_nested = dtype.endswith("]") or dtype.startswith(("STRUCT", "UNION", "MAP"))
                selected.append(f"TRY(encode({quoted}::VARCHAR)) AS {quoted}" if is_nested else quoted)
        part = connection.sql(f"SELECT {', '.join(selected) or '0 AS discreet_row'} FROM {reader}")  # noqa: S608  # all quoted
        if _cuts_nanoseconds(connection, group[0], user):
            # Truncation may have merged users, so these files have no users.
            part = part.mutate(**{each: empty for each in part.columns if each.casefold() == str(user).casefold()})
        parts.append(spell_columns(part, spelled))
        for each in types:
            columns.setdefault(each.casefold(), spelled.get(each.casefold(), each))
    asked = [column for folded, column in columns.items() if folded in spelled]
    unions = [
        part.select(**{each: convert_to_cell(part[each] if each in part.columns else empty) for each in asked})
        for part in parts
    ]
    joined = unions[0].union(*unions[1:]) if len(unions) > 1 else unions[0]
    others = {column: empty for column in columns.values() if column not in asked}
    return connection.create_view(name, joined.mutate(**others)), frozenset(columns.values())


def _cuts_nanoseconds(connection: Any, path: str, user: str | None) -> bool:
    """Return True if the users of a file are zoned nanoseconds, which DuckDB cuts to microseconds."""
    query = "SELECT name, logical_type FROM parquet_schema(?) WHERE logical_type LIKE '%isAdjustedToUTC=1%NANOS=Nano%'"
    found = connection.con.execute(query, [[path]]).fetchall()
    return any(name.casefold() == str(user).casefold() for name, _ in found)


def _partition_columns(file: FilePath) -> list[str]:
    """Return the partition columns in a file's path as DuckDB finds them, or none if DuckDB would fail on one."""
    folders = [folder for folder in os.path.dirname(redact_url(file.text)).split(os.sep) if folder.count("=") == 1]
    try:
        for folder in folders:
            unquote_to_bytes(folder).decode()
    except UnicodeDecodeError:
        return []
    if any(re.search(r"[?\\\n\r]", folder) for folder in folders):
        return []
    return [unquote(folder.partition("=")[0]) for folder in folders]


def convert_to_cell(column: Any) -> Any:
    """Return a column of any type of DuckDB as cells without a declared type; no value makes this fail."""
    import ibis

    dtype, limit = column.type(), DUCKDB.limit_to_calendar
    assert limit is not None, "DuckDB's calendar is known"
    fields: dict[str, Any] = {}
    if dtype.is_string() or dtype.is_uuid():
        fields["text"] = column.cast("string")
    elif dtype.is_boolean():
        fields["truth"] = column
    elif dtype.is_integer():
        whole = column.try_cast("int64")
        fields = {"integer": whole, "text": null_unless(whole.isnull(), column.cast("string"))}
    elif dtype.is_floating() or dtype.is_decimal():
        whole = read_cell(DUCKDB, column, "integer")
        fields = {"integer": whole, "number": null_unless(whole.isnull(), column.cast("float64"))}
        if dtype.is_decimal():
            digits = column.cast("string")
            # Files may spell the same number with different numbers of trailing zeros.
            digits = digits if is_whole_type(dtype) else digits.re_replace(r"\.?0+$", "")
            fields["other"] = null_unless(whole.isnull(), digits)
    elif dtype.is_date():
        fields["day"] = limit(column, "date")
        fields["other"] = null_unless(fields["day"].isnull(), _spell_any(column))
    elif dtype.is_timestamp():
        name, kind = ("clock", "timestamp") if dtype.timezone is None else ("point", "timestamp('UTC')")
        moment = limit(column, kind)
        # DuckDB evaluates functions on a column's least and greatest values beforehand, where TRY has no effect.
        is_fine = dtype.scale == _NANOSECONDS
        counted = column if is_fine else engine_function("try", kind, kind)(column.cast(kind))
        count = engine_function("epoch_ns" if is_fine else "epoch_us", "int64", str(counted.type()))(counted)
        exact = ibis.coalesce(count.cast("string") + (" ns" if is_fine else "000 ns"), _spell_any(column))
        is_cut = moment.isnull() | (count % 1000 != 0) if is_fine else moment.isnull()
        fields = {name: moment, "other": null_unless(is_cut, exact)}
    elif dtype.is_binary():
        fields["other"] = engine_function("hex", "string", str(dtype))(column)
    elif not dtype.is_null():
        fields["other"] = _spell_any(column)
    return ibis.struct({name: fields.get(name, ibis.null(kind)).cast(kind) for name, kind in CELL_FIELDS.items()})


def _spell_any(column: Any) -> Any:
    """Return DuckDB's text of a value, NULL if DuckDB fails to make one."""
    return engine_function("try", "string", "string")(column.cast("string"))
