"""What a ledger raises when it cannot or will not let a release go ahead."""

from discreet.errors import Error


class LedgerError(Error, RuntimeError):
    """The budget is spent, or the file of the ledger is damaged, locked, full or gone; nothing was released."""
