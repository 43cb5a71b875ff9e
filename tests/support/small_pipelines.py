"""Small random problems, and the best pipeline by recursion over the sets themselves, on devices in clusters or not.

Nothing here knows ideals as positions, cost components or bottleneck searches: a load is what its definition says,
set by set.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel, StageCosts, stage_costs
from placedsl.graph.contraction import Quotient, backward_orientation, contract

SCHEDULES: dict[str, StageCosts] = {
    "pipedream": stage_costs("sequential"), "overlapped": stage_costs("overlapped"),
    "duplex": stage_costs("full_duplex"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Small:
    """A graph, devices, and how they may share stages.

    ``cluster``: levels x D the cluster of each device (-1: none), the outermost first; ``far``: levels x c x t, what a
    tensor costs on top where it leaves the cluster of that level.
    """

    schedule: str
    quotient: Quotient
    classes: DeviceClasses
    allowed: tuple[tuple[int, ...], ...]
    sync: np.ndarray
    cluster: np.ndarray
    far: np.ndarray

    @property
    def stages(self) -> StageCostModel:
        """As the algorithms take it."""
        return SCHEDULES[self.schedule](self.quotient, self.classes)


def small(seed: int, *, copies: bool, levels: int, most: int = 7) -> Small:
    """Inference or training on one or two classes of devices, with groups, memory limits, unsupported nodes.

    ``levels`` of clusters; with one, every device is in a cluster.
    """
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, most + 1))
    share = rng.choice([0.2, 0.4, 0.7])
    edges = np.array(
        [p for p in itertools.combinations(range(nodes), 2) if rng.random() < share], dtype=np.int64
    ).reshape(-1, 2)
    classes = int(rng.integers(1, 3))
    work = rng.integers(0 if rng.random() < 0.2 else 1, 9, size=(classes, nodes)).astype(float)
    work[rng.random(work.shape) < 0.06] = np.inf
    producers, tensor = np.unique(edges[:, 0], return_inverse=True)
    transfer = rng.integers(0, 5, size=(classes, len(producers))).astype(float)
    if classes == 2 and rng.random() < 0.6:
        transfer[1] = 0.0
    backward = np.arange(nodes) >= (nodes if rng.random() < 0.6 else nodes // 2)
    groups = [rng.integers(0, nodes, nodes)] if rng.random() < 0.2 else []
    before, after, _ = backward_orientation(
        backward=backward, edge_source=edges[:, 0], edge_target=edges[:, 1], groups=groups
    )
    counts = tuple(int(c) for c in rng.integers(1, 5 if classes == 1 else 4, classes))
    limits = tuple(float(rng.integers(2, 9)) if rng.random() < 0.4 else math.inf for _ in counts)
    starts = np.concatenate(([0], np.cumsum(counts)))
    quotient = contract(
        memory=rng.integers(0, 4, nodes).astype(float), work=work, groups=groups, before=before, after=after,
        tensor_producer=producers, read_tensor=tensor, read_node=edges[:, 1], transfer=transfer,
    )  # fmt: skip
    sets = ((1,), (1, 2), (1, 2, 4), (1, 3), (1, 2, 3, 4))
    far = rng.integers(0, 5, size=(levels, classes, len(quotient.tensor_producer))).astype(float)
    return Small(
        schedule=str(rng.choice(list(SCHEDULES))),
        quotient=quotient,
        classes=DeviceClasses(counts, limits, tuple(np.arange(a, b) for a, b in itertools.pairwise(starts))),
        allowed=tuple(sets[rng.integers(len(sets))] if copies else (1,) for _ in counts),
        sync=rng.integers(0, 5, size=(classes, quotient.units)) * (0.0 if rng.random() < 0.3 else 1.0),
        cluster=_nested(rng, levels, sum(counts)),
        far=far * (rng.random() < 0.9) * rng.choice([1.0, 1.0, 0.01, 100.0], size=(levels, 1, 1)) ** (levels > 1),
    )


def _nested(rng: np.random.Generator, levels: int, devices: int) -> np.ndarray:
    """levels x D: up to three clusters in what is around them; on several levels some devices are in none."""
    out = np.full((levels, devices), -1, dtype=np.int64)
    around = np.zeros(devices, dtype=np.int64)
    for level in range(levels):
        here = 3 * around + rng.integers(0, 3 if level == 0 else 2, devices)
        outside = (around < 0) | ((levels > 1) & (rng.random(devices) < 0.15))
        around = np.where(outside, -1, here)
        out[level] = around
    return out


@dataclass(frozen=True)
class Stage:
    """The units of a stage, the class that runs it, how many devices share it, and all units of each of its clusters,
    the outermost first."""

    own: frozenset[int]
    kind: int
    copies: int
    around: tuple[frozenset[int], ...]


def load(case: Small, stage: Stage) -> float:
    """The load of each device of a stage: Tarnawski et al. 2020, section 3 and Appendices C.1, C.2, C.3."""
    quotient, c, own = case.quotient, stage.kind, stage.own
    held = sum(quotient.memory[u] for u in own)
    if held > case.classes.memory[c]:
        return math.inf
    compute, into, out = float(sum(quotient.work[c, u] for u in own)), 0.0, 0.0
    pins = [list(map(int, p)) for p in np.split(quotient.pin_unit, quotient.pin_start[1:-1])]
    for t, (maker, *readers) in enumerate(pins if len(quotient.tensor_producer) else []):
        levels = list(zip(stage.around, case.far[:, c, t].tolist(), strict=False))
        if maker in own and not set(readers) <= own:
            out += quotient.transfer[c, t] + sum(far for units, far in levels if not set(readers) <= units)
        if maker not in own and set(readers) & own:
            into += quotient.transfer[c, t] + sum(far for units, far in levels if maker not in units)
    alone = {
        "pipedream": compute + into + out, "overlapped": max(compute, into + out), "duplex": max(compute, into, out)
    }[case.schedule]  # fmt: skip
    r = stage.copies
    sent = (r - 1) / r * float(sum(case.sync[c, u] for u in own))
    return alone / r + sent if case.schedule == "pipedream" else max(alone / r, sent)


def ideals_of(quotient: Quotient) -> list[frozenset[int]]:
    """All sets of units that hold, with a unit, what comes before it."""
    pairs = list(zip(quotient.before.tolist(), quotient.after.tolist(), strict=True))
    return [
        frozenset(s) for k in range(quotient.units + 1) for s in itertools.combinations(range(quotient.units), k)
        if all(u in s for u, v in pairs if v in s)
    ]  # fmt: skip


Options = dict[int, float]


def combined(first: Options, second: Options) -> Options:
    """The least largest load by the number of devices, of two parts in a row."""
    out: Options = {}
    for (m, a), (n, b) in itertools.product(first.items(), second.items()):
        out[m + n] = min(out.get(m + n, math.inf), max(a, b))
    return out


@dataclass(frozen=True, order=True)
class Left:
    """What is left of a cluster, or of the machine: devices of each class, and clusters within."""

    devices: tuple[int, ...]
    within: tuple[Left, ...]


def machine_of(case: Small) -> Left:
    """All devices."""
    family = np.repeat(np.arange(len(case.classes.counts)), case.classes.counts)

    def made(devices: np.ndarray, level: int) -> Left:
        inner = case.cluster[level, devices] if level < len(case.cluster) else np.full(len(devices), -1)
        direct = np.bincount(family[devices[inner < 0]], minlength=len(case.classes.counts))
        within = [made(devices[inner == k], level + 1) for k in sorted(set(inner[inner >= 0].tolist()))]
        return Left(tuple(direct.tolist()), tuple(sorted(within)))

    return made(np.arange(len(family)), 0)


def by_recursion(case: Small) -> tuple[float, int]:
    """The least largest load, and the fewest devices that reach it."""
    sets = ideals_of(case.quotient)
    price = functools.cache(lambda stage: load(case, stage))

    @functools.cache
    def best(low: frozenset[int], high: frozenset[int], left: Left, around: tuple[frozenset[int], ...]) -> Options:
        """From ``low`` to ``high`` by what is left of a cluster; ``around``: all units of each cluster it is in."""
        if low == high:
            return {0: 0.0}
        found: Options = {}

        def add(first: Options, second: Options) -> None:
            for n, v in combined(first, second).items():
                found[n] = min(found.get(n, math.inf), v)

        for middle in sets:
            if not (low <= middle < high):
                continue
            own = high - middle
            for kind, count in enumerate(left.devices):
                for r in case.allowed[kind]:
                    if r > count or (r > 1 and len(case.cluster) and not around):  # outside of clusters none is shared
                        continue
                    here = price(Stage(own, kind, r, around))
                    if here < math.inf:
                        devices = tuple(c - r * (k == kind) for k, c in enumerate(left.devices))
                        add({r: here}, best(low, middle, Left(devices, left.within), around))
            for chosen in dict.fromkeys(left.within):
                within = list(left.within)
                within.remove(chosen)
                part = best(middle, high, chosen, (*around, own))
                if part:
                    add(part, best(low, middle, Left(left.devices, tuple(within)), around))
        return found

    options = best(frozenset(), frozenset(range(case.quotient.units)), machine_of(case), ())
    return min(((v, n) for n, v in options.items()), default=(math.inf, 0))


def stages_of(case: Small, device: np.ndarray, groups: Mapping[int, tuple[int, ...]]) -> Iterator[tuple[int, Stage]]:
    """The stages of an answer with their leaders."""
    family = np.repeat(np.arange(len(case.classes.counts)), case.classes.counts)
    for leader in sorted(set(device.tolist())):
        around = tuple(
            frozenset(np.flatnonzero(level[device] == level[leader]).tolist())
            for level in case.cluster if level[leader] >= 0
        )  # fmt: skip
        own = frozenset(np.flatnonzero(device == leader).tolist())
        yield leader, Stage(own, int(family[leader]), len(groups[leader]), around)


def check(case: Small, value: float, device: np.ndarray, groups: Mapping[int, tuple[int, ...]]) -> None:
    """The answer is a pipeline of groups of devices, contiguous in clusters as well, and costs what it says."""
    family = np.repeat(np.arange(len(case.classes.counts)), case.classes.counts)
    taken: list[int] = []
    loads = []
    for leader, stage in stages_of(case, device, groups):
        assert stage.copies in case.allowed[stage.kind]
        group = list(groups[leader])
        assert group[0] == leader
        # Neighbours among the devices of their class and cluster.
        like = [
            d for d in np.flatnonzero(family == stage.kind) if (case.cluster[:, d] == case.cluster[:, leader]).all()
        ]
        first = like.index(leader)
        assert group == like[first : first + stage.copies]
        assert set(family[group]) == {stage.kind}
        taken += group
        loads.append(load(case, stage))
    assert len(taken) == len(set(taken))
    assert abs(max(loads) - value) <= 1e-9 * (1 + value)
    for level in (np.arange(len(family)), *case.cluster):
        # A device that is in no cluster is one by itself.
        label = np.where(level >= 0, level, -1 - np.arange(len(family)))[device]
        after = {(int(label[u]), int(label[v])) for u, v in zip(case.quotient.before, case.quotient.after, strict=True)}
        assert any(
            all(order.index(a) <= order.index(b) for a, b in after)
            for order in itertools.permutations(sorted(set(label.tolist())))
        )


def alone(case: Small) -> Small:
    """The same without replication."""
    return replace(case, allowed=((1,),) * len(case.classes.counts))
