"""Devices in clusters (Appendix C.3), by program, against enumeration."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.brute_force import _ordered, allowed, beside, confirm_dynamic_program, loads, placements, shared_out

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import reasons_against
from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.problem import Problem

pytestmark = pytest.mark.rotates(2)

CHAIN = """
graph {
    node a { time = {accelerator: 4 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 4 ms}, memory = 3 GiB, output = 80 MiB }
    node c { time = {accelerator: 4 ms}, memory = 3 GiB, output = 8 MiB }
    a -> b -> c
}
cluster pod[2] {
    device gpu[2]: accelerator { memory = 6 GiB }
    interconnect nvlink { bandwidth = 160 GiB/s }
}
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
MIB = 2.0**20


def value(text: str, placement: list[int]) -> float:
    return evaluate(placedsl.loads(text).problem, placement).objectives[0]


def test_a_tensor_costs_what_the_link_costs_that_it_goes_over() -> None:
    near, far = 2**20 / (160 * 2**30), 2**20 / (16 * 2**30)
    assert value(CHAIN, [0, 1, 1]) == pytest.approx(8e-3 + 8 * near), "within a pod"
    assert value(CHAIN, [0, 2, 2]) == pytest.approx(8e-3 + 8 * far), "from pod to pod"
    assert value(CHAIN, [0, 1, 2]) == pytest.approx(4e-3 + 8 * near + 80 * far), "both: b reads near and writes far"


def test_nested_clusters_pay_for_each_level() -> None:
    text = CHAIN.replace(
        "cluster pod[2] {", "cluster rack[2] {\ninterconnect { bandwidth = 40 GiB/s }\ncluster pod[2] {"
    )
    text = text.replace("GiB/s }\n}\ninter", "GiB/s }\n}\n}\ninter")
    problem = placedsl.loads(text).problem
    assert [d.name for d in problem.machine.devices][:3] == [
        f"rack[1].pod[{p}].gpu[{g}]" for p, g in ((1, 1), (1, 2), (2, 1))
    ]
    for other, bandwidth in ((1, 160), (2, 40), (4, 16)):
        assert value(text, [0, other, other]) == pytest.approx(8e-3 + 8 * MIB / (bandwidth * 2**30))


def test_contiguous_holds_for_clusters_too() -> None:
    problem = placedsl.loads(CHAIN + "subject to\n    contiguous\n").problem
    assert evaluate(problem, [0, 1, 2]).violations == ()
    (found,) = evaluate(problem, [0, 2, 1]).violations
    assert (
        found.message
        == "the clusters form no pipeline, there is a cycle: pod[1] -> pod[2] (a -> b), pod[2] -> pod[1] (b -> c)"
    )


def test_clusters_and_their_devices_are_spoken_of() -> None:
    rules = """subject to
    first: a on pod[1].gpu[2]
    away: not inside(b, pod[1])
    few: forall p in pod: count(v in nodes: inside(v, p)) <= 2
    there: count(d in pod[2]: used(d)) == 1
    last: c on gpu[4]
"""
    spec = placedsl.loads(CHAIN + rules)
    found = solve(spec.problem, spec.elaborated.checked_formulations)
    assert found.device_of() == {"a": "pod[1].gpu[2]", "b": "pod[2].gpu[2]", "c": "pod[2].gpu[2]"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("interconnect { bandwidth = 16 GiB/s }\n", ""), "nothing says how fast 'pod' exchanges data with others"),
        (("minimize", "set pod = nodes\nminimize"), "'pod' is the name of a cluster already"),
        (("device gpu[2]", "device pod[2]"), "device 'pod' is declared twice"),
        (("pod[2]", "memberships[2]"), "'memberships' is the name of a set already"),
        (("time_per_sample", "load(pod[3].gpu[1])"), "3 is out of range"),
        (("time_per_sample", "load(pod[1].gpus[1])"), "pod[1] holds no 'gpus'"),
    ],
)  # fmt: skip
def test_mistakes_are_told(change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError) as raised:
        placedsl.loads(CHAIN.replace(*change))
    assert message in [d.message for d in raised.value.diagnostics]


def test_transfer_times_grow_as_bandwidths_fall() -> None:
    """The graph's are those of the fastest interconnect: 1 ms there, 10 ms elsewhere."""
    inline = """
        graph {
            node a { time = 1 ms, transfer = 1 ms }
            node b { time = 1 ms, transfer = 1 ms }
            a -> b
        }
        cluster fast { device gpu[2]: accelerator
            interconnect { bandwidth = 100 GB/s } }
        cluster slow { device tpu[2]: accelerator
            interconnect { bandwidth = 10 GB/s } }
        device npu: accelerator
        interconnect { bandwidth = 5 GB/s }
        minimize time_per_sample
    """
    assert value(inline, [0, 1]) == pytest.approx(2e-3)
    assert value(inline, [2, 3]) == pytest.approx(11e-3)
    assert value(inline, [0, 4]) == pytest.approx(21e-3)


def test_links_and_times_name_devices_within_clusters() -> None:
    text = CHAIN.replace("minimize", "device cpu: host\nlink gpu[2] <-> cpu { bandwidth = 1 GiB/s }\nminimize")
    text = text.replace("node a { time = {accelerator: 4 ms}", "node a { time = {accelerator: 4 ms, gpu[3]: 1 ms}")
    problem = placedsl.loads(text).problem
    assert problem.transfer[0].tolist()[:2] == [pytest.approx(8 * MIB / (160 * 2**30)), pytest.approx(8 * MIB / 2**30)]
    assert problem.time[0].tolist()[:4] == [pytest.approx(t) for t in (4e-3, 4e-3, 1e-3, 4e-3)]


def test_no_clusters_at_all() -> None:
    """A count of zero: their names are known, and there is nothing by them."""
    text = (
        "param pods = 0\n"
        + CHAIN.replace("pod[2]", "pod[pods]")
        + "subject to\n    no: forall p in pod: inside(a, p)\n"
    )
    text = text.replace("inter", "device npu: accelerator\ninter", 2).replace("device npu: accelerator\n", "", 1)
    found = placedsl.loads(text + "    less: forall d in gpu: not used(d)\n")
    assert found.solve().value == pytest.approx(12e-3)


def test_tables_over_clusters(tmp_path: Path) -> None:
    (tmp_path / "most.json").write_text('{"most": {"pod[1]": 0, "pod[2]": 3}}')
    (tmp_path / "spec.place").write_text(
        "param most[p in pod]: int\n"
        + CHAIN
        + "subject to\n    few: forall p in pod: count(v in nodes: inside(v, p)) <= most[p]\n"
    )
    spec = placedsl.load(tmp_path / "spec.place", data=tmp_path / "most.json")
    assert all(device.startswith("pod[2]") for device in spec.solve().device_of().values())


def test_explain_says_what_contiguous_means_here() -> None:
    shown = placedsl.loads(CHAIN + "subject to\n    contiguous\n").explain()
    assert "# contiguous: pipeline(d in devices: {v in nodes: v on d}) and (forall level in cluster_levels" in shown


def random_clusters(seed: int) -> str:
    """A small graph on a few clusters, some within one another, and devices outside of them."""
    rng = random.Random(seed)
    form = rng.choice(["pairs", "pairs", "nested", "mixed", "beside"])
    training = rng.random() < 0.3
    nodes = rng.randint(2, 3) if training else rng.randint(3, 5)
    lines = ["graph {"]
    for v in range(nodes):
        extra = f", color = {v}" if training else ""
        time = f"{{accelerator: {rng.choice([1, 2, 3, 5])} ms, host: {rng.choice([4, 9])} ms}}"
        extra += f", parameters = {rng.choice([1, 5])} MiB"
        amount = f"memory = {rng.choice([0, 1, 2])} MiB, output = {rng.choice([0, 1, 4, 9])} MiB"
        lines.append(f"    node n{v} {{ time = {time}, {amount}{extra} }}")
        if training:
            lines.append(f"    node b{v} {{ time = {time}, {amount}{extra}, backward = true }}")
    edges = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if v == u + 1 or rng.random() < 0.3]
    for u, v in edges:
        lines.append(f"    n{u} -> n{v}")
        if training:
            lines.append(f"    b{v} -> b{u}")
    if training:
        lines.append(f"    n{nodes - 1} -> b{nodes - 1}")
    lines.append("}")
    gpu = f"device gpu[{{}}]: accelerator {{{{ memory = {rng.choice([3, 5, 9])} MiB }}}}"
    near = f"interconnect {{ bandwidth = {rng.choice([4, 8])} GiB/s }}"
    if form == "pairs":
        lines += ["cluster pod[2] {", gpu.format(2), near, "}"]
    elif form == "nested":
        lines += [
            "cluster rack[2] {",
            "interconnect { bandwidth = 2 GiB/s }",
            "cluster pod[2] {",
            gpu.format(1),
            near,
            "}",
            "}",
        ]
    elif form == "beside":
        lines += ["cluster pod {", gpu.format(2), near, "}", "device tpu[2]: accelerator { memory = 9 MiB }"]
    else:
        lines += ["cluster pod {", gpu.format(2), near, "}", "device tpu: accelerator", "device cpu: host"]
    lines.append("interconnect { bandwidth = 1 GiB/s }")
    lines.append(f"schedule {rng.choice(['pipedream', 'pipedream', 'overlapped', 'duplex'])}")
    lines += [f"parallelism {{ data = 1..{rng.choice([2, 3])} }}"] if rng.random() < 0.4 else []
    lines += ["minimize time_per_sample", "subject to", "    memory"]
    lines += ["    contiguous"] if rng.random() < 0.7 else []
    lines += ["    colocated by color"] if training else []
    return "\n".join(lines) + "\n"


def surcharges(problem: Problem, every: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each device pays besides for reading from, and for writing to, the world outside its clusters."""
    graph, machine = problem.graph, problem.machine
    read, written = np.zeros((len(every), len(machine.devices))), np.zeros((len(every), len(machine.devices)))
    for i, cluster in enumerate(machine.clusters):
        if cluster.alone:
            continue
        inner, outer = cluster.interconnect, machine.around(cluster.parent)
        assert inner is not None
        assert outer is not None
        inside = np.isin(every, cluster.devices)
        for t in range(graph.tensors):
            readers = graph.edge_target[graph.edge_tensor == t]
            extra = graph.tensor_bytes[t] * (1 / outer.bandwidth - 1 / inner.bandwidth)
            assert problem.cluster_surcharge[i, t] == pytest.approx(extra)
            for d in cluster.devices:
                if machine.devices[d].kind != "accelerator":
                    continue
                home = every[:, graph.tensor_producer[t]]
                comes = (every[:, readers] == d).any(axis=1) & ~inside[:, graph.tensor_producer[t]]
                goes = (home == d) & ~inside[:, readers].all(axis=1)
                read[:, d] += extra * comes
                written[:, d] += extra * goes
    return read, written


def least(problem: Problem) -> float:
    every = placements(problem)
    every = every[allowed(problem, every)]
    if problem.constraint("contiguous") is not None:
        for level in range(1, problem.machine.levels + 1):
            number = np.zeros(len(problem.machine.devices), dtype=np.int64)
            for i, cluster in enumerate(problem.machine.clusters):
                if cluster.level == level:
                    number[list(cluster.devices)] = i
            every = every[
                _ordered(
                    number[every], problem.precedence_source, problem.precedence_target, len(problem.machine.clusters)
                )
            ]
    if not len(every):
        return math.inf
    further_in, further_out = surcharges(problem, every)
    if problem.execution.name == "pipedream":
        whole = loads(problem, every) + further_in + further_out
        return (
            float(whole.max(axis=1).min())
            if problem.execution.data_parallelism is None
            else shared_out(problem, every, whole)
        )
    computing, read, written = beside(problem, every)
    read, written = read + further_in, written + further_out
    moving = read + written if problem.execution.name == "overlapped" else np.maximum(read, written)
    whole = np.maximum(computing, moving)
    return (
        float(whole.max(axis=1).min())
        if problem.execution.data_parallelism is None
        else shared_out(problem, every, whole)
    )


@pytest.mark.parametrize("solver", ["cp-sat", "highs"])
@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(40)) for n in range(0, 400, 20)])
def test_random_problems(first: int, solver: str) -> None:
    for seed in range(first, first + 20):
        spec = placedsl.loads(random_clusters(seed))
        expected = least(spec.problem)
        found = solve(spec.problem, spec.elaborated.checked_formulations, Request(solver=solver, method="program"))
        if expected == math.inf:
            assert found.termination == "infeasible", seed
            continue
        assert found.termination == "optimal", seed
        assert found.value == pytest.approx(expected, rel=1e-6), seed


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(20)) for n in range(0, 400, 20)])
def test_random_pipelines_by_dynamic_programming(first: int) -> None:
    problems = [placedsl.loads(random_clusters(seed)).problem for seed in range(first, first + 20)]
    known = [p for p in problems if not reasons_against(p, replace(contiguous.SUPPORTS, relaxes=False))]
    for problem in known:
        confirm_dynamic_program(problem, least(problem))
    assert len(known) >= 2
