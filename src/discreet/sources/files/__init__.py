"""Scores in a file: .npy, .csv, .tsv, .json or .parquet, read exactly.

The names of files, columns and items are public, and messages show them. Scores are not, nor is the place where one
stands: a message never shows a score, a row or a line number, and no exception that holds one is chained to it.
"""

from discreet.sources.files.sketched import read_sketch
from discreet.sources.files.source import TEXTS, file_source

__all__ = ["TEXTS", "file_source", "read_sketch"]
