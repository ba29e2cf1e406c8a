"""An entry of the registry as YAML, with each question as a comment beside the field that it is about.

Written by hand: no library that discreet needs writes YAML, and none that does would write the comments. Texts are in
double quotes, as JSON has them, which YAML reads as well; those of several lines are blocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def entry_to_yaml(entry: Mapping[str, Any]) -> str:
    """The entry as YAML, without its questions but for the comments."""
    questions = entry.get("questions", {})
    rest = {name: value for name, value in entry.items() if name != "questions"}
    return "\n".join(_write_mapping(rest, "", "", questions)) + "\n"


def _write_mapping(mapping: Mapping[str, Any], indent: str, path: str, questions: Mapping[str, str]) -> Iterator[str]:
    for name, value in mapping.items():
        # Questions name a field by its section and its name: all sections are below "deployment".
        field = name if not path or path == "deployment" else f"{path}.{name}"
        comment = f"  # {questions[field]}" if field in questions else ""
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}:{comment}"
            yield from _write_mapping(value, f"{indent}  ", field, questions)
        elif isinstance(value, list) and value:
            yield f"{indent}{name}:{comment}"
            yield from (f"{indent}  - {_quote(each)}" for each in value)
        elif isinstance(value, str) and _is_block(value):
            yield f"{indent}{name}: |-{comment}"
            yield from (f"{indent}  {line}" if line else "" for line in value.split("\n"))
        else:
            yield f"{indent}{name}: {_quote(value)}{comment}"


def _is_block(text: str) -> bool:
    """Whether a text of several lines reads back from a block as it is."""
    first, *others = text.split("\n")
    return (
        bool(others) and "".join([first, *others]).isprintable() and first.strip() == first != "" and bool(others[-1])
    )


def _quote(value: Any) -> str:
    """A value on one line, in a form that JSON and YAML share."""
    if isinstance(value, float):
        return _write_float(value)
    text = json.dumps(value, ensure_ascii=False)
    # YAML does not take these as they are, and their escapes are those of JSON.
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _write_float(value: float) -> str:
    """A float that is not negative, as readers of YAML 1.1 know it: with a point and a signed exponent."""
    mantissa, sign, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{sign}{exponent}"
