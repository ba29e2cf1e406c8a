"""Evidence that epsilon holds: exactly on small inputs, and statistically through the front door."""

# Adds what it defines to the definitions, so that whoever asks those finds it.
from discreet.evidence import core_definition as core_definition
