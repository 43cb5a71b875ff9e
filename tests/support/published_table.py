"""Rows of Table 1 of Tarnawski et al. 2020 of which the input is at hand."""

from __future__ import annotations

import csv
from pathlib import Path

TABLE = "published/throughput.csv"
INPUTS = "dnn-partitioning/throughput-inputs"


def rows(workloads: Path) -> list[dict[str, str]]:
    text = (workloads.parent / TABLE).read_text(encoding="utf-8")
    found = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [row for row in found if (workloads / INPUTS / row["file"]).is_file()]
