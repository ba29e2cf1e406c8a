"""Rows of CSV files, each read independently of the others, and the format of CSV files.

A file is cut into blocks of whole rows by the same rules by which pyarrow parses a block. A quote opens a quoted field
only where a field begins, and the next quote that is neither doubled nor escaped closes it. A line break outside of
quoted fields ends the row. Skipped are rows longer than `LONGEST_ROW`, rows with too few fields, rows with a wanted
cell that is no text, and a last row with an open quote. The format follows from the caller's settings and from headers,
which are public, and never from rows, because one user's row could change how all rows are read.
"""

from __future__ import annotations

import codecs
import os
import re
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote

LONGEST_ROW = 2**24
"""The most bytes of a row with its line end; longer rows are skipped."""

BROKEN = "\U0010ffff"
"""The mark for bytes that are no text, a code point that Unicode never assigns."""

BREAKS = "discreet.broken"
"""The name of the error handler of decoders that replaces such bytes by `BROKEN`."""

PIECE = 2**21
"""The number of bytes read at a time, the fastest of 2^18 to 2^22.

One thread of DuckDB cuts and parses a block while the others count the rows of earlier ones. So threads of our own made
a query on two cores no faster.
"""

STAND_IN = "\x1f"
"""The replacement of a delimiter that is not ASCII, which pyarrow does not accept."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
QUOTE = '"'

ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
_NAMES = {"iso8859-1": "latin-1", "utf-8-sig": "utf-8"}
"""Names of Python for encodings in `ENCODINGS`; a byte order mark is skipped anyway."""

_CONTINUATIONS = "".join({bytes([n]).decode(name, "ignore") for n in range(0x80, 0xC0) for name in ENCODINGS[2:]})
TWICE = f"[ÂÃ][{_CONTINUATIONS}]|â€"
"""The pattern of UTF-8 that was read as latin-1 or cp1252, as in "Ã¼" for "ü" and "â€™" for an apostrophe."""

_POSSIBLE = (",", ";", "\t")
"""The delimiters that a header can show; the first one that it has is taken."""


def _mark_broken(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError | UnicodeEncodeError):
        return BROKEN, error.end
    raise error


codecs.register_error(BREAKS, _mark_broken)


@dataclass(frozen=True, repr=False)
class RowSyntax:
    """The byte between fields, and the byte that escapes a quote inside quotes; None if quotes are doubled."""

    delimiter: bytes
    escape: bytes | None = None

    @cached_property
    def spans(self) -> re.Pattern[bytes]:
        """The pattern of the bytes that hide line breaks: an escaped byte, or a quoted field with the byte before it.

        Group 1 is the byte before a quoted field, and group 2 the closing quote, empty if the field is open.
        """
        before = rb"([\r\n%b])" % re.escape(self.delimiter)
        if self.escape is None:
            return re.compile(rb'%b"[^"]*+(?:""[^"]*+)*+("?)' % before)
        escape = re.escape(self.escape)
        return re.compile(rb'%b.|%b"(?:[^"%b]++|%b.)*+("?)' % (escape, before, escape, escape), re.DOTALL)

    def cut_fields(self, row: bytes, number: int) -> bytes:
        """Return the first `number` fields of a row that has more."""
        found = begin = 0
        for span in chain(self.spans.finditer(b"\n" + row), [None]):
            # The byte before a quoted field may be a delimiter. Positions are shifted by the byte put before the row.
            until = len(row) if span is None else span.start() - (span[1] is None)
            while (at := row.find(self.delimiter, begin, until)) >= 0:
                found, begin = found + 1, at + 1
                if found == number:
                    return row[:at]
            begin = len(row) if span is None else span.end() - 1
        return row


def split_rows(stream: Any, syntax: RowSyntax, longest: int, piece_size: int) -> Iterator[bytes]:
    """Yield blocks of whole rows of a file, without its header.

    A block begins with a row and has at most `longest` bytes, so a row is skipped if and only if it is longer than
    that, regardless of its position.
    """
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    # The header is skipped like an overlong row.
    skips = True
    while True:
        piece = stream.read(min(max(piece_size, len(rest)), longest - len(rest)))
        block = rest + (piece or b"\n")
        first, last = find_row_ends(block, syntax)
        if skips and first:
            skips, rest = False, block[first:]
            continue
        if last and not skips:
            yield block[:last]
            rest = block[last:]
        elif skips or len(block) == longest:
            skips, rest = True, find_state(block, syntax)
        else:
            rest = block
        if not piece:
            return


def find_row_ends(block: bytes, syntax: RowSyntax) -> tuple[int, int]:
    """Return the ends of the first and the last complete row of a block, 0 if there is none."""
    if syntax.escape is None or syntax.escape not in block:
        if b'"' not in block:
            first = min((at for at in (block.find(b"\n"), block.find(b"\r")) if at >= 0), default=-1)
            return first + 1, max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        found = _find_by_parity(block, syntax)
        if found is not None:
            return found
    return _find_by_spans(block, syntax)


def _find_by_parity(block: bytes, syntax: RowSyntax) -> tuple[int, int] | None:
    """Return the same if each quote opens or closes a field or is doubled, or if none opens one; otherwise None.

    A byte is then inside quotes if and only if the number of quotes up to it is odd, or never. The computation is on
    bits, with 64 bytes of the block in one number.
    """
    octets = np.frombuffer(block, np.uint8)
    ends = _pack((octets == ord("\n")) | (octets == ord("\r")))
    quotes = _pack(octets == ord('"'))
    before = ends | _pack(octets == ord(syntax.delimiter))
    if np.any(quotes & _follow(before)):
        inside = quotes.copy()
        for shift in (1, 2, 4, 8, 16, 32):
            inside ^= inside << np.uint64(shift)
        is_odd = np.bitwise_xor.accumulate(inside >> np.uint64(63))
        inside[1:] ^= np.uint64(0) - is_odd[:-1]
        if syntax.escape is None:
            before |= quotes & ~inside
        if np.any(quotes & inside & ~_follow(before)):
            return None
        ends &= ~inside
    words = np.flatnonzero(ends)
    if not words.size:
        return 0, 0
    low, high = int(ends[words[0]]), int(ends[words[-1]])
    return 64 * int(words[0]) + (low & -low).bit_length(), 64 * int(words[-1]) + high.bit_length()


def _follow(before: Any) -> Any:
    """Return the bits of the bytes that follow the given ones, and of the first byte of the block."""
    follow = before << np.uint64(1)
    follow[0] |= np.uint64(1)
    follow[1:] |= before[:-1] >> np.uint64(63)
    return follow


def _pack(bits: Any) -> Any:
    """Return bits as 64-bit numbers, with the first bit lowest."""
    packed = np.zeros(-(-bits.size // 64) * 8, np.uint8)
    packed[: -(-bits.size // 8)] = np.packbits(bits, bitorder="little")
    return packed.view("<u8")


def _find_by_spans(block: bytes, syntax: RowSyntax) -> tuple[int, int]:
    """Return the same for any block, by visiting its quoted fields in order."""
    text, first, last, begin = b"\n" + block, 0, 0, 1
    for span in chain(syntax.spans.finditer(text), [None]):
        until = len(text) if span is None else span.start() + (span[1] is not None)
        found = max(text.rfind(b"\n", begin, until), text.rfind(b"\r", begin, until))
        if found >= 0:
            first = first or min(at for at in (text.find(b"\n", begin), text.find(b"\r", begin)) if at >= 0)
            last = found
        begin = len(text) if span is None else span.end()
    return first, last


def find_state(block: bytes, syntax: RowSyntax) -> bytes:
    """Return the shortest text that leaves the reader in the same state as a block without the end of a row."""
    text = b"\n" + block
    spans = deque(syntax.spans.finditer(text), maxlen=1)
    tail = text[spans[0].end() :] if spans else block
    if spans and spans[0][1] is not None and not (spans[0][2] and tail):
        # The tail of an open field is empty or an escape. A final quote closes the field or is doubled.
        return b'"' + spans[0][2] + tail
    if syntax.escape is not None and tail.endswith(syntax.escape):
        return b"x" + syntax.escape
    return syntax.delimiter if tail.endswith(syntax.delimiter) else b"x"


class CsvRows:
    """The rows of CSV files with one header, as a stream of Arrow batches that can be read repeatedly.

    Attributes
    ----------
    unreadable
        The number of rows that the last complete reading skipped because a wanted cell was no text.
    """

    def __init__(
        self,
        files: Sequence[str],
        header: Sequence[str],
        wanted: Collection[str],
        delimiter: str,
        escape: str | None,
    ) -> None:
        self._files, self._header, self._delimiter = list(files), list(header), delimiter
        self._wanted = [name for name in header if name in wanted] or list(header[:1])
        mark = delimiter if delimiter.isascii() else STAND_IN
        self._syntax = RowSyntax(mark.encode(), None if escape is None else escape.encode())
        self.unreadable = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Begin a new reading, as in Arrow's PyCapsule interface."""
        import pyarrow as pa

        schema = pa.schema([(name, pa.string()) for name in self._wanted])
        return pa.RecordBatchReader.from_batches(schema, self._read()).__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """The columns of the header that the stream has."""
        return self._wanted

    def _read(self) -> Iterator[Any]:
        """Yield the wanted cells of all rows in batches, and count the rows left out as no text."""
        import pyarrow as pa
        from pyarrow import compute

        unreadable = 0
        for file in self._files:
            with pa.input_stream(file) as stream:
                for block in split_rows(stream, self._syntax, LONGEST_ROW, PIECE):
                    is_ascii = block.isascii()
                    if not is_ascii:
                        try:
                            block.decode()
                        except UnicodeDecodeError:
                            block = block.decode("utf-8", BREAKS).encode()
                    surplus: list[bytes] = []
                    table = self._parse(block, surplus)
                    if surplus:
                        table = pa.concat_tables([table, self._parse(b"\n".join(surplus), [])])
                    if not self._delimiter.isascii():
                        texts = [compute.replace_substring(each, STAND_IN, self._delimiter) for each in table.columns]
                        table = pa.table(texts, schema=table.schema)
                    unreadable += table.num_rows
                    for name in [] if is_ascii else table.column_names:
                        is_broken = compute.match_substring(table[name], BROKEN)
                        if compute.any(is_broken).as_py():
                            table = table.filter(compute.invert(compute.fill_null(is_broken, False)))
                    unreadable -= table.num_rows
                    yield from table.to_batches()
        self.unreadable = unreadable

    def _parse(self, block: bytes, surplus: list[bytes]) -> Any:
        """Return the rows with the right number of fields, and add rows with more to `surplus`, cut to that number."""
        import pyarrow as pa
        from pyarrow import csv

        def pass_over(row: Any) -> str:
            if row.actual_columns > row.expected_columns:
                surplus.append(self._syntax.cut_fields(row.text.encode(), row.expected_columns))
            return "skip"

        escape = self._syntax.escape
        return csv.read_csv(
            # pyarrow skips a byte order mark at the beginning of a block, where a row may have one.
            pa.BufferReader(b"\n" + block),
            csv.ReadOptions(column_names=self._header, block_size=len(block) + 2, use_threads=False),
            csv.ParseOptions(
                delimiter=self._syntax.delimiter.decode(),
                double_quote=escape is None,
                escape_char=False if escape is None else escape.decode(),
                newlines_in_values=True,
                invalid_row_handler=pass_over,
            ),
            csv.ConvertOptions(
                include_columns=self._wanted,
                column_types=dict.fromkeys(self._wanted, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )


def recode_files(connection: Any, files: list[str], encoding: str, delimiter: str | None = None) -> list[str]:
    """Return copies of files in UTF-8 in the temporary folder of the connection, which is removed with it.

    DuckDB's own decoders fail on a whole file for one unknown character, so that one user's row could cause an error.
    With a delimiter, which is given for private files, such characters are marked instead, and a delimiter that is not
    ASCII is replaced by `STAND_IN`. Without one, a file that is not in the encoding raises UnicodeError.
    """
    (folder,) = connection.con.execute("SELECT current_setting('temp_directory')").fetchone()
    copies = {file: os.path.join(folder, f"{uuid.uuid4().hex}.csv") for file in files}
    errors, changes = "strict", {}
    if delimiter is not None:
        errors = BREAKS
        changes = {} if delimiter.isascii() else {ord(STAND_IN): BROKEN, ord(delimiter): STAND_IN}
    for file, copy in copies.items():
        decoder = codecs.getincrementaldecoder(encoding)(errors=errors)
        with open(copy, "w", encoding="utf-8", errors=errors, newline="") as out:
            for piece in chain(_read_pieces(file), [b""]):
                out.write(decoder.decode(piece, final=not piece).translate(changes))
    return list(copies.values())


def check_whole(files: list[str], named: str) -> None:
    """Raise if a compressed file is cut short or damaged; DuckDB would silently read its beginning.

    No single row decides the form of the compressed file.
    """
    for file in files:
        if file.endswith((".gz", ".zst")):
            try:
                for _ in _read_pieces(file):
                    pass
            except OSError:
                raise InvalidValueError(
                    f"{named} must be whole, and its compressed data are cut short or damaged"
                ) from None


def _read_pieces(file: str) -> Iterator[bytes]:
    """Yield the bytes of a file, decompressed."""
    import pyarrow as pa

    with pa.input_stream(file) as stream:
        while piece := stream.read(PIECE):
            yield piece


@dataclass(frozen=True, repr=False)
class CsvFormat:
    """The delimiter of fields, the character that escapes a quote, and the encoding; None if not given.

    `prefix` begins the names of the arguments for a public list: "domain_" or "groups_".
    """

    delimiter: str | None = None
    escape: str | None = None
    encoding: str | None = None
    prefix: str = ""


USUAL = CsvFormat()


def sniff_delimiter(header: str) -> str:
    """Return the delimiter of a header outside of quotes: a comma, else a semicolon or a tab."""
    plain = "".join(header.split(QUOTE)[::2])
    return next((each for each in _POSSIBLE if each in plain), DELIMITERS[".csv"])


_WHOSE = {"": "the table", "domain_": "the domain", "groups_": "a list of groups"}


def check_csv_format(
    delimiter: Any, escape: Any, encoding: Any, endings: Collection[str | None], prefix: str = ""
) -> CsvFormat:
    """Return the format of the events or of a public list, or raise unless one of their endings allows the settings.

    Parameters
    ----------
    delimiter, escape, encoding
        The settings. An escape is checked by its character alone, because it holds for the events and for the lists.
    endings
        The endings of the files.
    prefix
        The beginning of the names of the arguments of a public list.
    """
    is_tabular, whose = bool(set(endings) & DELIMITERS.keys()), _WHOSE[prefix]
    if delimiter is not None:
        _check_character(f"{prefix}delimiter", delimiter, "such as ';'", forbidden=QUOTE)
        if ".csv" not in endings:
            raise InvalidValueError(f"{prefix}delimiter must be left out unless {whose} is a .csv file")
    if escape is not None:
        _check_character("escape", escape, r"such as '\\'")
        if not escape.isascii() or escape == delimiter or escape in _POSSIBLE:
            raise InvalidValueError(f"escape must be an ASCII character other than the delimiter, not {quote(escape)}")
    if encoding is not None:
        with suppress(LookupError, TypeError, ValueError):
            name = codecs.lookup(encoding).name
            encoding = _NAMES.get(name, name)
        if encoding not in ENCODINGS:
            raise InvalidValueError(
                f"{prefix}encoding must be {', '.join(map(repr, ENCODINGS))}, not {quote(encoding)}"
            )
        if not is_tabular:
            raise InvalidValueError(f"{prefix}encoding must be left out unless {whose} is a .csv or .tsv file")
    return CsvFormat(delimiter, escape, encoding, prefix)


def _check_character(argument: str, given: Any, example: str, forbidden: str = "") -> None:
    """Raise unless something is one character that can delimit fields or escape quotes."""
    message = f"{argument} must be one character, {example}, and no letter, digit, quote or line break, not"
    if not isinstance(given, str):
        raise InvalidTypeError(f"{message} {quote(given)}")
    if len(given) != 1 or given.isalnum() or given in f"{forbidden}\n\r\0\ufeff":
        raise InvalidValueError(f"{message} {quote(given)}")
