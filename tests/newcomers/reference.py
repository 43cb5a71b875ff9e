"""The optima of the twelve problems of ``descriptions.md``, by enumeration; nothing of placedsl is used."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
DATA = json.loads((HERE / "model.json").read_text(encoding="utf-8"))
NODES = [n["id"] for n in DATA["nodes"]]
OF = {n["id"]: n for n in DATA["nodes"]}
EDGES = [(e["from"], e["to"]) for e in DATA["edges"]]
READERS = {v: sorted({t for s, t in EDGES if s == v}) for v in NODES}
GIB, MS = 2.0**30, 1e-3
BANDWIDTH = 16 * GIB
NEAR = 1e-9

Placement = dict[str, str]


def busy(place: Placement, device: str, factor: float = 1.0) -> float:
    """Seconds a sample keeps a device busy: its operators, and for a GPU the tensors that it reads or writes."""
    kind = "host" if device == "cpu" else "accelerator"
    total = sum(OF[v]["time"][kind] * MS for v in NODES if place[v] == device) * (1.0 if kind == "host" else factor)
    if device == "cpu":
        return total
    for v in NODES:
        touched = {place[v], *(place[r] for r in READERS[v])}
        if READERS[v] and device in touched and len(touched) > 1:
            total += OF[v]["output"] / BANDWIDTH
    return total


def held(place: Placement, device: str) -> float:
    """Bytes on a device."""
    return sum(OF[v]["memory"] for v in NODES if place[v] == device)


def traffic(place: Placement, source: str, target: str) -> float:
    """Bytes made on one device and read on another."""
    return (
        sum(OF[v]["output"] for v in NODES if place[v] == source and any(place[r] == target for r in READERS[v]))
        if source != target
        else 0.0
    )


def pipeline(place: Placement) -> bool:
    """The devices form one pipeline: no cycle among them."""
    steps = {(place[u], place[v]) for u, v in EDGES if place[u] != place[v]}
    devices = set(place.values())
    while devices:
        first = {d for d in devices if not any(b == d and a in devices for a, b in steps)}
        if not first:
            return False
        devices -= first
    return True


def fits(place: Placement, room: float = 8 * GIB) -> bool:
    """What the operators of each GPU occupy fits."""
    return all(held(place, d) <= room for d in set(place.values()) if d != "cpu")


def longest(place: Placement) -> float:
    """Time per sample."""
    return max(busy(place, d) for d in set(place.values()))


@lru_cache(maxsize=4)
def every(devices: tuple[str, ...]) -> list[Placement]:
    """All placements."""
    return [dict(zip(NODES, chosen, strict=True)) for chosen in itertools.product(devices, repeat=len(NODES))]


GPUS = ["g1", "g2", "g3"]


def least(
    *values: Callable[[Placement], float], where: Callable[[Placement], bool], of: tuple[str, ...] = (*GPUS, "cpu")
) -> tuple[float, ...]:
    """The lexicographic minimum over placements."""
    best: tuple[float, ...] | None = None
    for place in every(of):
        if not where(place):
            continue
        found = tuple(value(place) for value in values)
        for mine, other in zip(found, best or (math.inf,) * len(found), strict=True):
            if abs(mine - other) > NEAR * max(abs(mine), 1e-12) + 1e-15:
                best = found if mine < other else best
                break
    assert best is not None
    return best


def together(place: Placement, names: list[str]) -> bool:
    """On one device."""
    return len({place[v] for v in names}) == 1


def money(place: Placement) -> float:
    """USD per hour of the devices in use."""
    return sum(0.3 if d == "cpu" else 2.5 for d in set(place.values()))


def even(place: Placement) -> bool:
    """Problem 4."""
    loads = [busy(place, d) for d in GPUS]
    return all(d in place.values() for d in GPUS) and max(loads) <= 1.25 * min(loads) * (1 + NEAR)


def modules(place: Placement) -> float:
    """Problem 12: what the modules cost; infinite where they are not enough."""
    counts = [max(0, math.ceil((held(place, d) - 2 * GIB) / (1.5 * GIB) - NEAR)) for d in GPUS]
    return 100.0 * sum(counts) if max(counts) <= 3 else math.inf


def two_kinds() -> tuple[float, ...]:
    """Problem 8."""

    def load(place: Placement) -> float:
        return max(busy(place, d, 2.0 if d.startswith("small") else 1.0) for d in set(place.values()))

    def allowed(place: Placement) -> bool:
        some = [sum(place[v] == d for v in NODES) for d in ("small1", "small2")]
        room = held(place, "big") <= 16 * GIB and all(held(place, d) <= 4 * GIB for d in ("small1", "small2"))
        return min(some) >= 2 and room

    return least(load, where=allowed, of=("big", "small1", "small2", "cpu"))


def family() -> tuple[float, ...]:
    """Problem 11."""
    given = json.loads((HERE / "weights.json").read_text(encoding="utf-8"))
    weight = given["priority"]
    devices = (*(f"g{i + 1}" for i in range(given["gpus"])), "cpu")
    return least(
        lambda p: sum(weight[v] for v in NODES if p[v] == "cpu"),
        where=lambda p: fits(p) and longest(p) <= 17 * MS * (1 + NEAR), of=devices,
    )  # fmt: skip


def optima() -> dict[int, tuple[float, ...]]:
    """Objective values of each problem, in SI."""
    encoder, decoder = ["enc1", "enc2", "enc3"], ["dec1", "dec2"]
    return {
        1: least(longest, where=lambda p: fits(p) and pipeline(p)),
        2: least(longest, where=lambda p: fits(p) and money(p) <= 5.5 + NEAR),
        3: least(longest, where=lambda p: fits(p) and p["tok"] == "cpu" and len({p[v] for v in encoder}) == 3),
        4: least(longest, where=lambda p: fits(p) and even(p)),
        5: least(lambda p: len(set(p.values())), longest,
                 where=lambda p: fits(p) and longest(p) <= 14 * MS * (1 + NEAR)),
        6: least(longest, where=lambda p: fits(p) and p["tok"] == p["head"] != "cpu" and together(p, decoder)),
        7: least(longest, where=lambda p: fits(p) and all(
            sum(traffic(p, d, e) for e in [*GPUS, "cpu"]) <= 20 * 2**20 for d in GPUS)),
        8: two_kinds(),
        9: least(lambda p: longest(p) + 0.5 * sum(max(0.0, busy(p, d) - 9 * MS) for d in GPUS), where=fits),
        10: least(longest, lambda p: held(p, "g2") + held(p, "g3"), lambda p: traffic(p, "cpu", "g1"), where=fits),
        11: family(),
        12: least(modules, where=lambda p: modules(p) < math.inf and longest(p) <= 15 * MS * (1 + NEAR)
                  and all(p[v] != "cpu" for v in NODES if v != "tok")),
    }  # fmt: skip


if __name__ == "__main__":
    for number, values in optima().items():
        print(number, *(f"{v:.9g}" for v in values))  # noqa: T201
