"""Spark on Databricks, which keeps plans and query histories: nothing private is sent to it."""

from __future__ import annotations

from dataclasses import replace

from discreet.sources.events.dialects.pyspark import DIALECT as SPARK

DIALECT = replace(SPARK, name="databricks", title="databricks", views_local_tables=False, send_unlogged=None)
