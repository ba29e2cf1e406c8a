"""What notebooks show: short tables, escaped, of what may be seen."""

import re
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import discreet
from command_line import process

EVIL = "<script>alert('x')</script>&\""
EVENTS = pa.table({"who": ["ann", "bob", "eve"], EVIL: ["dune", "dune", "heat"], "land": ["DE", "DE", "FR"]})
SCORES = {EVIL: 90, "b": 80, "c": 5, "d": 1}


class _Balance(HTMLParser):
    """Raises where tags are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def seen(value):
    """The text that a reader sees, a cell or a line each; nothing of it is a tag."""
    html, parser = value._repr_html_(), _Balance()
    parser.feed(html)
    parser.close()
    assert not parser.open
    assert "<script" not in html
    return parser.text


def source(**options):
    given = {"user": "who", "item": EVIL, "domain": ["dune", "heat", "alien"], **options}
    return discreet.events(EVENTS, **given)


def test_a_release_with_counts_is_a_table():
    release = discreet.top_k(SCORES, k=2, epsilon=100, counts=100)
    assert seen(release)[1:5] == ["item", "about", "95% interval", EVIL]


def test_a_comparison_is_a_table_of_decimals():
    table = discreet.compare([90, 80, 5, 1], k=2, epsilon="1/3", goal="top")
    text = seen(table)
    assert text[:3] == ["k = 2, each goal reached with probability 0.95", "mechanism", "epsilon for top"]
    assert "top at 0.3334" in text
    assert text[-1] == "NOT private: computed from the scores"
    choice = table.best("top")
    at = text.index(str(choice))
    assert text[at + 1] == f"{float(choice.needs['top'])}"
    assert repr(table) == f"Comparison({len(table.choices)} choices, k=2, probability=0.95, epsilon=0.3334)"
    assert repr(choice) == f"Choice({choice.mechanism!r}, needs {text[at + 1]} for top)"


def test_a_plan_begins_with_what_it_recommends():
    found = discreet.plan([90, 80, 5, 1], k=2, goal="recall", probability="0.9")
    text = seen(found)
    assert text[0] == found.recommendation
    assert text[1] == f"To release: {found.command}"
    assert "epsilon for recall" in text
    assert re.fullmatch(r"Plan\(.*, epsilon=0\.\d{1,5}, recall of k=2\)", repr(found))


@pytest.mark.parametrize("measure", [discreet.utility, discreet.expected])
def test_what_a_release_will_be_like_is_a_table(measure):
    one = seen(measure([90, 80, 5, 1], k=2, epsilon=1))
    assert "recall" in one
    assert one[-1] == "NOT private: computed from the scores"
    groups = discreet.grouped({"x": [9, 1, 0], "y": [5, 5, 0]}, each_user="one")
    many = seen(measure(groups, k=1, epsilon=1))
    assert {"worst group", "best group", "recall"} <= set(many)


def test_a_ledger_shows_what_the_command_shows(tmp_path):
    path = tmp_path / "budget.db"
    ledger = discreet.Ledger.create(path, epsilon=1, unit=f"readers {EVIL}")
    discreet.top_k(SCORES, k=1, epsilon="1/3", ledger=ledger)
    title, *cells = seen(ledger)
    assert title == f"budget.db: the privacy of readers {EVIL}, add-remove"
    rows = dict(zip(cells[::2], cells[1::2], strict=True))
    assert (rows["spent"], rows["left"], rows["head"]) == ("0.3334", "0.6666", ledger.head)
    shown = process("budget", "show", str(path)).stdout.splitlines()
    assert [line.split(maxsplit=1)[0] for line in shown[1:]] == [name.split()[0] for name in rows]
    assert all(line.endswith(text) for line, text in zip(shown[1:], rows.values(), strict=True))


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, {"user": "who", "item": EVIL, "items": "3, a public list", "adjacency": "add-remove"}),
        ({"where": "land = 'DE'"}, {"where": "land = 'DE'"}),
        ({"max_items_per_user": 2, "adjacency": "swap"}, {"items of a user": "2", "adjacency": "swap"}),
        ({"by": "land", "groups": ["DE", "FR"], "each_user": "one"}, {"by": "land", "groups": "2", "each user": "one"}),
        ({"domain": discreet.discovered("1e-8", 1)}, {"items": "found in the events, for delta 1e-08"}),
        ({"domain": discreet.integers(0, 2**40)}, {"items": "1,099,511,627,777, a public list"}),
    ],
)
def test_a_source_shows_what_was_asked_and_nothing_of_the_events(options, rows):
    asked = source(**options)
    text = seen(asked)
    shown = dict(zip(text[1::2], text[2::2], strict=False))
    assert rows.items() <= shown.items()
    private = {"ann", "bob", "eve"}
    assert not private & set(text)


def test_two_tables_that_differ_in_one_user_show_the_same():
    with_all, without = (
        discreet.events(table, user="who", item=EVIL, domain=["dune"], where="land <> 'XX'")
        for table in (EVENTS, EVENTS.slice(0, 2))
    )
    assert with_all._repr_html_() == without._repr_html_()


def test_what_a_source_reads_text_as_is_told_with_it(tmp_path):
    (tmp_path / "e.csv").write_text("who,what,day\nann,dune,2026-01-02\n")
    read = discreet.events(
        tmp_path / "e.csv", user="who", item="what", domain=["dune"], where="day >= DATE '2026-01-01'"
    )
    assert seen(read)[-1].startswith("where reads day as dates and times (2026-01-31 or 2026-01-31 12:00:00)")


def test_a_grouped_source_and_a_sketch():
    grouped = discreet.grouped({"x": [9, 1, 0], "y": [5, 5]}, each_user="many")
    shown = seen(grouped)
    assert "2 to 3, a public list" in shown
    sketch = discreet.sketch([900, 500, 20], epsilon=1000, ranks=[1, 3])
    assert seen(sketch)[1:7] == ["rank", "score", "1", "900", "3", "20"]
