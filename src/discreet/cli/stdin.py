"""Standard input as a file, which `-` stands for.

What reads a file may seek in it or read it twice, so standard input is copied to a file of its own, in a folder for
temporary files (TMPDIR) that nobody else may enter. The copy is removed when the command ends, by success, an error,
Ctrl-C, SIGTERM or SIGHUP; only SIGKILL or a crash of the machine leaves it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

from discreet.cli.output import OutputError
from discreet.errors import Error, InvalidValueError, redact_url
from discreet.jobs import is_shown
from discreet.sources.events.location import FilePath

STANDARD = "-"
_NAME = "standard input"
_KIND = "csv"
_PART = 1 << 20


Input: TypeAlias = str | list[str] | None
"""What FILE is: one file, or - for standard input; several, which are events; or none, where it is a database."""


def name_input(files: list[str] | None, events: bool) -> Input:
    """What the files on the command line stand for; scores, and standard input, are by themselves."""
    if not events and any(FilePath.parse(file).is_remote for file in files or []):
        raise InvalidValueError("FILE must be a file of scores on this machine: a URL is read as events, with --user")
    if not files or len(files) == 1:
        return files[0] if files else None
    if not events:
        raise InvalidValueError(f"FILE must be one file of scores, not {len(files)}; with --user there may be several")
    if STANDARD in files:
        raise InvalidValueError("FILE must be - alone, or files: standard input is not read beside others")
    return files


def input_files(file: Input) -> list[str]:
    """The files that FILE stands for, as far as it names some."""
    if file is None or isinstance(file, list):
        return file or []
    return ["/dev/stdin"] if file == STANDARD else [file]


def input_name(file: Input, otherwise: str = "") -> str:
    """What to call FILE, or a table where there is none; several files are called by the first."""
    if file == STANDARD:
        return _NAME
    named = input_files(file)
    return os.path.basename(os.path.normpath(redact_url(named[0]))) if named else otherwise


def input_suffix(file: Input, kind: str | None) -> str:
    """The ending that tells what FILE holds."""
    return f".{kind or _KIND}" if file == STANDARD else os.path.splitext(input_files(file)[0])[1].lower()


@contextmanager
def open_input(file: Input, kind: str | None) -> Iterator[Any]:
    """The path of FILE, if there is one, or for `-` that of a copy of standard input that is there inside only."""
    if file != STANDARD:
        # An engine may have written rows to a folder of its own by then, which goes as the process ends in order.
        with _exit_on_signals():
            yield file
        return
    with _exit_on_signals(), _private_folder() as folder:
        path = os.path.join(folder, f"stdin{input_suffix(file, kind)}")
        _copy_to(path)
        try:
            yield path
        except Error as error:
            # Readers name the file; where the copy lay is no help.
            error.args = tuple(str(part).replace(repr(path), _NAME) for part in error.args)
            raise


@contextmanager
def _private_folder() -> Iterator[str]:
    """A new folder that only the user may enter, there inside only."""
    import shutil
    import tempfile

    with _name_failure("making a temporary folder"):
        folder = tempfile.mkdtemp(prefix="discreet-")
    try:
        yield folder
    finally:
        with _name_failure(f"removing the copy of {_NAME} in {folder!r}"):
            shutil.rmtree(folder)


def _copy_to(path: str) -> None:
    source = getattr(getattr(sys, "stdin", None), "buffer", None)
    if source is None:
        raise InvalidValueError(f"{_NAME} must be open, but is closed")
    if source.isatty() and is_shown():
        print("discreet: reading what you type, until Ctrl-D on a line of its own", file=sys.stderr)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with _name_failure(f"copying {_NAME} to a temporary file"), open(os.open(path, flags, 0o600), "wb") as copy:
        # Not read(), which at a keyboard waits for a second Ctrl-D.
        while part := source.read1(_PART):
            copy.write(part)


@contextmanager
def _name_failure(what: str) -> Iterator[None]:
    """Tells what failed where the system refuses something inside."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{what} fails: {error.strerror or type(error).__name__}") from None


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Lets signals that end a process end it as Ctrl-C does, so that what is inside is cleaned up."""
    import signal
    import threading

    caught = []
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        # Under nohup, for example, a signal is ignored, and stays so.
        caught = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, _exit_by_signal)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


def _exit_by_signal(number: int, _: Any) -> NoReturn:
    raise SystemExit(128 + number)
