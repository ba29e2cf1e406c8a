"""One module for each engine, named as ibis names the engine; its `DIALECT` has what differs from other engines."""
