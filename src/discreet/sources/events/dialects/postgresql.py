"""The other scheme that URLs of PostgreSQL have."""

from __future__ import annotations

from discreet.sources.events.dialects.postgres import DIALECT as DIALECT
