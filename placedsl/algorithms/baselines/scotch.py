"""The baseline "scotch": graph partitioning by the program Scotch.   Tarnawski et al. 2020, section 6.

A vertex is a unit of the dynamic program (Appendix B), weighted with its time on an accelerator; an edge joins the
producer of a tensor and each reader, weighted with the transfer time.  There are as many parts as accelerators.  The
program ignores memory and loads: it balances time and minimises the cut; its partition is evaluated like any other
placement.  Units that no accelerator supports are left out and go to the quickest host.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from placedsl.algorithms.baselines.supported_problems import THROUGHPUT
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.supports import reasons_against
from placedsl.algorithms.units import placement_units, unit_name
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.diagnostics import UsageError
from placedsl.graph.contraction import Quotient
from placedsl.problem.problem import Problem

#: Names of the program: Debian's, and that of a build from source.  Another program is called ``gpart`` too.
PROGRAMS = ("scotch_gpart", "gpart")
#: The sum of all integer weights of one kind: Scotch may count in 32 bits.
TOTAL = 1e9


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    against = reasons_against(problem, THROUGHPUT)
    accelerators = np.flatnonzero(problem.accelerators)
    if not len(accelerators):
        against.append("there is no accelerator")
    elif len(set(problem.interchangeable()[accelerators].tolist())) > 1:
        against.append("its parts are all alike, and the accelerators are not")
    if program() is None:
        against.append(
            f"the program {PROGRAMS[0]} is not there: install Scotch (package 'scotch' on Debian and Ubuntu: "
            "apt install scotch)"
        )
    return against


def solve(problem: Problem, budget: Budget, _progress: Progress) -> tuple[Sequence[int] | None, float]:
    """The partition that the program finds, or None if it exceeds the time limit."""
    quotient = placement_units(problem, contiguous=True)
    accelerators = np.flatnonzero(problem.accelerators)
    supported = np.isfinite(quotient.work[accelerators[0]])
    hosts = np.where(problem.accelerators[:, None], np.inf, quotient.work)
    device = hosts.argmin(axis=0)
    nowhere = np.flatnonzero(~supported & ~np.isfinite(hosts.min(axis=0)))
    if len(nowhere):
        raise NothingFoundError(f"no device supports {unit_name(problem, quotient, int(nowhere[0]))}")
    vertices = np.flatnonzero(supported)
    parts = min(len(accelerators), len(vertices))
    if parts <= 1:
        device[vertices] = accelerators[0]
        return device[quotient.unit_of_node].tolist(), -np.inf
    text = source(quotient, vertices, int(accelerators[0]))
    part = partition(text, len(vertices), parts, budget.time_limit)
    if part is None:
        return None, -np.inf
    device[vertices] = accelerators[part]
    return device[quotient.unit_of_node].tolist(), -np.inf


def program() -> str | None:
    """The path of Scotch's partitioner, or None; a ``gpart`` of another origin does not count."""
    found = shutil.which(PROGRAMS[0])
    if found is not None:
        return found
    found = shutil.which(PROGRAMS[1])
    if found is None:
        return None
    try:
        said = subprocess.run([found, "-V"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found if "gmap/gpart" in said.stdout + said.stderr else None


def source(quotient: Quotient, vertices: Integers, device: int) -> str:
    """The graph in Scotch's format: one line per vertex with its weight, its degree, and the weight and end of each
    edge.
    """
    number = {int(u): i for i, u in enumerate(vertices)}
    edges: dict[tuple[int, int], float] = {}
    for t, producer in enumerate(quotient.tensor_producer.tolist()):
        for reader in quotient.pin_unit[quotient.pin_start[t] : quotient.pin_start[t + 1]].tolist():
            if reader != producer and producer in number and reader in number:
                ends = sorted((number[producer], number[reader]))
                edges[ends[0], ends[1]] = edges.get((ends[0], ends[1]), 0.0) + float(quotient.transfer[device, t])
    weights = dict(zip(edges, whole(np.array(list(edges.values())), least=1), strict=True))
    near: list[dict[int, int]] = [{} for _ in vertices]
    for (u, v), weight in weights.items():
        near[u][v] = near[v][u] = weight
    times = whole(quotient.work[device, vertices], least=0)
    lines = ["0", f"{len(vertices)} {2 * len(edges)}", "0 011"]
    lines += [_line(time, neighbours) for time, neighbours in zip(times, near, strict=True)]
    return "\n".join(lines) + "\n"


def whole(weights: Floats, least: int) -> list[int]:
    """Weights as integers in the same proportions, none below ``least``."""
    total = float(weights.sum())
    scale = TOTAL / total if total > 0.0 else 0.0
    return [max(least, round(w * scale)) for w in weights.tolist()]


def partition(text: str, vertices: int, parts: int, seconds: float | None) -> Integers | None:
    """The part of each vertex, from 0, or None after ``seconds``; UsageError if the program fails."""
    command = program()
    assert command is not None  # fits() has looked
    with _temporary_folder() as folder:
        graph, mapping = Path(folder) / "graph.src", Path(folder) / "parts.map"
        graph.write_text(text, encoding="ascii")
        try:
            done = subprocess.run(
                [command, str(parts), str(graph), str(mapping)],
                capture_output=True, text=True, check=False, timeout=seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
        except OSError as problem:
            raise UsageError(f"'{command}' cannot be run: {problem.strerror or 'failed'}") from None
        if done.returncode or not mapping.is_file():
            said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[0]
            raise UsageError(f"'{command}' failed: {said}")
        return parts_of(mapping.read_text(encoding="utf-8"), vertices, parts, command)


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory()
    except OSError as problem:
        raise UsageError(f"no temporary file can be written: {(problem.strerror or 'failed').lower()}") from None


def parts_of(text: str, vertices: int, parts: int, command: str) -> Integers:
    """The mapping that the program wrote: the number of vertices, then a line "vertex part" for each."""
    try:
        count, *numbers = (int(word) for word in text.split())
        found = dict(zip(numbers[::2], numbers[1::2], strict=True))
    except ValueError:
        count, found = -1, {}
    if count != vertices or set(found) != set(range(vertices)):
        raise UsageError(f"'{command}' wrote no mapping of the {vertices} vertices that it was given")
    if not set(found.values()) <= set(range(parts)):
        raise UsageError(f"'{command}' wrote parts beyond the {parts} that were asked for")
    return np.array([found[i] for i in range(vertices)], dtype=np.int64)


def _line(time: int, neighbours: Mapping[int, int]) -> str:
    words = [str(time), str(len(neighbours))]
    for end, weight in sorted(neighbours.items()):
        words += [str(weight), str(end)]
    return " ".join(words)
