"""Allow-lists of the steps, expressions and functions of a lazy polars query over the events.

As in `rowwise`, no row may change, remove or fail another row. The query is read twice, without its rows. The JSON of
the query has every step and function with every option, and all of them must be listed below, so that a new version of
polars cannot add one unnoticed. The tree of the query engine has the types, which decide if an operation can fail on a
cell.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from enum import Enum, auto
from itertools import combinations
from typing import Any, NoReturn

from discreet.sources.events.engine import ask
from discreet.sources.events.provenance import lazy_origin, plan_of_lazy

Refuse = Callable[[str], NoReturn]


class OneOf(tuple[Any, ...]):
    """The values that a field of the JSON may have."""


class Mark(Enum):
    """The kinds of fields whose values are not written out below."""

    ANY = auto()  # anything
    GIVEN = auto()  # anything but null
    STEP = auto()  # a step
    VALUE = auto()  # an expression
    LITERAL = auto()  # a literal
    LISTED = auto()  # a literal or a series of literals


ANY, GIVEN, STEP, VALUE, LITERAL, LISTED = Mark

# The tables below describe JSON. A dictionary has the fields that an object may have, and the values of each. A list
# with one member stands for a list of any length, and a tuple for a list of exactly these members. Any other value
# stands for itself.

_WIDTH = dict.fromkeys(("run_parallel", "duplicate_check", "should_broadcast", "maintain_dataframe_height"), ANY)
_SCAN = {
    **dict.fromkeys(("cloud_options", "rechunk", "cache", "glob", "expand_paths", "hidden_file_prefix"), ANY),
    **dict.fromkeys(("cast_columns_policy", "missing_columns_policy", "extra_columns_policy", "source_sizes"), ANY),
    **dict.fromkeys(("schema", "projection", "column_mapping", "default_values", "row_index", "pre_slice"), None),
    **dict.fromkeys(("include_file_paths", "deletion_files", "table_statistics", "row_count"), None),
    "resolve_heavy_sources": ANY,
    "hive_options": {"enabled": OneOf((None, False)), "hive_start_idx": ANY, "schema": None, "try_parse_dates": ANY},
}
_JOIN = {
    "how": OneOf(("Inner", "Semi", "Anti", "Cross")),
    "validation": "ManyToMany",
    "slice": None,
    **dict.fromkeys(("suffix", "nulls_equal", "coalesce", "maintain_order", "build_side"), ANY),
}
STEPS: dict[str, Any] = {
    "DataFrameScan": {"df": ANY, "schema": ANY},
    "Scan": {
        "sources": ANY,
        "unified_scan_args": _SCAN,
        "scan_type": {
            "Parquet": {
                "options": {
                    "schema": None,
                    **dict.fromkeys(("parallel", "low_memory", "use_statistics", "decryption_properties"), ANY),
                }
            },
        },
    },
    "Filter": {"input": STEP, "predicate": VALUE},
    "Select": {"input": STEP, "expr": [VALUE], "options": _WIDTH},
    "HStack": {"input": STEP, "exprs": [VALUE], "options": _WIDTH},
    "Sort": {
        "input": STEP,
        "by_column": [VALUE],
        "slice": None,
        "sort_options": {
            "limit": None,
            **dict.fromkeys(("descending", "nulls_last", "multithreaded", "maintain_order"), ANY),
        },
    },
    "Distinct": {"input": STEP, "options": {"subset": None, "maintain_order": ANY, "keep_strategy": ANY}},
    "Union": {
        "inputs": [STEP],
        "args": {
            "to_supertypes": False,
            **dict.fromkeys(("parallel", "rechunk", "diagonal", "strict", "from_partitioned_ds"), ANY),
            "maintain_order": ANY,
        },
    },
    "Join": {
        "input_left": STEP,
        "input_right": STEP,
        "condition": {"Equi": {"left_on": [{"Column": ANY}], "right_on": [{"Column": ANY}]}},
        "options": {"allow_parallel": ANY, "force_parallel": ANY, "args": _JOIN},
    },
    "MapFunction": {"input": STEP, "function": {"Rename": {"existing": ANY, "new": ANY, "strict": ANY}}},
    "Cache": {"input": STEP, "id": ANY},
    "IR": {"dsl": STEP, "version": ANY},
}
"""The accepted steps, with the accepted values of their options."""

COMPARISONS = ("Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq", "EqValidity", "NotEqValidity")
ARITHMETIC = ("Plus", "Minus", "Multiply", "TrueDivide", "FloorDivide", "Modulus")
LOGIC = ("And", "Or", "Xor", "LogicalAnd", "LogicalOr")
VALUES: dict[str, Any] = {
    "Column": ANY,
    "Selector": ANY,
    "Literal": {"Dyn": ANY, "Scalar": ANY},
    "Alias": (VALUE, ANY),
    "KeepName": VALUE,
    "RenameAlias": {"expr": VALUE, "function": {"Prefix": ANY, "Suffix": ANY}},
    "BinaryExpr": {"left": VALUE, "right": VALUE, "op": OneOf((*COMPARISONS, *ARITHMETIC, *LOGIC))},
    "Ternary": {"predicate": VALUE, "truthy": VALUE, "falsy": VALUE},
    "Cast": {"expr": VALUE, "dtype": {"Literal": ANY}, "options": "NonStrict"},
}
"""The accepted expressions except functions."""

_TIMES = OneOf(
    ("Date", "Time", *({"Datetime": [unit, None]} for unit in ("Nanoseconds", "Microseconds", "Milliseconds")))
)
_BASES = OneOf({"Literal": {"Dyn": {"Int": base}}} for base in (2, 8, 10, 16))


def _each(names: str, inputs: Any = (), arguments: Any = None, family: str = "") -> dict[str, tuple[Any, Any]]:
    """Return an entry of `FUNCTIONS` for each name."""
    return {f"{family}{name}": (inputs, arguments) for name in names.split()}


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    **_each("Abs Negate Sign Ceil Floor Exp Pow.Sqrt Pow.Cbrt"),
    **_each("Hash", arguments=ANY),
    **_each("Round", arguments={"decimals": ANY, "mode": ANY}),
    **_each("Log Pow.Generic", LITERAL),
    **_each("Clip", LITERAL, {"has_min": ANY, "has_max": ANY}),
    **_each("FillNull Coalesce", VALUE),
    **_each("Replace", (LISTED, LISTED)),
    **_each("ReplaceStrict", (LISTED, LISTED, LITERAL), {"return_dtype": None}),
    **_each("Not IsNull IsNotNull IsNan IsNotNan IsFinite IsInfinite", family="Boolean."),
    **_each("AllHorizontal AnyHorizontal", VALUE, family="Boolean."),
    **_each("IsIn", (LISTED,), {"nulls_equal": ANY}, family="Boolean."),
    **_each("IsBetween", VALUE, {"closed": ANY}, family="Boolean."),
    **_each("Lowercase Uppercase LenBytes LenChars Reverse", family="StringExpr."),
    **_each("StartsWith EndsWith Slice Head Tail ZFill", LITERAL, family="StringExpr."),
    **_each("StripChars StripCharsStart StripCharsEnd StripPrefix StripSuffix", LITERAL, family="StringExpr."),
    **_each("Contains", LITERAL, {"literal": ANY, "strict": ANY}, family="StringExpr."),
    **_each("Replace", LITERAL, {"n": ANY, "literal": ANY}, family="StringExpr."),
    **_each("Extract", LITERAL, ANY, family="StringExpr."),
    **_each("ConcatHorizontal", VALUE, {"delimiter": ANY, "ignore_nulls": ANY}, family="StringExpr."),
    **_each("ToInteger", (_BASES,), {"dtype": ANY, "strict": False}, family="StringExpr."),
    # Without a format, polars chooses one that fits the first row.
    **_each(
        "Strptime",
        LITERAL,
        ({"Literal": _TIMES}, {"format": GIVEN, "strict": False, "exact": ANY, "cache": ANY}),
        family="StringExpr.",
    ),
    **_each("Year Quarter Month Week WeekDay Day Hour Minute Second Date", family="TemporalExpr."),
}
"""The accepted functions: their accepted inputs after the first, and their accepted arguments."""

_FAMILIES = {name.partition(".")[0] for name in FUNCTIONS if "." in name}
ITSELF = "a join or isin of a table with itself"
_OWN = "a function of your own"
_HIDDEN = f"{_OWN}, or one that polars does not show"
_TEXT = "a scan of text, whose types and errors follow from rows (pass the path of the file as table instead)"
_MANY = "a scan of several files, whose types follow from rows (pass their paths as table instead)"
_WORDS = {
    "Slice": "a limit",
    "GroupBy": "an aggregate",
    "Agg": "an aggregate",
    "Len": "an aggregate",
    "Over": "a window",
    "Rolling": "a window",
    "RowIndex": "the number of a row",
    "PythonScan": _OWN,
    "AnonymousFunction": _OWN,
    "OpaquePython": _OWN,
    "SQL": "SQL of your own",
    "Csv": _TEXT,
    "NDJson": _TEXT,
    "Lines": _TEXT,
    "Series": "a column that is joined by position",
    "pre_slice": "a limit",
    "row_index": "the number of a row",
    "subset": "one row of several that are not equal",
    "how": "an outer join or one by order, where an inner one would do",
    "validation": "a check of the keys of a join",
    "to_supertypes": "a union that converts types (cast with strict=False before it)",
    "options": "a cast that can fail on a row (use strict=False)",
    "strict": "a conversion that can fail on a row (use strict=False)",
    "format": "a conversion whose format follows from rows (give a format)",
    "enabled": "a scan of partitions",
}
"""The names in messages of common refused steps, functions and options."""

_FRAME = b'"df":['
"""The beginning of a frame in the JSON of a plan."""

_WHOLE = {f"{sign}Int{bits}": (sign, bits) for sign in ("", "U") for bits in (8, 16, 32, 64)} | {"Int128": ("", 128)}
_NUMBERS = {*_WHOLE, "Float32", "Float64"}
_PLAIN = {**dict.fromkeys(_NUMBERS, "number"), "Boolean": "boolean", "String": "string", "Date": "date"}
_UNCHECKED = {"IsNull", "IsNotNull"}
"""The functions that fail on no type."""
_MIXED = {"IsIn", "replace", "replace_strict"}
"""The functions whose literals may be of another type than the column."""


def check_lazy(frame: Any, refuse: Refuse) -> None:
    """Call `refuse`, which raises, unless every step of a lazy query reads one row and fails on no row."""
    text = _PlanText()
    try:
        frame._ldf.serialize_json(text)
        plan = json.loads(bytes(text.text))
    except Exception:  # polars does not serialise some functions of Python and some steps
        refuse(_HIDDEN)
    _check_part(STEP, plan, "", refuse)
    try:
        _check_types(ask("polars", "reading the plan of table", lambda: plan_of_lazy(frame)), refuse)
    except (AttributeError, NotImplementedError):
        refuse(_HIDDEN)


class _PlanText:
    """A file that keeps the JSON of a plan without the bytes of its frames."""

    def __init__(self) -> None:
        self.text = bytearray()

    def write(self, piece: bytes) -> int:
        # The kept text ends with the whole of `_FRAME` while the bytes of a frame are still to come.
        start = max(0, len(self.text) - len(_FRAME))
        self.text[start:] = re.sub(_FRAME.replace(b"[", rb"\[") + rb"[0-9,]*", _FRAME, self.text[start:] + piece)
        return len(piece)

    def flush(self) -> None:
        pass


def _check_part(allowed: Any, given: Any, name: str, refuse: Refuse) -> None:
    """Raise unless a part of a plan matches its description; `name` is the field or list that holds the part."""
    if allowed is ANY or (allowed is GIVEN and given is not None):
        return
    if allowed is STEP:
        kind = _check_known(given, STEPS, refuse)
        _check_part(STEPS[kind], given[kind], kind, refuse)
        if kind == "Scan":
            sources = given[kind]["sources"]
            paths = sources.get("Paths", []) if isinstance(sources, dict) else []
            path = paths[0].get("inner") if len(paths) == 1 and isinstance(paths[0], dict) else None
            if not isinstance(path, str) or path.endswith("/") or re.search(r"[*?\[]", path) or os.path.isdir(path):
                refuse(_MANY)
    elif allowed is VALUE:
        _check_value(given, refuse)
    elif allowed in (LITERAL, LISTED):
        kinds = {"Dyn", "Scalar", *(["Series"] if allowed is LISTED else [])}
        literal = given.get("Literal") if isinstance(given, dict) and len(given) == 1 else None
        if not isinstance(literal, dict) or not literal.keys() <= kinds:
            refuse(f"{name} with other inputs than literals")
    elif isinstance(allowed, OneOf):
        if not any(given == each and type(given) is type(each) for each in allowed):
            _refuse_name(name, refuse)
    elif isinstance(allowed, dict) and isinstance(given, dict):
        for key, part in given.items():
            if key not in allowed:
                _refuse_name(key, refuse)
            _check_part(allowed[key], part, key, refuse)
    elif isinstance(allowed, list) and isinstance(given, list):
        for part in given:
            _check_part(allowed[0], part, name, refuse)
    elif isinstance(allowed, tuple) and isinstance(given, list) and len(allowed) == len(given):
        for one, part in zip(allowed, given, strict=True):
            _check_part(one, part, name, refuse)
    elif type(given) is not type(allowed) or given != allowed:
        _refuse_name(name, refuse)


def _check_value(given: Any, refuse: Refuse) -> None:
    """Raise unless an expression and everything inside it is accepted."""
    kind = _check_known(given, {**VALUES, "Function": None}, refuse)
    if kind != "Function":
        _check_part(VALUES[kind], given[kind], kind, refuse)
        return
    _check_part({"input": ANY, "function": ANY}, given[kind], kind, refuse)
    name, arguments = _name_function(given[kind]["function"])
    if name not in FUNCTIONS:
        _refuse_name(name.rpartition(".")[2], refuse)
    rest, allowed = FUNCTIONS[name]
    first, *others = given[kind]["input"]
    _check_value(first, refuse)
    _check_part(rest if type(rest) is tuple else [rest], others, name.rpartition(".")[2], refuse)
    _check_part(allowed, arguments, name.rpartition(".")[2], refuse)


def _name_function(given: Any) -> tuple[str, Any]:
    """Return the name of a function, preceded by its family, and its arguments."""
    name, arguments = next(iter(given.items())) if isinstance(given, dict) else (str(given), None)
    if name not in _FAMILIES:
        return name, arguments
    inner, arguments = _name_function(arguments)
    return f"{name}.{inner}", arguments


def _check_known(given: Any, known: dict[str, Any], refuse: Refuse) -> str:
    """Return the name of a step or an expression, or raise if it is not listed."""
    name = next(iter(given)) if isinstance(given, dict) and len(given) == 1 else str(given)
    if name not in known:
        _refuse_name(name, refuse)
    return name


def _refuse_name(name: str, refuse: Refuse) -> NoReturn:
    refuse(_WORDS.get(name, f"{name}, which is not known to keep rows apart"))


def _check_types(plan: Any, refuse: Refuse) -> None:
    """Raise if a step joins a table with itself, or the types in an expression let it fail on a cell."""
    step, inputs = type(plan.view_current_node()).__name__, plan.get_inputs()
    values = [] if step == "Join" else [each.node for each in plan.get_exprs()]
    if step == "Join":
        for one, other in combinations([lazy_origin(plan, index) for index in inputs], 2):
            if one.meets(other):
                refuse(ITSELF)
    for index in inputs:
        # `get_dtype` resolves columns by the current node of the plan.
        plan.set_node(index)
        for each in values:
            _check_operands(plan, each, refuse)
        _check_types(plan, refuse)


def _check_operands(plan: Any, index: int, refuse: Refuse) -> None:
    """Raise if an expression, or one inside it, can fail on a cell because of the types of its operands."""
    value = plan.view_expression(index)
    kind = type(value).__name__
    parts = [getattr(value, part, []) for part in ("left", "right", "expr", "predicate", "truthy", "falsy", "input")]
    below = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    for each in below:
        _check_operands(plan, each, refuse)
    function = str(value.function_data[0]) if kind == "Function" else ""
    family, _, name = function.rpartition(".")
    if kind in ("Column", "Literal") or name in _UNCHECKED:
        return
    types = [plan.get_dtype(each) for each in below]
    literals = [type(plan.view_expression(each)).__name__ == "Literal" for each in below]
    if kind == "Cast":
        if not literals[0] and not _is_safe_cast(types[0], value.dtype, value.options == 1):
            refuse(f"a cast from {types[0]} to {value.dtype}, which can fail on a row")
        return
    operands = [
        (dtype, is_literal)
        for dtype, is_literal in zip(types, literals, strict=True)
        if not (is_literal and (str(dtype) == "Null" or family == "StringFunction" or name in _MIXED))
    ]
    if kind == "Ternary":
        operands = [each for each in operands if str(each[0]) != "Boolean"] or operands
    kinds = {_describe_type(dtype) for dtype, _ in operands}
    if len(kinds) > 1 or None in kinds:
        listed = " and ".join(sorted({str(dtype) for dtype, _ in operands}))
        refuse(f"an operation on {listed}, which is not known to fail on no row")


def _describe_type(dtype: Any) -> str | None:
    """Return the kind of a type, or None if it has none; operations on values of one kind never fail."""
    name = str(dtype)
    if name.startswith("Datetime") and getattr(dtype, "time_zone", None) in (None, "UTC"):
        return name
    return _PLAIN.get(name)


def _is_safe_cast(source: Any, target: Any, lenient: bool) -> bool:
    """Return True if a cast fails on no cell; the strict casts that polars inserts must be exact."""
    one, other = str(source), str(target)
    if one in (other, "Null"):
        return True
    if not lenient:
        if one in _WHOLE and other in _WHOLE:
            (sign, bits), (wanted, most) = _WHOLE[one], _WHOLE[other]
            return bits < most and (sign == wanted or wanted == "")
        return one in {*_WHOLE, "Float32"} and other == "Float64"
    if one in {*_NUMBERS, "Boolean"}:
        return other in {*_NUMBERS, "Boolean", "String"}
    if one == "String":
        return other in _NUMBERS
    moments = [_describe_type(each) for each in (source, target)]
    return all(each == "date" or (each or "").startswith("Datetime") for each in moments)
