"""A charts file: everything is checked before anything is read, and an error says where it is."""

import json
import os
import re
from importlib.resources import files
from pathlib import Path

import pytest

import discreet
from chart_folder import ARTISTS, HEAD, SONGS, write_charts
from discreet.publish.chart_source import find_table, list_public_options, name_source
from discreet.publish.charts_file import _NOT_ASKED, _PLACES, CHART, FILE, format_schema, read_charts
from discreet.publish.site_folder import write_site
from discreet.sources.events.location import Location


def edit(old, new, charts=SONGS):
    assert charts.count(old) == 1
    return charts.replace(old, new)


def read(tmp_path, charts, head=HEAD):
    write_charts(tmp_path, charts, head)
    return read_charts(tmp_path / "charts.toml")


def test_a_file_is_read_without_any_other_file(tmp_path):
    file = read(tmp_path, SONGS + ARTISTS)
    assert [chart.id for chart in file.charts] == ["songs", "artists"]
    assert (file.title, file.out) == ("What people listen to", tmp_path / "site")
    assert file.find_ledger() == str(tmp_path / "budget.db")


WRONG = [
    (edit('"streams/*.parquet"', '"postgres://ann@h/db"'), "chart 'songs': table must name files, and the URL"),
    (edit('"streams/*.parquet"', '["a.csv", "sqlite://b.db"]'), "chart 'songs': table must name files, and the URL"),
    (edit("epsilon =", "epsilom ="), "charts.toml, chart 'songs': 'epsilom' is no key here; did you mean epsilon?"),
    (edit(" user =", " usr ="), "charts.toml, chart 'songs', events: 'usr' is no key here; did you mean user?"),
    (edit('k = 3\n', ""), "charts.toml, chart 'songs': k is missing. The number of items"),
    (edit('id = "songs"\n', ""), "charts.toml, chart 1: id is missing"),
    (edit("k = 3", 'k = "3"'), "chart 'songs': k must be a whole number, not '3'"),
    (edit("k = 3", "k = true"), "chart 'songs': k must be a whole number, not True"),
    (edit("k = 3", "k = 0"), "chart 'songs': k must be a whole number from 1, not 0"),
    (edit('epsilon = "0.25"', "epsilon = -1"), "chart 'songs': epsilon must be .*, not -1"),
    (edit('epsilon = "0.25"', "epsilon = []"), "chart 'songs': epsilon must be a number"),
    (edit('every = "month"', 'every = "monthly"'), "every must be one of day, week, .*; did you mean month?"),
    (edit('each_user = "one"', 'each_user = "all"'), "chart 'songs', by: each_user must be one of one, many"),
    (edit('time = "played_at"\n', ""), "chart 'songs': time must be given with every"),
    (edit('every = "month"\n', ""), "chart 'songs': time must be left out without every"),
    (edit('every = "month"', 'every = "month"\nfrom = "2026-W1"'), "from must be a month like '2026-01'"),
    (edit('every = "month"', 'every = "month"\nzone = "Europe/Berlim"'), "zone .* did you mean Europe/Berlin"),
    (edit('id = "songs"', 'id = "Songs"'), "id must be of up to 50 small letters"),
    (edit('id = "songs"', 'id = "index"'), "id must be of up to 50 small letters"),
    (edit('domain = "songs.csv:song_id"\n', ""), "either domain or discover must be given"),
    (edit('where = "seconds >= 30"', 'where = "seconds >"'), "chart 'songs': where must be one SQL expression"),
    (edit('counts = "0.25"', 'counts = 1\nsplit = "auto"'), "split must be left out with counts"),
    (edit("k = 3", 'k = 3\nmechanism = "canonica"'), "mechanism must be one of .*; did you mean canonical?"),
    (edit("k = 3", 'k = 3\nmechanism = "joint"\nnoise = "gumbel"'), "noise must be left out with the mechanism"),
    (SONGS + SONGS, "id must be another for each chart, and 'songs' is there twice"),
    ("", "charts.toml: chart is missing"),
    ("[chart]\n", "chart must be one or more tables"),
    ("[[chart]\n", "charts.toml must be TOML, and is not at line 5, column"),
]  # fmt: skip


@pytest.mark.parametrize("folder", ["direct", "behind a link"])
@pytest.mark.parametrize(
    "ledger", ["site/budget.db", "draft/budget.db", "draft/data/budget.db", "link.db", "old", "site-dummy/x.db"]
)
def test_a_ledger_in_the_site_is_refused_after_the_first_run_too(tmp_path, ledger, folder):
    """The site is a link by then, to a folder that the next run removes."""
    charts = tmp_path / "charts"
    charts.mkdir()
    write_site(charts / "site", {"index.html": "", "data/a.csv": ""})
    draft = os.readlink(charts / "site")
    (charts / "link.db").symlink_to("site/budget.db")
    if folder != "direct":
        (tmp_path / "link").symlink_to(charts)
        charts = tmp_path / "link"
    name = ledger.replace("draft", draft).replace("old", ".site-0123456789abcdef.old/budget.db")
    with pytest.raises(discreet.Error, match=r"ledger must be outside of out"):
        read(charts, SONGS, HEAD.replace("budget.db", name))


def test_a_ledger_beside_the_site_is_fine(tmp_path):
    write_site(tmp_path / "site", {"index.html": ""})
    for name in ("budget.db", "site.db", ".site-0123.db", "../budget.db"):
        assert read(tmp_path, SONGS, HEAD.replace("budget.db", name)).find_ledger() == str(tmp_path / name)


@pytest.mark.parametrize(("charts", "message"), WRONG, ids=[message for _, message in WRONG])
def test_an_error_names_the_chart_and_the_key(tmp_path, charts, message):
    with pytest.raises(discreet.Error, match=message):
        read(tmp_path, charts)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (HEAD.replace("ledger", "ledgr"), "charts.toml: 'ledgr' is no key here; did you mean ledger?"),
        (HEAD.replace('out = "site"\n', ""), "charts.toml: out is missing"),
        (HEAD.replace('"budget.db"', '"site/budget.db"'), "ledger must be outside of out"),
        (HEAD + "[defaults]\nid = 'x'\n", "charts.toml, defaults: 'id' is no key here"),
        (HEAD + "[defaults]\nk = 1.5\n", "charts.toml, defaults: k must be a whole number"),
    ],
)
def test_an_error_of_the_file_names_the_key(tmp_path, head, message):
    with pytest.raises(discreet.Error, match=message):
        read(tmp_path, SONGS, head)


def test_defaults_hold_for_charts_that_say_nothing_else(tmp_path):
    head = HEAD + '[defaults]\nk = 7\nevents = { table = "a.parquet", user = "who", item = "x" }\nepsilon = 0.1\n'
    charts = """
[[chart]]
id = "one"
title = "One"
domain = "integers:0:9"
events = { item = "what" }
[[chart]]
id = "two"
title = "Two"
k = 2
discover = { delta = 1e-9, max_items_per_user = 1 }
[[chart]]
id = "three"
title = "Three"
discover = { delta = 1e-9, method = "gaussian" }
"""
    one, two, three = read(tmp_path, charts, head).charts
    assert (one.get("k"), two.get("k")) == (7, 2)
    assert one.settings["events"] == {"table": "a.parquet", "user": "who", "item": "what"}
    assert list_public_options(two)["domain"].delta == discreet.discovered("1e-9", 1).delta
    assert list_public_options(three)["domain"] == discreet.discovered("1e-9", 100, method="gaussian")
    assert str(one.get("epsilon")) == "0.1"


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    folder = tmp_path / "a [b]"
    folder.mkdir()
    (folder / "streams").mkdir()
    (folder / "streams" / "one.parquet").touch()
    chart = read(folder, SONGS).charts[0]
    monkeypatch.chdir("/")
    import glob

    assert glob.glob(find_table(chart)) == [str(folder / "streams" / "one.parquet")]
    several = read(folder, edit('"streams/*.parquet"', '["a.csv", "/b.csv"]')).charts[0]
    assert find_table(several) == [str(folder / "a.csv"), "/b.csv"]
    beside = read(folder, edit('"songs.csv:song_id"', '"connect:songs.song_id"')).charts[0]
    assert list_public_options(beside)["domain"] == Location.parse_list("connect:songs.song_id", "domain")
    options = list_public_options(chart)
    assert options["domain"] == Location.parse_list(f"{folder}/songs.csv:song_id", "domain")
    assert options["groups"] == Location.parse_list(f"{folder}/countries.csv:code", "groups")


def test_a_url_is_made_of_variables_and_never_told(tmp_path, monkeypatch):
    charts = edit('table = "streams/*.parquet"', 'connect = "${WAREHOUSE}", name = "streams"')
    chart = read(tmp_path, charts).charts[0]
    monkeypatch.delenv("WAREHOUSE", raising=False)
    with pytest.raises(discreet.Error, match=r"connect must name variables .* and WAREHOUSE is not"):
        find_table(chart)
    monkeypatch.setenv("WAREHOUSE", "postgres://ada:secret@host/db")
    assert find_table(chart) == "postgres://ada:secret@host/db"
    monkeypatch.setenv("WAREHOUSE", "secret")
    with pytest.raises(discreet.Error, match="connect must be the URL") as caught:
        find_table(chart)
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("WAREHOUSE", "sqlite://data.db")
    assert find_table(chart) == f"sqlite://{tmp_path}/data.db"
    for value in ('["postgres://u:secret@h"]', "3"):
        with pytest.raises(discreet.Error, match="connect must be a text") as caught:
            read(tmp_path, edit('"${WAREHOUSE}"', value, charts))
        assert "secret" not in str(caught.value)


def test_groups_can_be_lists_ranges_and_several_columns(tmp_path):
    def groups(by):
        return list_public_options(read(tmp_path, edit(SONGS.splitlines()[8], f"by = {{ {by} }}")).charts[0])

    assert groups('column = "country", groups = ["DE", "FR"], each_user = "one"')["groups"] == ["DE", "FR"]
    months = groups('column = "month(t)", groups = "2026-01..2026-03", each_user = "many", max_groups_per_user = 2')
    assert months["groups"] == ["2026-01", "2026-02", "2026-03"]
    assert months["max_groups_per_user"] == 2
    both = groups('column = ["country", "month(t)"], groups = [["DE"], "2026-01..2026-02"], each_user = "one"')
    assert [len(each) for each in both["groups"].lists] == [1, 2]
    with pytest.raises(discreet.Error, match="one list for each of the 2 columns"):
        groups('column = ["a", "b"], groups = ["x"], each_user = "one"')


def test_the_fingerprint_is_of_what_is_asked(tmp_path):
    def fingerprint(charts):
        return read(tmp_path, charts).charts[0].fingerprint

    same = fingerprint(SONGS)
    for old, new in (("Most played songs", "Hits"), ("streams/*", "elsewhere/*"), ("at least once", "once")):
        assert fingerprint(edit(old, new)) == same
    for old, new in (("k = 3", "k = 4"), ('"0.25"\ncounts', '"0.5"\ncounts'), ("30", "31"), ("one", "many")):
        assert fingerprint(SONGS.replace(old, new)) != same


def test_the_schema_is_in_step_with_the_keys():
    shipped = files("discreet.publish").joinpath("charts.schema.json").read_text(encoding="utf-8")
    remedy = "python -m discreet.publish.charts_file > src/discreet/publish/charts.schema.json"
    assert shipped == format_schema(), remedy
    schema = json.loads(shipped)
    assert list(schema["properties"]) == [key.name for key in FILE]
    chart = schema["properties"]["chart"]["items"]
    assert list(chart["properties"]) == [key.name for key in CHART]
    assert chart["properties"]["every"]["enum"] == ["day", "week", "month", "quarter", "year", False]
    assert "required" not in schema["properties"]["defaults"]["properties"]["events"]


def test_a_chart_unsets_a_default_by_false(folder):
    head = HEAD + '[defaults]\nevery = "month"\ntime = "played_at"\nzone = "Europe/Berlin"\nnote = "by month"\n'
    once = ARTISTS.replace('every = "month"\ntime = "played_at"\n', "every = false\ntime = false\nzone = false\n")
    write_charts(folder, once, head)
    (chart,) = read_charts("charts.toml").charts
    assert (chart.unit, chart.get("time"), chart.get("zone"), chart.note) == (None, None, None, "by month")
    write_charts(folder, once.replace("zone = false", "zone = true"), head)
    with pytest.raises(discreet.Error, match="zone must be a text, not True"):
        read_charts("charts.toml")
    write_charts(folder, once.replace("zone = false", "k = false"), head)
    with pytest.raises(discreet.Error):
        read_charts("charts.toml")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('to = "2025-Q1"', "to must be a month like '2026-01', not '2025-Q1'"),
        ('from = "2025-05"\nto = "2025-04"', "to must not be before from, '2025-05', as '2025-04' is"),
    ],
)
def test_the_last_period_is_a_period_from_the_first_on(folder, keys, sentence):
    write_charts(folder, ARTISTS.replace('every = "month"', f'every = "month"\n{keys}'))
    with pytest.raises(discreet.Error, match=sentence):
        read_charts("charts.toml")


def test_every_option_of_events_and_top_k_has_a_key_or_no_meaning_here():
    import inspect

    known = {inner.name for key in CHART for inner in (key, *key.keys)}
    elsewhere = {
        "groups": "by", "by": "by", "during": "every", "ledger": "the file", "purpose": "the title",
        "request_id": "id", "as_of": "--as-of", "rng": "tests", "labels": "label", "scores": "events",
        "sensitivity": "events know it",
    }  # fmt: skip
    for function in (discreet.events, discreet.top_k):
        assert set(inspect.signature(function).parameters) - known <= set(elsewhere), function


PAGE = (Path(__file__).parents[2] / "docs" / "charts-file.md").read_text(encoding="utf-8")


def test_the_page_has_every_key(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs" / "_build"))
    from charts_keys import tables

    made = tables()
    assert sorted(re.findall(r'^--8<-- "docs/pictures/keys-(\w+)\.txt"$', PAGE, re.MULTILINE)) == sorted(made)
    for keys, table in zip((FILE, CHART, *(key.keys for key in CHART if key.keys)), made.values(), strict=True):
        rows = table.splitlines()[2:]
        assert [re.match(r"\| `(\w+)`", row)[1] for row in rows] == [key.name for key in keys]
        assert all(key.says in row for key, row in zip(keys, rows, strict=True))
    assert "| `adjacency` | The difference between neighbouring datasets. One of `add-remove`," in made["chart"]


def test_the_example_of_the_page_is_a_charts_file(tmp_path):
    (example,) = re.findall(r"^```toml title=\"charts.toml\"\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "charts.toml").write_text(example, encoding="utf-8")
    songs, evening = read_charts(tmp_path / "charts.toml").charts
    assert (songs.get("every"), evening.get("every")) == ("month", None)
    assert evening.settings["events"]["item"] == "song_id"


def test_the_page_names_the_keys_that_do_not_change_a_chart():
    (sentence,) = re.findall(r"settings changed if .*?\.$", PAGE, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == _NOT_ASKED | _PLACES


@pytest.mark.parametrize(
    ("connect", "value", "kind"),
    [
        ("${URL}", "postgres://here/db", "postgresql"),
        ("postgres://${URL}@here/db", "me", "postgresql"),
        ("${URL}", "mysql://here/db", "mariadb"),
        ("mariadb://here/db", "", "mariadb"),
        ("clickhouse://here/db", "", "clickhouse"),
        ("datafusion://here", "", "datafusion"),
        ("scores://here", "", "other"),
        ("${URL}", None, "other"),
    ],
)
def test_a_statement_knows_the_kind_of_a_database_that_a_variable_names(tmp_path, monkeypatch, connect, value, kind):
    write_charts(tmp_path, ARTISTS.replace('table = "streams/*.parquet"', f'connect = "{connect}", name = "plays"'))
    if value is None:
        monkeypatch.delenv("URL", raising=False)
    else:
        monkeypatch.setenv("URL", value)
    assert name_source(read_charts(tmp_path / "charts.toml").charts[0]) == kind
