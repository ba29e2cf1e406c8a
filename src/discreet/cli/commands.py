"""Commands whose parameters are all text or flags, which is what they arrive as.

Typer validates each parameter by pydantic since 0.28. To import that and to build a validator for every option takes
longer than to read a small file and to release from it, and nothing here would be changed by it.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _AsGiven:
    """Takes a value as it was given; none of an option that may be repeated is an empty list."""

    def coerce(self, value: Any, param: Any, **_: Any) -> Any:
        many = param.multiple or param.nargs == -1
        return () if value is None and many else value


def _as_given(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        # Older versions have no such method, and no need for it.
        if hasattr(parameter, "get_runtime_param"):
            parameter.get_runtime_param = _AsGiven
    return parameters


class TextCommand(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with the one for help."""
        return _as_given(super().get_params(ctx))


class TextGroup(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with the one for help."""
        return _as_given(super().get_params(ctx))
