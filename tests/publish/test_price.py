"""The price is what will be charged, and how long the budget lasts is what a simulation of the ledger says."""

from fractions import Fraction

import pytest

from chart_folder import ARTISTS, SONGS, fill_folder, publish, write_charts
from discreet.ledger.account import Composition
from discreet.ledger.charges import parse_moment
from discreet.ledger.ledger import Ledger
from discreet.publish.chart_source import list_terms, open_chart_source
from discreet.publish.charts_file import read_charts
from discreet.publish.run import MOST_PERIODS, find_cost, make_dummy_site, make_price
from discreet.release.topk import make_any_request

DOMAIN, ITEM = 'domain = ["abba", "bach", "cure", "dido"]', 'item = "artist"'
SETTINGS = {
    "one list": ARTISTS,
    "counts": ARTISTS.replace("k = 2", 'k = 2\ncounts = "1/3"'),
    "split": ARTISTS.replace("k = 2", 'k = 2\nsplit = "auto"'),
    "all items": ARTISTS.replace("k = 2", "k = 4\ncounts = 2"),
    "peeling": ARTISTS.replace("k = 2", 'k = 2\nmechanism = "peeling"\nnoise = "laplace"'),
    "histogram": ARTISTS.replace("k = 2", 'k = 2\nmechanism = "histogram"').replace(
        ITEM, f"{ITEM}, max_items_per_user = 2"
    ),
    "core": ARTISTS.replace("k = 2", 'k = 2\nmechanism = "core"\nprecision = "0.5"\notherwise = "none"'),
    "swap": ARTISTS.replace("k = 2", 'k = 2\nadjacency = "swap"\ncounts = 1'),
    "sums": ARTISTS.replace(ITEM, f'{ITEM}, value = "seconds", clip = [0, 90], resolution = "0.5"'),
    "found": ARTISTS.replace(DOMAIN, 'discover = { delta = "1e-9", max_items_per_user = 2 }'),
    "integers": ARTISTS.replace(ITEM, 'item = "song_id"').replace(DOMAIN, 'domain = "integers:0:999"'),
    "groups": SONGS,
    "groups in common": SONGS.replace('each_user = "one"', 'each_user = "many", max_groups_per_user = 1'),
    "months": SONGS.replace('"country"', '"month(played_at)"').replace("countries.csv:code", "2026-10..2026-12"),
    "several columns": SONGS.replace('"country"', '["country", "year(played_at)"]').replace(
        '"countries.csv:code"', '["countries.csv:code", [2026, 2027]]'
    ),
    "found in groups": SONGS.replace('domain = "songs.csv:song_id"\nlabel = "title"', "discover = { delta = 1e-9, "
                                     'max_items_per_user = 1, kind = "integer" }'),
}  # fmt: skip


@pytest.fixture(scope="module")
def charts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("charts")
    fill_folder(folder)
    return folder


@pytest.mark.some(3)
@pytest.mark.parametrize("name", SETTINGS)
def test_the_price_is_what_will_be_charged(charts, name):
    write_charts(charts, SETTINGS[name])
    chart = read_charts(charts / "charts.toml").charts[0]
    terms = list_terms(chart)
    del terms["pad_to"]
    promised = make_any_request(open_chart_source(chart, "2026-10"), **terms).guarantee
    assert find_cost(chart) == Composition(promised.epsilon, promised.zcdp, promised.delta)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["sums", "found", "integers", "several columns", "months"])
def test_every_chart_can_be_rehearsed(charts, name):
    write_charts(charts, SETTINGS[name])
    site = make_dummy_site(read_charts(charts / "charts.toml"), parse_moment("2026-11-01"))
    [edition] = site.charts[0].editions
    assert edition.period == "2026-10"
    assert not edition.release.private
    assert edition.release.k >= 2


def price_of(folder, charts, moment="2026-11-01", **budget):
    write_charts(folder, charts)
    path = folder / "budget.db"
    path.unlink(missing_ok=True)
    ledger = Ledger.create(path, unit="people", **budget)
    return make_price(read_charts(folder / "charts.toml").charts, ledger, parse_moment(moment))


@pytest.mark.parametrize(
    ("epsilon", "lasts"), [("0.1", 0), ("0.19", 0), ("0.2", 1), ("1.25", 11), (1000, MOST_PERIODS)]
)
def test_the_budget_lasts_as_long_as_releases_fit(tmp_path, epsilon, lasts):
    price = price_of(tmp_path, ARTISTS, epsilon=epsilon)
    assert price.charts[0].lasts == lasts
    assert price.fits
    assert price.left == Fraction(str(epsilon)) - Fraction(1, 10)


def test_charts_of_several_lengths_share_what_is_left(tmp_path):
    """From November on, quarters end with the second, the fifth and the eighth month."""
    slow = ARTISTS.replace('"artists"', '"slow"').replace('"month"', '"quarter"')
    price = price_of(tmp_path, ARTISTS + slow, epsilon="1.4")
    assert [row.lasts for row in price.charts] == [9, 3]
    for epsilon, lasts in (("1.3", [8, 3]), ("1.2", [8, 2]), ("1.1", [7, 2])):
        assert [row.lasts for row in price_of(tmp_path, ARTISTS + slow, epsilon=epsilon).charts] == lasts


def test_a_budget_with_a_delta_lasts_longer(tmp_path):
    pure = price_of(tmp_path, ARTISTS, epsilon=2).charts[0].lasts
    assert price_of(tmp_path, ARTISTS, epsilon=2, delta="1e-6").charts[0].lasts > 2 * pure


def test_a_budget_that_renews_tells_what_fits_of_what_is_due_in_its_year(tmp_path):
    """Twelve charges fall in each year: that of December is the first of the next."""
    renewed = {"every": "year", "zone": "Europe/Berlin", "since": "2026-01-01"}
    price = price_of(tmp_path, ARTISTS, epsilon="1.1", **renewed)
    # October is charged now, November in December.
    assert (price.charts[0].lasts, price.charts[0].coming, price.period, price.left) == (1, 1, "2026", 1)
    row = price_of(tmp_path, ARTISTS, "2026-02-02", epsilon="1.1", **renewed).charts[0]
    assert (row.lasts, row.coming) == (10, 10)
    row = price_of(tmp_path, ARTISTS, "2026-02-02", epsilon="0.5", **renewed).charts[0]
    assert (row.lasts, row.coming) == (4, 10)


def test_a_budget_that_is_too_small_is_told(tmp_path):
    price = price_of(tmp_path, ARTISTS, epsilon="0.05")
    assert not price.fits
    assert price.charts[0].lasts == 0


def test_a_chart_is_paid_by_its_part(folder):
    """The price, the charge and the number of further periods follow the part; another part's budget is no help."""
    charts = ARTISTS.replace("k = 2", 'k = 2\npart = "music"') + ARTISTS.replace('"artists"', '"others"')
    write_charts(folder, charts)
    ledger, charts = Ledger(folder / "budget.db"), read_charts(folder / "charts.toml").charts
    missing, other = make_price(charts, ledger, parse_moment("2025-11-01")).charts
    assert (missing.cost, other.error) == (None, None)
    assert "part must be left out, as the ledger has none, not 'music'" in str(missing.error)
    ledger.reserve_part("music", epsilon="0.25")
    price = make_price(charts, ledger, parse_moment("2025-11-01"))
    assert (price.fits, price.left, price.charts[0].lasts) == (True, 20 - Fraction(2, 10), 1)
    for moment, codes in (("2025-11-01", 0), ("2025-12-01", 0), ("2026-01-01", 3)):
        assert publish("--as-of", moment) == codes
    assert [entry.part for entry in ledger.history()] == ["music", None, "music", None, None]
    assert ledger.spending.left("music") == Fraction(1, 20)
