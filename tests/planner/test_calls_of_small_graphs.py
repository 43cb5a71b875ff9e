"""Several calls an accelerator on graphs of 4 to 6 nodes: ``auto``, a program and enumeration agree."""

from __future__ import annotations

import numpy as np
import pytest
from support.subgraph_calls import optimum

from placedsl import loads
from placedsl.algorithms.subgraph_calls.instance import call_instance
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

pytestmark = pytest.mark.rotates(3)


def spec(seed: int) -> str:
    """Two accelerators and a host, two or three calls each; memory limits by chance, and at times a call is told."""
    rng = np.random.default_rng(seed)
    nodes, unit = int(rng.integers(4, 7)), str(rng.choice(["s", "ms", "us"]))
    slots = 2 if nodes == 6 else int(rng.integers(2, 4))
    lines = ["graph {"]
    for v in range(nodes):
        time = f"accelerator: {rng.uniform(0.5, 6.0):.3f} {unit}, host: {rng.uniform(1.0, 30.0):.2f} {unit}"
        output = f"{rng.uniform(0.0, 8.0):.2f} MiB"
        lines.append(f"    node n{v} {{ time = {{{time}}}, memory = {rng.integers(0, 4)} GiB, output = {output} }}")
    density = rng.choice([0.3, 0.5, 0.8])
    lines += [f"    n{u} -> n{v}" for u in range(nodes) for v in range(u + 1, nodes) if rng.random() < density]
    limited = " { memory = 6 GiB }" if rng.random() < 0.5 else ""
    lines += ["}", f"device gpu[2]: accelerator{limited}", "device cpu: host", "interconnect { bandwidth = 16 GiB/s }"]
    lines += [f"schedule calls {{ pieces = {slots} }}", "minimize latency", "subject to", "    memory"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(k, marks=pytest.mark.sampled(12)) for k in range(2, 40))])
def test_auto_is_as_good_as_a_program_and_as_enumeration(seed: int) -> None:
    read = loads(spec(seed))
    least = optimum(call_instance(read.problem))
    for solver in ("auto", "highs"):
        found = solve(read.problem, read.elaborated.checked_formulations, Request(solver, workers=2))
        assert found.termination in ("optimal", "gap_reached"), found.message
        assert found.value == pytest.approx(least, rel=2e-6)
        assert found.bound == pytest.approx(least, rel=2e-6)
