"""Text files in other encodings than UTF-8, written anew as that where only this user may read; and whole files.

DuckDB has decoders of its own, which fail on a whole file for one character that they do not know: one user's row would
decide whether there is a release. Here what cannot be decoded is a replacement character, and no row an error.
"""

from __future__ import annotations

import codecs
import os
import uuid
from collections.abc import Iterator
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.sources.events.remote_files import is_remote

_PIECE = 2**20


def recode_files(connection: Any, files: list[str], encoding: str, is_public: bool) -> list[str]:
    """Copies of files in UTF-8, in the folder where the connection spills, with which they go.

    A public file that is not in the encoding is refused.
    """
    (folder,) = connection.con.execute("SELECT current_setting('temp_directory')").fetchone()
    copies = {file: os.path.join(folder, f"{uuid.uuid4().hex}.csv") for file in files}
    for file, copy in copies.items():
        try:
            _recode(file, encoding, copy, "strict" if is_public else "replace")
        except UnicodeError:
            raise InvalidValueError(f"{quote(file)} must be a file in {encoding}, and is not") from None
    return list(copies.values())


def _recode(file: str, encoding: str, copy: str, errors: str) -> None:
    decoder = codecs.getincrementaldecoder(encoding)(errors=errors)
    with open(copy, "w", encoding="utf-8", errors=errors, newline="") as out:
        for piece in _read_pieces(file):
            out.write(decoder.decode(piece))
        out.write(decoder.decode(b"", final=True))


def check_whole(files: list[str], named: str) -> None:
    """Refuses a compressed file that is cut short or damaged, of which DuckDB reads the beginning in silence.

    That is a fact about the form of the file, and no one row decides it.
    """
    for file in files:
        if not is_remote(file) and file.endswith((".gz", ".zst")):
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
