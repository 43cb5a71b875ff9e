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

from placedsl.algorithms.stages.stage_costs import (
    DeviceClasses,
    StageCostModel,
    StageCosts,
    after_computation,
    beside_computation,
    both_ways,
)
from placedsl.graph.contraction import Quotient, backward_orientation, contract

SCHEDULES: dict[str, StageCosts] = {
    "pipedream": after_computation, "overlapped": beside_computation, "duplex": both_ways,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Small:
    """A graph, devices, and how they may share stages.

    ``cluster``: a cluster a device; ``far``: levels x c x t, what a tensor costs on top where it leaves the cluster.
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


def small(seed: int, *, copies: bool, clusters: bool, most: int = 7) -> Small:
    """Inference or training on one or two classes of devices, with groups, memory limits, unsupported nodes."""
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
    far = rng.integers(0, 5, size=(1, classes, len(quotient.tensor_producer))).astype(float)
    return Small(
        schedule=str(rng.choice(list(SCHEDULES))),
        quotient=quotient,
        classes=DeviceClasses(counts, limits, tuple(np.arange(a, b) for a, b in itertools.pairwise(starts))),
        allowed=tuple(sets[rng.integers(len(sets))] if copies else (1,) for _ in counts),
        sync=rng.integers(0, 5, size=(classes, quotient.units)) * (0.0 if rng.random() < 0.3 else 1.0),
        cluster=rng.integers(0, 3, sum(counts)) if clusters else np.zeros(sum(counts), dtype=np.int64),
        far=far * (clusters and rng.random() < 0.9),
    )


@dataclass(frozen=True)
class Stage:
    """The units of a stage, the class that runs it, how many devices share it, and all units of its cluster."""

    own: frozenset[int]
    kind: int
    copies: int
    near: frozenset[int]


def load(case: Small, stage: Stage) -> float:
    """The load of each device of a stage: Tarnawski et al. 2020, section 3 and Appendices C.1, C.2, C.3."""
    quotient, c, own = case.quotient, stage.kind, stage.own
    held = sum(quotient.memory[u] for u in own)
    if held > case.classes.memory[c]:
        return math.inf
    compute, into, out = float(sum(quotient.work[c, u] for u in own)), 0.0, 0.0
    pins = [list(map(int, p)) for p in np.split(quotient.pin_unit, quotient.pin_start[1:-1])]
    for t, (maker, *readers) in enumerate(pins if len(quotient.tensor_producer) else []):
        near, far = quotient.transfer[c, t], case.far[0, c, t]
        if maker in own and not set(readers) <= own:
            out += near + (far if not set(readers) <= stage.near else 0.0)
        if maker not in own and set(readers) & own:
            into += near + (far if maker not in stage.near else 0.0)
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


def by_recursion(case: Small) -> tuple[float, int]:
    """The least largest load, and the fewest devices that reach it."""
    quotient = case.quotient
    sets = ideals_of(quotient)
    family = np.repeat(np.arange(len(case.classes.counts)), case.classes.counts)
    members = [tuple(np.bincount(family[case.cluster == k], minlength=len(case.classes.counts)).tolist())
               for k in sorted(set(case.cluster.tolist()))]  # fmt: skip
    price = functools.cache(lambda stage: load(case, stage))

    @functools.cache
    def within(low: frozenset[int], high: frozenset[int], inside: frozenset[int], left: tuple[int, ...]) -> Options:
        """From ``low`` to ``inside`` in the cluster that has what is between ``low`` and ``high``."""
        if inside == low:
            return {0: 0.0}
        found: Options = {}
        for smaller in sets:
            if not (low <= smaller < inside):
                continue
            for kind, count in enumerate(left):
                for r in case.allowed[kind]:
                    if r > count:
                        continue
                    here = price(Stage(inside - smaller, kind, r, high - low))
                    if here == math.inf:
                        continue
                    fewer = tuple(c - r * (k == kind) for k, c in enumerate(left))
                    for n, v in combined({r: here}, within(low, high, smaller, fewer)).items():
                        found[n] = min(found.get(n, math.inf), v)
        return found

    @functools.cache
    def best(inside: frozenset[int], unused: tuple[tuple[int, ...], ...]) -> Options:
        if not inside:
            return {0: 0.0}
        found: Options = {}
        for low in sets:
            if not low < inside:
                continue
            for chosen in dict.fromkeys(unused):
                rest = list(unused)
                rest.remove(chosen)
                part = within(low, inside, inside, chosen)
                for n, v in combined(part, best(low, tuple(rest)) if part else {}).items():
                    found[n] = min(found.get(n, math.inf), v)
        return found

    options = best(frozenset(range(quotient.units)), tuple(sorted(members)))
    return min(((v, n) for n, v in options.items()), default=(math.inf, 0))


def stages_of(case: Small, device: np.ndarray, groups: Mapping[int, tuple[int, ...]]) -> Iterator[tuple[int, Stage]]:
    """The stages of an answer with their leaders."""
    family = np.repeat(np.arange(len(case.classes.counts)), case.classes.counts)
    for leader in sorted(set(device.tolist())):
        cluster = case.cluster[leader]
        near = frozenset(np.flatnonzero(case.cluster[device] == cluster).tolist())
        own = frozenset(np.flatnonzero(device == leader).tolist())
        yield leader, Stage(own, int(family[leader]), len(groups[leader]), near)


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
        like = [d for d in np.flatnonzero(family == stage.kind) if case.cluster[d] == case.cluster[leader]]
        first = like.index(leader)
        assert group == like[first : first + stage.copies]
        assert set(family[group]) == {stage.kind}
        taken += group
        loads.append(load(case, stage))
    assert len(taken) == len(set(taken))
    assert abs(max(loads) - value) <= 1e-9 * (1 + value)
    for label in (device, case.cluster[device]):
        after = {(int(label[u]), int(label[v])) for u, v in zip(case.quotient.before, case.quotient.after, strict=True)}
        assert any(
            all(order.index(a) <= order.index(b) for a, b in after)
            for order in itertools.permutations(sorted(set(label.tolist())))
        )


def alone(case: Small) -> Small:
    """The same without replication."""
    return replace(case, allowed=((1,),) * len(case.classes.counts))
