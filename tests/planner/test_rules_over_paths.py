"""Under ``auto``, rules of the spec beside ``contiguous`` go to the program over paths of ideals."""

from __future__ import annotations

import numpy as np
import pytest

import placedsl
from placedsl.algorithms.pipelines.path_program.solve import solve
from placedsl.arrays import Integers
from placedsl.evaluation.evaluate import evaluate

LAYERS = 12
MACHINE = """
device fast[3]: accelerator { memory = 16 GB, price = 4 USD/h, idle = 90 W, peak = 700 W }
device slow[3]: accelerator { memory = 24 GB, price = 1.5 USD/h, idle = 60 W, peak = 300 W }
interconnect { bandwidth = 25 GB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""
GRAPH = (
    "graph {\n"
    + "\n".join(
        f"    node n{i} {{ time = {{fast: {3 + i % 3} ms, slow: {6 + i % 5} ms}}, memory = 2 GB, output = 16 MiB }}"
        for i in range(LAYERS)
    )
    + "\n    "
    + " -> ".join(f"n{i}" for i in range(LAYERS))
    + "\n}\n"
)
#: Rules, and whether some placement satisfies them.
RULES = {
    "    paid: sum(d in devices: d.price * used(d)) <= 9 USD/h\n": True,
    "    power: sum(d in devices: d.idle * used(d) + (d.peak - d.idle) * load(d) / 12 ms) <= 1400 W\n": False,
    "    power: sum(d in devices: d.idle * used(d) + (d.peak - d.idle) * load(d) / 24 ms) <= 1400 W\n": True,
    "    ends: (n0 on slow[2] or n0 on fast[1]) and n11 on slow[1]\n    few: count(d in fast: used(d)) <= 1\n": True,
    "    even: forall d in fast, e in fast where d != e: load(d) <= 1.1 * load(e)\n"
    "    some: count(d in slow: used(d)) <= 1\n": True,
    "    few: forall d in devices: count(v in nodes: v on d) <= 1\n    all: devices_used <= 6\n": False,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rules", RULES)
def test_the_program_over_paths_proves_what_a_solver_proves(rules: str) -> None:
    spec = placedsl.loads(GRAPH + MACHINE + rules)
    taken = "; else the program over paths of ideals, with the rules as rows over stages"
    assert taken in spec.explanation().path
    answer = spec.solve(time_limit=60)
    other = spec.solve(time_limit=120, method="program", solver="cp-sat")
    found: list[Integers] = []
    bounds: list[float] = []
    assert solve(spec.problem, found.append, bounds.append)
    if not RULES[rules]:
        assert answer.termination == other.termination == "infeasible"
        assert bounds[-1] == np.inf
        return
    assert answer.termination == other.termination == "optimal"
    assert answer.value == pytest.approx(other.value, rel=1e-6)
    values = [evaluate(spec.problem, placement.tolist()).objectives[0] for placement in found]
    assert min(values) == pytest.approx(other.value, rel=1e-6)
    assert bounds[-1] == pytest.approx(other.value, rel=1e-6)
    assert answer.evaluation is not None
    assert not answer.evaluation.violations
