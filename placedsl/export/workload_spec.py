"""A spec that refers to a published workload and holds its deployment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from placedsl.graph.graph import Graph
from placedsl.units import BANDWIDTH, DATA, exact


def spec_of_workload(graph: Graph, workload: Path, folder: Path, *, contiguous: bool) -> str:
    """The text of a spec for a workload of the dnn-partitioning project; ``folder`` is where it will stand."""
    hosts = int(graph.deployment.get("hosts", 1))
    lines = [
        *_beginning(graph, workload, folder),
        *_accelerators(graph),
        f"device cpu[{hosts}]: host",
        "",
        "minimize time_per_sample",
        "subject to",
        *_memory(graph),
        *(["    contiguous"] if contiguous else []),
        "    colocated by colorClass",
    ]
    return "\n".join(lines) + "\n"


def latency_spec_of_workload(graph: Graph, workload: Path, folder: Path) -> str:
    """The text of a spec for the latency of such a workload (Tarnawski et al. 2020, section 4)."""
    lines = [
        *_beginning(graph, workload, folder),
        *_accelerators(graph),
        "# One host stands for all: what runs on hosts runs with unlimited parallelism.",
        "device cpu: host",
        "",
        "schedule calls",
        "minimize latency",
        "subject to",
        *_memory(graph),
        "    colocated by colorClass",
    ]
    return "\n".join(lines) + "\n"


def spec_of_profile(graph: Graph, profile: Path, folder: Path) -> str:
    """The text of a spec for a profile of Moirai (Zhang et al. 2023): devices of the file, and no overlap on them."""
    devices = [
        f"device {name}: accelerator {{ memory = {exact(memory, DATA)} }}" for name, memory in graph.deployment.items()
    ]
    lines = [
        *_beginning(graph, profile, folder),
        *devices,
        "",
        "schedule dataflow",
        "minimize latency",
        "subject to",
        "    memory",
        "    sequential",
        "    congestion",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class PlanRequest:
    """What a plan is for: so many devices with bytes of memory each and bytes per second between them, samples of a
    batch, the period of the exchange of weights; ``only``: restrictions by ``data``, ``tensor`` or ``recompute``."""

    devices: int
    memory: float
    bandwidth: float
    microbatches: int
    exchange: str
    only: Mapping[str, str] = field(default_factory=dict)


def spec_of_plan(graph: Graph, workload: Path, folder: Path, asked: PlanRequest) -> str:
    """The text of a spec for a workload of Piper (Tarnawski et al. 2021)."""
    options = graph.options
    assert options is not None, "a workload of Piper has options"
    data = "divisors(microbatches)" if asked.exchange == "batch" else "1..gpus"
    degrees = ", ".join(map(str, options.degrees))
    names = dict.fromkeys(options.name)
    lines = [
        f"# {graph.nodes} layers with options for {degrees} devices.",
        "# Published results take all times for seconds; those of resnet.json and gnmt.json are milliseconds.",
        _beginning(graph, workload, folder)[1] + " { time_unit = 1 s }",
        "",
        f"param gpus: int = {asked.devices}",
        f"param room: data = {exact(asked.memory, DATA)}",
        f"param batch: int = {asked.microbatches}",
        "",
        "device gpu[gpus]: accelerator { memory = room }",
        f"interconnect {{ bandwidth = {exact(asked.bandwidth, BANDWIDTH)} }}",
        "",
        "parallelism {",
        "    microbatches = batch",
        f"    data = {asked.only.get('data', data)}",
        *([f"    tensor = {asked.only['tensor']}"] if "tensor" in asked.only else []),
        f"    exchange = {asked.exchange}",
        "    weights_traffic = 4",
    ]
    if asked.only.get("recompute") == "no":
        kept = ", ".join(json.dumps(name, ensure_ascii=False) for name in names if "recomp" not in name)
        lines.append(f"    options = {{{kept}}}")
    lines += ["}", "", "minimize time_per_sample", "subject to", "    memory", "    contiguous"]
    return "\n".join(lines) + "\n"


def _beginning(graph: Graph, workload: Path, folder: Path) -> list[str]:
    """What the spec is about, and the graph, by a path from its folder."""
    try:
        path = os.path.relpath(workload.resolve(), folder.resolve())
    except ValueError:  # another drive
        path = str(workload.resolve())
    part = "training" if graph.backward.any() else "inference"
    return [
        f"# {graph.nodes} operators ({part}); times are in the workload's own unit.",
        f"graph from {json.dumps(path.replace(os.sep, '/'), ensure_ascii=False)}",
        "",
    ]


def _accelerators(graph: Graph) -> list[str]:
    memory = graph.deployment.get("memory")
    limit = f" {{ memory = {exact(memory, DATA)} }}" if memory is not None else ""
    return [f"device gpu[{int(graph.deployment.get('accelerators', 1))}]: accelerator{limit}"]


def _memory(graph: Graph) -> list[str]:
    return ["    memory"] if "memory" in graph.deployment else []
