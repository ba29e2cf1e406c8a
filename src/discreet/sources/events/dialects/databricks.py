"""Spark as Databricks runs it: nothing private is sent there, because its plans and histories are kept."""

from __future__ import annotations

from dataclasses import replace

from discreet.sources.events.dialects.pyspark import DIALECT as SPARK

DIALECT = replace(SPARK, name="databricks", title="databricks", views_local_tables=False, send_unlogged=None)
