"""A graph as a CSV table: one line an operator, with the operators that it reads from.

    operator,milliseconds,memory,output,reads
    embed,4,2147483648,8388608,
    head,3,1073741824,1048576,embed

``memory`` and ``output`` are bytes; several names in ``reads`` are separated by spaces.
"""

import csv

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, Source, Span
from placedsl.graph.build import Place, build, edge_costs
from placedsl.graph.graph import Graph

COLUMNS = ["operator", "milliseconds", "memory", "output", "reads"]


def read(source: Source) -> Graph:
    """Read a table; InputError with every defect."""
    lines = source.text.splitlines()
    rows = list(csv.reader(lines))
    starts = np.cumsum([0, *(len(line) + 1 for line in lines)])

    def line(number: int) -> Span:
        return source.span(int(starts[number]), int(starts[number + 1]) - 1)

    if not rows or rows[0] != COLUMNS:
        raise InputError([Diagnostic("the first line names the columns", line(0), ",".join(COLUMNS))])
    wrong = [i for i, row in enumerate(rows) if len(row) != len(COLUMNS)]
    if wrong:
        raise InputError(Diagnostic(f"a line has {len(COLUMNS)} fields", line(i)) for i in wrong)
    costs = np.array([[_number(field) for field in row[1:4]] for row in rows[1:]]).reshape(-1, 3)
    ids = [row[0] for row in rows[1:]]
    pairs = [(producer, row[0]) for row in rows[1:] for producer in row[4].split()]
    at = [i for i, row in enumerate(rows) if i for _ in row[4].split()]
    edge_bytes, edge_time = edge_costs(ids, costs[:, 2], np.full(len(ids), np.nan), pairs, {})

    def locate(place: Place) -> Span:
        if place.index is None:
            return source.whole()
        return line(place.index + 1 if place.kind == "node" else at[place.index])

    return build(
        source=source, ids=ids, names=ids, time={"accelerator": costs[:, 0] * 1e-3}, memory=costs[:, 1],
        backward=np.zeros(len(ids), dtype=bool), attributes={}, edges=pairs, edge_time=edge_time,
        edge_bytes=edge_bytes, own_edges=(), time_in_seconds=True, locate=locate,
    )  # fmt: skip


def _number(field: str) -> float:
    """The number in a field; nan, which ``build`` reports at its place, where there is none."""
    try:
        return float(field)
    except ValueError:
        return float("nan")
