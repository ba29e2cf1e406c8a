"""Text files as tables of text: CSV, TSV, and JSON with one record a line or one array of records.

No row can make reading fail or change how another row is read: the format comes from the ending of the file, its
header and what the caller says of it, and a row or record that cannot be read is passed over. Rows of a private CSV
file are read by `csv_rows`. DuckDB reads public ones, and refuses a file with a broken row. A JSON array is one value,
and broken as a whole.
"""

from __future__ import annotations

import codecs
import csv
import glob
import os
import re
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
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
from discreet.sources.events.csv_files import QUOTE, CsvFormat, CsvRows, recode_files, sniff_delimiter
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.location import FilePath, FoundFiles

_FIXED = {"auto_detect": False, "null_padding": False}
_PASS_OVER = {"strict_mode": False, "ignore_errors": True}
"""A row that cannot be read must not stop the others."""
_REFUSE = {"strict_mode": True}
"""In a public list, a row with too many fields or broken quotes is an error."""
_LONGEST_LINE = 2**24
_LARGEST_IN_ARRAY = 2**26
_UNREADABLE = "\ufffd"
"""What stands for bytes that are no text."""

_SAMPLE = 1000
"""How many records of a JSON file stand for its header, and how many of their keys at most."""


@dataclass(frozen=True, repr=False)
class _Layout:
    """How a file is laid out: the names of its columns, and what is between fields."""

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
    """Return a CSV or TSV table, each file by its own header, whose format depends on headers and the caller alone.

    Parameters
    ----------
    connection, found, csv_format, name
        A DuckDB of our own, the files, the words of the caller about them, and the name of a view of several files.
    wanted
        The columns of private rows that may be read. Of several files, the columns are spelled as they are here. None
        where the file is public: then a row that cannot be read is an error of the query.
    streams
        The streams of private rows that the table is made of are put here.
    """
    import ibis

    groups = defaultdict(list)
    for file in found.files:
        layout = _read_layout(file.text, csv_format.delimiter_for(found.ending), csv_format)
        header = layout.header
        if any(_UNREADABLE in each for each in header):
            spelled = csv_format.encoding or "utf-8"
            raise InvalidValueError(
                f"{found.given} must begin with a header in {spelled}, and does not: say its encoding, as 'latin-1'"
            )
        if not header or not all(header) or len(set(header)) < len(header):
            # Named as the caller did: which files a pattern finds may tell who is there.
            raise InvalidValueError(f"{found.given} must begin with a header of different column names, and does not")
        groups[layout].append(file.text)
    if wanted is None:
        parts = [_read_public(connection, group, found, layout, csv_format) for layout, group in groups.items()]
    else:
        parts = [
            _read_private(connection, group, layout, csv_format, wanted, streams) for layout, group in groups.items()
        ]
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
    """A table whose columns are called as is said, by their names without capitals: DuckDB takes Who for who."""
    return table.rename({spelled[each.casefold()]: each for each in table.columns if each.casefold() in spelled})


def _read_layout(file: str, delimiter: str | None, csv_format: CsvFormat) -> _Layout:
    """The header of a file, and its delimiter where it was not said: the first line shows it, and no other is read."""
    first = _read_first_line(file, csv_format.encoding or "utf-8")
    own = delimiter or sniff_delimiter(first)
    escape = None if csv_format.escape in (None, QUOTE) else csv_format.escape
    reader = csv.reader([first], delimiter=own, escapechar=escape, doublequote=escape is None)
    return _Layout(tuple(name.removeprefix("\ufeff") for name in next(reader, [])), own)


def _read_first_line(file: str, encoding: str) -> str:
    """The first line of a file, compressed or not; what cannot be decoded in it is marked, and no other line counts.

    An engine would pass over a line that is no text, and take somebody's row for the header.
    """
    import pyarrow as pa

    text, decoder = "", codecs.getincrementaldecoder(encoding)(errors="replace")
    with pa.input_stream(file) as stream:
        while len(text) < _LONGEST_LINE:
            part = stream.read(2**16)
            text += decoder.decode(part, final=not part)
            line, *rest = re.split("[\r\n]", text, maxsplit=1)
            if rest or not part:
                return line
    return text


def _read_private(
    connection: Any,
    files: list[str],
    layout: _Layout,
    csv_format: CsvFormat,
    wanted: Collection[str],
    streams: list[CsvRows],
) -> Any:
    """Return files of one layout as a view, all of whose columns are text; a column that is not wanted is an error."""
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


def _read_public(connection: Any, files: list[str], found: FoundFiles, layout: _Layout, csv_format: CsvFormat) -> Any:
    """Return public files of one layout, all of whose columns are text."""
    columns = dict.fromkeys(layout.header, "VARCHAR")
    # In one piece: a piece that begins inside a quoted field would take its lines for rows.
    quotes = {"quote": QUOTE, "escape": csv_format.escape or QUOTE, "parallel": False}
    options = {"header": True, "columns": columns, "delim": layout.delimiter}
    if csv_format.encoding not in (None, "utf-8"):
        try:
            files = recode_files(connection, files, csv_format.encoding)
        except UnicodeError:
            raise InvalidValueError(f"{found.given} must be a file in {csv_format.encoding}, and is not") from None
    # Strictly, nothing is escaped outside of quotes.
    on_error = _REFUSE if csv_format.escape in (None, QUOTE) else {"strict_mode": False}
    return connection.read_csv(list(map(glob.escape, files)), **options, **quotes, **_FIXED, **on_error)


def read_json(
    connection: Any, found: FoundFiles, wanted: Collection[str] | None, name: str, user: str | None = None
) -> Any:
    """A JSON table whose columns are the wanted ones in exactly their spelling, NULL where a record has no such key.

    Which keys records have is theirs, so a name that the caller gives is a column; of a public file, where no names are
    given, the columns are the keys of its first records. DuckDB's own reader of fields fails on some broken records,
    loses the line after others, and reads all elements of an array in another way if one of them is no record. So a
    record is a text here, and its fields are taken one by one: a record of which that cannot be done has none.
    """
    arrays = [file for file in found.files if found.ending == ".json" and _opens_an_array(file.text)]
    lines = [file for file in found.files if file not in arrays]
    view = _read_lines(connection, lines, _REFUSE if wanted is None else _PASS_OVER).get_name() if lines else ""
    records = [f"SELECT line FROM {quote_identifier(view)}"] if view else []  # noqa: S608  # a view of our own
    records += [f"SELECT json AS line FROM {_read_array_elements(arrays)}"] if arrays else []  # noqa: S608
    union = " UNION ALL ".join(records)
    names = _find_public_columns(connection, view, union, found) if wanted is None else list(dict.fromkeys(wanted))
    _check_spellings(names)
    fields = ", ".join(f"{_select_field(_pointer(each), each == user)} AS {quote_identifier(each)}" for each in names)
    connection.con.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS SELECT {fields} FROM ({union})")  # noqa: S608  # all quoted
    return connection.table(name)


def _check_spellings(names: list[str]) -> None:
    """Refuses two names that are one to DuckDB, which does not tell Who from who."""
    seen: dict[str, str] = {}
    for name in names:
        if seen.setdefault(name.casefold(), name) != name:
            raise InvalidValueError(
                f"columns of JSON must not differ in case alone, as {quote(seen[name.casefold()])} and {quote(name)} do"
            )


def _find_public_columns(connection: Any, view: str, records: str, found: FoundFiles) -> list[str]:
    """The keys of the first records, most frequent first, that can be columns side by side."""
    if view and not _are_all_records(connection, view):
        raise InvalidValueError(f"{found.given} must hold one record on each line in utf-8, and a line is none")
    keys: dict[str, str] = {}
    for key in _read_keys(connection, records):
        if key and key.isprintable():
            keys.setdefault(key.casefold(), key)
    if not keys:
        raise InvalidValueError(
            f"{found.given} must hold one record on each line or one array of records, and none can be read"
        )
    return list(keys.values())


def _are_all_records(connection: Any, view: str) -> bool:
    """Whether all lines that are not blank are records, and text."""
    import duckdb

    others = f"SELECT 1 FROM {quote_identifier(view)} WHERE trim(line) <> '' AND TRY(json_type(line)) IS DISTINCT FROM 'OBJECT'"  # noqa: S608, E501
    try:
        return connection.con.execute(f"{others} LIMIT 1").fetchone() is None
    except duckdb.Error:
        return False


def quote_identifier(name: str) -> str:
    """A name as DuckDB's SQL has it."""
    return str(exp.to_identifier(name, quoted=True).sql("duckdb"))


def _read_lines(connection: Any, files: list[FilePath], on_error: Mapping[str, bool]) -> Any:
    """The lines of text files; those that are no text or too long are passed over, or an error in a public file."""
    # No record of JSON has a control character, so that none has the delimiter of this table.
    plain = {"header": False, "columns": {"line": "VARCHAR"}, "delim": "\x1f", "quote": "", "escape": ""}
    sizes = {"max_line_size": _LONGEST_LINE, "buffer_size": 2 * _LONGEST_LINE}
    return connection.read_csv([file.literal for file in files], **plain, **sizes, **_FIXED, **on_error)


def _opens_an_array(file: str) -> bool:
    """Whether a JSON file, compressed or not, begins with a bracket."""
    import pyarrow as pa

    with pa.input_stream(file) as stream:
        begin: bytes = stream.read(2**16)
    return begin.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


def _read_array_elements(files: list[FilePath]) -> str:
    listed = ", ".join(_literal(file.literal) for file in files)
    return f"read_json_objects([{listed}], format = 'array', maximum_object_size = {_LARGEST_IN_ARRAY})"


def _read_keys(connection: Any, records: str) -> list[str]:
    """The keys of the first records, most frequent first."""
    objects = f"SELECT line FROM ({records}) WHERE TRY(json_type(line)) = 'OBJECT' LIMIT {_SAMPLE}"  # noqa: S608
    keys = f"SELECT unnest(json_keys(line)) AS key FROM ({objects})"  # noqa: S608
    query = f"SELECT key FROM ({keys}) GROUP BY key ORDER BY count(*) DESC, key LIMIT {_SAMPLE}"  # noqa: S608
    return [row[0] for row in connection.con.execute(query).fetchall()]


def _select_field(pointer: str, is_user: bool) -> str:
    """Return the text of a field; a whole number is its digits, whether it is written 7, 7.0, 70e-1 or 7e0.

    DuckDB writes a float with the fewest digits, and from 10^21 on with an exponent. It leaves whole numbers beyond 64
    bits, and what is beyond the range of floats, as they are written. A float that is not whole, or beyond 2^53, is no
    user: other numbers may have become the same float.
    """
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


def _pointer(key: str) -> str:
    """The place of a key in a record, as JSON Pointer has it."""
    return _literal("/" + key.replace("~", "~0").replace("/", "~1"))


def _literal(text: str) -> str:
    return str(exp.Literal.string(text).sql("duckdb"))


# Parquet files as one table: each file by its own schema, and partitions of folders as text.
#
# The types of one of several files, and the values that folders are named after, are somebody's rows. So a column of
# several files has no declared type, whether the files agree or not: each file's cells are converted to the one type
# that cells without a declared type have (`cells.py`). Columns that nobody asked for are never looked at.

Schema = dict[str, str]
"""The type of each column of a file, as DuckDB calls it."""


def read_parquet(
    connection: Any,
    files: Sequence[FilePath],
    wanted: Collection[str],
    several: bool,
    name: str,
    user: str | None = None,
) -> tuple[Any, frozenset[str]]:
    """A table of Parquet files, and the names of its columns without a declared type.

    Parameters
    ----------
    connection
        An ibis connection to DuckDB.
    files
        The files.
    wanted
        The columns that will be asked for; of several files, the others are listed and empty.
    several
        Whether the caller has asked for a pattern of files, however many there are.
    name
        A name for the view.
    user
        The column that tells users apart.
    """
    if not several:
        if _cuts_nanoseconds(connection, files, user):
            raise InvalidTypeError(
                f"user must not be a column of nanoseconds with a time zone, as {quote(user)} is: DuckDB cuts them to "
                "microseconds; write it without the zone"
            )
        table = connection.read_parquet(
            [file.literal for file in files], hive_partitioning=True, hive_types_autocast=False
        )
        return table, frozenset(_partition_columns(files[0]))
    import ibis

    empty = ibis.null("string")
    spelled = {column.casefold(): column for column in wanted}
    parts, columns = [], dict[str, str]()
    for group in _group_by_schema(connection, files):
        part, names = _read_group(connection, group, spelled)
        if _cuts_nanoseconds(connection, group, user):
            # Two users may have become one, so that none of them is one.
            part = part.mutate(**{each: empty for each in part.columns if each.casefold() == str(user).casefold()})
        parts.append(spell_columns(part, spelled))
        for column in names:
            columns.setdefault(column.casefold(), spelled.get(column.casefold(), column))
    asked = [column for folded, column in columns.items() if folded in spelled]
    unions = [
        part.select(**{each: convert_to_cell(part[each] if each in part.columns else empty) for each in asked})
        for part in parts
    ]
    joined = unions[0].union(*unions[1:]) if len(unions) > 1 else unions[0]
    others = {column: empty for column in columns.values() if column not in asked}
    return connection.create_view(name, joined.mutate(**others)), frozenset(columns.values())


def _group_by_schema(connection: Any, files: Sequence[FilePath]) -> list[list[FilePath]]:
    """The files in groups that have the same columns of the same types, in their folders too."""
    listed = connection.con.execute(
        "SELECT file_name, name, coalesce(duckdb_type, ''), coalesce(num_children, 0) FROM parquet_schema(?)",
        [[file.literal for file in files]],
    ).fetchall()
    schemas = defaultdict(list)
    for file, *column in listed:
        schemas[file].append(tuple(column))
    groups = defaultdict(list)
    for file in files:
        groups[tuple(schemas[file.text]), tuple(_partition_columns(file))].append(file)
    return list(groups.values())


def _cuts_nanoseconds(connection: Any, files: Sequence[FilePath], user: str | None) -> bool:
    """Return True if users are nanoseconds with a zone, which DuckDB cuts to microseconds, in files of one schema."""
    query = "SELECT name, logical_type FROM parquet_schema(?) WHERE logical_type LIKE '%isAdjustedToUTC=1%NANOS=Nano%'"
    found = connection.con.execute(query, [[files[0].literal]]).fetchall()
    return any(name.casefold() == str(user).casefold() for name, _ in found)


def _read_group(connection: Any, files: list[FilePath], wanted: Collection[str]) -> tuple[Any, list[str]]:
    """Return the wanted columns of files of one schema, and the names of all of its columns."""
    partitioned = str(bool(_partition_columns(files[0]))).lower()
    listed = ", ".join(_literal(file.literal) for file in files)
    reader = f"read_parquet([{listed}], hive_partitioning = {partitioned}, hive_types_autocast = false)"
    types = {row[0]: row[1] for row in connection.con.execute(f"DESCRIBE FROM {reader}").fetchall()}
    names = list(types)
    asked = [_select_readable(name, types[name]) for name in names if name.casefold() in wanted]
    if not asked:
        return connection.sql(f"SELECT 0 AS discreet_row FROM {reader}"), names  # noqa: S608  # all quoted
    # Only these are named: of a type that ibis does not know, a column that nobody asked for would stop it.
    return connection.sql(f"SELECT {', '.join(asked)} FROM {reader}"), names  # noqa: S608


def _select_readable(name: str, dtype: str) -> str:
    """Return the SQL of a column; a nested one is the bytes of its text: ibis does not know all nested types."""
    column = quote_identifier(name)
    is_nested = dtype.endswith("]") or dtype.startswith(("STRUCT", "UNION", "MAP"))
    return f"TRY(encode({column}::VARCHAR)) AS {column}" if is_nested else column


def _partition_columns(file: FilePath) -> list[str]:
    """The columns that the folders of a file are named after, as DuckDB finds them; none where it would fail."""
    folders = [folder for folder in os.path.dirname(redact_url(file.text)).split(os.sep) if folder.count("=") == 1]
    if not all(map(_is_partition, folders)):
        return []
    return [unquote(folder.partition("=")[0]) for folder in folders]


def _is_partition(folder: str) -> bool:
    """Whether DuckDB finds a partition in the name of a folder, and text in it."""
    try:
        unquote_to_bytes(folder).decode()
    except UnicodeDecodeError:
        return False
    return not re.search(r"[?\\\n\r]", folder)


def convert_to_cell(column: Any) -> Any:
    """Return a column of any one type of DuckDB's as cells without a declared type; no value makes this fail."""
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
            # Files may have one number with more or fewer zeros at its end.
            digits = digits if is_whole_type(dtype) else digits.re_replace(r"\.?0+$", "")
            fields["other"] = null_unless(whole.isnull(), digits)
    elif dtype.is_date():
        fields["day"] = limit(column, "date")
        fields["other"] = null_unless(fields["day"].isnull(), _spell_any(column))
    elif dtype.is_timestamp():
        name, kind = ("clock", "timestamp") if dtype.timezone is None else ("point", "timestamp('UTC')")
        moment = limit(column, kind)
        # DuckDB asks a function about the least and the greatest value beforehand, where TRY does not help.
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


_NANOSECONDS = 9
"""The scale of a timestamp with nanoseconds."""


def _spell_any(column: Any) -> Any:
    """Return the text that DuckDB has for a value, NULL where it fails to make one."""
    return _try(column.cast("string"))


def _try(text: Any) -> Any:
    return engine_function("try", "string", "string")(text)
