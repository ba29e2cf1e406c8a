"""Row expressions in the place of a column: `item="fold(trim(Artikel))"`, and `user`, `value` and `by` likewise.

A text that is the name of a column is that column; another text is parsed in the language of `where`. Where names of
columns may be private, in JSON and in several files, the text alone decides: brackets make an expression. An expression
becomes a column of the events beside the others, so that everything after it reads columns alone. It gives every row a
value that depends on that row alone, the same one on every engine, and it cannot fail on a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.sources.events.case_folding import fold_case
from discreet.sources.events.cells import CELL_FIELDS, LARGEST_EXACT, is_untyped, null_unless
from discreet.sources.events.connect import Opened
from discreet.sources.events.group_keys import suggest_period

if TYPE_CHECKING:
    from discreet.sources.events.domain import ListNames

_LONGEST_NAME = 60
"""Maximum number of bytes of a column's name; PostgreSQL cuts off names after 63."""

_QUOTES = "; the name of a column with brackets stands in double quotes inside of the text"
"""A hint where a name in the table does not make a text a column."""

_SPELLINGS: dict[str, Callable[[str], str]] = {
    "fold": fold_case,
    "lower": lambda text: text.translate(str.maketrans(ascii_uppercase, ascii_lowercase)),
    "upper": lambda text: text.translate(str.maketrans(ascii_lowercase, ascii_uppercase)),
    "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
}
"""The functions that change case and spaces alone, on constants; to apply one of their chains twice changes nothing."""

_PLAIN = ("string", "integer", "decimal", "float", "date", "boolean")


@dataclass(frozen=True, eq=False, repr=False)
class RowExpression:
    """A text that may be an expression in the place of a column.

    Attributes
    ----------
    argument, text
        The argument of `events`, and its text.
    columns
        The names of columns in the text.
    condition
        The parsed expression, None if the text does not parse.
    error
        The reason why it does not.
    """

    argument: str
    text: str
    columns: tuple[str, ...] = ()
    condition: Any = None
    error: InvalidTypeError | InvalidValueError | None = None

    @classmethod
    def parse(cls, argument: str, text: Any) -> RowExpression | None:
        """Parse a text, and return None if it can only be the name of a column."""
        is_word = not isinstance(text, str) or text.replace("_", "a").isalnum() or not text.strip()
        # A period has a hint of its own.
        if is_word or (argument == "by" and suggest_period(text)):
            return None
        from discreet.sources.events.where import Condition

        try:
            with _call_it(argument):
                condition = Condition.parse(text)
        except (InvalidTypeError, InvalidValueError) as error:
            # A column's name may have brackets, and a typing error in a name is no expression.
            return cls(argument, text, error=error) if "(" in text else None
        # A name in double quotes tells a key of JSON with brackets from an expression.
        is_name = condition.is_name and not text.lstrip().startswith('"')
        return None if is_name else cls(argument, text, condition.columns, condition)

    def may_be_name(self) -> bool:
        """Return True if the text is a name where the names of columns are private, and may not decide that."""
        is_quoted = self.condition is not None and self.condition.is_name
        return "(" not in self.text and not is_quoted

    def is_meant(self, columns: Sequence[str]) -> bool:
        """Return True if the text is an expression, beside these columns, and not the name of one or a misspelt one."""
        known = {column.casefold() for column in columns}
        return self.text not in columns and ("(" in self.text or known.issuperset(map(str.casefold, self.columns)))

    def describe_misspelt(self, names: ListNames, members: Sequence[Any], file: str = "", column: str = "") -> str:
        """Return a warning about members of a public list that the expression can never equal, "" if there are none.

        Parameters
        ----------
        names, members
            The list.
        file, column
            The file that holds it, and its column or the expression of it; "" for a list in no file.
        """
        functions = [] if self.condition is None else self.condition.list_outer_functions()
        misspelt = 0
        for member in members if functions else ():
            text = member
            for name in reversed(functions):
                text = _SPELLINGS[name](text)
            misspelt += text != member
        if not misspelt:
            return ""
        made = "".join(f"{name}(" for name in functions) + "..." + ")" * len(functions)
        remedy = repr(f"{file}:{apply_to(functions, column)}") if file else f"{made} makes them"
        return (
            f"{names.argument} has {misspelt:,} of {len(members):,} {names.member}s that no row can have, because "
            f"{quote(self.text)} never has this case or these spaces: spell them alike, as {remedy}"
        )

    def list_columns(self, columns: Sequence[str]) -> list[str]:
        """Return those of these columns that the text names; case may differ."""
        own = {column.casefold() for column in self.columns}
        return [column for column in columns if column.casefold() in own]


def derive_columns(
    opened: Opened, expressions: Sequence[RowExpression], has_private_names: bool = False
) -> dict[str, str]:
    """Add a column for each expression to the events, and return the names of the columns by the texts.

    Parameters
    ----------
    opened
        The events; their `table`, `undeclared`, `derive`, `expressions` and `notes` are changed.
    expressions
        At least one expression. Equal texts are one column.
    has_private_names
        True if no text was compared with the names of columns, so that one of them may be meant.
    """
    base, undeclared = opened.events, opened.undeclared
    taken = {column.casefold() for column in base.columns}
    names: dict[str, str] = {}
    for each in expressions:
        names.setdefault(each.text, _name_column(each.text, taken))

    def translate(table: Any, each: RowExpression) -> tuple[Any, bool, str | None]:
        from discreet.sources.events.where.translate import Reader

        strange = _drop_long_numbers if opened.is_pandas else None
        reader = Reader(table, opened.dialect, undeclared, opened.names_are_private, strange, is_clean=True)
        with _call_it(each.argument, _QUOTES if has_private_names else ""):
            if each.error is not None:
                raise each.error
            value = each.condition.translate_value(reader)
        return _finish(each, value), value.cell is not None, reader.comparator.describe_readings()

    def derive(table: Any) -> Any:
        return table.mutate(**{names[each.text]: translate(table, each)[0] for each in expressions})

    opened.expressions = {names[each.text]: each for each in expressions}
    for each in expressions:
        _, is_undeclared, note = translate(base, each)
        if is_undeclared:
            opened.undeclared |= {names[each.text]}
        if note is not None:
            opened.notes.append(f"{each.argument}{note.removeprefix('where')}")
    opened.derive, opened.table = derive, derive(base)
    return names


def apply_to(functions: Sequence[str], text: str) -> str:
    """Return the text of a column, or of an expression, in calls of functions, the last of them innermost.

    The functions change case and spaces alone; those that the expression ends with already are left out.

    Examples
    --------
    >>> apply_to(["trim"], "dish"), apply_to(["trim"], "dish of the day")
    ('trim(dish)', 'trim("dish of the day")')
    >>> apply_to(["fold", "trim"], "fold(dish)"), apply_to(["fold", "trim"], "fold(trim(dish))")
    ('trim(fold(dish))', 'fold(trim(dish))')
    """
    from discreet.sources.events.where import Condition

    outer: list[str] = []
    quoted = f'"{text.replace(chr(34), 2 * chr(34))}"'
    for spelled in (text, quoted):
        with suppress(InvalidTypeError, InvalidValueError):
            condition = Condition.parse(spelled)
            if condition.columns == (text,) or "(" in text:
                outer = condition.list_outer_functions()
                break
    for name in reversed(functions):
        spelled = spelled if name in outer else f"{name}({spelled})"
    # A column needs no quotes by itself.
    return text if spelled == quoted else spelled


def check_user_columns(user: RowExpression, others: dict[str, Sequence[str]]) -> None:
    """Raise if the user is made of a column that another argument uses: a person would then be several users.

    Parameters
    ----------
    user
        The expression of the user.
    others
        The columns that each of the other arguments uses.
    """
    own = {column.casefold() for column in user.columns}
    for argument, columns in others.items():
        shared = next((column for column in columns if column.casefold() in own), None)
        if shared is not None:
            raise InvalidValueError(
                f"user must not be made of a column that {argument} uses, as {quote(user.text)} is of {quote(shared)}: "
                f"a person would be another user for each {shared}, and only that part of the person would be protected"
            )


def note_shared_columns(user: RowExpression, columns: Sequence[str]) -> list[str]:
    """Return a note if the user is made of several columns, and `where` uses one of them too."""
    return [
        f"user {quote(user.text)} is made of {quote(shared)}, which where uses too: a person with several values of "
        f"{shared} would be several users, and only that part of the person would be protected"
        for shared in user.list_columns(columns)[:1]
    ]


def _finish(expression: RowExpression, value: Any) -> Any:
    """Return the column of an expression, and raise if its values are of no kind that the argument can have."""
    import ibis

    argument = expression.argument
    if not expression.columns or value.kind == "NULL":
        raise InvalidValueError(
            f"{argument} must be a column or an expression of columns, not {quote(expression.text)}"
        )
    if argument == "value":
        if value.kind == "integer":
            return value.expr.cast("float64") / ibis.literal(float(10**value.scale)) if value.scale else value.expr
        if value.cell is not None or value.kind in ("decimal", "float"):
            return value.expr
        raise InvalidTypeError(f"value must be made of numbers, and {quote(expression.text)} is a {value.kind}")
    if value.kind not in _PLAIN or value.scale:
        found = "has decimal places" if value.scale else f"is a {value.kind}"
        raise InvalidTypeError(
            f"{argument} must be text, whole numbers, dates or booleans, and {quote(expression.text)} {found}"
        )
    return value.expr


def _drop_long_numbers(cell: Any) -> Any:
    """Return a cell of a pandas frame, without whole numbers that a gap in the column would make floats of."""
    if not is_untyped(cell.type()):
        return cell
    import ibis

    fields = {name: cell[name] for name in CELL_FIELDS}
    inside = fields["integer"].between(-LARGEST_EXACT, LARGEST_EXACT)
    return ibis.struct({**fields, "integer": null_unless(inside, fields["integer"])})


def _name_column(text: str, taken: set[str]) -> str:
    """Return a name for the column of an expression: its text, unless that is long or taken in another case."""
    name = text
    if len(name.encode()) > _LONGEST_NAME or not name.isprintable() or name.casefold() in taken:
        name = f"{sha256(text.encode()).hexdigest()[:12]} {text.encode('ascii', 'ignore').decode()[:30]!r}"
    taken.add(name.casefold())
    return name


@contextmanager
def _call_it(argument: str, hint: str = "") -> Iterator[None]:
    """Let the errors about a condition name another argument, and end with a hint."""
    try:
        yield
    except (InvalidTypeError, InvalidValueError) as error:
        said = str(error)
        if said.startswith("where "):
            said = f"{argument}{said.removeprefix('where').replace(' in where ', f' in {argument} ')}"
        elif not hint:
            raise
        renamed = type(error)(f"{said}{hint}")
    else:
        return
    raise renamed
