"""Releases the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""

from discreet.errors import Error
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.peeling import Peeling
from discreet.privacy import Sensitivity
from discreet.release import Guarantee, Release
from discreet.sources.domain import integers
from discreet.sources.table import events
from discreet.topk import top_k

__version__ = "0.1.0"

__all__ = [
    "Canonical",
    "Error",
    "Guarantee",
    "Joint",
    "OneShot",
    "Peeling",
    "Release",
    "Sensitivity",
    "__version__",
    "events",
    "integers",
    "top_k",
]
