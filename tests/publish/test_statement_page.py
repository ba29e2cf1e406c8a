"""A statement on paper: one page for each chart, in every language."""

import pytest

import discreet
from chart_folder import fill_folder, publish, write_charts

pytestmark = pytest.mark.xdist_group("site")

EVENTS = 'table = "streams/*.parquet", user = "listener", where = "seconds >= 30"'
LIST = f"""
[[chart]]
id = "{{id}}"
title = "Most played songs"
events = {{{{ {EVENTS}, item = "artist" }}}}
domain = ["abba", "bach", "cure", "dido"]
k = 3
epsilon = "0.3"
every = "month"
time = "played_at"
from = "2025-10"
"""
SUMS = LIST.replace('item = "artist"', 'item = "artist", value = "seconds", clip = [0, 60]')
GROUPS = 'by = {{ column = "country", groups = "countries.csv:code", each_user = "one" }}\n'
COUNTED = 'counts = "0.1"\n'
RATED = COUNTED + 'shortfall = "0.05"\n'
CHARTS = {"list": LIST, "counts": LIST + RATED, "sums": SUMS + COUNTED, "groups": LIST + RATED + GROUPS}
HEAD = 'title = "What people listen to"\nlanguage = "{}"\nledger = "budget.db"\nout = "site"\npictures = false\n'


@pytest.mark.some(1)
@pytest.mark.parametrize("every", [None, "year"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_statement_is_one_page_for_each_chart(chromium, tmp_path, monkeypatch, language, every):
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path)
    (tmp_path / "budget.db").unlink()
    terms = {} if every is None else {"every": every, "since": "2025-01-01"}
    discreet.Ledger.create("budget.db", epsilon=5, unit="people who listen to the radio", **terms)
    write_charts(tmp_path, "".join(chart.format(id=name) for name, chart in CHARTS.items()), HEAD.format(language))
    # A charge for a period that has ended adds a sentence to the statement, and so does a start before the ledger.
    assert not publish("--yes", "--as-of", "2025-11-01")
    chromium.open(tmp_path / "site" / "statement.html")
    # Each chart begins a page, so more pages than charts mean that one of them has two.
    assert chromium.print_to_pdf().count(b"/Type /Page\n") == len(CHARTS)
