"""The DuckDB inside this process: where it spills what does not fit into memory, and what it must not fetch.

By default DuckDB writes rows that do not fit to `.tmp` in the working directory, or beside the database file, for
everybody to read. Here they go to a new folder that only the user may enter, which is removed when the connection is
closed, and else when the process ends. Nor does a DuckDB opened here install extensions over the
network, or load one unless a URL among the files asks for it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

from discreet.sources.engine import EngineError

Close = Callable[[], None]

NO_EXTENSIONS: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""What a DuckDB is told that neither fetches nor loads what it was not asked for."""


class SpillFolder:
    """A new folder that only the user may enter, which goes with this object, and at the latest with the process."""

    def __init__(self) -> None:
        try:
            self.path = tempfile.mkdtemp(prefix="discreet-")
        except OSError:
            raise EngineError("DuckDB must have a folder for temporary files that can be written: set TMPDIR") from None
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def settings(self) -> dict[str, Any]:
        """What a DuckDB that spills here is told."""
        return {"temp_directory": self.path, **NO_EXTENSIONS}


def connect_in_memory() -> tuple[Any, Close]:
    """A new DuckDB in memory, as ibis has it, and what closes it."""
    import ibis

    folder = SpillFolder()
    backend = ibis.duckdb.connect(**folder.settings())

    def close() -> None:
        backend.disconnect()
        folder.remove()

    return backend, close


def connect_to_file(url: str) -> tuple[Any, Close]:
    """A database file by its URL, and what closes it; one that this process has open already keeps its settings.

    They are set after connecting: DuckDB refuses a second connection to a file that was opened with other options, and
    the caller may want one.
    """
    import ibis

    path = url.partition("://")[2].partition("?")[0]
    shared = _is_open_here(path)
    backend = ibis.connect(url)
    if shared or "temp_directory=" in url:
        return backend, backend.disconnect
    folder = SpillFolder()
    for name, value in folder.settings().items():
        backend.settings[name] = value
    return backend, lambda: _close_file(backend, path, folder)


def _close_file(backend: Any, path: str, folder: SpillFolder) -> None:
    given_back = _reset(backend, list(folder.settings()))
    backend.disconnect()
    if given_back or not _is_open_here(path):
        folder.remove()
    else:
        # The caller has opened the file too, and that DuckDB goes on spilling into this folder.
        atexit.register(lambda: folder.remove())


def _reset(backend: Any, names: list[str]) -> bool:
    """Whether a database has its own settings back, which DuckDB refuses once it has spilled."""
    try:
        for name in names:
            backend.con.execute(f"RESET {name}")
    except Exception:
        return False
    return True


def _remove(folder: str, process: int) -> None:
    # A forked copy must not take the folder from its parent.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _is_open_here(path: str) -> bool:
    """Whether this process has a database file open: DuckDB then refuses a connection with other options."""
    import duckdb

    try:
        duckdb.connect(path, read_only=True, config=NO_EXTENSIONS).close()
    except duckdb.ConnectionException:
        return True
    except duckdb.Error:
        # What is wrong with the file shows when it is opened in earnest.
        return False
    return False
