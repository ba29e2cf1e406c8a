"""Charge a release, draw it, and withhold it until the padding has passed.

Everything that takes private time, freeing the scores included, happens before a wait; the steps after a wait depend on
the release alone. A charge is visible in the ledger's file, so it has a wait of its own.
"""

from __future__ import annotations

from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any

from discreet.errors import Error, InternalError, InvalidValueError
from discreet.release.padding import Padding
from discreet.release.request import AnyRequest, Randomness

if TYPE_CHECKING:
    from discreet.ledger.charges import PlannedCharge
    from discreet.ledger.store import Record


class Delivery:
    """A context that draws one release and delivers it.

    The caller makes and draws a request inside the block. The end of the block waits for the padding and stores the
    release in the ledger; an error waits as well. The caller deletes its references to the source and the request
    inside the block, so that they are freed before the wait.
    """

    def __init__(self, padding: Padding, charge: PlannedCharge | None = None, rng: Any = None) -> None:
        self._padding, self._charge, self._rng = padding, charge, rng
        self._record: Record | None = None
        self.release: Any = None

    def __enter__(self) -> Delivery:
        return self

    def draw(self, request: AnyRequest) -> None:
        """Probe the source, charge the ledger, and draw; or take the release stored for the same request."""
        randomness, padding, charge = Randomness.of(self._rng), self._padding, self._charge
        if padding.is_auto:
            padding.choose_period(request.workload)
        if charge is not None:
            query = charge.query(request)
            if charge.is_new():
                request.source.probe()
                charge.check_room(query)
            padding.wait()
            self._record, self.release = charge.spend(query)
        if self.release is not None:
            return
        try:
            self.release = request.draw(randomness)
        except Error as error:
            if self._record is None or isinstance(error, InternalError):
                raise
            raise type(error)(f"{error}; it was charged before, and what it cost stays spent") from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        charge, record = self._charge, self._record
        if isinstance(error, InternalError):
            try:
                self._padding.wait()
            finally:
                # An interrupted wait must not leave the ledger unlocked.
                if charge is not None and record is not None:
                    with self._padding.delay_errors():
                        charge.lock(record)
        if error is not None:
            if isinstance(error, Exception):
                self._padding.wait()
            return
        with self._padding.delay_errors():
            self._padding.wait()
            if charge is not None and record is not None:
                charge.keep(record, self.release)


def plan_charge(
    ledger: Any, purpose: Any, request_id: Any, dataset: Any, rng: Any = None, delta: Fraction = Fraction(0)
) -> PlannedCharge | None:
    """Return the charge that a release will make, or None without a ledger.

    `delta` is the delta of the release. A ledger without room for it is refused before anything is read.
    """
    if ledger is None:
        for name, given in (("purpose", purpose), ("request_id", request_id), ("dataset", dataset)):
            if given is not None:
                raise InvalidValueError(f"{name} must be left out without a ledger, which is where it is written")
        return None
    if rng is not None:
        raise InvalidValueError("rng must be left out with a ledger: what can be drawn again is not private")
    from discreet.ledger.charges import open_charge

    return open_charge(ledger, purpose, request_id, dataset, delta)
