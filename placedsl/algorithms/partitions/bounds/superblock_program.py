"""The integer programs of superblocks: Figure 3 of MTPP (Xie et al. 2023), with fewer and larger stages.

The stages of a pipeline are taken together in order to a few superblocks.  A column y[v, b] says that unit v is in one
of the first b superblocks, a column c[e, b] that tensor e is cut by superblock b.  Two things are stated otherwise than
in the paper: a tensor is cut wherever a reader and its maker are not both inside, and a tensor that is cut is cut by
two superblocks at least, where the tensors of all superblocks count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.units import Hyperedges, hyperedges, placement_units
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.ir.linear_rows import LinearRows
from placedsl.ir.program import LinearProgram
from placedsl.problem.problem import Problem
from placedsl.solvers.registry import get
from placedsl.tolerances import EVALUATION

#: What a bound of the program is lowered by: ten times the feasibility that solvers are asked for.
MARGIN = 1e-7
#: A program with more columns than this is not stated.
MOST_COLUMNS = 200_000


@dataclass(frozen=True, eq=False)
class Pipeline:
    """u units on devices that are all alike: their seconds, the tensors between them, what comes before what (nothing
    where stages need not follow one another), and the unit of each node."""

    work: Floats
    edges: Hyperedges
    before: Integers
    after: Integers
    unit_of_node: Integers
    devices: int

    @property
    def simple(self) -> float:
        """What some stage works at least: the largest unit, or the even share of the work."""
        return float(max(self.work.max(initial=0.0), self.work.sum() / self.devices))


@dataclass(frozen=True)
class Superblocks:
    """What is asked of them.

    ``most``     by superblock: how many times the largest load of a stage it loads at most (None: no limit)
    ``heavy``    the superblock that works at least as much as some stage has to (None: none)
    ``ordered``  whether they follow one another;  ``transfers``  whether tensors that are cut count
    """

    most: tuple[float | None, ...]
    heavy: int | None = None
    ordered: bool = True
    transfers: bool = True


def alike(problem: Problem) -> list[str]:
    """Why the devices are not all alike, and accelerators; empty where they are."""
    if not problem.accelerators.all():
        return ["it is for accelerators only: what a host reads and writes is not counted"]
    if problem.interchangeable(clustered=False).max(initial=0) > 0:
        return ["it is for devices that are all alike"]
    return []


def pipeline_of(problem: Problem) -> Pipeline | None:
    """The pipeline of a problem whose devices are all alike, and run every operator; None where they are not."""
    if alike(problem):
        return None
    ordered = problem.constraint("contiguous") is not None
    quotient = placement_units(problem, contiguous=ordered, devices=(0,))
    if not np.isfinite(quotient.work).all():
        return None
    none = np.zeros(0, dtype=np.int64)
    before, after = (quotient.before, quotient.after) if ordered else (none, none)
    edges = hyperedges(quotient, 0)
    return Pipeline(quotient.work[0], edges, before, after, quotient.unit_of_node, len(problem.machine.devices))


def columns(pipeline: Pipeline, blocks: int) -> int:
    """How many columns the program has."""
    return len(pipeline.work) * (blocks - 1) + len(pipeline.edges.cost) * blocks + 1


def superblock_bound(
    pipeline: Pipeline, asked: Superblocks, upper: float, budget: Budget,
    heard: Callable[[float, Integers | None], bool],
) -> tuple[float, bool]:  # fmt: skip
    """The least T, up to ``upper`` (inf: no value is known), for which there are such superblocks, as far as it is
    proven; and whether that is final.

    ``heard`` is told of better bounds, and of better superblocks (u numbers); it says whether to stop.
    """
    whole = float(pipeline.work.sum() + pipeline.edges.cost.sum())  # what no superblock loads more than
    scale = min(upper, whole)
    if scale <= 0.0 or not len(pipeline.work):
        return 0.0, True
    program = superblock_program(pipeline, asked, scale, 1.0 if upper < whole else np.inf)
    units, blocks = len(pipeline.work), len(asked.most)

    def progress(point: Floats | None, _value: float, bound: float) -> bool:
        found = None
        if point is not None:
            found = blocks - 1 - np.rint(point[: units * (blocks - 1)]).astype(np.int64).reshape(units, -1).sum(axis=1)
        return heard(bound * scale * (1.0 - MARGIN), found)

    found = get("highs").run(program, budget, progress)
    if found.termination == "infeasible":
        return upper * (1.0 - MARGIN), True
    return found.bound * scale * (1.0 - MARGIN), found.termination == "optimal"


def superblock_program(pipeline: Pipeline, asked: Superblocks, scale: float, most: float) -> LinearProgram:
    """Columns: y[v, b] for all superblocks b but the last, c[e, b] for those with a limit, and T; in units of
    ``scale``, with T at most ``most``."""
    units, blocks = len(pipeline.work), len(asked.most)
    edges = len(pipeline.edges.cost) if asked.transfers else 0
    limited = [b for b, share in enumerate(asked.most) if share is not None]
    in_first = np.arange(units * (blocks - 1)).reshape(units, blocks - 1)
    cut = units * (blocks - 1) + np.arange(edges * len(limited)).reshape(edges, len(limited))
    largest = units * (blocks - 1) + edges * len(limited)
    rows = _Rows(in_first, blocks)
    for b in range(blocks - 1):
        if asked.ordered and len(pipeline.before):
            sides = [(in_first[pipeline.after, b], 1.0), (in_first[pipeline.before, b], -1.0)]
            rows.at_most(sides, np.zeros(len(pipeline.before)))
        if b:
            rows.at_most([(in_first[:, b - 1], 1.0), (in_first[:, b], -1.0)], np.zeros(units))
    if edges:
        _state_cuts(rows, pipeline, cut, limited)
    work = pipeline.work / scale
    for k, b in enumerate(limited):
        share = asked.most[b]
        assert share is not None
        own, constant = rows.inside(np.arange(units), b, 1.0)
        column = np.concatenate([*(one for one, _ in own), cut[:, k], [largest]])
        signs = [float(np.asarray(by)) * work for _, by in own]
        coefficient = np.concatenate([*signs, pipeline.edges.cost[:edges] / scale, [-share]])
        rows.one(column, coefficient, -float(work.sum()) if constant else 0.0)
    if asked.heavy is not None:
        own, constant = rows.inside(np.arange(units), asked.heavy, -1.0)
        least = pipeline.simple / scale * (1.0 - EVALUATION)
        coefficient = np.concatenate([float(np.asarray(by)) * work for _, by in own])
        rows.one(np.concatenate([one for one, _ in own]), coefficient, -least - constant * float(work.sum()))
    cost = np.zeros(largest + 1)
    cost[largest] = 1.0
    upper = np.ones(largest + 1)
    upper[largest] = most
    integer = np.arange(largest + 1) < units * (blocks - 1)
    return replace(rows.rows.program(cost), upper=upper, integer=integer)


def _state_cuts(rows: _Rows, pipeline: Pipeline, cut: Integers, limited: list[int]) -> None:
    """What makes a tensor be cut by each superblock with a limit; and by two, where all have one."""
    pins = pipeline.edges.pins
    maker = np.array([own[0] for own in pins for _ in own[1:]], dtype=np.int64)
    reader = np.array([u for own in pins for u in own[1:]], dtype=np.int64)
    edge = np.array([e for e, own in enumerate(pins) for _ in own[1:]], dtype=np.int64)
    for k, b in enumerate(limited):
        for sign in (1.0, -1.0):
            plus, constant = rows.inside(reader, b, sign)
            minus, other = rows.inside(maker, b, -sign)
            rows.at_most([*plus, *minus, (cut[edge, k], -1.0)], np.full(len(edge), -constant - other))
        if len(limited) == rows.blocks > 1:
            others = [(cut[:, i], -1.0) for i in range(rows.blocks) if i != b]
            rows.at_most([(cut[:, k], 1.0), *others], np.zeros(len(pins)))


class _Rows:
    """Rows over columns that say in which of the first superblocks units are."""

    def __init__(self, in_first: Integers, blocks: int) -> None:
        self.in_first, self.blocks, self.rows = in_first, blocks, LinearRows()

    def at_most(self, parts: Sequence[tuple[Integers, float | Floats]], upper: Floats) -> None:
        """A row for each entry of the columns: the sum of column times coefficient is at most ``upper``."""
        number = len(upper)
        index = np.concatenate([np.arange(number)] * len(parts))
        column = np.concatenate([np.broadcast_to(one, number) for one, _ in parts])
        coefficient = np.concatenate([np.broadcast_to(np.asarray(by, dtype=float), number) for _, by in parts])
        self.rows.at_most(index, column, coefficient, upper)

    def one(self, column: Integers, coefficient: Floats, upper: float) -> None:
        """One row."""
        self.rows.at_most(np.zeros(len(column), dtype=np.int64), column, coefficient, np.array([upper]))

    def inside(self, unit: Integers, block: int, sign: float) -> tuple[list[tuple[Integers, float | Floats]], float]:
        """Whether units are in a superblock, times a sign, as columns and a constant."""
        own: list[tuple[Integers, float | Floats]] = []
        if block < self.blocks - 1:
            own.append((self.in_first[unit, block], sign))
        if block:
            own.append((self.in_first[unit, block - 1], -sign))
        return own, sign if block == self.blocks - 1 else 0.0
