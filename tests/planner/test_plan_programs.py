"""Programs of plans: against enumeration from the file, under rules that the search does not know, and on unlike
devices against enumeration by the evaluator."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.every_plan import every_plan
from support.paths import child_environment
from support.piper_workloads import Asked, drawn
from support.plan_programs import by_program, expect
from support.plan_rules import Rule, drawn_goals, drawn_rules, further_rules, optimum

import placedsl
from placedsl.evaluation.evaluate import evaluate

SOLVERS = ("highs", "cp-sat", "pyomo", "mip", "cvxpy")


def agree(seeds: range, folder: Path, solver: str, rules_of: Callable[[Asked, random.Random], list[Rule]]) -> None:
    """Programs and enumeration, over problems of up to three nodes."""
    for seed in seeds:
        asked, rng = drawn(seed), random.Random(seed + 1)
        if len(asked.workload["nodes"]) > 3:  # enumeration takes a second
            continue
        rules, goals = rules_of(asked, rng), drawn_goals(rng)
        (folder / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        text = asked.spec("w.json").replace("minimize time_per_sample", "minimize " + " then ".join(goals))
        text += "".join(f"    c{k}: {rule.text}\n" for k, rule in enumerate(rules))
        expect(by_program(text, folder, solver), optimum(asked, rules, goals), seed)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 480, 40))
@pytest.mark.parametrize("family", ["known", "unknown"])
def test_rules_that_the_search_knows_and_that_it_does_not(family: str, first: int) -> None:
    confirmed(family, "highs", first, first + 40)


@pytest.mark.parametrize("solver", ["highs", "pyomo", "cvxpy"])
def test_what_highs_cuts_off_by_enumeration(solver: str) -> None:
    """It proved 2.75 in place of 2.5625."""
    confirmed("unknown", solver, 295, 296)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver(solver: str) -> None:
    confirmed("unknown", solver, 1000, 1008)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("first", range(0, 200, 10))
def test_devices_of_several_kinds_and_servers(first: int) -> None:
    confirmed("unlike", "highs", first, first + 10)


def confirmed(family: str, solver: str, first: int, last: int) -> None:
    """Run this file: the libraries of two solvers do not go into one process."""
    command = [sys.executable, __file__, family, solver, str(first), str(last)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    assert done.returncode == 0, done.stdout + done.stderr


def unlike_devices(seed: int) -> str:
    """One node or two with options, on devices of two kinds or on two servers, in the text of a spec."""
    rng = random.Random(seed)
    servers, memory = rng.random() < 0.4, rng.choice((4, 8, 12, 20))
    nodes = []
    for v in range(rng.choice((1, 2, 2))):
        other = "" if servers else f", tpu: {rng.randint(1, 9)} s"
        own = {
            "time": f"{{accelerator: {rng.randint(1, 9)} s{other}}}", "memory": f"{rng.randint(0, 4)} B",
            "stash": f"{rng.randint(0, 4)} B", "parameters": f"{rng.choice((0, 0, 512, 1024))} B",
            "output": f"{rng.choice((0, 512, 2048))} B",
        }  # fmt: skip
        nodes.append(f"    node n{v} {{ {', '.join(f'{name} = {value}' for name, value in own.items())} }}")
    edges = ["    n0 -> n1"] if len(nodes) == 2 and rng.random() < 0.8 else []
    has = f"accelerator {{ memory = {memory} B }}"
    first, second = rng.choice(((1, 1), (2, 1), (1, 2)))
    machine = [f"device gpu[{first}]: {has}", f"device tpu[{second}]: accelerator {{ memory = {memory + 3} B }}"]
    if servers:
        machine = ["cluster server[2] {", f"    device gpu[{rng.choice((1, 2))}]: {has}",
                   "    interconnect { bandwidth = 4 KiB/s }", "}"]  # fmt: skip
    options = [
        "option split(v in nodes, t in {2}) {", "    tensor = t", f"    time = {rng.randint(1, 6)} s",
        f"    stash = {rng.randint(0, 2)} B", f"    memory = {rng.randint(0, 3)} B", "    gather = 512 B",
        "    scatter = 256 B", "}",
    ]  # fmt: skip
    named = "server[2].gpu[1]" if servers else "gpu[1]"
    rules = ["    contiguous", f"    c: n0 on {named}", "    s: stage(n0) <= 1", "    f: in_flight(n0) <= 1"]
    goal = rng.choice(("time_per_sample", "time_per_sample", "devices_used then time_per_sample"))
    held, exchange = rng.choice(("pipeline", "pipeline", "batch", "sample")), rng.choice(("sample", "round", "batch"))
    return "\n".join([
        "graph {", *nodes, *edges, "}", *machine, "interconnect { bandwidth = 1 KiB/s }", *options,
        f"parallelism {{ data = {{1, 2}}, tensor = {{1, 2}}, microbatches = 4, in_flight = {held},"
        f" exchange = {exchange} }}",
        f"minimize {goal}", "subject to", "    memory", *rng.sample(rules, rng.randint(0, 2)), "",
    ])  # fmt: skip


def agree_on_unlike_devices(seeds: range, folder: Path, solver: str) -> None:
    """Programs and enumeration by the evaluator."""
    for seed in seeds:
        text = unlike_devices(seed)
        problem = placedsl.loads(text).problem
        found = [evaluate(problem, placement, values) for placement, values in every_plan(problem)]
        valid = [one.objectives for one in found if not one.violations and all(map(math.isfinite, one.objectives))]
        expect(by_program(text, folder, solver), min(valid, default=None), seed)


def confirm(family: str, solver: str, seeds: range) -> None:
    """Problems of one family."""
    with tempfile.TemporaryDirectory() as folder:
        if family == "unlike":
            agree_on_unlike_devices(seeds, Path(folder), solver)
        else:
            agree(seeds, Path(folder), solver, drawn_rules if family == "known" else further_rules)


if __name__ == "__main__":
    confirm(sys.argv[1], sys.argv[2], range(int(sys.argv[3]), int(sys.argv[4])))
