"""Small wrong changes of the source, one at a time, by the operators of mutmut.

mutmut itself leaves decorated functions alone, and with them every property and cached property, where much of the
sampler lives. So its operators are applied here to all functions, and a mutant is put in place of the original by
handing its code to the function that is already imported, which works whatever the decorator.
"""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

SOURCE = Path(__file__).parents[1] / "src"
PACKAGES = ("discreet/exact", "discreet/mechanisms")


@dataclass(frozen=True)
class Mutant:
    """One change of one function.

    Attributes
    ----------
    name
        Module, function and number of the change in that function: the same as long as the function is.
    lines
        The lines of the statement that is changed, from first to last.
    before, after
        What is replaced, and by what.
    text
        Makes the whole module with the change, which takes a while.
    """

    name: str
    module: str
    function: str
    path: Path
    lines: tuple[int, int]
    before: str
    after: str
    text: Callable[[], str]

    def apply(self) -> None:
        """Put the mutant in place of the original, in this process."""
        module = importlib.import_module(self.module)
        changed: dict[str, Any] = {"__name__": self.module, "__file__": str(self.path)}
        exec(compile(self.text(), str(self.path), "exec"), changed)  # noqa: S102  # our own source, changed on purpose
        old, new = (_function(space, self.function) for space in (vars(module), changed))
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__


def mutants() -> list[Mutant]:
    """All of them, in the order of the source."""
    paths = (path for package in PACKAGES for path in sorted((SOURCE / package).glob("*.py")))
    return [mutant for path in paths for mutant in _of_file(path)]


class _Visitor(MutationVisitor):
    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef) and node.decorators:
            return False
        return super()._skip_node_and_children(node)


def _of_file(path: Path) -> Iterator[Mutant]:
    text = path.read_text(encoding="utf-8")
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    wrapper = MetadataWrapper(cst.parse_module(text))
    visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
    wrapper.visit(visitor)
    positions, statements = wrapper.resolve(PositionProvider), list(_statements(ast.parse(text)))
    functions = dict(_functions(ast.parse(text)))
    numbers: Counter[str] = Counter()
    for change in visitor.mutations:
        if not isinstance(change.contained_by_top_level_function, cst.FunctionDef):
            continue
        function = functions[positions[change.contained_by_top_level_function.name].start.line]
        numbers[function] += 1
        span = positions[change.original_node]
        yield Mutant(
            f"{module}:{function}:{numbers[function]}",
            module,
            function,
            path,
            min((s for s in statements if s[0] <= span.start.line <= s[1]), key=lambda s: s[1] - s[0]),
            _short(wrapper.module.code_for_node(change.original_node)),
            _short(wrapper.module.code_for_node(change.mutated_node)),
            partial(_changed, wrapper.module, change),
        )


def _changed(module: cst.Module, change: Mutation) -> str:
    whole = module.deep_replace(change.original_node, change.mutated_node)
    if not isinstance(whole, cst.Module):
        raise TypeError("a mutant must leave the module a module")
    return whole.code


def _functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return the functions and methods of a module, by the line of their `def`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.name
        if isinstance(node, ast.ClassDef):
            yield from ((m.lineno, f"{node.name}.{m.name}") for m in node.body if isinstance(m, ast.FunctionDef))


def _statements(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Return the first and the last line of each statement; of one with a body, those before the body."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            # Defaults belong to every call of the function.
            yield node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno
            yield node.lineno, max(node.lineno, last or 0)


def _function(space: dict[str, Any], name: str) -> FunctionType:
    """Return the plain function behind a name, whatever wraps it."""
    owner, _, method = name.rpartition(".")
    found = vars(space[owner])[method] if owner else space[method]
    for wrapper in ("fget", "func", "__wrapped__", "__func__"):
        found = getattr(found, wrapper, found)
    if not isinstance(found, FunctionType):
        raise TypeError(f"{name} is no function")
    return found


def _short(code: str) -> str:
    return " ".join(code.split())[:160]
