"""The rows of CSV files, each read by itself: no row changes how another one is read.

A file is cut into blocks of whole rows by one automaton, and pyarrow parses a block by the same one. A quote opens a
quoted field only where a field begins, and the next quote that is neither doubled nor escaped closes it. A line break
outside of a quoted field ends the row. Left out are rows that are longer than a block, rows with too few fields, rows
with a wanted cell that is no text, and a row at the end of the file whose quote is open.
"""

from __future__ import annotations

import codecs
import os
import re
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

from discreet.errors import InvalidValueError

LONGEST_ROW = 2**24
"""The most bytes of a row, its line end included; longer rows are left out."""

BROKEN = "\U0010ffff"
"""Stands for bytes that are no text. Unicode keeps this code point out of all text."""

BREAKS = "discreet.broken"
"""The name of the way of decoding that puts `BROKEN` in the place of such bytes."""

PIECE = 2**21
"""The number of bytes read at a time, the fastest of 2^18 to 2^22.

One thread of DuckDB cuts and parses a block while the others count the rows of earlier ones. So threads of our own made
a query on two cores no faster.
"""

STAND_IN = "\x1f"
"""Takes the place of a delimiter that is not ASCII, which pyarrow does not take."""


def _mark_broken(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError | UnicodeEncodeError):
        return BROKEN, error.end
    raise error


codecs.register_error(BREAKS, _mark_broken)


@dataclass(frozen=True, repr=False)
class RowSyntax:
    """The byte between fields, and the one before a quote inside quotes; without it such a quote is doubled."""

    delimiter: bytes
    escape: bytes | None = None

    @cached_property
    def spans(self) -> re.Pattern[bytes]:
        """The pattern of what hides line breaks: an escaped byte, or a quoted field with the byte before it.

        Group 1 is the byte before a quoted field, and group 2 the closing quote, empty where there is none.
        """
        before = rb"([\r\n%b])" % re.escape(self.delimiter)
        if self.escape is None:
            return re.compile(rb'%b"[^"]*+(?:""[^"]*+)*+("?)' % before)
        escape = re.escape(self.escape)
        return re.compile(rb'%b.|%b"(?:[^"%b]++|%b.)*+("?)' % (escape, before, escape, escape), re.DOTALL)

    def cut_fields(self, row: bytes, number: int) -> bytes:
        """Return so many fields from the beginning of a row that has more."""
        found = begin = 0
        for span in chain(self.spans.finditer(b"\n" + row), [None]):
            # The byte before a quoted field may be a delimiter; a byte was put before the row.
            until = len(row) if span is None else span.start() - (span[1] is None)
            while (at := row.find(self.delimiter, begin, until)) >= 0:
                found, begin = found + 1, at + 1
                if found == number:
                    return row[:at]
            begin = len(row) if span is None else span.end() - 1
        return row


def split_rows(stream: Any, syntax: RowSyntax, longest: int, piece_size: int) -> Iterator[bytes]:
    """Yield blocks of whole rows of a file, without its header.

    A block begins where a row does, and never has more than `longest` bytes. So a row is left out if and only if it is
    longer than that, wherever it stands.
    """
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    # The header is passed over as an overlong row is.
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
    """Return where the first row of a block ends and where the last complete one does, 0 where there is none."""
    if syntax.escape is None or syntax.escape not in block:
        if b'"' not in block:
            first = min((at for at in (block.find(b"\n"), block.find(b"\r")) if at >= 0), default=-1)
            return first + 1, max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        found = _find_by_parity(block, syntax)
        if found is not None:
            return found
    return _find_by_spans(block, syntax)


def _find_by_parity(block: bytes, syntax: RowSyntax) -> tuple[int, int] | None:
    """Return the same where each quote opens or closes a field or is doubled, or where none opens one, and else None.

    Then a byte is inside of quotes if and only if the number of quotes up to it is odd, or never. All is computed on
    bits, 64 bytes of the block in one number.
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
    """Return bits as numbers of 64, the first one lowest."""
    packed = np.zeros(-(-bits.size // 64) * 8, np.uint8)
    packed[: -(-bits.size // 8)] = np.packbits(bits, bitorder="little")
    return packed.view("<u8")


def _find_by_spans(block: bytes, syntax: RowSyntax) -> tuple[int, int]:
    """Return the same for any block, one quoted field after the other."""
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
    """Return the shortest beginning of a row after which all is read as after a block without a row's end."""
    text = b"\n" + block
    spans = deque(syntax.spans.finditer(text), maxlen=1)
    tail = text[spans[0].end() :] if spans else block
    if spans and spans[0][1] is not None and not (spans[0][2] and tail):
        # The tail of an open field is empty or an escape. A quote at the end closes the field or is doubled.
        return b'"' + spans[0][2] + tail
    if syntax.escape is not None and tail.endswith(syntax.escape):
        return b"x" + syntax.escape
    return syntax.delimiter if tail.endswith(syntax.delimiter) else b"x"


class CsvRows:
    """The rows of CSV files with one header, as a stream of Arrow batches that can be read again and again.

    Attributes
    ----------
    unreadable
        The number of rows that the last complete reading left out because a wanted cell was no text.
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
        """Begin a new reading, as the PyCapsule interface of Arrow has it."""
        schema = pa.schema([(name, pa.string()) for name in self._wanted])
        return pa.RecordBatchReader.from_batches(schema, self._read()).__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """The columns that the stream has, of all that are in the header."""
        return self._wanted

    def _read(self) -> Iterator[Any]:
        unreadable = 0
        for file in self._files:
            with pa.input_stream(file) as stream:
                for block in split_rows(stream, self._syntax, LONGEST_ROW, PIECE):
                    table, left_out = self._read_block(block)
                    unreadable += left_out
                    yield from table.to_batches()
        self.unreadable = unreadable

    def _read_block(self, block: bytes) -> tuple[Any, int]:
        """Return the wanted cells of a block of whole rows, and the number of rows left out as no text."""
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
        kept = table if is_ascii else _drop_broken(table)
        return kept, table.num_rows - kept.num_rows

    def _parse(self, block: bytes, surplus: list[bytes]) -> Any:
        """Return the rows with the right number of fields; of those with more, the first fields go to `surplus`."""

        def pass_over(row: Any) -> str:
            if row.actual_columns > row.expected_columns:
                surplus.append(self._syntax.cut_fields(row.text.encode(), row.expected_columns))
            return "skip"

        escape = self._syntax.escape
        return csv.read_csv(
            # A byte order mark would be read over at the beginning of a block, where somebody's row may have one.
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


def _drop_broken(table: Any) -> Any:
    """Return a table without the rows that have a cell with bytes that are no text."""
    for name in table.column_names:
        is_broken = compute.match_substring(table[name], BROKEN)
        if compute.any(is_broken).as_py():
            table = table.filter(compute.invert(compute.fill_null(is_broken, False)))
    return table


# Text files in other encodings than UTF-8, written anew as that where only this user may read; and whole files.
#
# DuckDB has decoders of its own, which fail on a whole file for one character that they do not know: one user's row
# would decide whether there is a release. Here what cannot be decoded is marked, and no row an error.

_PIECE = 2**20


def recode_files(connection: Any, files: list[str], encoding: str, delimiter: str | None = None) -> list[str]:
    """Return copies of files in UTF-8, in the folder where the connection spills, with which they go.

    Raises UnicodeError where a file is not in the encoding. With a delimiter, which is said of private rows, that is no
    error, and a delimiter that is not ASCII gets a stand-in.
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
    """Refuses a compressed file that is cut short or damaged, of which DuckDB reads the beginning in silence.

    That is a fact about the form of the file, and no one row decides it.
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
    """The bytes of a file, compressed or not, piece by piece."""
    import pyarrow as pa

    with pa.input_stream(file) as stream:
        while piece := stream.read(_PIECE):
            yield piece
