"""What leaves the library: Release, Guarantee and Count. Frozen, printable, serialisable, nothing private inside."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidValueError
from discreet.labels import label_from_json, label_to_json
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import from_dict as mechanism_from_dict
from discreet.mechanisms.registry import to_dict as mechanism_to_dict
from discreet.privacy import Sensitivity
from discreet.text import align_columns, count_with_commas, decimal, printable

_FORMAT = 1


@dataclass(frozen=True)
class Guarantee:
    """What a release promises.

    Attributes
    ----------
    epsilon
        The pure differential privacy parameter spent in all, as an exact fraction.
    adjacency
        "add-remove" or "swap": what two neighbouring inputs differ by.
    sensitivity
        How far a score can move between neighbours.
    mechanism
        The mechanism that made the release.
    zcdp
        The rho of zero-concentrated differential privacy, for composition.
    counts_epsilon
        How much of epsilon the counts cost; 0 without counts.
    """

    epsilon: Fraction
    adjacency: str
    sensitivity: Sensitivity
    mechanism: Mechanism
    zcdp: Fraction
    counts_epsilon: Fraction = Fraction(0)

    @property
    def selection_epsilon(self) -> Fraction:
        """How much of epsilon the selection of the items costs; the rest is for the counts."""
        return self.epsilon - self.counts_epsilon

    def to_dict(self) -> dict[str, Any]:
        """The guarantee in terms that JSON can hold; fractions are strings."""
        split = {"selection_epsilon": str(self.selection_epsilon), "counts_epsilon": str(self.counts_epsilon)}
        return {
            "epsilon": str(self.epsilon),
            "adjacency": self.adjacency,
            "sensitivity": {"down": str(self.sensitivity.down), "up": str(self.sensitivity.up)},
            "mechanism": mechanism_to_dict(self.mechanism),
            "zcdp": str(self.zcdp),
            **(split if self.counts_epsilon else {}),
        }

    def to_dp_event(self, accountant: str | None = None) -> Any:
        """The guarantee as a DpEvent of Google's dp-accounting, never better than it is.

        Parameters
        ----------
        accountant
            "pld" for a PLDAccountant: an event that loses exactly epsilon, only under add-remove. "rdp" for an
            RdpAccountant: the rho of zCDP, which is the better one for many releases and a poor one for few. By default
            "pld" under add-remove and "rdp" under swap. The accountant's relation must be that of the guarantee.

        Returns
        -------
        DpEvent
            With counts and for "pld", the selection and the counts composed.

        Examples
        --------
        >>> import discreet
        >>> guarantee = discreet.top_k({"a": 9, "b": 3}, k=1, epsilon="0.5").guarantee
        >>> guarantee.to_dp_event()  # doctest: +SKIP
        DiscreteLaplaceDpEvent(noise_parameter=0.5, sensitivity=1)
        >>> guarantee.to_dp_event(accountant="rdp")  # doctest: +SKIP
        ZCDpEvent(rho=0.03125, xi=0.0)
        """
        from discreet.integrations.dp_accounting import event

        return event(self, accountant)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote."""
        return cls(
            Fraction(data["epsilon"]),
            data["adjacency"],
            Sensitivity(data["sensitivity"]["down"], data["sensitivity"]["up"]),
            mechanism_from_dict(data["mechanism"]),
            Fraction(data["zcdp"]),
            Fraction(data.get("counts_epsilon", 0)),
        )


@dataclass(frozen=True)
class Count:
    """About how high a released item scores.

    Attributes
    ----------
    item
        The item.
    value
        Its score with noise: a whole number, or a Fraction where scores are sums in finer steps.
    low, high
        The score is from `low` to `high` with a chance of at least 95%, for this item by itself.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=100, counts=1000)
    >>> release.counts
    [Count(item='dune', value=912, low=912, high=912), Count(item='alien', value=877, low=877, high=877)]
    """

    item: Any
    value: int | Fraction
    low: int | Fraction
    high: int | Fraction

    def to_dict(self) -> dict[str, Any]:
        """The count in terms that JSON can hold; fractions are strings."""
        figures = {"value": self.value, "low": self.low, "high": self.high}
        plain = {name: figure if isinstance(figure, int) else str(figure) for name, figure in figures.items()}
        return {"item": label_to_json(self.item), **plain}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Count:
        """The count that `to_dict` wrote."""
        figures = (data[name] for name in ("value", "low", "high"))
        return cls(
            label_from_json(data["item"]), *(Fraction(one) if isinstance(one, str) else int(one) for one in figures)
        )


@dataclass(frozen=True)
class Release:
    """The released items and what is promised about them.

    Attributes
    ----------
    items
        The k items, sorted by label; the order says nothing about their scores.
    order
        The same items in the released order, best first, or None where no order was released.
    d
        The size of the public domain.
    guarantee
        What the release promises.
    private
        False where the caller passed a random generator: a release that can be drawn again protects nobody.
    counts
        A noisy score with an interval for each item, the largest first, or None where none were asked for.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"a": 90, "b": 80, "c": 5, "d": 1}, k=2, epsilon=100)
    >>> release.items
    ['a', 'b']
    >>> discreet.Release.from_json(release.to_json()) == release
    True
    """

    items: list[Any]
    order: list[Any] | None
    d: int
    guarantee: Guarantee
    private: bool = True
    counts: list[Count] | None = None

    @property
    def k(self) -> int:
        """How many items were released."""
        return len(self.items)

    def to_dict(self) -> dict[str, Any]:
        """The release in terms that JSON can hold."""
        return {
            "format": _FORMAT,
            "items": [label_to_json(item) for item in self.items],
            "order": None if self.order is None else [label_to_json(item) for item in self.order],
            "d": self.d,
            "guarantee": self.guarantee.to_dict(),
            "private": self.private,
            **({} if self.counts is None else {"counts": [count.to_dict() for count in self.counts]}),
        }

    def to_json(self, indent: int | None = None) -> str:
        """The release as JSON text."""
        text = json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)
        # Half of a surrogate pair can be a label but not a character of a file.
        return json.dumps(self.to_dict(), indent=indent) if re.search("[\ud800-\udfff]", text) else text

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Release:
        """The release that `to_dict` wrote."""
        try:
            if data["format"] != _FORMAT:
                raise ValueError
            order = None if data["order"] is None else [label_from_json(item) for item in data["order"]]
            items = [label_from_json(item) for item in data["items"]]
            counts = None if data.get("counts") is None else [Count.from_dict(entry) for entry in data["counts"]]
            guarantee = Guarantee.from_dict(data["guarantee"])
            return cls(items, order, int(data["d"]), guarantee, bool(data["private"]), counts)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise InvalidValueError("data must be a release as Release.to_dict or to_json writes it") from None

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise InvalidValueError("text must be a release as Release.to_json writes it") from None
        return cls.from_dict(data)

    def __str__(self) -> str:
        return "\n".join([f"{self._title()}:", *self._lines(), self._terms(), *self._warnings()])

    def _lines(self) -> list[str]:
        if self.counts is not None:
            rows = [_TABLE, *([printable(cell) for cell in row] for row in self._rows())]
            return [f"  {line}" for line in align_columns(rows, numbers=True)]
        shown = self.items if self.order is None else self.order
        width = len(str(self.k))
        names = [printable(item) for item in shown]
        return [f"  {i:>{width}}  {name}" if self.order else f"  {name}" for i, name in enumerate(names, 1)]

    def _rows(self) -> list[tuple[str, str, str]]:
        """The counts as text, a row for each item."""
        return [
            (
                str(count.item),
                count_with_commas(count.value),
                f"{count_with_commas(count.low)} to {count_with_commas(count.high)}",
            )
            for count in self.counts or []
        ]

    def _repr_html_(self) -> str:
        """The notebook view."""
        from html import escape

        notes = "".join(f"<br>{escape(line)}" for line in (self._terms(), *self._warnings()))
        return f"<b>{escape(self._title())}</b>{self._listing()}<small>{notes.removeprefix('<br>')}</small>"

    def _listing(self) -> str:
        """The items as a list of HTML, or as a table with their counts."""
        from html import escape

        if self.counts is not None:
            head = "".join(f"<th>{escape(name)}</th>" for name in _TABLE)
            cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._rows())
            return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
        tag, shown = ("ul", self.items) if self.order is None else ("ol", self.order)
        return f"<{tag}>{''.join(f'<li>{escape(str(item))}</li>' for item in shown)}</{tag}>"

    def _title(self) -> str:
        if self.counts is not None:
            return f"Top {self.k:,} of {self.d:,} items, by noisy count"
        order = "sorted by name, which says nothing about rank" if self.order is None else "in the released order"
        return f"Top {self.k:,} of {self.d:,} items, {order}"

    def _terms(self) -> str:
        epsilon, mechanism = self.guarantee.epsilon, self.guarantee.mechanism
        change = "added or removed" if self.guarantee.adjacency == "add-remove" else "replaced"
        return f"epsilon = {decimal(epsilon)}{self._split()} for one user {change}, drawn by {mechanism!r}"

    def _split(self) -> str:
        selection, counts = self.guarantee.selection_epsilon, self.guarantee.counts_epsilon
        return f" ({decimal(selection)} for the selection, {decimal(counts)} for the counts)" if counts else ""

    def _warnings(self) -> list[str]:
        return [] if self.private else ["NOT PRIVATE: drawn with the caller's random generator"]


_TABLE = ("item", "about", "95% interval")
