"""The second scheme of PostgreSQL's URLs."""

from __future__ import annotations

from discreet.sources.events.dialects.postgres import DIALECT as DIALECT
