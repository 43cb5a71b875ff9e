"""Random workloads in the format of Piper, and the best plan by enumeration of the paper's formulas, in fractions.

Nothing here is placedsl's: a workload is the JSON, and the optimum is computed from the JSON.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

#: Bytes per second.
BANDWIDTH = 1024


@dataclass(frozen=True)
class Asked:
    """What is planned for: a workload, and the machine and run."""

    workload: dict[str, Any]
    devices: int
    memory: int
    microbatches: int
    exchange: str
    copies: tuple[int, ...]
    tensor: tuple[int, ...]
    together: bool = False
    held: str = "pipeline"

    def in_flight(self, copies: int, together: int) -> int:
        """Samples that each copy of a stage holds; ``together``: copies of it and of all later ones."""
        return -(-{"pipeline": together, "batch": self.microbatches, "sample": 1}[self.held] // copies)

    def spec(self, file: str) -> str:
        """The spec, which refers to the workload by a file name."""
        return f"""
graph from "{file}"{"" if "format" in self.workload else " { time_unit = 1 s }"}
device gpu[{self.devices}]: accelerator {{ memory = {self.memory} B }}
interconnect {{ bandwidth = {BANDWIDTH} B/s }}
parallelism {{
    data = {{{", ".join(map(str, self.copies))}}}
    tensor = {{{", ".join(map(str, self.tensor))}}}
    microbatches = {self.microbatches}
    exchange = {self.exchange}
    in_flight = {self.held}
    weights_traffic = 4
}}
minimize time_per_sample
subject to
    memory
    contiguous
{"    colocated by type" if self.together else ""}
"""


def with_shares(workload: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """With bytes that copies divide among them, which the format of Piper does not have."""
    out = copy.deepcopy(workload)
    for node in out["nodes"]:
        for options in node["TMPCs"].values():
            share = rng.choice((0, 4, 7, 24))
            for option in options:
                option["sharded"] = share
    return out


def native(workload: dict[str, Any]) -> dict[str, Any]:
    """The same workload in placedsl's own format: what goes forward and back is one tensor of twice the size."""

    def option(degree: str, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": given["id"], "tensor": int(degree), "time": given["timePerSample"],
            "parameters": given["parameterSize"], "stash": given["memoryUsageA"], "memory": given["memoryUsageB"],
            "sharded": given.get("sharded", 0),
            "gather": {u: 2 * moved for u, moved in given["syncTimeFw"].items()},
            "scatter": {v: 2 * moved for v, moved in given["syncTimeBw"].items()},
        }  # fmt: skip

    nodes = [
        {
            "id": node["id"],
            "attributes": {"type": node["name"]},
            "options": [option(t, o) for t, listed in node["TMPCs"].items() for o in listed],
        }
        for node in workload["nodes"]
    ]
    edges = [
        {"from": e["sourceId"], "to": e["destId"], "output": 2 * e["communicationCost"]} for e in workload["edges"]
    ]
    return {"format": "placedsl-graph", "time_unit": "s", "nodes": nodes, "edges": edges}


def drawn(seed: int, most: int = 4) -> Asked:
    """A random problem with options that differ in everything, some missing, and ids that are no positions.

    ``most``: nodes, and devices.
    """
    rng = random.Random(seed)
    count, devices = rng.randint(1, most), rng.randint(1, 4)
    ids = rng.sample(range(50), count)
    degrees = tuple(sorted(rng.sample(range(1, min(devices, 3) + 1), rng.randint(1, min(devices, 2)))))
    edges = [(u, v) for u in range(count) for v in range(u + 1, count) if rng.random() < 0.6]
    nodes = []
    for v, own in enumerate(ids):
        options: dict[str, list[dict[str, Any]]] = {}
        for t in degrees:
            # What is gathered depends on node and degree, as in the published files.
            forward = {str(ids[u]): 256 * rng.randint(0, 3) if t > 1 else 0 for u, w in edges if w == v}
            backward = {str(ids[w]): 256 * rng.randint(0, 3) if t > 1 else 0 for u, w in edges if u == v}
            for k in range(rng.choice((1, 1, 2, 3) if t == degrees[0] else (0, 1, 2))):
                options.setdefault(str(t), []).append(
                    {
                        "id": f"option {k}", "timePerSample": rng.randint(0, 12) / 4, "memoryUsageA": rng.randint(0, 4),
                        "parameterSize": 256 * rng.randint(0, 4), "memoryUsageB": rng.randint(0, 6),
                        "syncTimeFw": forward, "syncTimeBw": backward,
                    }
                )  # fmt: skip
        nodes.append({"id": own, "name": f"layer{v}" if rng.random() < 0.6 else "layer", "TMPCs": options})
    order = list(range(count))
    rng.shuffle(order)
    arcs = [{"sourceId": ids[u], "destId": ids[v], "communicationCost": 256 * rng.randint(0, 4)} for u, v in edges]
    rng.shuffle(arcs)
    workload = {"nodes": [nodes[v] for v in order], "edges": arcs}
    exchange = rng.choice(("sample", "round", "batch"))
    microbatches = rng.choice((1, 2, 3, 4, 6))
    able = [d for d in (1, 2, 3, 4) if d <= devices and (exchange != "batch" or microbatches % d == 0)]
    copies = tuple(sorted({1, *rng.sample(able, rng.randint(1, len(able)))}))
    tensor = tuple(t for t in degrees if any(str(t) in node["TMPCs"] for node in nodes))
    together, memory = rng.random() < 0.3, rng.randint(4, 40)
    held = rng.choice(("pipeline", "pipeline", "batch", "sample"))
    return Asked(workload, devices, memory, microbatches, exchange, copies, tensor, together, held)


def optimum(asked: Asked) -> Fraction | None:
    """The least largest time per sample of a stage; None where there is no plan."""
    nodes = {node["id"]: node for node in asked.workload["nodes"]}
    edges = {(e["sourceId"], e["destId"]): e["communicationCost"] for e in asked.workload["edges"]}
    known: dict[tuple[frozenset[int], int, int], Fraction | None] = {}

    def best(left: frozenset[int], devices: int, behind: int) -> Fraction | None:
        """Of the nodes before stages that have so many devices and copies in all."""
        if not left:
            return Fraction(0)
        key = left, devices, behind
        if key not in known:
            values = []
            for stage in _ends(left, edges):
                if asked.together and any(
                    (u in stage) != (v in stage) and nodes[u]["name"] == nodes[v]["name"] for u in nodes for v in nodes
                ):
                    continue
                for copies, degree in product(asked.copies, asked.tensor):
                    if devices + copies * degree > asked.devices or (
                        behind + copies > asked.microbatches and asked.held == "pipeline"
                    ):
                        continue
                    load = _load(asked, nodes, edges, stage, copies, degree, behind + copies)
                    rest = None if load is None else best(left - stage, devices + copies * degree, behind + copies)
                    if load is not None and rest is not None:
                        values.append(max(load, rest))
            known[key] = min(values, default=None)
        return known[key]

    return best(frozenset(nodes), 0, 0)


def _ends(left: frozenset[int], edges: dict[tuple[int, int], int]) -> Iterator[frozenset[int]]:
    """What may be the last stage: sets that nothing which is left reads."""
    listed = sorted(left)
    for chosen in product((False, True), repeat=len(listed)):
        stage = frozenset(v for v, taken in zip(listed, chosen, strict=True) if taken)
        if stage and all(v in stage for u, v in edges if u in stage and v in left):
            yield stage


def _load(
    asked: Asked,
    nodes: dict[int, dict[str, Any]],
    edges: dict[tuple[int, int], int],
    stage: frozenset[int],
    copies: int,
    degree: int,
    behind: int,
) -> Fraction | None:
    """Seconds per sample of a stage with the best options that fit; None where none do."""
    listed = [nodes[v]["TMPCs"].get(str(degree), []) for v in sorted(stage)]
    moved = Fraction(0)
    for (u, v), size in edges.items():
        if (u in stage) == (v in stage):
            continue
        inside, key, other = (v, "syncTimeFw", u) if v in stage else (u, "syncTimeBw", v)
        own = nodes[inside]["TMPCs"].get(str(degree))
        if not own:
            return None
        moved += 2 * (size + own[0][key][str(other)])
    in_flight = asked.in_flight(copies, behind)
    period = {"sample": 1, "round": copies, "batch": asked.microbatches}[asked.exchange]
    best: Fraction | None = None
    shared = Fraction(sum(own[0].get("sharded", 0) for own in listed if own), copies)
    for options in product(*listed):
        if sum(o["memoryUsageA"] * in_flight + o["memoryUsageB"] for o in options) + shared > asked.memory:
            continue
        time = sum((Fraction(o["timePerSample"]) for o in options), Fraction(0)) + moved / BANDWIDTH
        weights = sum((Fraction(o["parameterSize"]) for o in options), Fraction(0)) / BANDWIDTH
        load = time / copies + 4 * Fraction(copies - 1, copies) * weights / period
        best = load if best is None else min(best, load)
    return best
