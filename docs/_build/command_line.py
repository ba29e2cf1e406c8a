"""The reference of the command line as Markdown, read off the program: every command, argument and option.

    python docs/_build/command_line.py > docs/cli.md
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer

from discreet.cli.app import app

INTRODUCTION = """# Command line

Made of the program itself when this page was built; `discreet COMMAND --help` says the same. Look a command up in two minutes. An error is one line on
standard error, and the [exit code](schedule.md#exit-codes) tells its cause.
"""


def reference() -> str:
    """The page: a section for each command, those of a group after the group."""
    root: Any = typer.main.get_command(app)
    return "\n".join([INTRODUCTION, *(_section(name, command) for name, command in _walk("discreet", root))])


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child, below in _children(command):
        yield from _walk(f"{name} {child}", below)


def _children(command: Any) -> list[tuple[str, Any]]:
    """The commands of a group by name, which are imported by asking for them."""
    context: Any = command.context_class(command)
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    return [(name, command.get_command(context, name)) for name in names]


def _section(name: str, command: Any) -> str:
    context: Any = command.context_class(command, info_name=name)
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"## {name}\n", f"```text\n{usage}\n```\n", f"{_escaped(inspect.cleandoc(command.help or ''))}\n"]
    parts += _table("Argument", [one for one in command.params if one.param_type_name == "argument"])
    parts += _table("Option", [one for one in command.params if one.param_type_name == "option" and not one.hidden])
    children = _children(command)
    if children:
        rows = [
            f"| [`{child}`](#{_anchor(name, child)}) | {_escaped(below.get_short_help_str(200))} |"
            for child, below in children
        ]
        parts.append("\n".join(["| Command | |", "| --- | --- |", *rows]) + "\n")
    if command.epilog:
        parts.append(f"```text\n{inspect.cleandoc(command.epilog.replace(chr(8), '')).strip()}\n```\n")
    return "\n".join(parts)


def _anchor(name: str, child: str) -> str:
    return f"{name} {child}".replace(" ", "-")


def _table(title: str, parameters: list[Any]) -> list[str]:
    rows = [_row(one) for one in parameters]
    return ["\n".join([f"| {title} | |", "| --- | --- |", *rows]) + "\n"] if rows else []


def _row(parameter: Any) -> str:
    word = parameter.metavar or ""
    names = [*parameter.opts, word] if parameter.param_type_name == "option" else [word or parameter.human_readable_name]
    spelt = " ".join(f"`{name}`{{.option}}" for name in names if name)
    return f"| {spelt} | {_escaped(parameter.help or '')}{_default(parameter)} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return " *Required.*"
    return f" By default `{parameter.default}`." if isinstance(parameter.default, str) else ""


def _escaped(text: str) -> str:
    """Words of the program, none of which is meant as Markdown or HTML."""
    for sign in "\\`*_<>|[]":
        text = text.replace(sign, f"&#{ord(sign)};")
    return text


if __name__ == "__main__":
    print(reference())
