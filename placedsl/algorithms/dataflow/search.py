"""The search for good schedules: annealing of the whole, then of stretches of the best schedule, in turn.

A stretch is some hundred places of the sequence.  Its frame says when what it reads is there and what follows it; found
changes are kept where the whole schedule becomes better by them.  All is counted in steps: one seed gives one
sequence of
schedules; how far it gets within a time limit depends on the machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.dataflow.anneal_kernel import Cooling
from placedsl.algorithms.dataflow.annealing import annealed
from placedsl.algorithms.dataflow.arrays import Flow, flow_of
from placedsl.algorithms.dataflow.block_solving import improver
from placedsl.algorithms.dataflow.blocks import Chain, Improve, absorb, assembled, chain_of, refined
from placedsl.algorithms.dataflow.exact import solve_exactly
from placedsl.algorithms.dataflow.kernel import Order, order_of, schedule
from placedsl.algorithms.dataflow.parts import part
from placedsl.algorithms.dataflow.starts import heeds, ordered, packed, starts
from placedsl.algorithms.dataflow.walk_kernel import Frame, walk_from
from placedsl.algorithms.dataflow.window_kernel import held_without, remaining, surroundings
from placedsl.graph.graph import Integers
from placedsl.problem import Problem

#: Work of one slice, in steps times nodes, after which what was found is told; slices of a run, the first and at most.
_SLICE, _FIRST, _LONGEST = 4_000_000, 16, 256
#: Where annealing begins and ends, as a share of the latency.
_HOT, _COLD = 0.005, 0.00001
#: Places of a stretch, and steps a node of it.
_STRETCH, _STEPS = (24, 48, 96, 192, 384), 250
#: The same for the first sweeps over a large graph, of which few get to its end in a minute.
_FIRST_SWEEPS = ((24, 30), (96, 30), (24, 100), (192, 30), (48, 100), (96, 60), (384, 30), (96, 100))
#: Share of the steps in a stretch that move what is dear to cut.  Within stretches of large graphs that costs more
#: than it brings.
_TOGETHER = 0.05
#: Up to so many pairs of a node and a device the whole is given to CP-SAT, with so much deterministic time.
_SMALL, _EFFORT = 160, 10.0
#: Annealing of the whole begins in turn from the best schedule and from one of so many first ones.
_STARTS = 6
#: Above so many nodes annealing of the whole is left out.
_LARGE = 3000
#: Above so many nodes blocks are not looked for.
_MOST_CHAINED = 50_000


@dataclass(eq=False)
class Search:
    """A search in progress: the best order (None: none yet) and its latency; ``proven``: nothing is better;
    ``begun``: schedules to begin from; ``runs`` of annealing, ``sweeps`` of stretches so far."""

    flow: Flow
    best: Order | None
    value: float
    seed: int
    proven: bool = False
    begun: list[Order] = field(default_factory=list)
    rng: np.random.Generator = field(init=False)
    runs: int = 0
    sweeps: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def take(self, order: Order) -> bool:
        """Keep an order that is better; it is timed anew."""
        value, _ = schedule(self.flow, order)
        if value >= self.value * (1.0 - 1e-12):
            return False
        self.best, self.value = order, value
        return True


def begin(problem: Problem, start: Integers | None, seed: int) -> Search:
    """A search that knows the start, if it is feasible, or nothing."""
    return from_flow(flow_of(problem), start, seed)


def from_flow(flow: Flow, start: Integers | None, seed: int) -> Search:
    """The same for arrays."""
    search = Search(flow, None, np.inf, seed)
    known: dict[float, Order] = {}
    for order in starts(flow, start):
        known.setdefault(schedule(flow, order)[0], order)
        search.take(order)
    search.begun = [known[value] for value in sorted(known) if np.isfinite(value)][:_STARTS]
    return search


def run(search: Search) -> Iterator[bool]:
    """Search for ever, or until the best is proven; yields after each slice of work whether there is a better one."""
    flow = search.flow
    if not flow.nodes:
        return
    if search.best is None:
        yield _somewhere(search)
    if search.best is None:
        return
    if flow.nodes * flow.devices <= _SMALL:
        yield _whole(search, _EFFORT)
    chain = _chain(flow)
    large = flow.nodes > _LARGE
    improve = improver(flow, int(search.rng.integers(2**31)), prove=not large)
    slices, rounds = _FIRST, 0
    while not search.proven and search.value > 0.0:
        rounds += 1
        if chain is not None:
            yield from _by_blocks(search, chain, improve, rounds, len(chain.blocks) if large else None)
            if search.proven:
                return
        if not large:
            yield from _anneal(search, slices, _HOT)
            yield from _anneal(search, slices, _HOT / 4)
        yield from _stretches(search, 1 if large else 4)
        if flow.nodes * flow.devices <= _SMALL:
            yield _whole(search, _EFFORT * slices)
        slices = min(2 * slices, _LONGEST)


def _chain(flow: Flow) -> Chain | None:
    """The blocks that the graph falls into, where to look at each by itself helps."""
    if not _SMALL < flow.nodes * flow.devices <= _MOST_CHAINED * flow.devices:
        return None
    chain = chain_of(flow)
    if not chain.whole or len(chain.blocks) <= 3 or chain.largest() > flow.nodes // 2:
        return None
    value, path = chain.shortest(lambda block: block.takes)
    # In a large graph it takes long to look at all blocks again and again for one that fits.
    fits = flow.nodes <= _LARGE or (np.isfinite(value) and heeds(flow, assembled(chain, path).device))
    return chain if fits else None


def _somewhere(search: Search) -> bool:
    """A first schedule where list schedules find no room: sizes first, or CP-SAT."""
    flow = search.flow
    device = packed(flow)
    if device is None:
        limit = _no_longer_than(flow)
        solved = solve_exactly(flow, None, limit, effort=_EFFORT * 6, seed=search.seed)
        search.proven = solved.final and solved.order is None
        return solved.order is not None and search.take(solved.order)
    return search.take(ordered(flow, device))


def _no_longer_than(flow: Flow) -> float:
    """A latency that the best schedule of any placement does not exceed: everything one after the other."""
    time = np.where(np.isfinite(flow.time), flow.time, 0.0).max(axis=1).sum()
    if len(flow.given):
        moves = np.where(np.isfinite(flow.given), flow.given, 0.0).max(axis=2).sum(axis=1).max(axis=1)
        return float(time + moves.sum()) if len(moves) else float(time)
    reached = np.isfinite(flow.fixed)
    fixed, per_size = np.where(reached, flow.fixed, 0.0), np.where(reached, flow.per_size, 0.0)
    return float(time + flow.devices * (fixed.max() * len(flow.size) + per_size.max() * flow.size.sum()))


def _whole(search: Search, effort: float) -> bool:
    """CP-SAT on the whole, from the best schedule."""
    assert search.best is not None
    solved = solve_exactly(search.flow, search.best, search.value, effort=effort, seed=search.seed)
    search.proven = search.proven or solved.final
    return solved.order is not None and search.take(solved.order)


def _by_blocks(
    search: Search, chain: Chain, improve: Improve, rounds: int, most: int | None
) -> Iterator[bool]:  # fmt: skip
    """Blocks on their own where the graph falls into such, ``most`` steps; only what memory allows is kept."""
    assert search.best is not None
    absorb(chain, search.best)
    for bound, order in itertools.islice(refined(chain, improve, lambda: search.value, rounds), most):
        better = order is not None and heeds(search.flow, order.device) and search.take(order)
        if better and order is not None:
            search.begun = [order, *search.begun][:_STARTS]
        yield better
        if bound >= search.value * (1.0 - 1e-9):
            search.proven = True
            return


def _anneal(search: Search, slices: int, hot: float) -> Iterator[bool]:
    """One run of annealing from the best schedule."""
    assert search.best is not None
    flow = search.flow
    first = search.best
    if hot == _HOT and search.begun:
        first = search.begun[search.runs % len(search.begun)]
        search.runs += 1
    walk, latency = walk_from(flow, first)
    steps = max(500, _SLICE // flow.nodes)
    factor = (_COLD / hot) ** (1.0 / slices)
    heat = hot * search.value
    for _ in range(slices):
        cooling = Cooling(steps, heat, heat * factor, int(search.rng.integers(2**31)))
        heat *= factor
        latency, found = annealed(flow, walk, latency, search.value, cooling)
        yield found is not None and search.take(found)


def _stretches(search: Search, sweeps: int) -> Iterator[bool]:
    """Stretches of the best schedule one after the other, of several lengths."""
    nodes = search.flow.nodes
    for _ in range(sweeps):
        length, steps = int(search.rng.choice(_STRETCH)), _STEPS
        if nodes > _LARGE and search.sweeps < len(_FIRST_SWEEPS):
            length, steps = _FIRST_SWEEPS[search.sweeps]
        search.sweeps += 1
        length = min(length, nodes)
        step = max(length // 2, 1)
        low = -int(search.rng.integers(step))
        while low < nodes:
            yield _stretch(search, max(low, 0), min(low + length, nodes), steps)
            low += step


def _stretch(search: Search, low: int, high: int, steps: int) -> bool:
    """Anneal one stretch within its frame, so many steps a node; whether the whole is better for it."""
    flow, best = search.flow, search.best
    assert best is not None
    _, times = schedule(flow, best)
    follows = remaining(flow, best)
    frame = Frame(*surroundings(flow, best, times, follows, low, high))
    nodes = best.sequence[low:high]
    inside = np.zeros(flow.nodes, dtype=bool)
    inside[nodes] = True
    inner = part(flow, nodes, _allowed(flow, nodes, inside, best.device))
    inner = inner._replace(room=flow.room - held_without(flow, best.device, inside))
    order = order_of(inner, best.device[nodes], np.arange(len(nodes), dtype=np.float64))
    walk, latency = walk_from(inner, order, frame)
    hot = float(search.rng.choice([0.3, 0.1, 0.03])) * float(np.median(inner.time[np.isfinite(inner.time)]) + 1e-12)
    hot = max(hot, latency * 1e-9)
    together = _TOGETHER if flow.nodes <= _LARGE else 0.0
    cooling = Cooling(steps * len(nodes), hot, hot * 0.01, int(search.rng.integers(2**31)), together)
    _, found = annealed(inner, walk, latency, latency * (1.0 - 1e-12), cooling)
    if found is None:
        return False
    device, place = best.device.copy(), np.empty(flow.nodes)
    device[nodes] = found.device
    place[best.sequence] = np.arange(flow.nodes)
    place[nodes[found.sequence]] = np.arange(low, high)
    return search.take(order_of(flow, device, place, None))


def _allowed(flow: Flow, nodes: Integers, inside: np.ndarray, device: Integers) -> np.ndarray:
    """Running times of nodes, inf where a unit that is not all inside would have to come along."""
    time = flow.time[nodes].copy()
    whole = np.ones(len(flow.member_start) - 1, dtype=bool)
    np.logical_and.at(whole, flow.unit, inside)
    for k in np.flatnonzero(~whole[flow.unit[nodes]]).tolist():
        here = device[nodes[k]]
        kept = time[k, here]
        time[k] = np.inf
        time[k, here] = kept
    return time
