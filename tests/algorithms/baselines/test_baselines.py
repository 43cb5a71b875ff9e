"""The baselines that are asked for by name: what each finds, and why it does not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import brute_force
from support.paths import child_environment
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms import registry
from placedsl.algorithms.baselines import pipedream
from placedsl.algorithms.baselines import steepest_descent as reassignment
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.units import placement_units
from placedsl.budget import Budget
from placedsl.cli import main as cli
from placedsl.diagnostics import UsageError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.answer import Answer
from placedsl.problem.problem import Problem

CHAIN = """
graph {
    node a { time = {accelerator: 4 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 3 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node d { time = {accelerator: 5 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    a -> b -> c -> d
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
    memory
"""
METHODS = registry.own()


def attempt(text: str, method: str) -> Answer | str:
    """The answer, or why the method does not fit."""
    try:
        return placedsl.loads(text).solve(method=method)
    except UsageError as reason:
        return str(reason)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_placement(method: str, partitioner: Path) -> None:
    text = CHAIN.partition("subject to")[0]  # not all of them heed memory
    if "operator_scheduling." in next(known.module for known in registry.NAMED if known.name == method):
        text = text.replace("time_per_sample", "latency")
    if method in (
        "equi",
        "pipedream-2bw",
        "megatron",
        "alpa",
        "galvatron",
    ):  # it makes plans, over devices that are all alike
        link = "interconnect { bandwidth = 16 GiB/s }\nparallelism { data = 1..2, microbatches = 4 }\n"
        text = text.replace("device cpu: host\nlink gpu <-> cpu { bandwidth = 16 GiB/s }\n", link)
    if "baselines.orders." in next(known.module for known in registry.NAMED if known.name == method):
        text += "subject to\n    contiguous\n"
    found = [placedsl.loads(text).solve(method=method, seed=3).placement for _ in range(2)]
    assert found[0] is not None
    assert found[0] == found[1]


def test_another_seed_starts_elsewhere() -> None:
    text = random_spec(13)  # nothing but memory is asked for
    problem = placedsl.loads(text).problem
    quotient = placement_units(problem)
    starts = {
        tuple(
            reassignment.random_start(
                quotient.work, quotient.memory, problem.memory_limits, np.random.default_rng((seed, 0))
            )
        )
        for seed in range(20)
    }
    assert len(starts) > 1


# single


def test_one_accelerator_that_holds_everything_works_as_long_as_all_nodes_take() -> None:
    answer = placedsl.loads(CHAIN.replace("memory = 6 GiB", "memory = 12 GiB")).solve(method="single")
    assert answer.value == pytest.approx(0.018)
    assert set(answer.device_of().values()) == {"gpu[1]"}
    assert (answer.termination, answer.exit_code) == ("ended", 4)


def test_one_accelerator_that_is_out_of_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "chain.place"
    spec.write_text(CHAIN, encoding="utf-8")
    assert cli.main(["solve", str(spec), "--method", "single", "--quiet"]) == 5
    said = " ".join(capsys.readouterr().out.split())
    assert "ended without a placement (single" in said
    assert "gpu[1] holds 12 GiB, 6 GiB more than its 6 GiB" in said
    assert "time_per_sample =" not in said


def test_what_no_accelerator_supports_goes_to_the_quickest_host() -> None:
    text = CHAIN.replace("accelerator: 3 ms, host: 40 ms", "host: 40 ms, slow: 90 ms").replace("6 GiB }", "16 GiB }")
    answer = placedsl.loads(text.replace("device cpu: host", "device slow: host\ndevice cpu: host")).solve(
        method="single"
    )
    assert answer.device_of() == {"a": "gpu[1]", "b": "gpu[1]", "c": "cpu", "d": "gpu[1]"}


# greedy


def test_greedy_fills_one_device_after_the_other() -> None:
    answer = placedsl.loads(CHAIN).solve(method="greedy")
    assert answer.device_of() == {"a": "gpu[1]", "b": "gpu[1]", "c": "gpu[2]", "d": "gpu[2]"}


def test_greedy_uses_the_host_when_the_accelerators_are_full() -> None:
    answer = placedsl.loads(CHAIN.replace("gpu[2]", "gpu[1]")).solve(method="greedy")
    assert answer.device_of() == {"a": "gpu[1]", "b": "gpu[1]", "c": "cpu", "d": "cpu"}


def test_greedy_says_when_the_devices_run_out() -> None:
    answer = placedsl.loads(CHAIN.replace("host: 40 ms", "").replace(" ms, }", " ms }")).solve(method="greedy")
    assert answer.placement is not None
    short = CHAIN.replace("gpu[2]", "gpu[1]").replace("device cpu: host", "device cpu: host { memory = 3 GiB }")
    answer = placedsl.loads(short).solve(method="greedy")
    assert (answer.termination, answer.exit_code, answer.placement) == ("ended", 5, None)
    assert "the devices run out before the nodes do" in answer.message


def test_greedy_takes_no_device_up_again_where_the_pieces_are_contiguous() -> None:
    text = CHAIN.replace("accelerator: 6 ms, host", "host") + "    contiguous\n"
    answer = placedsl.loads(text).solve(method="greedy")
    assert answer.device_of() == {"a": "gpu[1]", "b": "cpu", "c": "gpu[2]", "d": "gpu[2]"}


# local search


def without_rules_of_its_own(seed: int, *, contiguous: bool) -> str:
    """A random spec of the throughput of a pipeline, with what is built in: contiguous pieces, or any."""
    lines = random_spec(seed).splitlines()
    dropped = ("custom", "convex", "contiguous", "schedule", "subject to")
    kept = [line for line in lines if not line.strip().startswith(dropped)]
    at = kept.index("minimize time_per_sample") + 1
    rules = kept[at:] + (["    contiguous"] if contiguous else [])
    return "\n".join([*kept[:at], *(["subject to"] if rules else []), *rules]) + "\n"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(80))
def test_no_single_reassignment_helps_what_the_local_search_found(seed: int) -> None:
    problem = placedsl.loads(without_rules_of_its_own(seed, contiguous=False)).problem
    assert reassignment.fits(problem) == []
    if brute_force.best(problem) is None:
        pytest.skip("nothing is feasible")
    placed, bound = reassignment.solve(problem, Budget(seed=seed), lambda *_: False)
    assert placed is not None
    assert bound == -np.inf
    value = largest(problem, placed)
    quotient = placement_units(problem, contiguous=True)
    work, capacity = reassignment.allowed(quotient.work, problem.accelerators), problem.memory_limits
    for unit in range(quotient.units):
        members = quotient.unit_of_node == unit
        for device in range(len(capacity)):
            other = np.where(members, device, placed)
            fits = problem.graph.memory[other == device].sum() <= capacity[device]
            if np.isfinite(work[device, unit]) and fits:
                assert largest(problem, other.tolist()) >= value * (1 - 1e-8)


def largest(problem: Problem, placed: list[int]) -> float:
    return float(evaluate(problem, placed).objectives[0])


def test_the_local_search_says_what_it_does_not_know() -> None:
    said = attempt(CHAIN + "    contiguous\n    few: devices_used <= 1\n", "local-search")
    assert "it does not look at contiguous" in str(said)
    assert "it does not look at few" in str(said)
    said = attempt(CHAIN.replace("minimize time_per_sample", "minimize communication"), "local-search")
    assert "it minimises time_per_sample, not communication" in str(said)


# PipeDream


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(120))
def test_pipedream_finds_the_best_cut_of_its_path(seed: int) -> None:
    spec = placedsl.loads(without_rules_of_its_own(seed, contiguous=True))
    assert pipedream.fits(spec.problem) == []
    least = brute_force.best(pipedream.as_path(spec.problem))
    answer = spec.solve(method="pipedream")
    assert (answer.placement is None) == (least is None)
    if least is not None:
        assert answer.value == pytest.approx(least[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_a_branching_is_what_lies_on_common_cycles(seed: int) -> None:
    """All but the last node of each set of edges that, pair by pair, lie on a cycle of the undirected graph."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    edges = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if rng.random() < 2.2 / nodes]
    lines = [f"    node n{v} {{ time = 1 ms, output = 1 MiB }}" for v in range(nodes)]
    lines += [f"    n{u} -> n{v}" for u, v in edges]
    text = "graph {\n" + "\n".join(lines) + "\n}\ndevice gpu[2]: accelerator\ndevice cpu: host\n"
    text += "interconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\nsubject to\n    contiguous\n"
    quotient, _ = contiguous.pipeline_of(placedsl.loads(text).problem)
    assert quotient.units == nodes
    found = pipedream.branchings(quotient)
    together = np.eye(nodes, dtype=bool)
    for cycle in cycles(nodes, edges):
        tails = [u for u, v in edges if {u, v} <= set(cycle) and adjacent(cycle, u, v)]
        together[np.ix_(tails, tails)] = True
    for _ in range(nodes):
        together |= (together[:, :, None] & together[None, :, :]).any(axis=1)
    assert (together == (found[:, None] == found[None, :])).all()


def cycles(nodes: int, edges: list[tuple[int, int]]) -> list[list[int]]:
    """Every simple cycle of the undirected graph, from each of its nodes."""
    near = [{v for e in edges for v in e if u in e and v != u} for u in range(nodes)]
    out: list[list[int]] = []

    def walk(way: list[int]) -> None:
        for v in near[way[-1]]:
            if v == way[0] and len(way) > 2:
                out.append(way)
            elif v not in way:
                walk([*way, v])

    for u in range(nodes):
        walk([u])
    return out


def adjacent(cycle: list[int], u: int, v: int) -> bool:
    distance = abs(cycle.index(u) - cycle.index(v))
    return distance in (1, len(cycle) - 1)


def test_a_mask_that_every_layer_reads_makes_no_branching() -> None:
    text = CHAIN.replace("    a -> b -> c -> d", "    node mask { time = 0 ms, output = {} }\n    a -> b -> c -> d\n"
                         "    mask -> b\n    mask -> d") + "    contiguous\n"  # fmt: skip
    free, paid = (placedsl.loads(text.replace("{} }", f"{size} }}")).problem for size in ("0 MiB", "1 MiB"))
    units = [contiguous.pipeline_of(pipedream.as_path(problem))[0].units for problem in (free, paid)]
    assert units[0] == 5
    assert units[1] < 5


# one registry


def test_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["methods"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("auto", "dp", "program", *METHODS))


def test_no_method_is_imported_before_it_is_run_and_none_is_tried_unasked() -> None:
    modules = [f"placedsl.algorithms.{method.module}" for method in registry.NAMED]
    script = (
        "import sys, placedsl\n"
        f"spec = placedsl.loads({CHAIN!r})\n"
        "assert spec.solve(solver='highs').termination == 'optimal'\n"
        "spec.explanation()\n"
        f"assert not set({modules!r}) & set(sys.modules)\n"
        "assert spec.solve(method='single').method == 'single'\n"
        f"assert set({modules!r}) & set(sys.modules) == {{'placedsl.algorithms.baselines.single'}}\n"
    )
    environment = child_environment()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_spec_pins_a_method_and_explain_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "chain.place"
    spec.write_text(CHAIN + 'solve { method = "local-search", seed = 2 }\n', encoding="utf-8")
    assert placedsl.load(spec).solve().method == "local-search"
    assert cli.main(["explain", str(spec)]) == 0
    assert "path taken: local-search" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"there is no method 'greedi'; did you mean 'greedy'\?"):
        placedsl.load(spec).solve(method="greedi")
