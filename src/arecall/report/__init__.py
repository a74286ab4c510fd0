"""One result, several writers."""

from arecall.report.data import write_csv, write_json, write_pairs
from arecall.report.table import write_table

__all__ = ["write_csv", "write_json", "write_pairs", "write_table"]
