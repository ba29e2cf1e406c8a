"""Writes a folder of files whole or not at all: a reader finds the old site or the new one, never a mixture.

The site is a symbolic link to a folder beside it, which is replaced in one step. Where links cannot be made, the folder
itself is moved aside and the new one moved into its place: for a moment there is none, but never a half.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from discreet.errors import InvalidValueError

MARK = ".discreet-site"
"""A file by which a folder is known to be a site that was written here."""


def check_site(out: Path) -> None:
    """Raises unless a site can be written at `out`: nothing is there, a link, or a site that was written before."""
    if not out.parent.is_dir():
        raise InvalidValueError(f"out must be in a folder that exists, not {str(out)!r}")
    if out.is_symlink() and os.path.exists(out) and not _is_ours(Path(os.path.realpath(out)), out):
        raise InvalidValueError(f"out must not be a link to another folder, as {str(out)!r} is: it would be replaced")
    if out.is_symlink() or not out.exists():
        return
    if not out.is_dir() or not ((out / MARK).is_file() or not any(out.iterdir())):
        raise InvalidValueError(
            f"out must be a new or an empty folder, or a site that discreet wrote, not {str(out)!r}"
        )


def is_in_site(path: Path, out: Path) -> bool:
    """Whether a file is in a site at `out`, or in a folder beside it that is replaced with it, by whichever links."""
    real, place = Path(os.path.realpath(path)), Path(os.path.realpath(out.parent)) / out.name
    if real.is_relative_to(place) or real.is_relative_to(os.path.realpath(out)):
        return True
    beside = real.parts[len(place.parent.parts) :] if real.is_relative_to(place.parent) else ()
    return bool(beside) and _is_draft(beside[0], out)


def write_site(out: Path, files: dict[str, str]) -> bool:
    """Writes files into the folder `out`, by their names in it, in place of all that was there.

    Returns
    -------
    bool
        Whether the new site took the place of the old one in one step: a link was replaced.
    """
    check_site(out)
    folder = _name_draft(out)
    try:
        _write_files(folder, files)
        at_once = _put_in_place(folder, out)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _remove_others(out, folder if at_once else None)
    return at_once


def _write_files(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in {MARK: "", **files}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _put_in_place(folder: Path, out: Path) -> bool:
    """Makes `out` stand for the folder; True where that was one step."""
    if out.is_dir() and not out.is_symlink():
        # A folder cannot be replaced by a link in one step: it stays a folder, unless it is empty.
        if any(out.iterdir()):
            _swap_folders(folder, out)
            return False
        out.rmdir()
    link = _name_draft(out, ".link")
    try:
        link.symlink_to(folder.name, target_is_directory=True)
    except OSError:
        _swap_folders(folder, out)
        return False
    link.replace(out)
    return True


def _swap_folders(folder: Path, out: Path) -> None:
    old = _name_draft(out, ".old")
    if out.exists():
        out.rename(old)
    folder.rename(out)


def _remove_others(out: Path, current: Path | None) -> None:
    """Removes the site of before, and what runs that were killed have left beside it."""
    for path in out.parent.iterdir():
        if not _is_draft(path.name, out) or path == current:
            continue
        if path.is_symlink():
            with suppress(OSError):
                path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


def _is_ours(folder: Path, out: Path) -> bool:
    """Whether a folder is one of those that are written beside a site."""
    return folder.parent == Path(os.path.realpath(out.parent)) and _is_draft(folder.name, out)


def _name_draft(out: Path, ending: str = "") -> Path:
    """A new name beside a site, which `_is_draft` knows again."""
    return out.with_name(f".{out.name}-{secrets.token_hex(8)}{ending}")


def _is_draft(name: str, out: Path) -> bool:
    return re.fullmatch(rf"\.{re.escape(out.name)}-[0-9a-f]{{16}}(\.link|\.old)?", name) is not None
