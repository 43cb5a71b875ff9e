"""What can be combined in plans: machines, chunks, samples in flight and exchanges, and each path's answer by
enumeration from the workload's JSON.

A cell *works* if the path answers with the optimum of all exchanges; it is *refused* if a message says why not.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import placedsl
from placedsl.evaluation.evaluate import evaluate
from support.chunked_plans import optimum_with_chunks
from support.combination_paths import walk
from support.combinations import Fault, Outcome
from support.every_plan import every_plan
from support.piper_levels import Levels
from support.piper_levels import optimum as optimum_over_levels
from support.piper_workloads import BANDWIDTH, Asked
from support.piper_workloads import optimum as optimum_of_one_kind

#: Clusters of four or eight devices that share samples, by what the page calls them, with the bandwidths around them.
SHARING = {
    "servers that share samples": Levels((2, 2), (BANDWIDTH // 2,)),
    "racks and servers that share samples": Levels((2, 2, 2), (BANDWIDTH // 2, BANDWIDTH // 4)),
}
MACHINES = ("one kind", "two kinds", "servers", *SHARING)
CHUNKS = (1, 2)
HELD = ("pipeline", "batch", "sample")
EXCHANGES = ("sample", "round", "batch")
PATHS = ("auto", "program", "timeline", "why", "conflict")
_MEMORY = 30


@dataclass(frozen=True)
class PlanCell:
    """One combination of everything."""

    machine: str
    chunks: int
    held: str
    exchange: str
    path: str

    @property
    def asked(self) -> Asked:
        """The workload, and what a machine of one kind would be asked."""
        devices = 8 if self.machine.startswith("racks") else 4
        return Asked(
            _workload(self.chunks), devices, _MEMORY, 4, self.exchange, (1, 2, 4), (1, 2), held=self.held
        )  # fmt: skip

    def text(self) -> str:
        """The spec."""
        asked, file = self.asked, _file(self.chunks)
        levels = SHARING.get(self.machine)
        text = asked.spec(file) if levels is None else levels.spec(asked, file)
        device = f"device gpu[{asked.devices}]: accelerator {{ memory = {_MEMORY} B }}"
        if self.machine == "two kinds":
            small = f"device gpu[2]: accelerator {{ memory = {_MEMORY} B }}"
            text = text.replace(device, f"{small}\ndevice big[2]: accelerator {{ memory = {2 * _MEMORY} B }}")
        if self.machine == "servers":
            inside = f"interconnect {{ bandwidth = {BANDWIDTH} B/s }}"
            server = f"cluster server[2] {{\n{device.replace('[4]', '[2]')}\n{inside}\n}}"
            text = text.replace(device, server)
        if self.chunks > 1:
            text = text.replace("parallelism {", f"parallelism {{\n    chunks = {self.chunks}")
        never = "    never: forall d in devices: count(v in nodes: v on d) <= 0\n" if self.path == "conflict" else ""
        return text + never


def plan_cells() -> Iterator[PlanCell]:
    """All of them; those that share a spec follow one another."""
    return itertools.starmap(PlanCell, itertools.product(MACHINES, CHUNKS, HELD, EXCHANGES, PATHS))


def plan_outcome(cell: PlanCell, *, alone: bool = False) -> Outcome:
    """Walk the path of a cell and compare it with the enumeration; Fault where it neither works nor says why not."""
    told = walk(cell.text(), cell.path, "program" if cell.path == "program" else "", alone=alone)
    if "fault" in told:
        raise Fault(f"{cell}: {told['fault']}")
    if "refused" in told:
        if not told["located"]:
            raise Fault(f"{cell}: refused without a place: {told['refused']}")
        return Outcome(False, told["refused"])
    if cell.path == "conflict":
        if told["members"] != ["never"]:
            raise Fault(f"{cell}: {told['members']}")
        return Outcome(True)
    best = float(_optimum(cell.machine, cell.chunks, cell.held, cell.exchange))
    if cell.path == "why":
        _more_is_no_worse(cell, told, best)
        return Outcome(True)
    if told["termination"] == "ended":
        if any(bound is not None and bound > best * (1 + 1e-6) for bound in told["bounds"]):
            raise Fault(f"{cell}: bounds {told['bounds']}, enumeration {best}")
        return Outcome(False, told["message"])
    if told["termination"] != "optimal" or told["objectives"] is None:
        raise Fault(f"{cell}: {told['termination']}: {told['message']}")
    values = [*told["objectives"], *told["bounds"]]
    if cell.path == "timeline":
        values.append(told["timeline"]["largest_load"])
        taken = told["timeline"]["time_per_sample"]
        if cell.held == "batch" and taken < best * (1 - 1e-9):  # over whole batches, from the first sample on
            raise Fault(f"{cell}: {taken} a sample, enumeration {best}")
    if any(abs(value - best) > 1e-6 * best for value in values):
        raise Fault(f"{cell}: {values}, enumeration {best}")
    return Outcome(True)


def _more_is_no_worse(cell: PlanCell, told: dict[str, Any], best: float) -> None:
    """More of a machine, or a constraint less, never makes the optimum worse; one more device of one kind is
    enumerated."""
    effects = told["effects"]
    if not any(change.startswith("one more") for change, _, _ in effects):
        raise Fault(f"{cell}: one more device is missing")
    for change, value, proven in effects:
        if proven and value is not None and value > best * (1 + 1e-6):
            raise Fault(f"{cell}: {change} gives {value}, without it {best}")
        if proven and change == "one more gpu" and cell.machine == "one kind" and cell.chunks == 1:
            more = optimum_of_one_kind(replace(cell.asked, devices=5))
            if more is None or abs(value - float(more)) > 1e-6 * best:
                raise Fault(f"{cell}: {change} gives {value}, enumeration {more}")


@lru_cache
def _optimum(machine: str, chunks: int, held: str, exchange: str) -> Fraction:
    cell = PlanCell(machine, chunks, held, exchange, "auto")
    if machine in SHARING and chunks == 1:
        best = optimum_over_levels(cell.asked, SHARING[machine])
    elif machine == "one kind":
        best = optimum_of_one_kind(cell.asked) if chunks == 1 else optimum_with_chunks(cell.asked, chunks)
    elif machine not in SHARING:
        problem = placedsl.loads(cell.text()).problem
        found = (evaluate(problem, placement, values) for placement, values in every_plan(problem))
        best = min((Fraction(one.objectives[0]) for one in found if not one.violations), default=None)
    else:
        raise Fault(f"{cell}: no enumeration is known")
    assert best is not None
    return best


def _workload(chunks: int) -> dict[str, Any]:
    """Three nodes, each as it stands, recomputed, and split over two devices; four where stages hold two chunks."""
    edges = {(7, 3): 256, (3, 9): 512, (7, 9): 256}
    nodes = [(7, 2, 512, 4), (3, 3, 1024, 5), (9, 1.5, 256, 3)]
    if chunks > 1:
        edges[9, 4] = 256
        nodes.append((4, 1, 512, 2))

    def node(own: int, time: float, weights: int, stash: int) -> dict[str, Any]:
        sizes = {
            "syncTimeFw": {str(u): 0 for u, v in edges if v == own},
            "syncTimeBw": {str(v): 0 for u, v in edges if u == own},
        }  # fmt: skip
        gathered = {way: dict.fromkeys(sizes[way], 128) for way in sizes}
        plain = {"parameterSize": weights, "memoryUsageB": 4}
        return {
            "id": own, "name": f"layer{own}", "TMPCs": {
                "1": [
                    {"id": "plain", "timePerSample": time, "memoryUsageA": stash, **plain, **sizes},
                    {"id": "recomputed", "timePerSample": time * 1.25, "memoryUsageA": 1, **plain, **sizes},
                ],
                "2": [
                    {"id": "split", "timePerSample": time * 0.625, "memoryUsageA": 2, "parameterSize": weights // 2,
                     "memoryUsageB": 2, **gathered},
                ],
            },
        }  # fmt: skip

    arcs = [{"sourceId": u, "destId": v, "communicationCost": size} for (u, v), size in edges.items()]
    return {"nodes": [node(*own) for own in nodes], "edges": arcs}


@lru_cache
def _file(chunks: int) -> str:
    """The workload as a file of this process."""
    folder = tempfile.TemporaryDirectory()
    _FOLDERS.append(folder)
    file = Path(folder.name) / "workload.json"
    file.write_text(json.dumps(_workload(chunks)), encoding="utf-8")
    return file.as_posix()


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
