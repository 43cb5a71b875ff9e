"""A spec that refers to a published workload and holds its deployment."""

from __future__ import annotations

import json
import os
from pathlib import Path

from placedsl.graph.graph import Graph
from placedsl.units import DATA, exact


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
