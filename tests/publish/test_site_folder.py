"""A site is written whole or not at all, by a link that is replaced; and nothing else is ever removed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet.ledger.file_store import find_lock
from discreet.ledger.store import open_store
from discreet.publish import site_folder
from discreet.publish.site_folder import KEPT_SECONDS, MARK, check_site, write_site

OLD, NEW = {"index.html": "old", "data/a.csv": "a"}, {"index.html": "new", "data/b.csv": "b"}


def read(site):
    return {str(file.relative_to(site)): file.read_text() for file in Path(site).rglob("*") if file.is_file()}


def drafts(folder):
    """The folders and links beside a site that it was made from."""
    return [path for path in folder.iterdir() if path.name.startswith(".site-")]


def let_time_pass(folder):
    """Makes what was replaced so old that nobody can be reading it any more."""
    for path in drafts(folder):
        past = path.lstat().st_mtime - 2 * KEPT_SECONDS
        os.utime(path, (past, past), follow_symlinks=False)


def test_a_site_is_a_link_that_is_replaced(tmp_path):
    site = tmp_path / "site"
    assert write_site(site, OLD)
    assert read(site) == {MARK: "", **OLD}
    assert not os.path.isabs(os.readlink(site))
    before = site.resolve()
    assert write_site(site, NEW)
    assert read(site) == {MARK: "", **NEW}
    # Who is in the old folder can read on, for a while.
    assert read(before) == {MARK: "", **OLD}
    let_time_pass(tmp_path)
    latest = site.resolve()
    assert write_site(site, OLD)
    assert set(drafts(tmp_path)) == {latest, site.resolve()}


def test_the_lock_of_a_site_is_for_its_owner_alone(tmp_path):
    find_lock(tmp_path / "site").touch(0o666)
    write_site(tmp_path / "site", OLD)
    assert find_lock(tmp_path / "site").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_team_that_shares_the_folder_shares_the_lock(tmp_path):
    tmp_path.chmod(0o2775)
    write_site(tmp_path / "site", OLD)
    assert find_lock(tmp_path / "site").stat().st_mode & 0o777 == 0o660
    (tmp_path / "budget.db").touch(0o600)
    with open_store(tmp_path / "budget.db").lock_publishing(1, lambda *_, **__: None):
        assert find_lock(tmp_path / "budget.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "budget.db").chmod(0o660)
    with open_store(tmp_path / "budget.db").lock_publishing(1, lambda *_, **__: None):
        assert find_lock(tmp_path / "budget.db").stat().st_mode & 0o777 == 0o660


_WRITER = """
import sys
from pathlib import Path
from discreet.ledger.file_store import find_lock
from discreet.ledger.store import open_store
from discreet.publish.site_folder import write_site
for number in range(40):
    tag = sys.argv[2] + str(number)
    names = ["index.html", "songs.html", "data/songs.csv"]
    write_site(Path(sys.argv[1]), {name: tag for name in names})
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("first", ["nothing", "link", "folder"])
def test_two_writers_leave_a_whole_site_at_every_moment(tmp_path, first):
    """Whoever opens the folder finds all files of one writer in it, and whoever follows the link finds a page."""
    site = tmp_path / "site"
    if first != "nothing":
        write_site(site, {"index.html": "0", "songs.html": "0", "data/songs.csv": "0"})
    if first == "folder":
        target = site.resolve()
        site.unlink()
        target.rename(site)
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, site, name]) for name in "ab"]
    found = []
    while any(writer.poll() is None for writer in writers):
        if first == "nothing" and not found and not site.exists():
            continue
        found.append((site / "index.html").read_text())
        folder = os.open(site, os.O_RDONLY | os.O_DIRECTORY)
        try:
            tags = {read_in(folder, name) for name in ("index.html", "songs.html", "data/songs.csv")}
        finally:
            os.close(folder)
        assert len(tags) == 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert {tag[0] for tag in found} >= {"a", "b"}
    assert read(site)["index.html"] in ("a39", "b39")


def read_in(folder, name):
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder)) as file:
        return file.read()


def test_a_reader_finds_the_old_site_or_the_new_one(tmp_path, monkeypatch):
    """Whatever fails in between, and before each step that is seen from outside."""
    site = tmp_path / "site"
    write_site(site, OLD)
    for owner, step in ((Path, "mkdir"), (os, "fsync"), (Path, "symlink_to"), (Path, "replace")):
        with monkeypatch.context() as patched:

            def fail(*_, **__):
                assert read(site) == {MARK: "", **OLD}
                raise MemoryError

            patched.setattr(owner, step, fail)
            with pytest.raises(MemoryError):
                write_site(site, NEW)
        assert read(site) == {MARK: "", **OLD}
    let_time_pass(tmp_path)
    write_site(site, NEW)
    assert read(site) == {MARK: "", **NEW}
    assert len(drafts(tmp_path)) == 2


@pytest.mark.parametrize("exchanges", [True, False])
def test_where_links_cannot_be_made_the_folder_is_exchanged_or_moved(tmp_path, monkeypatch, exchanges):
    def refuse(*_, **__):
        raise OSError

    site = tmp_path / "site"
    monkeypatch.setattr(Path, "symlink_to", refuse)
    if not exchanges:
        monkeypatch.setattr(site_folder, "_exchange", lambda *_: False)
    assert write_site(site, OLD)
    for files in (NEW, OLD):
        assert write_site(site, files) is exchanges
        assert not site.is_symlink()
        assert read(site) == {MARK: "", **files}
        let_time_pass(tmp_path)
    assert len(drafts(tmp_path)) == 1
    monkeypatch.undo()
    assert write_site(site, NEW)
    assert site.is_symlink()
    assert read(site) == {MARK: "", **NEW}


def test_an_empty_folder_becomes_a_site(tmp_path):
    (tmp_path / "site").mkdir()
    assert write_site(tmp_path / "site", OLD)


@pytest.mark.parametrize("kind", ["folder", "file", "link", "nowhere"])
def test_what_is_not_a_site_is_left_alone(tmp_path, kind):
    site, other = tmp_path / "site", tmp_path / "other"
    other.mkdir()
    (other / "work.txt").write_text("mine")
    if kind == "folder":
        other.rename(site)
    elif kind == "file":
        site.write_text("mine")
    elif kind == "link":
        site.symlink_to("other")
    else:
        site = tmp_path / "nowhere" / "site"
    before = read(tmp_path)
    for use in (check_site, lambda out: write_site(out, NEW)):
        with pytest.raises(discreet.Error, match=r"^out must"):
            use(site)
    assert read(tmp_path) == before


def test_what_looks_like_it_but_is_another_site_stays(tmp_path):
    write_site(tmp_path / "site", OLD)
    write_site(tmp_path / "site-dummy", OLD)
    write_site(tmp_path / "site", NEW)
    assert read(tmp_path / "site-dummy") == {MARK: "", **OLD}
