"""Pipelines whose tensors go from device to device: by hand, by every solver, and against enumeration."""

from __future__ import annotations

import random

import pytest
from support.brute_force import best_by_evaluation

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import costs_by_device, ignored

pytestmark = pytest.mark.rotates(2)

GRAPH = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 1 GiB, output = 80 MB }
    node b { time = {accelerator: 5 ms, host: 9 ms}, memory = 1 GiB, output = 8 MB }
    node c { time = {accelerator: 5 ms, host: 9 ms}, memory = 1 GiB }
    a -> b -> c
    a -> c
}
"""
GPUS = "device gpu[3]: accelerator\nlink gpu <-> gpu { bandwidth = 100 GB/s }\n"
APART = "subject to\n    apart(nodes)\n"


def spec(machine: str = GPUS, schedule: str = "", rules: str = APART) -> placedsl.Spec:
    return placedsl.loads(f"{GRAPH}\n{machine}\n{schedule}\nminimize time_per_sample\n{rules}")


def loads_of(loaded: placedsl.Spec, *devices: str) -> dict[str, float]:
    """Milliseconds by device, of the placement of a, b and c."""
    found = loaded.evaluate(dict(zip("abc", devices, strict=True)))
    devices_of = loaded.problem.machine.devices
    return {device.name: round(1000 * load, 6) for device, load in zip(devices_of, found.loads, strict=True)}


@pytest.mark.parametrize(
    ("schedule", "a"),
    [
        ("", 4 + 2 * 0.8),
        ("schedule 1f1b { transfers = direct }", 5.6),
        ("schedule 1f1b { transfers = broadcast }", 4.8),
    ],
)
def test_who_pays(schedule: str, a: float) -> None:
    """The sender once per receiving device, or once; a receiver once; b also sends 0.08 ms."""
    found = loads_of(spec(schedule=schedule), "gpu[1]", "gpu[2]", "gpu[3]")
    assert found == pytest.approx({"gpu[1]": a, "gpu[2]": 5 + 0.8 + 0.08, "gpu[3]": 5 + 0.8 + 0.08})


def test_a_reading_device_is_paid_once_whatever_the_number_of_its_readers() -> None:
    found = loads_of(spec(rules=""), "gpu[1]", "gpu[2]", "gpu[2]")
    assert found == pytest.approx({"gpu[1]": 4.8, "gpu[2]": 10.8, "gpu[3]": 0.0})


def test_through_host_in_spite_of_the_links() -> None:
    machine = f"{GPUS}device cpu: host\nlink gpu <-> cpu {{ bandwidth = 10 GB/s }}\n"
    slow = spec(machine, "schedule 1f1b { transfers = through_host }")
    assert loads_of(slow, "gpu[1]", "gpu[2]", "cpu") == pytest.approx(
        {"gpu[1]": 12.0, "gpu[2]": 13.8, "gpu[3]": 0.0, "cpu": 9.0}
    )
    assert slow.problem.execution.transfers == "through_host"
    assert spec(machine).problem.execution.transfers == "direct"


TIMED = """graph {
    node a { time = 1 s, transfer = 1 s }
    node b { time = 1 s }
    a -> b
}
device gpu[2]: accelerator
link gpu <-> gpu { bandwidth = 1 GB/s }
minimize time_per_sample
"""


def test_links_that_have_no_effect_are_told() -> None:
    """The graph gives times between RAM and devices: links between accelerators say nothing of these."""
    (note,) = placedsl.loads(TIMED).problem.notes
    assert note.startswith("links between accelerators have no effect")
    for text in (
        f"{TIMED}schedule 1f1b {{ transfers = through_host }}\n",
        TIMED.replace("transfer = 1 s", "output = 1 GB"),
    ):
        assert not placedsl.loads(text).problem.notes


def test_a_route_over_several_hops_with_latencies_in_one_direction() -> None:
    machine = (
        "device gpu[3]: accelerator\nlink gpu[1] -> gpu[2] { bandwidth = 80 GB/s, latency = 1 ms }\n"
        "link gpu[2] -> gpu[3] { bandwidth = 40 GB/s, latency = 2 ms }\nlink gpu[3] -> gpu[1] { bandwidth = 10 GB/s }\n"
    )
    found = loads_of(spec(machine), "gpu[1]", "gpu[2]", "gpu[3]")
    # a to b: 1 + 1 ms; a to c over gpu[2]: 3 + 2 ms; b to c: 2 + 0.2 ms.
    assert found == pytest.approx({"gpu[1]": 4 + 2 + 5, "gpu[2]": 5 + 2 + 2.2, "gpu[3]": 5 + 5 + 2.2})


def test_a_host_pays_nothing() -> None:
    machine = f"{GPUS}device cpu: host\nlink gpu <-> cpu {{ bandwidth = 10 GB/s }}\n"
    found = loads_of(spec(machine), "cpu", "gpu[1]", "gpu[2]")
    assert found == pytest.approx({"cpu": 9.0, "gpu[1]": 5 + 8 + 0.08, "gpu[2]": 5 + 8 + 0.08, "gpu[3]": 0.0})


@pytest.mark.parametrize("solver", ["highs", "cp-sat", "pyomo", "mip", "cvxpy"])
@pytest.mark.parametrize("transfers", ["direct", "broadcast"])
def test_every_solver_proves_the_optimum(solver: str, transfers: str) -> None:
    machine = (
        "device gpu[2]: accelerator { memory = 2 GiB }\ndevice cpu: host\n"
        "link gpu[1] -> gpu[2] { bandwidth = 80 GB/s, latency = 1 ms }\n"
        "link gpu[2] -> gpu[1] { bandwidth = 40 GB/s }\nlink gpu <-> cpu { bandwidth = 20 GB/s }\n"
    )
    loaded = spec(machine, f"schedule 1f1b {{ transfers = {transfers} }}", "subject to\n    memory\n")
    answer = loaded.solve(solver=solver, workers=1)
    expected = best_by_evaluation(loaded.problem)
    assert expected is not None
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(expected[0], rel=1e-6)


def test_explain_says_which_model_holds_and_elaborated_specs_keep_it() -> None:
    loaded = spec()
    text = loaded.explain()
    assert "# transfers    from device to device: the sender once for each receiving device, the receiver once" in text
    assert placedsl.loads(text).problem.execution.transfers == "direct"


def test_a_missing_route_is_told_where_the_device_is_declared() -> None:
    machine = "device gpu[2]: accelerator\ndevice cpu: host\nlink gpu <-> gpu { bandwidth = 100 GB/s }\n"
    with pytest.raises(placedsl.InputError) as caught:
        spec(machine)
    told = sorted(diagnostic.message for diagnostic in caught.value.diagnostics)
    assert told == ["no link leads from 'cpu' to 'gpu[1]'", "no link leads from 'gpu[1]' to 'cpu'"]
    assert all(diagnostic.span is not None for diagnostic in caught.value.diagnostics)


def test_an_unknown_way_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(placedsl.InputError, match="unknown transfers 'directly'"):
        spec(schedule="schedule 1f1b { transfers = directly }")


def test_devices_of_unlike_routes_are_not_interchangeable() -> None:
    machine = (
        "device gpu[4]: accelerator\ninterconnect { bandwidth = 10 GB/s }\n"
        "link gpu[1] <-> gpu[2] { bandwidth = 100 GB/s }\nlink gpu[3] <-> gpu[4] { bandwidth = 100 GB/s }\n"
    )
    kinds = spec(machine).problem.interchangeable().tolist()
    assert kinds[0] == kinds[1] != kinds[2] == kinds[3]
    assert len(set(spec().problem.interchangeable().tolist())) == 1


def test_a_timeline_measures_the_load() -> None:
    answer = spec().solve(workers=1)
    assert answer.timeline().document()["largest_load"] == pytest.approx(answer.value, rel=1e-9)


def random_spec(seed: int) -> str:
    """A small graph on devices with links; latencies, directions, islands, clusters, training and shared stages."""
    rng = random.Random(seed)
    training, gpus = rng.random() < 0.3, rng.choice([2, 3, 3, 4])
    nodes = 2 if training else rng.choice([3, 4, 5])
    lines = ["graph {"]
    for v in range(nodes):
        for name, rest in ((f"n{v}", ""), (f"b{v}", ", backward = true"))[: 1 + training]:
            lines.append(
                f"    node {name} {{ time = {{accelerator: {rng.choice([1, 2, 3, 5])} ms}}, color = {v}, "
                f"memory = {rng.choice([1, 2])} MiB, parameters = {rng.choice([0, 8])} MiB, "
                f"output = {rng.choice([0, 1, 4, 9])} MiB{rest} }}"
            )
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if rng.random() < 0.5:
                lines += [f"    n{u} -> n{v}"] + [f"    b{v} -> b{u}"] * training
    lines += [f"    n{nodes - 1} -> b{nodes - 1}"] * training + ["}"]
    clusters = rng.random() < 0.25
    if clusters:
        lines += [
            "cluster server[2] {", "    device gpu[2]: accelerator { memory = 6 MiB }",
            "    interconnect { bandwidth = 8 GiB/s }", "}", "interconnect { bandwidth = 2 GiB/s }",
        ]  # fmt: skip
    else:
        even = rng.choice(["", ", latency = 1 ms"])
        lines += [f"device gpu[{gpus}]: accelerator {{ memory = {rng.choice([4, 6, 20])} MiB }}",
                  f"link gpu <-> gpu {{ bandwidth = {rng.choice([1, 4, 400])} GiB/s{even} }}"]  # fmt: skip
        for _ in range(rng.choice([0, 0, 1, 3])):
            a, b = rng.sample(range(1, gpus + 1), 2)
            lines.append(f"link gpu[{a}] -> gpu[{b}] {{ bandwidth = {rng.choice([1, 2, 50])} GiB/s }}")
    order = "gpipe" if training and rng.random() < 0.5 else "1f1b"
    how, ways = rng.choice(["sequential", "overlapped", "full_duplex"]), rng.choice(["direct", "broadcast"])
    lines.append(f"schedule {order} {{ communication = {how}, transfers = {ways} }}")
    lines += ["parallelism { data = 1..2 }"] * (rng.random() < 0.25)
    lines += ["minimize time_per_sample", "subject to", "    memory"]
    lines += ["    contiguous"] * (rng.random() < 0.6) + ["    colocated by color"] * training
    return "\n".join(lines) + "\n"


@pytest.mark.sampled(25)
@pytest.mark.parametrize("first", range(0, 200, 4))
def test_random_specs(first: int) -> None:
    """``auto`` proves what enumeration finds; dynamic programming alone is exact where it says so, else a bound."""
    for seed in range(first, first + 4):
        problem = placedsl.loads(random_spec(seed)).problem
        expected = best_by_evaluation(problem)
        answer = placedsl.loads(random_spec(seed)).solve(workers=1, time_limit=60)
        if expected is None:
            assert answer.termination == "infeasible", seed
            continue
        assert answer.termination == "optimal", (seed, answer.message)
        assert answer.value == pytest.approx(expected[0], rel=1e-6), seed
        if problem.constraint("contiguous") is not None:
            found = contiguous.solve(problem)
            assert found.complete
            assert found.bound <= expected[0] * (1 + 1e-9), seed
            if costs_by_device(problem):
                assert not ignored(problem, contiguous.SUPPORTS)
                assert found.value == pytest.approx(expected[0], rel=1e-9), seed
