"""Make a release: check the request, charge the ledger, draw, and state the guarantee."""
