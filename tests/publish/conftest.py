"""A folder with charts, as a team has one: events, public lists, a budget."""

import pytest

import browser
from chart_folder import fill_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with a charts file and all that it names."""
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if browser.CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with browser.page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
