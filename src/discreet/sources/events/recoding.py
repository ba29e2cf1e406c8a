"""Text files in other encodings than UTF-8, written anew as that where only this user may read; and whole files.

DuckDB has decoders of its own, which fail on a whole file for one character that they do not know: one user's row would
decide whether there is a release. Here what cannot be decoded is marked, and no row an error.
"""

from __future__ import annotations

import codecs
import os
import uuid
from collections.abc import Iterator
from itertools import chain
from typing import Any

from discreet.errors import InvalidValueError
from discreet.sources.events.csv_rows import BREAKS, BROKEN, STAND_IN

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
