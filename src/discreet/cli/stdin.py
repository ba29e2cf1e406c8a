"""FILE of a command: files, a database in their place, or standard input, which `-` stands for.

A reader may seek in a file or read it twice, so standard input is copied to a file of its own, in a folder for
temporary files (TMPDIR) that nobody else may enter. The copy is removed when the command ends, by success, an error,
Ctrl-C, SIGTERM or SIGHUP; only SIGKILL or a crash of the machine leaves it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from discreet.cli.options import INPUT_FORMATS, parse_choice
from discreet.cli.output import OutputError
from discreet.errors import Error, InvalidValueError, redact_url
from discreet.jobs import is_shown
from discreet.sources.events.location import FilePath, Location

STANDARD = "-"
_NAME = "standard input"

_PART = 1 << 20
"""Bytes of standard input that are copied at a time: a megabyte keeps the number of calls small."""


@dataclass(frozen=True, eq=False, repr=False)
class Input:
    """FILE of a command.

    Attributes
    ----------
    given
        The files as they were given: several only for events, none where a database is read.
    format
        The format of standard input.
    """

    given: tuple[str, ...]
    format: str = "csv"

    @classmethod
    def parse(cls, files: list[str] | None, input_format: str | None, events: bool) -> Input:
        """Return the input that the arguments stand for; scores, and standard input, are one file."""
        given = tuple(files or ())
        file = cls(given)
        if any(path.is_other_url for path in file.location.paths):
            raise InvalidValueError(
                "FILE must be a file, or the URL of one by https, s3 or gs; the URL of a database goes with --connect"
            )
        if not events and any(path.is_remote for path in file.location.paths):
            raise InvalidValueError(
                "FILE must be a file of scores on this machine: a URL is read as events, with --user"
            )
        if not events and len(given) > 1:
            raise InvalidValueError(
                f"FILE must be one file of scores, not {len(given)}; with --user there may be several"
            )
        if STANDARD in given and len(given) > 1:
            raise InvalidValueError("FILE must be - alone, or files: standard input is not read beside others")
        if input_format is None:
            return file
        if given != (STANDARD,):
            raise InvalidValueError(
                "input_format must be left out unless FILE is -: the name of a file tells what it is"
            )
        # An array has no columns, so it cannot hold events.
        allowed = [name for name in INPUT_FORMATS if not (events and name == "npy")]
        return cls(given, parse_choice("input_format", input_format, allowed))

    @property
    def is_standard(self) -> bool:
        """True for standard input."""
        return self.given == (STANDARD,)

    @property
    def files(self) -> list[str]:
        """The paths behind the input, which no output may replace."""
        return ["/dev/stdin"] if self.is_standard else list(self.given)

    @cached_property
    def location(self) -> Location:
        """The files, each parsed once; none where a database is read."""
        return Location(tuple(map(FilePath.parse, self.files)))

    @property
    def suffix(self) -> str:
        """The ending that tells the format."""
        return f".{self.format}" if self.is_standard else os.path.splitext(self.given[0])[1].lower()

    def name(self, table: str) -> str:
        """Return the name for a title: that of the first file, or of the table of a database."""
        if self.is_standard:
            return _NAME
        return os.path.basename(os.path.normpath(redact_url(self.given[0]))) if self.given else table

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Give the path, the list of paths, or None for a database; a copy of standard input exists inside only."""
        if not self.is_standard:
            # An engine may write rows to a folder of its own, which is removed where the process ends in order.
            with _exit_on_signals():
                yield list(self.given) if len(self.given) > 1 else self.given[0] if self.given else None
            return
        with _exit_on_signals(), _private_folder() as folder:
            path = os.path.join(folder, f"stdin{self.suffix}")
            source = getattr(getattr(sys, "stdin", None), "buffer", None)
            if source is None:
                raise InvalidValueError(f"{_NAME} must be open, but is closed")
            if source.isatty() and is_shown():
                print("discreet: reading what you type, until Ctrl-D on a line of its own", file=sys.stderr)
            new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with _name_failure(f"copying {_NAME} to a temporary file"), open(os.open(path, new, 0o600), "wb") as copy:
                # At a keyboard, read() would wait for a second Ctrl-D.
                while part := source.read1(_PART):
                    copy.write(part)
            try:
                yield path
            except Error as error:
                # Readers name the file; the path of the copy is no help.
                error.args = tuple(str(part).replace(repr(path), _NAME) for part in error.args)
                raise


@contextmanager
def _private_folder() -> Iterator[str]:
    """Give a new folder that only the user may enter, and remove it afterwards."""
    import shutil
    import tempfile

    with _name_failure("making a temporary folder"):
        folder = tempfile.mkdtemp(prefix="discreet-")
    try:
        yield folder
    finally:
        with _name_failure(f"removing the copy of {_NAME} in {folder!r}"):
            shutil.rmtree(folder)


@contextmanager
def _name_failure(step: str) -> Iterator[None]:
    """Raise an error of the system from inside as a sentence that names the step."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{step} fails: {error.strerror or type(error).__name__}") from None


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn the signals that end a process into SystemExit, so that the code inside cleans up."""
    import signal
    import threading

    def end(number: int, _: Any) -> NoReturn:
        raise SystemExit(128 + number)

    caught = []
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        # A signal that is ignored, as under nohup, stays ignored.
        caught = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)
