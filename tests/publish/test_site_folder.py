"""A site is written whole or not at all, by a link that is replaced; and nothing else is ever removed."""

import os
from pathlib import Path

import pytest

import discreet
from discreet.publish.site_folder import MARK, check_site, write_site

OLD, NEW = {"index.html": "old", "data/a.csv": "a"}, {"index.html": "new", "data/b.csv": "b"}


def read(site):
    return {str(file.relative_to(site)): file.read_text() for file in Path(site).rglob("*") if file.is_file()}


def test_a_site_is_a_link_that_is_replaced(tmp_path):
    site = tmp_path / "site"
    assert write_site(site, OLD)
    assert read(site) == {MARK: "", **OLD}
    assert not os.path.isabs(os.readlink(site))
    assert write_site(site, NEW)
    assert read(site) == {MARK: "", **NEW}
    assert len(list(tmp_path.iterdir())) == 2


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
    write_site(site, NEW)
    assert read(site) == {MARK: "", **NEW}
    assert len(list(tmp_path.iterdir())) == 2


def test_where_links_cannot_be_made_the_folder_is_moved(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError

    site = tmp_path / "site"
    monkeypatch.setattr(Path, "symlink_to", refuse)
    for files in (OLD, NEW, OLD):
        assert not write_site(site, files)
        assert not site.is_symlink()
        assert read(site) == {MARK: "", **files}
    assert list(tmp_path.iterdir()) == [site]
    monkeypatch.undo()
    assert not write_site(site, NEW)


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
