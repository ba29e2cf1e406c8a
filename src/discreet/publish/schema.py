"""The JSON Schema of a charts file, made of the table of keys, for editors that check as one types.

`python -m discreet.publish.schema` prints what `charts.schema.json` has to hold.
"""

from __future__ import annotations

import json
from typing import Any

from discreet.publish.keys import FILE, Key


def make_schema() -> dict[str, Any]:
    """The schema of a charts file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Charts of discreet publish",
        **_table(FILE),
    }


def to_text() -> str:
    """The schema as the file that is shipped."""
    return json.dumps(make_schema(), indent=2) + "\n"


def _table(keys: tuple[Key, ...], partial: bool = False) -> dict[str, Any]:
    required = [key.name for key in keys if key.is_required and not partial]
    return {
        "type": "object",
        "properties": {key.name: _value(key, partial) for key in keys},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _value(key: Key, partial: bool) -> dict[str, Any]:
    described = {"description": key.says, **key.kind.schema}
    if key.choices:
        described["enum"] = list(key.choices)
    # What the defaults say, a chart need not: nothing but what it is called is required of every one.
    if key.name == "chart":
        return {**described, "items": _table(key.keys, partial=True) | {"required": ["id", "title"]}}
    return {**described, **_table(key.keys, partial=partial or key.name == "defaults")} if key.keys else described


if __name__ == "__main__":
    print(to_text(), end="")
