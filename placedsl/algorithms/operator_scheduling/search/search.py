"""The search for operator schedules: annealing of the whole, and of parts or windows of the best schedule, in turn.

Where transfers are congested, and the graph is not large, nodes are drawn from a part of the order and each change is
evaluated in the whole; elsewhere from windows.  Blocks that make up the whole are searched on their own, and so are
those with work beside them; where layers repeat and have no such blocks, what comes of windows around one is copied.
All work is counted in steps, so that a seed determines the sequence of schedules; how far it gets within a
time limit depends on the machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule, anneal_slices, random_seeds, slices
from placedsl.algorithms.operator_scheduling.decomposition.block_solving import BlockImprover
from placedsl.algorithms.operator_scheduling.decomposition.blocks import (
    Chain,
    Improve,
    absorb,
    assemble,
    chain_of,
    refine,
)
from placedsl.algorithms.operator_scheduling.exact_cp_sat import solve_exactly
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, no_longer_than, scheduling_instance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of
from placedsl.algorithms.operator_scheduling.search.annealing import run_annealing
from placedsl.algorithms.operator_scheduling.search.blocks_beside import BlocksBeside, chain_with_work_beside
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import incremental_schedule
from placedsl.algorithms.operator_scheduling.search.initial_orders import (
    by_longest_path,
    initial_orders,
    is_feasible,
    pack_by_memory,
)
from placedsl.algorithms.operator_scheduling.search.repeated_layers import repeated_layers
from placedsl.algorithms.operator_scheduling.search.schedule_search import (
    COLD,
    LARGE,
    PART_HOT,
    STEPS,
    ScheduleSearch,
    anneal_part,
)
from placedsl.algorithms.operator_scheduling.search.windows import windows
from placedsl.arrays import Integers
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS

#: Work of one slice, in steps times nodes, after which progress is reported; slices of the first and the longest run.
_SLICE, _FIRST, _LONGEST = 4_000_000, 16, 256
#: The first temperature, hot and warm, as shares of the latency.
_HOT, _WARM = 0.005, 0.00125
#: Positions in a part of the order that is annealed in the whole.
_PART = (24, 48, 96)
#: The work of that, in terms of one run that anneals the whole.
_PART_SHARE = 2
#: Up to so many pairs of a node and a device CP-SAT solves the whole, with so much deterministic time.
_SMALL, _EFFORT = 160, 10.0
#: Annealing of the whole begins in turn from the best sequence and from one of so many initial ones.
_STARTS = 6
#: Above so many nodes there are no blocks.
_MOST_CHAINED = 50_000


def search_problem(problem: Problem, start: Integers | None, seed: int) -> ScheduleSearch:
    """A search from a placement (n; None: from nothing), if it is feasible."""
    return search_from(scheduling_instance(problem), start, seed)


def search_from(instance: SchedulingInstance, start: Integers | None, seed: int) -> ScheduleSearch:
    """The same for arrays."""
    search = ScheduleSearch(instance, None, np.inf, seed)
    known: dict[float, OperatorSequence] = {}
    for sequence in initial_orders(instance, start):
        known.setdefault(schedule_of(instance, sequence)[0], sequence)
        search.take(sequence)
    search.begun = [known[value] for value in sorted(known) if np.isfinite(value)][:_STARTS]
    return search


def run(search: ScheduleSearch) -> Iterator[bool]:
    """Search without end, or until the best is proven; yields after each slice of work whether the best has
    improved.
    """
    instance = search.instance
    if not instance.nodes:
        return
    if search.best is None:
        yield _somewhere(search)
    if search.best is None:
        return
    if instance.nodes * instance.devices <= _SMALL:
        yield _whole(search, _EFFORT)
    chain = _chain(instance)
    layers = repeated_layers(instance) if chain is None else []
    large = instance.nodes > LARGE
    improve = BlockImprover(instance, int(search.rng.integers(2**31)), prove=not large)
    beside = None
    if chain is None and instance.resources and not large and (parts := chain_with_work_beside(instance)) is not None:
        beside = BlocksBeside(search, parts)
    count, rounds = _FIRST, 0
    while not search.proven and search.value > 0.0:
        rounds += 1
        if chain is not None:
            yield from _by_blocks(search, chain, improve, rounds, len(chain.blocks) if large else None)
            if search.proven:
                return
        if not large:
            yield from _anneal_begun(search, count)
            yield from _anneal(search, search.best, count, _WARM)
        if instance.resources and not large:
            yield from annealed_parts(search, _PART_SHARE * count)
            if beside is not None:
                yield from beside.run()
        else:
            yield from windows(search, layers, 1 if large else 4)
        if instance.nodes * instance.devices <= _SMALL:
            yield _whole(search, _EFFORT * count)
        count = min(2 * count, _LONGEST)


def _chain(instance: SchedulingInstance) -> Chain | None:
    """The blocks of the graph, if solving them separately helps."""
    if not _SMALL < instance.nodes * instance.devices <= _MOST_CHAINED * instance.devices:
        return None
    chain = chain_of(instance)
    if not chain.whole or len(chain.blocks) <= 3 or chain.largest() > instance.nodes // 2:
        return None
    value, path = chain.shortest(lambda block: block.latency)
    # In a large graph, looking at all blocks repeatedly for one that fits takes too long.
    fits = instance.nodes <= LARGE or (np.isfinite(value) and is_feasible(instance, assemble(chain, path).device))
    return chain if fits else None


def _somewhere(search: ScheduleSearch) -> bool:
    """A first schedule if list schedules find no room: by memory, or by CP-SAT."""
    instance = search.instance
    device = pack_by_memory(instance)
    if device is None:
        limit = no_longer_than(instance)
        solved = solve_exactly(instance, None, limit, effort=_EFFORT * 6, seed=search.seed)
        search.proven = solved.final and solved.sequence is None
        return solved.sequence is not None and search.take(solved.sequence)
    return search.take(by_longest_path(instance, device))


def _whole(search: ScheduleSearch, effort: float) -> bool:
    """Solve the whole by CP-SAT, from the best sequence."""
    assert search.best is not None
    solved = solve_exactly(search.instance, search.best, search.value, effort=effort, seed=search.seed)
    search.proven = search.proven or solved.final
    return solved.sequence is not None and search.take(solved.sequence)


def _by_blocks(
    search: ScheduleSearch, chain: Chain, improve: Improve, rounds: int, most: int | None
) -> Iterator[bool]:  # fmt: skip
    """Refine blocks, ``most`` times; only sequences within the memory limits are kept."""
    assert search.best is not None
    absorb(chain, search.best)
    for bound, sequence in itertools.islice(refine(chain, improve, lambda: search.value, rounds), most):
        better = sequence is not None and is_feasible(search.instance, sequence.device) and search.take(sequence)
        if better and sequence is not None:
            search.begun = [sequence, *search.begun][:_STARTS]
        yield better
        if bound >= search.value * (1.0 - EQUAL_COSTS):
            search.proven = True
            return


def _anneal_begun(search: ScheduleSearch, count: int) -> Iterator[bool]:
    """An annealing run of ``count`` slices from one of the initial sequences, warm and hot ones in turn."""
    first = search.begun[search.runs % len(search.begun)] if search.begun else search.best
    search.runs += 1
    yield from _anneal(search, first, count, (_HOT, _WARM)[search.runs % 2])


def _anneal(search: ScheduleSearch, first: OperatorSequence | None, count: int, hot: float) -> Iterator[bool]:
    """One annealing run of ``count`` slices from a sequence; ``hot``: a share of the latency."""
    assert first is not None
    instance = search.instance
    schedule, latency = incremental_schedule(instance, first)

    def anneal(cooling: CoolingSchedule) -> OperatorSequence | None:
        nonlocal latency
        latency, found = run_annealing(instance, schedule, latency, search.value, cooling)
        return found

    heat = search.value
    cooling = slices(_steps_of_slice(instance), hot * heat, COLD * heat, count, random_seeds(search.rng))
    yield from anneal_slices(search, cooling, anneal)


def _steps_of_slice(instance: SchedulingInstance) -> int:
    return max(500, _SLICE // instance.nodes)


def annealed_parts(search: ScheduleSearch, count: int) -> Iterator[bool]:
    """Anneal parts of the order of the best sequence, each change evaluated in the whole: as much work as ``count``
    slices.
    """
    instance, rng = search.instance, search.rng
    left = count * _steps_of_slice(instance)
    while left > 0:
        assert search.best is not None
        length = int(rng.choice(_PART))
        first = int(rng.integers(1 - length, instance.nodes))
        among = range(max(first, 0), min(first + length, instance.nodes))
        before = search.value
        yield anneal_part(search, search.best, among, float(rng.choice(PART_HOT))) < before
        left -= STEPS * len(among)
