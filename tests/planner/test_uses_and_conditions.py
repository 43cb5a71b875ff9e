"""Own constraints over uses and conditions as numbers: exact comparisons, products, and what can never hold."""

from __future__ import annotations

from itertools import product

import pytest
from support.solver_alone import by_program

import placedsl
from placedsl.evaluation.evaluate import evaluate
from placedsl.language.checking.schedule_vocabulary import of_every_schedule
from placedsl.language.checking.vocabulary import TRUTH, vocabulary
from placedsl.problem.expressions import CONDITIONS

SOLVERS = ["highs", "cp-sat", "pyomo", "mip", "cvxpy"]

ONE_NODE = """
graph {{ node n0 {{ time = {{accelerator: 11 ms, host: 1 ms}}, memory = 3 GiB }} }}
device gpu: accelerator
device cpu: host
minimize time_per_sample
subject to
    own: {own}
    room: memory(cpu) <= {room}
"""


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("own", "room"),
    [
        ("(used(gpu) == 1) == 1", "0 B"),
        ("used(gpu) == 1 <=> used(cpu) == 0", "1 GiB"),
        ("used(gpu) >= 1 <=> n0 on gpu", "1 GiB"),
        ("(used(gpu) == 1) != (used(cpu) == 1)", "1 GiB"),
        ("count(d in devices: used(d) == 1) == 1", "1 GiB"),
    ],
)
def test_uses_are_compared_exactly(solver: str, own: str, room: str) -> None:
    """There is one placement, and it is one of the reals' least and largest: no margin may cut it off."""
    answer = by_program(ONE_NODE.format(own=own, room=room), solver)
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(0.011)
    assert not any("margin" in note for note in answer.notes)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "own",
    [
        "memory(gpu) < 0 GiB",
        "memory(gpu) < 0 GiB and load(cpu) != 0 ms",
        "(1 - used(gpu)) * memory(gpu) != 0 GiB",
        "(1 - used(cpu)) * memory(cpu) >= 3 GiB",
        "used(gpu) * load(cpu) > 0 ms",
    ],
)
def test_what_no_placement_keeps_is_infeasible(solver: str, own: str) -> None:
    """Violations by a byte, or of products whose bounds coincide, are within no solver's tolerance."""
    answer = by_program(ONE_NODE.format(own=own, room="4 GiB"), solver)
    assert answer.termination == "infeasible", (answer.termination, answer.message)


THREE_NODES = """
graph {{
    node a {{ time = {{accelerator: 4 ms, host: 9 ms}},  memory = 2 GiB, output = 8 MiB }}
    node b {{ time = {{accelerator: 6 ms, host: 30 ms}}, memory = 3 GiB, output = 8 MiB }}
    node c {{ time = {{accelerator: 5 ms, host: 25 ms}}, memory = 3 GiB, output = 1 MiB }}
    a -> b -> c
}}
device gpu[2]: accelerator {{ memory = 6 GiB }}
device cpu: host
interconnect {{ bandwidth = 16 GiB/s }}
var k: binary
minimize time_per_sample
subject to
    memory
    own: {own}
    either: k + (a on gpu[1]) <= 1
"""


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
@pytest.mark.parametrize(
    "own",
    [
        "forall d in gpu: used(d) * load(d) <= 7 ms",
        "forall d in gpu: (a on d and b on d) * load(d) <= 5 ms",
        "forall d in gpu: (not (c on d)) * load(d) <= 5 ms",
        "(1 - k) * load(gpu[2]) <= 5 ms and k == 0",
        "(count(v in nodes: v on gpu[1]) >= 2) * load(gpu[1]) <= 5 ms",
    ],
)
def test_products_with_conditions(solver: str, own: str) -> None:
    text = THREE_NODES.format(own=own)
    answer, problem = by_program(text, solver), placedsl.loads(text).problem
    every = [evaluate(problem, list(place), {"k": {(): k}}) for place in product(range(3), repeat=3) for k in (0, 1)]
    least = min(one.objectives[0] for one in every if not one.violations)
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(least, rel=1e-6)


def test_quantities_that_are_conditions() -> None:
    """Those of the vocabulary, under every execution model, are what grounding takes for 0 or 1."""
    problem = placedsl.loads(ONE_NODE.format(own="used(gpu)", room="4 GiB")).problem
    words = of_every_schedule(vocabulary(problem.graph, problem.machine, {}, {}))
    assert {name for name, one in words.quantities.items() if one.type == TRUTH} == CONDITIONS
