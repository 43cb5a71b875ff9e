"""What questions about stages with several chunks are asked of, as tuples for kernels; and what their chunks take at
least, which leaves most of them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.in_turn_kernel import least_rest
from placedsl.algorithms.pipelines.parallel_plans.options import OptionTable
from placedsl.arrays import Booleans, Floats, Integers, Integers32

#: With more ideals than this one price is enough: sums over all their pairs take long.
_MANY = 150


class InTurnTerms(NamedTuple):
    """K ideals, c kinds, g degrees, L tensors that two ideals or more divide.

    ``inside``  K x K whether an ideal lies in another;  ``edges``  K x K x g seconds of a stage's transfers, and
    ``short``   those of tensors that no two ideals divide
    ``time``    g x K seconds of the quickest options;  ``unsupported``  g x K units without one
    ``weight``  K least seconds of devices;  ``size``  K units;  ``sharded``  g x K bytes
    ``table``, ``of_kind``, ``degree``, ``capacity``   options, K x c units by kind, g, bytes of a device
    ``maker``   L the unit that makes the tensor
    ``made``    K x L whether the tensor's maker is in the ideal;  ``read``  K x L how many of its ``readers``
    ``input``, ``output``   g x L seconds
    ``of_kinds``, ``fewest``, ``most``, ``in_flight``   limits of the spec by kind
    """

    inside: Booleans
    edges: Floats
    short: Floats
    time: Floats
    unsupported: Integers
    weight: Floats
    size: Integers
    sharded: Floats
    table: OptionTable
    of_kind: Integers32
    degree: Integers
    capacity: float
    maker: Integers
    made: Booleans
    read: Integers32
    readers: Integers
    input: Floats
    output: Floats
    of_kinds: bool
    fewest: Integers
    most: Integers
    in_flight: Integers


class InTurnQuestion(NamedTuple):
    """Whether plans stay within a load.  S stages, m moments.

    ``often``  how often all copies of a stage together send their weights per sample
    ``held``   S x m x chunks samples that a copy holds, the last chunk first;  ``moments``  S: how many there are
    ``block``  z x chunks x S x K x K the least work of a stage's chunk between two ideals, with each of z prices of a
               byte;  ``rest``  z x chunks x (S + 1) x K x K that of all chunks of the first stages
    ``own``, ``capacity``  z x S x (devices + 1), and z x (S + 1) x (devices + 1): the most work that a stage, and the
               first stages together, do within the load on so many devices
    ``price``  S x g seconds that a byte less takes about
    """

    load: float
    copies: int
    stages: int
    devices: int
    often: float
    held: Integers
    moments: Integers
    block: Floats
    rest: Floats
    own: Floats
    capacity: Floats
    price: Floats


class InTurnStates(NamedTuple):
    """States by number of stages: ``at``  ideals of the chunks, ``used``  devices of a copy of each stage together,
    ``before``, ``degree``   the state before the last stage, and the position of the stage's degree."""

    number: Integers
    at: Integers32
    used: Integers32
    before: Integers32
    degree: Integers32


class InTurnScratch(NamedTuple):
    """Room for questions.  ``by_time``  rows of the options, of each kind and degree by time;  ``tries``  options, and
    chunks of stages, that were tried."""

    table: Integers32
    high: Integers32
    taken: Floats
    needed: Floats
    blocks: Floats
    radix: int
    keys: Integers
    answers: Integers
    by_time: Integers
    chunk: Integers
    kind: Integers
    row: Integers
    rest_time: Floats
    spent_time: Floats
    rest_bytes: Floats
    rest_both: Floats
    spent_bytes: Floats
    tries: Integers


class StageWork:
    """What chunks of the stages of a plan take at least, and what stages can do.

    Work is seconds of devices, and a price for each byte that is held: with the price at which options save bytes it
    counts the time that memory costs.  A stage with t devices a copy has t times the load to spend, and the price of
    its memory; all of it is divided by how much longer the whole graph takes with t devices.  Whatever prices and
    divisors are, no stage does more than that.

    Chunks of a stage may save transfers of tensors that two ideals or more divide.  Either these count, and what one
    stage saves at most is added to what it does (``long``); or they do not.
    """

    def __init__(
        self,
        terms: InTurnTerms,
        copies: int,
        often: float,
        degrees: Sequence[int],
        held: Floats,
        *,
        alone: bool,
        long: bool = True,
    ) -> None:
        """``held``: S x chunks samples, the last chunk first;  ``alone``: there is one stage."""
        stages, chunks = held.shape
        count = len(terms.weight)
        self.terms, self.degrees, self.alone, self.long = terms, degrees, alone, long
        self.prices = np.zeros((1, stages, len(degrees)))
        if np.isfinite(terms.capacity) and count <= _MANY:
            means = held.mean(axis=1).tolist()
            priced = [[price(terms, g, t, often, mean) for g, t in enumerate(degrees)] for mean in means]
            self.prices = np.concatenate((self.prices, np.array(priced)[None]))
        self.longer = np.ones(self.prices.shape)
        shape = (len(self.prices), chunks, stages, count, count)
        self.block, self.rest = np.full(shape, np.inf), np.zeros((*shape[:2], stages + 1, count, count))
        for z, of_stages in enumerate(self.prices):
            for place, prices in enumerate(of_stages):
                self._blocks(z, place, copies, often, prices, held[place])
            self.block[z, :, :, np.arange(count), np.arange(count)] = np.inf
            least_rest(self.block[z], self.rest[z])

    def _blocks(self, z: int, place: int, copies: int, often: float, prices: Floats, held: Floats) -> None:
        """Fill in ``block`` of a stage."""
        terms, first = self.terms, 0.0
        for g, (t, price) in enumerate(zip(self.degrees, prices.tolist(), strict=True)):
            sums = [_least(terms, g, t, often, price, samples) for samples in held.tolist()]
            whole = float(np.mean([own[-1] for own in sums]))
            first = first or whole
            longer = self.longer[z, place, g] = max(1.0, whole / first) if first > 0.0 else 1.0
            able = (terms.unsupported[g][None] == terms.unsupported[g][:, None]) & terms.inside
            edges = 0.0 if self.alone else t * (terms.edges if self.long else terms.short)[:, :, g]
            for c, own in enumerate(sums):
                whole_work = own + price * terms.sharded[g] / copies
                busy = (whole_work[None] - whole_work[:, None] + edges) / longer
                busy = np.where(able, busy - 1e-9 * np.abs(busy), np.inf)
                self.block[z, c, place] = np.minimum(self.block[z, c, place], busy)

    def capacities(self, load: float, memory: float, devices: int) -> tuple[Floats, Floats]:
        """``own`` and ``capacity`` of a question; ``load``: of a copy, in seconds."""
        count, stages, _ = self.prices.shape
        saved = self._saved(load)
        own = np.full((count, stages, devices + 1), -np.inf)
        plain, with_saved = (np.full((count, stages + 1, devices + 1), -np.inf) for _ in range(2))
        plain[:, 0], with_saved[:, 0] = 0.0, 0.0
        for z, place, g in np.ndindex(self.prices.shape):
            t, price = self.degrees[g], self.prices[z, place, g]
            each = (t * load + (price * memory if price else 0.0)) / self.longer[z, place, g] * (1.0 + 1e-9)
            more = each + saved[g] / self.longer[z, place, g]
            before, after, base = with_saved[z, place], with_saved[z, place + 1], plain[z, place]
            own[z, place, t:] = np.maximum(own[z, place, t:], more)
            plain[z, place + 1, t:] = np.maximum(plain[z, place + 1, t:], base[: devices + 1 - t] + each)
            reached = np.maximum(before[: devices + 1 - t] + each, base[: devices + 1 - t] + more)
            after[t:] = np.maximum(after[t:], reached)
        return own, with_saved

    def _saved(self, load: float) -> Floats:
        """Per degree, the most seconds of devices that the chunks of a stage save together: in one stage of a plan, as
        if those of all its stages were in the one with most devices.

        A tensor with one reader saves what both of its ends cost, where these are in two chunks of the stage that has
        its maker.  Of the tensors that one unit makes, those that one block of each other chunk can read.
        """
        terms = self.terms
        out = np.zeros(len(self.degrees))
        if self.alone or not self.long or not len(terms.readers):
            return out
        several, chunks = terms.readers > 1, self.block.shape[1]
        for g, t in enumerate(self.degrees):
            each = t * (terms.input[g] + terms.output[g])
            out[g] = float((each * terms.readers)[several].sum())
            able = terms.inside & (terms.time[g][None] - terms.time[g][:, None] <= load * (1.0 + 1e-9))
            for unit in np.unique(terms.maker[~several]).tolist():
                own = np.flatnonzero(~several & (terms.maker == unit))
                read = terms.read[:, own] @ each[own]
                out[g] += (chunks - 1) * float((read[None] - read[:, None])[able].max(initial=0.0))
        return np.maximum.accumulate(out)


def _least(terms: InTurnTerms, g: int, t: int, often: float, price: float, samples: float) -> Floats:
    """K: the least work of each ideal's nodes."""
    table, kinds = terms.table, np.zeros(terms.table.kinds)
    for k in range(table.kinds):
        rows = slice(int(table.start[g * table.kinds + k]), int(table.start[g * table.kinds + k + 1]))
        work = t * (table.time[rows] + often * table.weights[rows])
        work = work + price * (table.stash[rows] * samples + table.memory[rows])
        kinds[k] = work.min(initial=np.inf) if rows.stop > rows.start else 0.0
    out: Floats = terms.of_kind @ kinds
    return out


def price(terms: InTurnTerms, g: int, t: int, often: float, samples: float) -> float:
    """Seconds of devices for a byte: what it costs where options save bytes, by the kind of most nodes that can."""
    table, best = terms.table, (0.0, 0.0)
    if not np.isfinite(terms.capacity):
        return 0.0
    for k in range(table.kinds):
        rows = slice(int(table.start[g * table.kinds + k]), int(table.start[g * table.kinds + k + 1]))
        time = t * (table.time[rows] + often * table.weights[rows])
        held = table.stash[rows] * samples + table.memory[rows]
        if len(time) < 2:
            continue
        quickest = int(np.lexsort((held, time))[0])
        saved = held[quickest] - held
        ways = [(time[o] - time[quickest]) / saved[o] for o in range(len(time)) if saved[o] > 0.0]
        best = max(best, (float(terms.of_kind[-1, k]), min(ways))) if ways else best
    return best[1]
