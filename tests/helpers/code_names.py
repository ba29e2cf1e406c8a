"""Every name in the Python files of the repository, for tests that pages name only what exists."""

import ast
import re
from collections import defaultdict
from functools import cache

from site_pages import ROOT

FOLDERS = ("src", "tests", "tools", "benchmarks", "examples", "fuzz", "mutation", "docs", ".ci")

PAGE_TESTS = ROOT / "tests" / "documents"
"""Tests of the pages name what must not be on a page."""


class Names(ast.NodeVisitor):
    """The names of one file: all that occur, those defined, and the members and bases of its classes."""

    def __init__(self):
        self.known, self.defined = set(), set()
        self.members, self.bases = defaultdict(set), defaultdict(set)
        self._class = None

    def visit(self, node):
        for field in ("id", "attr", "arg", "name", "module", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                self.known |= {name, *name.split(".")}
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w.-]+", node.value):
            self.known |= {node.value, *node.value.split(".")}
        super().visit(node)

    def visit_ClassDef(self, node):  # the name that ast asks for
        self._define(node.name)
        self.bases[node.name] |= {base.id for base in node.bases if isinstance(base, ast.Name)}
        outer, self._class = self._class, node.name
        self.generic_visit(node)
        self._class = outer

    def visit_FunctionDef(self, node):
        self._define(node.name)
        self.generic_visit(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Store):
            self._define(node.id)

    def visit_Attribute(self, node):
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self":
            self._define(node.attr)
        self.generic_visit(node)

    def _define(self, name):
        self.defined.add(name)
        if self._class:
            self.members[self._class].add(name)


@cache
def names_of(path):
    found = Names()
    found.visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


@cache
def python_files():
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return [path for path in found if PAGE_TESTS not in path.parents]


@cache
def known_names():
    """Every identifier of the repository, and every string that is one."""
    return set().union(*(names_of(path).known | names_of(path).defined for path in python_files()))


@cache
def package_classes():
    """The members and the bases of every class of the package; classes of one name are taken together."""
    members, bases = defaultdict(set), defaultdict(set)
    for path in (ROOT / "src").rglob("*.py"):
        for name, found in names_of(path).members.items():
            members[name] |= found
        for name, found in names_of(path).bases.items():
            bases[name] |= found
    return members, bases


def has_member(name, member):
    """True if a class of the package, or a base of it in the package, has the member."""
    members, bases = package_classes()
    return member in members[name] or any(has_member(base, member) for base in bases[name] if base != name)
