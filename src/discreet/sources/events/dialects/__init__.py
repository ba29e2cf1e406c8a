"""One file for each engine, by the name that ibis has for it: its `DIALECT` says in what it differs from others."""
