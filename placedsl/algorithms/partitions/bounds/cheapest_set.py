"""The cheapest set of units whose prices reach 1: a bound on the largest load where the prices of all are k together.

One of k devices then has units worth at least 1, and none of those sets loads less.  The search is that of
``cheapest_set_kernel.py``; it can be left and gone on with, and says at any time what no set is below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.partitions.bounds.cheapest_set_kernel import BIG, Network, Tree, plant, proven, search
from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.arrays import Booleans, Floats
from placedsl.graph.order import csr

#: All work and hyperedges together are less than this; vertices, and bytes of a search.
_WHOLE, _MOST_VERTICES, _MOST_BYTES = float(1 << 38), 1 << 13, 1 << 28
#: Nodes between two looks at what is known elsewhere.
_NODES = 500


class CheapestSet:
    """Searches over the sets of one device class; ``nodes`` counts theirs, for the caller to read and reset."""

    def __init__(self, device: DeviceClass) -> None:
        self.nodes = 0
        work = np.where(np.isfinite(device.work), device.work, 0.0)
        total = float(work.sum() + device.edges.cost.sum())
        scale = _WHOLE / total if total > 0.0 else 1.0
        #: Whole numbers a second: loads are rounded down.
        self.scale = float(int(scale)) if scale >= 1.0 else scale
        whole = np.where(np.isfinite(device.work), np.floor(work * self.scale), -1.0).astype(np.int64)
        self._network = _network(whole, np.floor(device.edges.cost * self.scale).astype(np.int64), device.edges.pins)
        self._tree: Tree | None = None

    @staticmethod
    def fits(device: DeviceClass) -> bool:
        """Whether there is room for it."""
        hyperedges = sum(2 for pins in device.edges.pins if len(pins) > 2)
        return len(device.work) + hyperedges <= _MOST_VERTICES

    def least(
        self, price: Floats, upper: Callable[[], float], over: Callable[[float, float], bool]
    ) -> tuple[float, Booleans | None, bool]:
        """The least load of sets whose prices (u) reach 1, as far as it is proven and no more than ``upper()`` seconds;
        the cheapest set found below that (u flags, None: none); and whether the search is through.

        ``over(least, found)``, asked now and then, says whether to stop: what is proven, and the least load found.
        """
        network, scale = self._network, self.scale
        if self._tree is None:
            self._tree = _tree(network)
        tree, best, most = self._tree, np.zeros(len(price), dtype=np.bool_), upper()
        cutoff = self._whole(most)
        plant(network, price, cutoff, tree)
        through, before = False, 0
        while not through:
            through = bool(search(network, price, tree, self._whole(upper()), _NODES, best))
            ended = through or tree.state[3] == before
            self.nodes += int(tree.state[3]) - before
            before = int(tree.state[3])
            if ended or over(float(proven(tree)) / scale, float(tree.state[2]) / scale):
                break
        least = float(tree.state[2] if through else proven(tree)) / scale
        return min(least, most), best if best.any() else None, through

    def _whole(self, load: float) -> int:
        """The least whole number above a limit; more than there is where there is none."""
        return int(min(load * self.scale, 2.0 * _WHOLE)) + 1


def _network(work: np.ndarray, cost: np.ndarray, pins: tuple[tuple[int, ...], ...]) -> Network:
    """A hyperedge of two units is an arc each way; any other has two vertices, which all of its units are between."""
    units, entries = len(work), []
    vertex = units
    for own, price in zip(pins, cost.tolist(), strict=True):
        if len(own) == 2:
            entries.append((own[0], own[1], price, price))
            continue
        entries.append((vertex, vertex + 1, price, 0))
        entries += [(u, vertex, BIG, 0) for u in own] + [(vertex + 1, u, BIG, 0) for u in own]
        vertex += 2
    one, other, ahead, behind = np.array(entries, dtype=np.int64).reshape(-1, 4).T
    number = len(one)
    tail, head = np.concatenate((one, other)), np.concatenate((other, one))
    back = np.concatenate((np.arange(number, 2 * number), np.arange(number)))
    order = np.argsort(tail, kind="stable")
    place = np.empty(2 * number, dtype=np.int64)
    place[order] = np.arange(2 * number)
    start, ordered = csr(tail, np.arange(2 * number), vertex)
    assert np.array_equal(order, ordered)
    pin_start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum([len(own) for own in pins], dtype=np.int64)))
    pin = np.array([u for own in pins for u in own], dtype=np.int64)
    return Network(
        start, head[order], place[back[order]], np.concatenate((ahead, behind))[order], work, pin_start, pin, cost
    )  # fmt: skip


def _tree(network: Network) -> Tree:
    """Space for a search, as deep as there are units, or as there is room for."""
    units, vertices, arcs = len(network.work), len(network.start) - 1, len(network.head)
    depth = max(2, min(units + 2, _MOST_BYTES // (8 * (arcs + vertices) + 2 * units)))

    def whole(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    return Tree(
        residual=whole(depth, arcs), excess=whole(depth, vertices), prize=np.zeros(depth), lower=whole(depth),
        unit=whole(depth), tried=whole(depth), below=np.zeros((depth, units), dtype=np.bool_),
        beyond=np.zeros((depth, units), dtype=np.bool_), fixed=whole(units), state=whole(4),
        distance=whole(vertices), queue=whole(vertices + 1), flag=np.zeros(vertices, dtype=np.bool_),
        arc=whole(vertices),
    )  # fmt: skip
