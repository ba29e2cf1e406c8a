"""Mutation testing of the exact layer and the mechanisms: `make mutants`."""
