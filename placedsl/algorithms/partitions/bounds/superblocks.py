"""Bounds by superblocks: the stages of a pipeline taken together to a few, by an integer program.

Let the stages of any pipeline over k like devices be taken together in order to r superblocks of m[1], ..., m[r]
stages, empty ones among them, k in all.  A set of stages loads no more than its stages together, for a tensor that it
cuts is cut by one of them.  So every superblock i has  load(i) <= m[i] * T  where T is the largest load of a stage, and
the least T for which there are such superblocks is a bound.  Two superblocks of k/2 stages each are the bound by
doubling: a pipeline for two devices, whose largest load is divided by k/2.  Superblocks of a stage each are the
pipeline itself.

The program is that of the paper (Xie et al. 2023, Figure 3), whose columns say that a unit is in one of the first
superblocks, with two additions: a tensor counts as cut wherever a reader and its maker are not both inside, and a
tensor that is cut is cut by two superblocks at least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.supports import PLACING, Supports
from placedsl.algorithms.units import Hyperedges, hyperedges, placement_units
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.ir.linear_rows import LinearRows
from placedsl.ir.program import LinearProgram
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem
from placedsl.solvers.registry import get
from placedsl.tolerances import PROOF

#: What a bound of the program is lowered by: ten times the feasibility that solvers are asked for.
_MARGIN = 1e-7
#: A program with more columns than this is not stated.
MOST_COLUMNS = 200_000


#: A pipeline of devices that are all alike; whatever else is asked for only adds.
SUPPORTS = Supports(
    objectives=("time_per_sample",), executions=(Execution(),), requires=("contiguous",),
    constraints=PLACING | {"contiguous", "convex"}, clusters=False, formulations=True, relaxes=True,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pipeline:
    """u units on devices that are all alike: their seconds, the tensors between them, what comes before what, and the
    unit of each node."""

    work: Floats
    edges: Hyperedges
    before: Integers
    after: Integers
    unit_of_node: Integers


def sizes(devices: int, blocks: int) -> tuple[int, ...]:
    """So many superblocks of about the same size."""
    return tuple(devices // blocks + (k < devices % blocks) for k in range(blocks))


def columns(pipeline: Pipeline, blocks: int) -> int:
    """How many columns the program has."""
    return len(pipeline.work) * (blocks - 1) + len(pipeline.edges.cost) * blocks + 1


def superblock_bound(
    pipeline: Pipeline, size: tuple[int, ...], upper: float, budget: Budget,
    heard: Callable[[float, Integers | None], bool],
) -> tuple[float, bool]:  # fmt: skip
    """The bound for superblocks of so many stages, up to ``upper`` (inf: no value is known), and whether it is final.

    ``heard`` is told of better bounds, and of better superblocks (u numbers); it says whether to stop.
    """
    scale = upper if np.isfinite(upper) else float(pipeline.work.sum() + pipeline.edges.cost.sum())
    if scale <= 0.0:
        return 0.0, True
    program = _program(pipeline, size, scale, 1.0 if np.isfinite(upper) else np.inf)

    units, blocks = len(pipeline.work), len(size)

    def progress(point: Floats | None, _value: float, bound: float) -> bool:
        found = None
        if point is not None:
            found = blocks - 1 - np.rint(point[: units * (blocks - 1)]).astype(np.int64).reshape(units, -1).sum(axis=1)
        return heard(bound * scale * (1.0 - _MARGIN), found)

    found = get("highs").run(program, budget, progress)
    if found.termination == "infeasible":
        return upper * (1.0 - _MARGIN), True
    return found.bound * scale * (1.0 - _MARGIN), found.termination == "optimal"


def fits(problem: Problem) -> bool:
    """Whether all devices are alike, and accelerators."""
    return bool(problem.interchangeable(clustered=False).max(initial=0) == 0 and problem.accelerators.all())


def pipeline_of(problem: Problem) -> Pipeline | None:
    """The pipeline of a problem whose devices are all alike, and run every operator; None where they are not."""
    if not fits(problem):
        return None
    quotient = placement_units(problem, contiguous=True, devices=(0,))
    if not np.isfinite(quotient.work).all():
        return None
    edges = hyperedges(quotient, 0)
    return Pipeline(quotient.work[0], edges, quotient.before, quotient.after, quotient.unit_of_node)


def prove_superblocks(
    problem: Problem, upper: Callable[[], float], over: Callable[[], bool],
    told: Callable[[Bound | None, Integers | None], None], workers: int = 1, most: int = 4,
) -> None:  # fmt: skip
    """Tell increasing bounds of two superblocks and then of up to ``most``, until all are solved or it is over.

    ``told`` also hears of placements (n devices), where superblocks are stages.
    """
    pipeline, devices = pipeline_of(problem), len(problem.machine.devices)
    if pipeline is None or devices < 2:
        return
    best = -np.inf
    for blocks in range(2, min(most, devices) + 1):
        if blocks == 3 < min(most, devices):
            continue  # four say more
        if columns(pipeline, blocks) > MOST_COLUMNS or over():
            return
        size = sizes(devices, blocks)
        words = f"a program of {blocks} superblocks of {' or '.join(map(str, dict.fromkeys(size)))} stages"

        def heard(
            bound: float, found: Integers | None = None, words: str = words, alone: bool = blocks == devices
        ) -> bool:
            nonlocal best
            if found is not None and alone:
                told(None, found[pipeline.unit_of_node])
            if bound > best:
                best = bound
                told(Bound(bound, words), None)
            return over() or bound >= upper() * (1.0 - PROOF)

        heard(superblock_bound(pipeline, size, upper(), Budget(None, 0.5 * PROOF, workers), heard)[0])


def _program(pipeline: Pipeline, size: tuple[int, ...], scale: float, most: float) -> LinearProgram:
    """Columns: y[v, b] for all superblocks b but the last, c[e, b], and T; in units of ``scale``."""
    units, blocks, edges = len(pipeline.work), len(size), len(pipeline.edges.cost)
    in_first = np.arange(units * (blocks - 1)).reshape(units, blocks - 1)
    cut = units * (blocks - 1) + np.arange(edges * blocks).reshape(edges, blocks)
    largest = units * (blocks - 1) + edges * blocks
    rows = LinearRows()

    def add(parts: list[tuple[Integers, float | Floats]], upper: Floats) -> None:
        """A row for each entry of the columns: the sum of column times coefficient is at most ``upper``."""
        number = len(upper)
        index = np.concatenate([np.arange(number)] * len(parts))
        column = np.concatenate([np.broadcast_to(one, number) for one, _ in parts])
        coefficient = np.concatenate([np.broadcast_to(np.asarray(by, dtype=float), number) for _, by in parts])
        rows.at_most(index, column, coefficient, upper)

    def inside(unit: Integers, block: int, sign: float) -> tuple[list[tuple[Integers, float | Floats]], float]:
        """Whether units are in a superblock, as columns and a constant."""
        own: list[tuple[Integers, float | Floats]] = []
        if block < blocks - 1:
            own.append((in_first[unit, block], sign))
        if block:
            own.append((in_first[unit, block - 1], -sign))
        return own, sign if block == blocks - 1 else 0.0

    for b in range(blocks - 1):
        add([(in_first[pipeline.after, b], 1.0), (in_first[pipeline.before, b], -1.0)], np.zeros(len(pipeline.before)))
        if b:
            add([(in_first[:, b - 1], 1.0), (in_first[:, b], -1.0)], np.zeros(units))
    maker = np.array([pins[0] for pins in pipeline.edges.pins for _ in pins[1:]], dtype=np.int64)
    reader = np.array([u for pins in pipeline.edges.pins for u in pins[1:]], dtype=np.int64)
    edge = np.array([e for e, pins in enumerate(pipeline.edges.pins) for _ in pins[1:]], dtype=np.int64)
    for b in range(blocks):
        for sign in (1.0, -1.0):
            plus, constant = inside(reader, b, sign)
            minus, other = inside(maker, b, -sign)
            add([*plus, *minus, (cut[edge, b], -1.0)], np.full(len(edge), -constant - other))
        others = [(cut[:, i], -1.0) for i in range(blocks) if i != b]
        add([(cut[:, b], 1.0), *others], np.zeros(edges))
        own, constant = inside(np.arange(units), b, 1.0)
        work = pipeline.work / scale
        column = np.concatenate([*(one for one, _ in own), cut[:, b], [largest]])
        signs = [float(np.asarray(by)) * work for _, by in own]
        coefficient = np.concatenate([*signs, pipeline.edges.cost / scale, [-float(size[b])]])
        side = -float(work.sum()) if constant else 0.0
        rows.at_most(np.zeros(len(column), dtype=np.int64), column, coefficient, np.array([side]))
    cost = np.zeros(largest + 1)
    cost[largest] = 1.0
    program = rows.program(cost)
    upper = np.ones(largest + 1)
    upper[largest] = most
    integer = np.zeros(largest + 1, dtype=bool)
    integer[: units * (blocks - 1)] = True
    return replace(program, upper=upper, integer=integer)
