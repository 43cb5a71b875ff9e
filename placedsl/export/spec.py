"""A spec that refers to a published workload and holds its deployment."""

from __future__ import annotations

import json
import os
from pathlib import Path

from placedsl.graph.graph import Graph
from placedsl.units import DATA, exact


def spec_of_workload(graph: Graph, workload: Path, folder: Path, *, contiguous: bool) -> str:
    """The text of a spec for a workload of the dnn-partitioning project; ``folder`` is where it will stand."""
    try:
        path = os.path.relpath(workload.resolve(), folder.resolve())
    except ValueError:  # another drive
        path = str(workload.resolve())
    path = path.replace(os.sep, "/")
    accelerators = int(graph.deployment.get("accelerators", 1))
    hosts = int(graph.deployment.get("hosts", 1))
    memory = graph.deployment.get("memory")
    part = "training" if graph.backward.any() else "inference"
    limit = f" {{ memory = {exact(memory, DATA)} }}" if memory is not None else ""
    lines = [
        f"# {graph.nodes} operators ({part}); times are in the workload's own unit.",
        f"graph from {json.dumps(path, ensure_ascii=False)}",
        "",
        f"device gpu[{accelerators}]: accelerator{limit}",
        f"device cpu[{hosts}]: host",
        "",
        "minimize time_per_sample",
        "subject to",
    ]
    if memory is not None:
        lines.append("    memory")
    if contiguous:
        lines.append("    contiguous")
    lines.append("    colocated by colorClass")
    return "\n".join(lines) + "\n"
