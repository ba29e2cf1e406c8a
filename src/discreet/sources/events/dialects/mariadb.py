"""The second scheme of MariaDB's URLs."""

from __future__ import annotations

from discreet.sources.events.dialects.mysql import DIALECT as DIALECT
