"""Profiles of Aceso (Liu et al. 2024, microsoft/SuperScaler): a table, with a row for each operator.

Times are microseconds, sizes MiB.  A table has the operators of one layer of a transformer, ``enc-…`` and ``dec-…``;
how many layers there are, a spec says.  The operators form a chain, since the size of an output includes what is only
passed on.  Each becomes a forward and a backward node.  A forward node occupies weights and activations, a backward
node the gradients of the weights; states of an optimiser are in none of these files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError, Source, Span, nearest
from placedsl.graph.build import Place, build
from placedsl.graph.graph import Graph
from placedsl.graph.readers import sizes as given_sizes
from placedsl.graph.readers.sizes import Sizes

_BEGINNING = "op_name,forward-compute,backward-compute,"
_COLUMNS = (
    "op_name", "forward-compute", "backward-compute", "input_size", "output_size", "weights", "activations",
    "fwd_reserved", "bwd_reserved",
)  # fmt: skip
#: The numbers of a row that are used.
_USED = ("forward-compute", "backward-compute", "output_size", "weights", "activations")
#: Operators of a layer of an encoder and of a decoder.
_BLOCKS = ("enc-", "dec-")
#: Microseconds that Aceso writes where an operator did not run.
_FAILED = 1e7
_MICRO, _MIB = 1e-6, 2.0**20


@dataclass(frozen=True)
class _Row:
    """An operator: its name, the numbers in :data:`_USED`, and where it stands."""

    name: str
    numbers: dict[str, float]
    span: Span

    @property
    def block(self) -> str:
        """The beginning of its name, where it is part of a layer that is repeated."""
        return next((block for block in _BLOCKS if self.name.startswith(block)), "")


def looks_like(text: str) -> bool:
    """Whether a text is of this format."""
    return text.lstrip().startswith(_BEGINNING)


def read(source: Source, sizes: Sizes) -> Graph:
    """Read a profile; ``layers`` is the number of layers.  Raises InputError with every defect."""
    rows = _rows(source)
    wrong = given_sizes.unknown(sizes, ("layers",) if any(row.block for row in rows) else ())
    if not wrong and any(row.block for row in rows):
        wrong = given_sizes.missing({"layers": "this model"}, sizes)
    if wrong:
        raise InputError(wrong)
    count = sizes["layers"].value if "layers" in sizes else 1
    if count * len(rows) > (most := limits.count("operators")):
        hint = limits.hint("is the number of layers right?", "operators", count * len(rows))
        raise InputError([Diagnostic(f"a model of more than {most:,} operators", sizes["layers"].place, hint)])
    return _graph(source, list(_repeated(rows, count)))


def _repeated(rows: list[_Row], count: int) -> Iterator[tuple[str, str, _Row]]:
    """Id, layer and row of each operator of the model in its order."""
    for block, members in groupby(rows, key=lambda row: row.block):
        own = list(members)
        for k in range(count if block else 1):
            for row in own:
                yield (f"{row.name}.{k}", f"{block[:-1]}.{k}", row) if block else (row.name, row.name, row)


def _graph(source: Source, operators: list[tuple[str, str, _Row]]) -> Graph:
    def column(name: str, unit: float) -> np.ndarray:
        return np.array([row.numbers[name] for _, _, row in operators]) * unit

    ids = [own for own, _, _ in operators]
    spans = [row.span for _, _, row in operators] * 2
    weights, made = column("weights", _MIB), column("output_size", _MIB)
    forward, back = list(pairwise(ids)), [(f"{v}.backward", f"{u}.backward") for u, v in pairwise(ids)]
    turn = [(ids[-1], f"{ids[-1]}.backward")]
    names = ids + [f"{own}.backward" for own in ids]
    time = np.concatenate((column("forward-compute", _MICRO), column("backward-compute", _MICRO)))
    backward = np.arange(len(names)) >= len(ids)

    def locate(place: Place) -> Span:
        return spans[place.index] if place.kind == "node" and place.index is not None else source.whole()

    texts = {
        "layer": [layer for _, layer, _ in operators], "type": [row.name for _, _, row in operators], "operator": ids,
    }  # fmt: skip
    attributes = {name: np.array(values * 2, dtype=object) for name, values in texts.items()}
    # Sent once a batch, when the gradients are known.
    attributes["parameters"] = np.concatenate((np.zeros(len(ids)), weights))
    return build(
        source=source, ids=names, names=names, time={"accelerator": time},
        memory=np.concatenate((weights + column("activations", _MIB), weights)), backward=backward,
        attributes=attributes, edges=[*forward, *turn, *back], edge_time=None,
        edge_bytes=np.concatenate((made[:-1], made[-1:], made[:-1])), time_in_seconds=True, locate=locate,
    )  # fmt: skip


def _rows(source: Source) -> list[_Row]:
    """The rows of the table; InputError with every defect."""
    found: list[Diagnostic] = []
    rows: list[_Row] = []
    headings: list[str] = []
    for line, span in source.lines():
        cells = [cell.strip() for cell in line.split(",")]
        if not headings:
            headings = cells
            unknown = (name for name in cells if name not in _COLUMNS)
            found += [Diagnostic(f"'{name}' is no column of Aceso", span, nearest(name, _COLUMNS)) for name in unknown]
            found += [Diagnostic(f"the column '{n}' is missing", span) for n in ("op_name", *_USED) if n not in cells]
            if found:
                break
        elif len(cells) != len(headings):
            found.append(Diagnostic(f"this line has {len(cells)} cells, the headings are {len(headings)}", span))
        else:
            rows.append(_row(dict(zip(headings, cells, strict=True)), span, found))
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            found.append(Diagnostic(f"operator '{row.name}' is there twice", row.span, "every operator is needed once"))
        seen.add(row.name)
    if not rows and not found:
        found.append(Diagnostic("this profile has no operators", source.whole()))
    if found:
        raise InputError(found)
    return rows


def _row(cells: dict[str, str], span: Span, found: list[Diagnostic]) -> _Row:
    numbers = {}
    for name in _USED:
        try:
            numbers[name] = float(cells[name])
        except ValueError:
            numbers[name] = math.nan
        if not 0 <= numbers[name] < math.inf:
            found.append(Diagnostic(f"'{name}' is not a number, 0 or more: '{cells[name]}'", span))
            numbers[name] = 0.0
    if not cells["op_name"]:
        found.append(Diagnostic("this operator has no name", span))
    if numbers["forward-compute"] >= _FAILED or numbers["backward-compute"] >= _FAILED:
        hint = "a time of 10 s is written in place of a measured one"
        found.append(Diagnostic(f"operator '{cells['op_name']}' did not run when this was measured", span, hint))
    return _Row(cells["op_name"], numbers, span)
