"""What questions about plans are asked of: terms, states, and room for kernels, as tuples that kernels take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placedsl.algorithms.compilation import kernels_run_compiled
from placedsl.algorithms.pipelines.parallel_plans.instance import Goal, PlanLimits
from placedsl.algorithms.pipelines.parallel_plans.least_transfers import LeastTransfers
from placedsl.algorithms.pipelines.parallel_plans.like_stages import LikeStages
from placedsl.algorithms.pipelines.parallel_plans.options import KeptSwaps, OptionTable, Workspace
from placedsl.algorithms.stages.cut_edges_kernel import StagePairs, all_stages
from placedsl.arrays import Booleans, Floats, Integers, Integers32

#: The devices of what is not reached.
NEVER = 2**30
#: Periods of the exchange of weights: per sample, per round, per batch.
SAMPLE, ROUND, BATCH = 0, 1, 2
#: Swaps that are kept, for all degrees and samples in flight.
_MOST_KEPT = 2_000_000
#: Stages of a question that are listed: two bytes each, of memory that is not touched before.
_MOST_LISTED = 20_000_000
#: Stages that are kept, of all degrees; and where kernels are not compiled, which takes long to look at many.
_MOST_KEPT_STAGES, _MOST_KEPT_PLAINLY = 1_000_000, 10_000


class Exchanges(NamedTuple):
    """The exchange of weights: its period, how often weights cross a link in it, samples of a batch."""

    period: int
    traffic: float
    microbatches: int


class Bounds(NamedTuple):
    """Bounds of a spec on the plans.  c kinds.

    ``fewest``, ``most``, ``in_flight``   c numbers of a stage with nodes of that kind;  ``of_kinds``  whether any binds
    ``layers``    stages are counted up to this number less one;  ``saturates``  more of them count as so many
    ``every``     states with more copies are kept beside those with fewer
    ``held``      samples that the copies of a stage hold together (0: those in the pipeline)
    ``most_held`` samples that a copy may hold
    """

    fewest: Integers
    most: Integers
    in_flight: Integers
    of_kinds: bool
    layers: int
    saturates: bool
    every: bool
    held: int
    most_held: int


def bounds_of(limits: PlanLimits, units: int, goal: Goal, held: int, most_held: int) -> Bounds:
    """The bounds of a spec as the kernel takes them; where the fewest stages are the goal they are counted."""
    low, high = limits.stages
    if goal == "stages_used":
        high = units if high is None else min(high, units)
    counted = high is not None and (high < units or goal == "stages_used")
    layers = high + 1 if high is not None and counted else low + 1 if low > 1 else 1
    return Bounds(
        limits.fewest, limits.most, limits.in_flight, limits.of_kinds, layers, not counted, limits.copies[0] > 1,
        held, most_held,
    )  # fmt: skip


class PlanTerms(NamedTuple):
    """K ideals, c kinds, g degrees.

    ``table``    the options
    ``of_kind``  K x c units of each kind
    ``degree``   g devices of a copy;  ``next_copies``  the least allowed number of copies that is no less (0: none)
    ``devices``, ``most_copies``, ``capacity``   of the machine
    ``exchange`` of weights among copies
    ``weight``   K seconds of device time that the units take at least
    ``transfers``  what transfers take at least
    ``reaching`` by row of a chain, the ideals that reach so far on it, as bits; empty where ideals are few
    ``weights``  g x K seconds to send the units' weights once, at least
    ``sharded``  g x K bytes that copies divide among them
    ``stash``, ``memory``  g x K bytes of the quickest options;  ``alike``  options of a unit with one degree differ in
                 no weights, so that the quickest are the same however often weights are sent
    ``smallest`` g x y x K bytes of the smallest options with so many samples in flight; empty where it would be large
    ``fewest``   2 x g x K bytes of the smallest options with one and with two samples in flight, at least
    ``bounds``   of the spec
    """

    table: OptionTable
    of_kind: Integers32
    degree: Integers
    next_copies: Integers
    devices: int
    most_copies: int
    capacity: float
    exchange: Exchanges
    weight: Floats
    transfers: LeastTransfers
    reaching: NDArray[np.uint64]
    weights: Floats
    sharded: Floats
    stash: Floats
    memory: Floats
    alike: bool
    smallest: Floats
    fewest: Floats
    bounds: Bounds


class Reached(NamedTuple):
    """K l x (s + 1), l the layers and s the most copies: the fewest devices with so many stages and at most so many
    copies (exactly, where every state is kept) behind an ideal, and how.

    ``how``: the row before the last stage, the position of its degree and its copies as one number (:func:`as_reached`
    takes it apart), where ``devices`` was reached with exactly so many copies.
    """

    devices: Integers32
    how: Integers


#: Bits of a number of copies, and of the position of a degree, in what says how a state was reached.
COPIES_BITS, DEGREE_BITS = 21, 15


def as_reached(how: int) -> tuple[int, int, int]:
    """The row before the last stage, the position of its degree, and its copies."""
    rest = how >> COPIES_BITS
    return rest >> DEGREE_BITS, rest & ((1 << DEGREE_BITS) - 1), how & ((1 << COPIES_BITS) - 1)


class Scratch(NamedTuple):
    """What is known while stages are looked at.

    ``copies``, ``devices``   the states of an ideal, layer by layer (from ``begins``), by copies: none of a layer has
                              fewer of both than another one
    ``fits``, ``exceeds``     per number of copies of the stage ``stage``: most samples in flight that fit, fewest
                              that do not
    ``units``                 c units of the stage by kind;  ``kinds``  room for the kinds that there are
    ``every``                 all kinds
    ``seen``                  stages looked at, knapsacks asked, and given up on
    ``rest``                  K devices that all that is outside of an ideal needs at least
    ``past``                  room for what leads past a stage, by rows of chains
    ``goals``                 room for the ideals that stages may lead to
    ``paid``, ``mark``        room for the costs of edges (m x g), and for those that an ideal cuts
    """

    copies: Integers
    devices: Integers
    begins: Integers
    fits: Integers
    exceeds: Integers
    stage: Integers
    units: Integers
    kinds: Integers
    every: Integers
    seen: Integers
    rest: Integers
    past: Floats
    goals: Integers
    paid: Floats
    mark: Integers32


def scratch_for(terms: PlanTerms, pairs: StagePairs) -> Scratch:
    """Room for questions."""
    kinds, bounds, room = terms.of_kind.shape[1], terms.bounds, terms.most_copies + 2
    return Scratch(
        np.empty(room * bounds.layers, dtype=np.int64), np.empty(room * bounds.layers, dtype=np.int64),
        np.zeros(bounds.layers + 1, dtype=np.int64), np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64), np.zeros(kinds, dtype=np.int64),
        np.zeros(kinds, dtype=np.int64), np.arange(kinds), np.zeros(3, dtype=np.int64),
        np.zeros(len(terms.weight), dtype=np.int64),
        np.zeros((int(terms.transfers.first[-1]), terms.transfers.both.shape[1])),
        np.zeros(len(terms.weight), dtype=np.int64),
        np.zeros((pairs.limit.shape[0], len(terms.degree))), np.zeros(pairs.input_cost.shape[2], dtype=np.int32),
    )  # fmt: skip


class ListedStages(NamedTuple):
    """The stages between K ideals that mattered to a question: the larger ideals of each smaller one i come at
    ``goal[start[i]:start[i + 1]]``; ``number`` of them, -1: they are not known."""

    start: Integers
    goal: NDArray[np.uint16]
    number: Integers


def room_to_list(ideals: int) -> ListedStages:
    """Room for the stages of a question; there are fewer ideals than numbers of two bytes."""
    most = min(ideals * (ideals - 1) // 2, _MOST_LISTED)
    return ListedStages(
        np.zeros(ideals + 1, dtype=np.int64), np.empty(most, dtype=np.uint16), np.full(1, -1, dtype=np.int64)
    )


class KeptStages(NamedTuple):
    """What no load changes of the stages between K ideals; nothing where they are many.

    ``inside``   K x K whether an ideal lies in another;  ``edges``  K x K x g seconds of a stage's transfers
    ``together`` K x K x g samples that may be in flight at most (-1: not known yet)
    """

    inside: Booleans
    edges: Floats
    together: Integers32


class Knapsacks(NamedTuple):
    """What knapsacks need beside the options, and what is known of them and of stages."""

    space: Workspace
    kept: KeptSwaps
    like: LikeStages
    stages: KeptStages


class Stage(NamedTuple):
    """A stage between two ideals with a degree: its position, seconds of its quickest options and of its transfers, and
    to send its weights once; the copies that it needs at least and may have, and the samples in flight on each; the
    rows that it leads from and to."""

    base: int
    goal: int
    g: int
    time: float
    edges: float
    sent: float
    first: int
    most: int
    in_flight: int
    source: int
    target: int


class Asked(NamedTuple):
    """What is asked of the options of a stage: to fit ``room`` seconds and ``capacity`` bytes, with so many samples in
    flight and weights sent so often; ``time``, ``need``  of the quickest ones, and the bytes by which they exceed."""

    in_flight: int
    exchange: float
    room: float
    capacity: float
    time: float
    need: float


def kept_stages(pairs: StagePairs, degrees: int) -> KeptStages:
    """The stages between some ideals, of that many degrees."""
    most = _MOST_KEPT_STAGES if kernels_run_compiled() else _MOST_KEPT_PLAINLY
    ideals = len(pairs.weight) if len(pairs.weight) ** 2 * degrees <= most else 0
    inside, edges = np.zeros((ideals, ideals), dtype=np.bool_), np.zeros((ideals, ideals, degrees))
    if ideals:
        all_stages(pairs, inside, edges)
    return KeptStages(inside, edges, np.full(edges.shape, -1, dtype=np.int32))


def workspace(table: OptionTable) -> Workspace:
    """Room for questions over a table."""
    kinds, options = table.kinds, len(table.time)
    whole, real = np.zeros(options, dtype=np.int64), np.zeros(options)
    return Workspace(
        np.zeros(kinds, dtype=np.int64), whole, whole.copy(), real, real.copy(), real.copy(),
    )  # fmt: skip


def kept_swaps(table: OptionTable, base: Integers, most: int) -> KeptSwaps:
    """Room for the swaps of all kinds with up to ``most`` samples in flight; none where that is much.

    ``base``: g x c the quickest options.
    """
    degrees = len(base)
    swaps = len(table.time)
    rows = degrees * (most + 1) if degrees * (most + 1) * max(swaps, table.kinds) <= _MOST_KEPT else 0
    whole, real = np.zeros((rows, swaps), dtype=np.int64), np.zeros((rows, swaps))
    kinds = np.zeros((rows, table.kinds), dtype=np.int64)
    return KeptSwaps(
        most + 1, np.full(rows, -1, dtype=np.int64), base, whole, whole.copy(), real, real.copy(), real.copy(),
        np.zeros(rows, dtype=np.int64), kinds, np.zeros(kinds.shape), kinds.copy(), np.zeros(kinds.shape),
    )  # fmt: skip
