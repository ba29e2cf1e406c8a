"""What a ledger raises when it cannot or will not let a release go ahead."""

from discreet.errors import Error


class LedgerError(Error, RuntimeError):
    """A ledger cannot be used: its file is damaged, locked, full or gone, or a charge has no release; none was made.

    Examples
    --------
    >>> import discreet, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"no ledger"), file.flush()
    ...     try:
    ...         discreet.Ledger(file.name)
    ...     except discreet.LedgerError as error:
    ...         print(str(error).replace(file.name, "budget.db"))
    the ledger 'budget.db' is not a ledger, or is damaged: SQLite cannot read it
    """


class BudgetSpentError(LedgerError):
    """A ledger is in order, and what is left of its budget is less than a release costs; nothing was drawn.

    Examples
    --------
    >>> import discreet, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = discreet.Ledger.create(f"{folder}/budget.db", epsilon=1, unit="readers")
    ...     try:
    ...         discreet.top_k({"dune": 9, "emma": 7}, k=1, epsilon=2, ledger=ledger)
    ...     except discreet.BudgetSpentError as error:
    ...         print(error)
    epsilon 2 does not fit: 1 of 1 is left, and nothing was drawn
    """
