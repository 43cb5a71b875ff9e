"""Bounds of blocks that several processes refine: each goes on with what the others have proven."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from placedsl.algorithms.exchange import Exchange, Key
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, Chain, Improve
from placedsl.tolerances import IMPROVEMENT

#: What a number says of a block and a pair of devices: the bound in seconds; how often it has been refined (inf: no
#: further work improves it); and how often it will have been when somebody is done who has begun.
_BOUND, _EFFORT, _BEGUN = 0, 1, 2


class SharedBlocks:
    """The blocks of some chains, which are the same in all processes.

    ``takes_work``: what others have refined is not refined here; else only their bounds are taken.
    """

    def __init__(self, chains: Iterable[Chain], exchange: Exchange, *, takes_work: bool) -> None:
        self._exchange, self._takes_work = exchange, takes_work
        self._blocks: dict[Key, tuple[Chain, Block]] = {}
        self._key: dict[int, Key] = {}
        for number, chain in enumerate(chains):
            cuts = zlib.crc32(chain.nodes.tobytes())
            for place, block in enumerate(chain.blocks):
                # Equal blocks share their bounds: the first of them stands for all.
                if id(block.lower_bound) not in self._key:
                    key = self._key[id(block.lower_bound)] = ("block", number, cuts, place)
                    self._blocks[key] = chain, block
        self._refined: set[tuple[Key, int, int]] = set()
        self._begun: dict[tuple[int, int, int], float] = {}
        #: How often a bound has risen by what others told.
        self.heard = 0

    def taken(self, block: Block, a: int, b: int) -> bool:
        """Whether others have begun to refine a block for a pair of devices."""
        return self._begun.get((id(block.lower_bound), a, b), 0.0) > int(block.effort[a, b])

    def watched(self, improve: Improve) -> Improve:
        """The same, and what is refined is told."""

        def improved(block: Block, a: int, b: int, needed: float) -> None:
            key = self._key[id(block.lower_bound)]
            self._exchange.tell({(*key, a, b, _BEGUN): float(block.effort[a, b] + 1)})
            improve(block, a, b, needed)
            self._refined.add((key, a, b))

        return improved

    def exchange(self) -> None:
        """Tell what has been refined since the last time, and take what others have."""
        found: dict[Key, float] = {}
        for key, a, b in self._refined:
            _, block = self._blocks[key]
            found[*key, a, b, _BOUND] = float(block.lower_bound[a, b])
            found[*key, a, b, _EFFORT] = np.inf if block.final[a, b] else float(block.effort[a, b])
        self._refined.clear()
        if found:
            self._exchange.tell(found)
        for told, number in self._exchange.heard().items():
            match told:
                case ("block", _, _, _, int(of_first), int(of_last), int(what)) if told[:4] in self._blocks:
                    self._take(*self._blocks[told[:4]], of_first, of_last, what, number)

    def _take(self, chain: Chain, block: Block, a: int, b: int, what: int, number: float) -> None:
        if what == _BEGUN:
            self._begun[id(block.lower_bound), a, b] = number
            return
        if what == _BOUND:
            self.heard += number > block.lower_bound[a, b]
            block.lower_bound[a, b] = max(block.lower_bound[a, b], number)
            block.final[a, b] |= block.latency[a, b] <= block.lower_bound[a, b] * (1.0 + IMPROVEMENT)
        elif not self._takes_work:
            return
        elif np.isinf(number):
            block.final[a, b] = True
        else:
            block.effort[a, b] = max(int(block.effort[a, b]), int(number))
        block.spread(chain.alike, a, b)
