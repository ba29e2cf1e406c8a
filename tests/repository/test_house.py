"""The script that measures the layout counts what it says, on a small tree and on a real walk."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "__init__.py": '"""Knows of Peeling in prose alone."""\n\nNAMES = {"ask": "small.asked"}\n',
    "asked.py": "from small import base\nfrom small.base import drawn\n\ndef read():\n    return drawn()\n",
    "base.py": 'def drawn():\n    """Draws."""\n    value = 1\n    return value\n\ndef seed():\n    pass  # peeling\n',
    "cli.py": 'from importlib import import_module\n\ndef load(name="late"):\n    import_module(f"small.{name}")\n',
    "late.py": 'from small.base import seed\n\nclass Peeling:\n    noise = "half-logistic"\n    __call__ = seed\n',
}


@pytest.fixture
def house(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import house

    return house


@pytest.fixture
def tree(house, tmp_path):
    folder = tmp_path / "src" / "small"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return house.Tree(tmp_path / "src")


def test_importers_are_found_in_imports_and_in_names(house, tree):
    assert set(tree.modules) == {"small", "small.asked", "small.base", "small.cli", "small.late"}
    assert house.find_importers(tree) == {
        "small": set(),
        "small.asked": {"small"},
        "small.base": {"small.asked", "small.late"},
        "small.cli": set(),
        "small.late": {"small.cli"},
    }
    assert house.find_single_imports(tree) == ["small.asked", "small.late"]


def test_functions_are_named_and_measured(house, tree):
    assert house.find_participles(tree) == ["small.base.drawn"]
    assert sorted(house.measure_lengths(tree)) == [1, 1, 1, 2]


def test_lines_are_counted_and_those_of_imports(house, tree):
    assert sorted(house.count_lines(tree)) == sorted(text.count("\n") for text in FILES.values())
    assert house.count_import_lines(tree) == 4


def test_files_at_the_top_are_loose(house, tree):
    (tree.source / "small" / "room").mkdir()
    (tree.source / "small" / "room" / "inner.py").write_text("")
    assert house.find_loose_modules(tree) == [f"small/{name}" for name in sorted(FILES)]


SHAPES = '''"""Where shapes are."""

def top_k(a, b, c, d, e, f, g, h):
    """How many there are."""
    return _once(a) + _twice(b) + _twice(c)

def _once(x):
    return 1

def _twice(x):
    return 2

def _never(x):
    return 3

class Shape:
    """A shape."""

    area: int
    """Which area it has."""

    def draw(self, /, pen, *points, colour, **options):
        """Draw it. What was there is gone."""
        return self._stroke(pen)

    def _stroke(self, pen):
        """Whatever it is."""

    def __repr__(self):
        return "What"
'''


@pytest.fixture
def shapes(house, tmp_path):
    (tmp_path / "shapes.py").write_text(SHAPES, encoding="utf-8")
    return house.Tree(tmp_path)


def test_every_kind_of_parameter_counts_but_not_those_of_top_k(house, shapes):
    assert house.find_most_parameters(shapes) == (5, "shapes.draw")


def test_private_functions_used_once_are_found(house, shapes):
    assert house.find_used_once(shapes) == ["shapes._once", "shapes._stroke"]
    assert house.count_functions(shapes) == 7


def test_docstrings_that_open_with_a_question_are_found(house, shapes):
    assert sorted(house.find_questions(shapes)) == [
        "shapes: How many there are.",
        "shapes: Where shapes are.",
        "shapes: Which area it has.",
    ]


def test_knowing_is_a_matter_of_code(house, tree):
    assert house.find_knowing(tree, house.KNOWN["the mechanism Peeling"]) == ["small.late"]
    assert house.find_knowing(tree, house.KNOWN["the noise half-logistic"]) == ["small.late"]
    assert house.find_knowing(tree, house.KNOWN["the engine Spark"]) == []
    assert house.find_knowing(tree, "peeling", "logistic") == ["small.late"]
    assert house.find_knowing(tree, "peeling", "drawn") == []


LAYERS = """
[[tool.importlinter.contracts]]
type = "layers"
containers = ["small"]
layers = ["cli | web", "late", "base : asked"]
ignore_imports = ["small.base -> small.late"]
"""


def test_imports_against_the_layers_are_found_in_functions_too(house, tree):
    assert tree.contract is None
    (tree.source.parent / "pyproject.toml").write_text(LAYERS, encoding="utf-8")
    package = house.Tree(tree.source)
    assert house.find_upward_imports(package, package.contract) == ([], [])
    with (tree.source / "small" / "base.py").open("a", encoding="utf-8") as file:
        file.write("def climb():\n    from small import asked, cli\n    from small.late import Peeling\n")
        file.write("if TYPE_CHECKING:\n    from small import web\n")
    (tree.source / "small" / "web.py").write_text("import small.cli\nimport small\n", encoding="utf-8")
    package = house.Tree(tree.source)
    listed, others = house.find_upward_imports(package, package.contract)
    assert listed == ["small.base -> small.late"]
    assert others == ["small.base -> small.cli", "small.web -> small.cli"]


@pytest.mark.long
def test_only_the_listed_imports_are_against_the_layers(house):
    package = house.Tree(ROOT / "src")
    listed, others = house.find_upward_imports(package, package.contract)
    assert {each.split(" -> ")[0] for each in listed} == {"discreet.release.topk", "discreet.release.statement"}
    assert others == []


@pytest.mark.long
@pytest.mark.slow
def test_a_walk_is_the_same_each_time_and_hops_between_files(house):
    tree = house.Tree(ROOT / "src")
    first = house.walk(tree, "top_k")
    assert first == house.walk(tree, "top_k")
    assert 5 < first["files"] < len(tree.modules)
    assert first["files"] - 1 <= first["pairs"] <= first["calls"]


def test_a_table_has_a_column_for_each_revision(house):
    rows = [("modules", [], "3"), ("functions", [], "10")]
    lines = house.render(["abc", "."], [rows, rows]).splitlines()
    assert lines[0].split("|")[1:4] == ["           ", " abc ", " the tree as it is "]
    assert lines[3].split("|")[1:3] == [" functions ", " 10  "]
    assert len({len(line) for line in lines}) == 1
