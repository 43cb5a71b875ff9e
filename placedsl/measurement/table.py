"""Measured times as the table that ``profile =`` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from math import isnan

from placedsl.measurement.runs import Measured


def table(measured: Measured, device: str, remarks: Sequence[str]) -> str:
    """CSV: remarks as comments, a line of headings, and a line per operator; ``device`` is a name of the spec."""
    rows = [
        (
            str(operator), device, _micro(seconds), _micro(low), _micro(high),
            "" if isnan(allocated) else f"{allocated:.0f} B",
        )
        for operator, seconds, low, high, allocated in zip(
            measured.operators, measured.seconds, measured.low, measured.high, measured.allocated, strict=True
        )
    ]  # fmt: skip
    return _text(("node", "device", "time", "low", "high", "allocated"), rows, remarks)


def table_of_times(seconds: Mapping[tuple[str, str], float], device: str, remarks: Sequence[str]) -> str:
    """CSV of times by node or by type: the keys are ``("node", NAME)`` or ``("type", NAME)``."""
    rows = [
        (name if by == "node" else "", name if by == "type" else "", device, _micro(time))
        for (by, name), time in seconds.items()
    ]
    return _text(("node", "type", "device", "time"), rows, remarks)


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.6g} us"


def _text(headings: Sequence[str], rows: Sequence[Sequence[str]], remarks: Sequence[str]) -> str:
    out = io.StringIO()
    out.writelines(f"# {remark}\n" for remark in remarks)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return out.getvalue()
