"""Measures how the code is laid out: what a reader passes, and what somebody touches who adds something.

    python tools/house.py                           the tree as it is
    python tools/house.py --rev 85c18ae --rev .     a revision, and beside it the tree as it is
    python tools/house.py --list                    what is behind the rows that can be listed

How each row is counted:

- A module is a file that ends in .py under src; its importers are the other modules that import it, anywhere in the
  file, or load it by a name that stands in a string. Packages are not asked for their importers.
- An import against the layers is one of a module by another, anywhere in a file or by a name in a string, that the
  contract of lint-imports in the revision's pyproject.toml forbids; it is listed if the contract ignores it. Imports
  for types alone do not count, and neither do those of the package itself.
- Lines are those of all modules, blank lines and comments included. A line of an import is one that an `import`
  statement covers, at any level of the file.
- A loose module is a file in the package's own folder, `__init__.py` and `__main__.py` included.
- The walks are real runs in a process of their own; `walk.py`, beside this file, says what a hop is.
- A function is a `def` at any level whose name has no double underscore in front; its length is that of its body in
  lines, without the docstring.
- The parameters of a function are all that its signature names, `self`, `*args` and `**options` included. The public
  `events` and `top_k` are excepted, which are meant to be called with keywords.
- A private function starts with one underscore. It is used once where its own module has its name once beside the
  `def`, as a variable or behind a dot; a function that only another module uses counts as not used. The share is of all
  functions, those with double underscores included.
- A docstring is a string that stands alone as a statement: that of a module, a class, a function or an attribute.
- A bare participle is a name of one word that ends in -ed, or an irregular one such as `drawn`; what is a verb or a
  noun too, such as `read` or `bound`, is none.
- A file knows of a thing if its code names it: an identifier, an import or a string has the name in it. Docstrings and
  comments do not count.
- A file that names every noise, mechanism or engine is one to touch for a further one, beside its own if it has one.
- Pairs of duplicates are those of the command `duplicates`, where there is one: six or more lines alike.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).parents[1]
WORKING_TREE = "."

KNOWN = {
    "the noise half-logistic": r"half[-_ ]?logistic",
    "the noise gumbel": r"gumbel",
    "the mechanism Peeling": r"peeling",
    "the mechanism Joint": r"(?<![a-z])joint",
    "the engine PostgreSQL": r"postgres|psycopg",
    "the engine Spark": r"spark",
}
"""The things that a file may know of, and the spelling of their names in code, in lower case."""

KINDS = {
    "noise": ["gumbel", "exponential", "laplace", "logistic", r"half[-_ ]?logistic"],
    "mechanism": ["canonical", r"one[-_ ]?shot", "peeling", r"(?<![a-z])joint"],
    "engine": ["duckdb", "postgres", "sqlite", "spark"],
}
"""The spellings of all of a kind."""

IRREGULAR = (
    "begun broken brought built caught chosen done drawn felt found given gone grown heard held hidden kept known laid "
    "left lost made meant met overspent paid proven said seen sent shown spelt spent spoken stood taken thrown told "
    "torn unbroken understood unknown unread withdrawn written"
)
NO_PARTICIPLES = "bed embed exceed feed need proceed red seed shed speed succeed"

QUESTION = r"(What|Whether|Which|How|Where|Why)\b"
"""The words that open a relative clause or a question, with which no docstring should begin."""

WALKS = {
    "top_k": "top_k(array)",
    "select": "select events.parquet --where",
    "select_by": "select events.parquet --where --by",
}
"""The walks whose hops are counted, and their titles."""

MANY_PARAMETERS = ("events", "top_k")
"""The public functions that may have more parameters than others."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Row = tuple[str, list[str], str]
"""The subject of a count, the things found if they can be listed, and the count."""


@dataclass(frozen=True)
class Tree:
    """The modules below a folder of sources."""

    source: Path

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        """Each module by its dotted name, as Python reads it."""
        paths = sorted(self.source.rglob("*.py"))
        return {self._dotted(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}

    def _dotted(self, path: Path) -> str:
        *folders, last = path.relative_to(self.source).with_suffix("").parts
        return ".".join(folders if last == "__init__" else [*folders, last])

    @cached_property
    def contract(self) -> dict[str, Any] | None:
        """The layers that lint-imports checks; None for a revision without them."""
        file = self.source.parent / "pyproject.toml"
        tools = tomllib.loads(file.read_text(encoding="utf-8"))["tool"] if file.exists() else {}
        contracts = tools.get("importlinter", {}).get("contracts", [])
        return next((each for each in contracts if each["type"] == "layers"), None)

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """The functions of each module, but for those that Python itself calls, such as `__init__`."""
        return {
            name: [n for n in ast.walk(module) if isinstance(n, Function) and not n.name.startswith("__")]
            for name, module in self.modules.items()
        }


def find_importers(tree: Tree) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    importers: dict[str, set[str]] = {name: set() for name in tree.modules}
    for importer, module in tree.modules.items():
        for name in _imports(module, set(tree.modules)) - {importer}:
            importers[name].add(importer)
    return importers


def find_single_imports(tree: Tree) -> list[str]:
    """Return the modules that one other module imports, packages aside."""
    packages = {name.rpartition(".")[0] for name in tree.modules}
    return [name for name, users in find_importers(tree).items() if len(users) == 1 and name not in packages]


def _imports(module: ast.Module, names: set[str]) -> set[str]:
    """Return the modules among `names` that are imported, or loaded by a name in a string, whole or behind a prefix."""
    found: set[str] = set()
    strings = {node.value for node in ast.walk(module) if isinstance(node, ast.Constant)}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= members & names or {node.module}
            found |= {node.module} if members - names else set()
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            found |= {f"{node.values[0].value!s}{string!s}" for string in strings}
    return names & (found | {str(string) for string in strings})


def find_upward_imports(tree: Tree, contract: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the imports that a contract forbids, those that it ignores by name and all others."""
    listed, others = list[str](), list[str]()
    # A bar keeps the rooms of a layer apart, and a colon does not.
    layers = [re.split("[|:]", layer) for layer in contract["layers"]]
    levels = {
        f"{package}.{room.strip()}": (level, "|" in contract["layers"][level])
        for package in contract["containers"]
        for level, rooms in enumerate(layers)
        for room in rooms
    }
    for importer, module in tree.modules.items():
        room = ".".join(importer.split(".")[:2])
        run = [
            node for node in module.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        ]
        for name in sorted(_imports(ast.Module(run, []), set(tree.modules))):
            other = ".".join(name.split(".")[:2])
            if room == other or not {room, other} <= levels.keys():
                continue
            (level, is_apart), (imported, _) = levels[room], levels[other]
            if imported < level or (imported == level and is_apart):
                pair = f"{importer} -> {name}"
                is_listed = any(fnmatchcase(pair, pattern) for pattern in contract.get("ignore_imports", []))
                (listed if is_listed else others).append(pair)
    return listed, others


def find_participles(tree: Tree) -> list[str]:
    """Return the functions whose name is one participle."""
    return [
        f"{module}.{function.name}"
        for module, functions in tree.functions.items()
        for function in functions
        if _is_participle(function.name.strip("_"))
    ]


def _is_participle(word: str) -> bool:
    regular = word.isalpha() and word.endswith("ed") and word not in NO_PARTICIPLES.split()
    return regular or word in IRREGULAR.split()


def measure_lengths(tree: Tree) -> list[int]:
    """Return the number of lines of the body of each function."""
    return [_body_length(function) for functions in tree.functions.values() for function in functions]


def _body_length(function: Function) -> int:
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def count_lines(tree: Tree) -> list[int]:
    """Return the number of lines of each module."""
    return [len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(tree.source.rglob("*.py"))]


def count_import_lines(tree: Tree) -> int:
    """Return the number of lines that import statements cover."""
    nodes = (node for module in tree.modules.values() for node in ast.walk(module))
    return sum((n.end_lineno or 0) - n.lineno + 1 for n in nodes if isinstance(n, ast.Import | ast.ImportFrom))


def find_loose_modules(tree: Tree) -> list[str]:
    """Return the files that lie in the package's own folder."""
    return sorted(str(path.relative_to(tree.source)) for path in tree.source.glob("*/*.py"))


def find_most_parameters(tree: Tree) -> tuple[int, str]:
    """Return the largest number of parameters, and the function that has it."""
    return max(
        (_count_parameters(function.args), f"{module}.{function.name}")
        for module, functions in tree.functions.items()
        for function in functions
        if function.name not in MANY_PARAMETERS
    )


def _count_parameters(arguments: ast.arguments) -> int:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return sum(argument is not None for argument in named)


def count_functions(tree: Tree) -> int:
    """Return the number of all functions, those that Python itself calls included."""
    return sum(isinstance(node, Function) for module in tree.modules.values() for node in ast.walk(module))


def find_used_once(tree: Tree) -> list[str]:
    """Return the private functions whose name stands once in their module beside the definition."""
    found = []
    for name, module in tree.modules.items():
        nodes = list(ast.walk(module))
        uses = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        uses.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
        private = [function.name for function in tree.functions[name] if function.name.startswith("_")]
        found += [f"{name}.{function}" for function in private if uses[function] == 1]
    return found


def find_questions(tree: Tree) -> list[str]:
    """Return the docstrings that open with a question word, each behind its module."""
    texts = (
        (name, node.value.value)
        for name, module in tree.modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    return [f"{name}: {text.split(chr(10))[0]}" for name, text in texts if re.match(QUESTION, text)]


def find_knowing(tree: Tree, *patterns: str) -> list[str]:
    """Return the modules whose code has, for every pattern, a name that fits it."""
    texts = {name: "\n".join(_words(module)) for name, module in tree.modules.items()}
    return [name for name, text in texts.items() if all(re.search(pattern, text) for pattern in patterns)]


def _words(module: ast.Module) -> Iterator[str]:
    """All identifiers, imports and strings of a module in lower case, without the docstrings."""
    prose = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if id(node) not in prose:
            for field, value in ast.iter_fields(node):
                if isinstance(value, str) and field != "type_comment":
                    yield value.lower()


def count_duplicates(tree: Tree) -> str:
    """Return the number of pairs of places that share lines, by the command `duplicates`."""
    printed = _run("duplicates", "--repo", str(tree.source), "--most", "1", "--seconds", "120")
    first = printed.splitlines()[0]
    return "0" if first.startswith("no duplicates") else first.split()[0]


def walk(tree: Tree, name: str) -> dict[str, int]:
    """Return the files and the hops of one walk through the tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree.source), "PYTHONDONTWRITEBYTECODE": "1"}
    return dict(json.loads(_run(sys.executable, str(ROOT / "tools" / "walk.py"), name, environment=environment)))


def measure(tree: Tree) -> list[Row]:
    """All rows, in the order in which they are printed."""
    alone = find_single_imports(tree)
    participles = find_participles(tree)
    loose = find_loose_modules(tree)
    lines = count_lines(tree)
    rows: list[Row] = [
        ("modules", [], str(len(tree.modules))),
        ("loose modules at the top", loose, str(len(loose))),
        ("modules with one importer", alone, str(len(alone))),
        ("lines", [], str(sum(lines))),
        ("lines of a module: median", [], f"{median(lines):g}"),
        ("lines of imports", [], f"{count_import_lines(tree) / sum(lines):.1%}"),
    ]
    if tree.contract is not None:
        listed, others = find_upward_imports(tree, tree.contract)
        found = [*(f"{each} (listed)" for each in listed), *others]
        rows.append(("imports against the layers", found, f"{len(listed)} listed, {len(others)} others"))
    else:
        rows.append(("imports against the layers", [], "no layers"))
    for name, title in WALKS.items():
        try:
            passed = walk(tree, name)
            files, hops = str(passed["files"]), f"{passed['pairs']}, {passed['calls']}"
        except subprocess.CalledProcessError:  # a revision from before the command had these options
            files = hops = "not possible"
        rows.append((f"{title}: files", [], files))
        rows.append((f"{title}: hops, and calls that make them", [], hops))
    base = walk(tree, "arrays")
    trusted = f"{base['functions']} / {base['files']} / {base['lines']}"
    rows.append(("top_k of several arrays: functions / files / lines", [], trusted))
    lengths = measure_lengths(tree)
    rows.append(("functions", [], str(len(lengths))))
    most, holder = find_most_parameters(tree)
    rows.append(("most parameters of one function", [holder], f"{most}, {holder.removeprefix('discreet.')}"))
    once, everything = find_used_once(tree), count_functions(tree)
    rows.append(("private functions used once", once, f"{len(once)}, {len(once) / everything:.0%}"))
    questions = find_questions(tree)
    rows.append(("docstrings that open with What, Whether, Which, ...", questions, str(len(questions))))
    rows.append(("functions that are bare participles", participles, str(len(participles))))
    tenths = quantiles(lengths, n=10, method="inclusive")
    spread = f"{median(lengths):g} / {tenths[-1]:g} / {max(lengths)}"
    rows.append(("lines of a function: median / p90 / max", [], spread))
    for thing, pattern in KNOWN.items():
        knowing = find_knowing(tree, pattern)
        rows.append((f"files that know of {thing}", knowing, str(len(knowing))))
    for kind, patterns in KINDS.items():
        knowing = find_knowing(tree, *patterns)
        rows.append((f"files that name every {kind}", knowing, str(len(knowing))))
    if shutil.which("duplicates"):
        rows.append(("pairs of duplicates", [], count_duplicates(tree)))
    return rows


@contextmanager
def checked_out(revision: str) -> Iterator[Tree]:
    """Return the sources of a revision, in a temporary folder, or those of the working tree."""
    if revision == WORKING_TREE:
        yield Tree(ROOT / "src")
        return
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, "src", "pyproject.toml"], check=True, stdout=subprocess.PIPE
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Tree(Path(folder) / "src")


def _run(*command: str, environment: dict[str, str] | None = None) -> str:
    return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout


def render(revisions: list[str], columns: list[list[Row]]) -> str:
    """Return a Markdown table with a column for each revision."""
    heads = ["the tree as it is" if revision == WORKING_TREE else revision for revision in revisions]
    table = [["", *heads], *([rows[0][0], *(row[2] for row in rows)] for rows in zip(*columns, strict=True))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in table
    )


def main() -> None:
    """Read the arguments, measure, and print."""
    parser = argparse.ArgumentParser(description="Measures how the code is laid out.")
    parser.add_argument("--rev", action="append", metavar="REV", help="a git revision, or . for the tree as it is")
    parser.add_argument("--list", action="store_true", help="also list what was found, for the last revision")
    options = parser.parse_args()
    revisions, columns = options.rev or [WORKING_TREE], []
    for revision in revisions:
        with checked_out(revision) as tree:
            columns.append(measure(tree))
    print(render(revisions, columns))
    for title, found, _ in columns[-1] if options.list else []:
        if found:
            print("", f"{title}:", *found, sep="\n  ")


if __name__ == "__main__":
    main()
