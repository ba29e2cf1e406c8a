"""A folder with charts, as a team has one: events, public lists, a budget."""

import pytest

from chart_folder import fill_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with a charts file and all that it names."""
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path)
    return tmp_path
