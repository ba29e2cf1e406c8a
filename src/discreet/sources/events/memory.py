"""Whether two columns or frames lie in the same memory.

Only addresses are compared, never values: what depends on a value would tell about private rows. Bits of validity are
left out, which libraries share between columns that have nothing else in common.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

Span = tuple[int, int]
"""The first address and the one after the last."""


def share_memory(one: Any, other: Any) -> bool:
    """Whether a column or frame of pandas, polars, pyarrow or NumPy shares memory with another."""
    spans = sorted(set(_spans(one)))
    return any(_overlaps(span, spans) for span in _spans(other)) if spans else False


def _overlaps(span: Span, spans: list[Span]) -> bool:
    """Whether a span overlaps one of some sorted ones."""
    # Spans of one allocation may lie inside each other, so those before the first that begins later are all asked.
    return any(span[0] < end for _, end in spans[: bisect_left(spans, (span[1], 0))])


def _spans(given: Any) -> Iterator[Span]:
    """The spans of memory of a column or frame; none where it is unknown how it lies there."""
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if package == "numpy":
        yield from _spans_of_numpy(given)
    elif package == "pyarrow":
        yield from _spans_of_arrow(given)
    elif package == "polars" and kind in ("DataFrame", "Series"):
        yield from _spans_of_polars(given)
    elif package == "pandas":
        yield from _spans_of_pandas(given)


def _spans_of_numpy(array: Any) -> Iterator[Span]:
    from numpy.lib.array_utils import byte_bounds

    if getattr(array, "size", 0) and hasattr(array, "__array_interface__"):
        yield byte_bounds(array)


def _spans_of_arrow(given: Any) -> Iterator[Span]:
    import pyarrow as pa

    if isinstance(given, pa.Table | pa.RecordBatch):
        for column in given.columns:
            yield from _spans_of_arrow(column)
    elif isinstance(given, pa.ChunkedArray):
        for chunk in given.chunks:
            yield from _spans_of_arrow(chunk)
    elif isinstance(given, pa.ExtensionArray):
        yield from _spans_of_arrow(given.storage)
    elif isinstance(given, pa.Array):
        yield from ((each.address, each.address + each.size) for each in given.buffers()[1:] if each)
        if isinstance(given, pa.DictionaryArray):
            yield from _spans_of_arrow(given.dictionary)


def _spans_of_polars(given: Any) -> Iterator[Span]:
    import polars as pl

    columns = given.get_columns() if isinstance(given, pl.DataFrame) else [given]
    for column in (each for each in columns if each.dtype != pl.Object):
        # Text stays where it is in the newest of Arrow's forms alone, and categories only as their codes.
        yield from _spans_of_arrow(column.to_physical().to_arrow(compat_level=pl.CompatLevel.newest()))


def _spans_of_pandas(given: Any) -> Iterator[Span]:
    kind = type(given).__name__
    if kind == "DataFrame":
        for place in range(given.shape[1]):
            yield from _spans_of_pandas(given.iloc[:, place])
    elif kind == "MultiIndex":
        for part in (*given.levels, *given.codes):
            yield from _spans(part)
    else:
        array = getattr(given, "array", given)
        # pandas has no public way to what an extension array is made of, and converting one may copy it.
        for name in ("_ndarray", "_data", "_pa_array", "codes", "categories"):
            yield from _spans(getattr(array, name, None))
