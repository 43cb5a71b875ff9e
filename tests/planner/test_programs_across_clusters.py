"""Programs of plans over clusters that share samples: against enumeration of the formulas, under rules that the search
does not know, and where devices and clusters are told apart, against enumeration by the evaluator."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.every_plan import every_plan
from support.paths import child_environment
from support.piper_levels import drawn_levels, plans
from support.plan_programs import by_program, expect
from support.plan_rules import drawn_rules, further_rules

import placedsl
from placedsl import InputError
from placedsl.evaluation.evaluate import evaluate


@pytest.mark.sampled(32)
@pytest.mark.parametrize("first", range(0, 320, 4))
@pytest.mark.parametrize("family", ["known", "unknown"])
def test_rules_that_the_search_knows_and_that_it_does_not(family: str, first: int) -> None:
    confirmed(family, "highs", first, first + 4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("solver", ["highs", "cp-sat", "pyomo", "mip", "cvxpy"])
def test_every_solver(solver: str) -> None:
    confirmed("unknown", solver, 1000, 1002)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("first", range(0, 320, 4))
def test_what_tells_devices_and_clusters_apart(first: int) -> None:
    confirmed("unlike", "highs", first, first + 4)


NAMED = """
graph {
    node a { time = 3 s, parameters = 1 KiB, memory = 6 B, stash = 2 B, output = 1 KiB }
    node b { time = 4 s, parameters = 1 KiB, memory = 6 B, stash = 2 B }
    a -> b
}
cluster server[2] {
    device gpu[2]: accelerator { memory = 10 B }
    interconnect { bandwidth = 4 KiB/s }
}
interconnect { bandwidth = 1 KiB/s }
parallelism { data = {1, 2}, microbatches = 4, exchange = batch, across = server }
minimize time_per_sample
subject to
    memory
    contiguous
    here: inside(a, server[1])
"""


def test_constraints_that_name_clusters() -> None:
    """A stage in each server, of two copies: half of 4 s and of 250 ms for what comes in, and half of 250 ms of
    weights, once for 4 samples."""
    found = placedsl.loads(NAMED + "    there: inside(b, server[2])\n").solve()
    assert (found.termination, found.value) == ("optimal", pytest.approx(2 + 0.125 + 0.125 / 4))
    assert [stage.devices[0] for stage in found.plan.stages] == ["server[1].gpu[1]", "server[2].gpu[1]"]


@pytest.mark.everything
def test_a_conflict_of_constraints_that_name_clusters() -> None:
    conflict = placedsl.loads(NAMED + "    away: not inside(a, server[1])\n").conflict()
    assert conflict is not None
    assert [member.name for member in conflict.members] == ["here", "away"]
    assert {"drop here", "drop away"} <= {*conflict.repair}


def confirmed(family: str, solver: str, first: int, last: int) -> None:
    """Run this file: the libraries of two solvers do not go into one process."""
    command = [sys.executable, __file__, family, solver, str(first), str(last)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    assert done.returncode == 0, done.stdout + done.stderr


def agree(family: str, seeds: range, folder: Path, solver: str) -> None:
    """Programs and enumeration in fractions."""
    for seed in seeds:
        asked, levels = drawn_levels(seed)
        rules = (drawn_rules if family == "known" else further_rules)(asked, random.Random(seed))
        (folder / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        text = levels.spec(asked, "w.json") + "".join(f"    rule{k}: {rule.text}\n" for k, rule in enumerate(rules))
        kept = [plan for plan in plans(asked, levels) if all(rule.holds(plan) for rule in rules)]
        best = min((float(max(stage.load for stage in plan)) for plan in kept), default=None)
        try:
            expect(by_program(text, folder, solver), None if best is None else (best,), seed)
        except InputError:  # a rule that is false whatever the placement
            assert best is None, seed


def told_apart(seed: int) -> str:
    """One node or two with options, on servers of one kind of devices or of two, maybe in racks, where constraints
    name devices and clusters."""
    rng = random.Random(seed)
    racks, kinds, count = rng.random() < 0.3, rng.random() < 0.5, rng.choice((1, 2, 2))
    kinds &= not racks
    nodes = []
    for v in range(count):
        other = f", tpu: {rng.randint(1, 9)} s" if kinds else ""
        own = {
            "time": f"{{accelerator: {rng.randint(1, 9)} s{other}}}", "memory": f"{rng.randint(0, 4)} B",
            "stash": f"{rng.randint(0, 4)} B", "parameters": f"{rng.choice((0, 512, 1024))} B",
            "output": f"{rng.choice((0, 512, 2048))} B",
        }  # fmt: skip
        nodes.append(f"    node n{v} {{ {', '.join(f'{name} = {value}' for name, value in own.items())} }}")
    edges = ["    n0 -> n1"] if count == 2 and rng.random() < 0.8 else []
    memory = rng.choice((4, 8, 12, 20))
    inside = [f"device gpu[{1 if kinds or racks else rng.choice((1, 2))}]: accelerator {{ memory = {memory} B }}"]
    inside += [f"device tpu[1]: accelerator {{ memory = {memory + 3} B }}"] * kinds
    link = "interconnect { bandwidth = %s KiB/s }"
    machine = ["cluster server[2] {", *inside, link % rng.choice((2, 4)), "}", link % rng.choice((1, 2))]
    named = "server[2]"
    if racks:
        machine, named = ["cluster rack[2] {", *machine, "}", link % 1], f"rack[{rng.choice((1, 2))}].server[2]"
    else:
        machine = [*machine[:-1], link % 1]
    options = [
        "option split(v in nodes, t in {2}) {", "    tensor = t", f"    time = {rng.randint(1, 6)} s",
        f"    stash = {rng.randint(0, 2)} B", f"    memory = {rng.randint(0, 3)} B", "    gather = 512 B",
        "    scatter = 256 B", "}",
    ]  # fmt: skip
    wide = not racks and "gpu[1]" not in inside[0]
    rules = [
        "    contiguous", f"    c: n0 on {named}.gpu[1]", f"    l: load({named}.gpu[1]) <= {rng.randint(1, 6)} s",
        f"    b: load({named}.gpu[1]) >= {rng.randint(1, 3)} s", "    s: stage(n0) <= 1",
        f"    i: inside(n0, {named})", f"    o: not inside(n0, {named})",
        "    f: in_flight(n0) <= 1", "    d: data(n0) >= 2", "    t: sum(d in devices: load(d)) <= 9 s",
    ]  # fmt: skip
    goal = rng.choice(("time_per_sample", "time_per_sample", "devices_used then time_per_sample"))
    held, exchange = rng.choice(("pipeline", "pipeline", "batch", "sample")), rng.choice(("sample", "round", "batch"))
    degrees = "{1, 2, 4}" if racks else "{1, 2}"
    return "\n".join([
        "graph {", *nodes, *edges, "}", *machine, *(options if wide else []),
        f"parallelism {{ data = {degrees}, tensor = {'{1, 2}' if wide else '{1}'}, microbatches = 4,"
        f" in_flight = {held}, exchange = {exchange}, across = server }}",
        f"minimize {goal}", "subject to", "    memory", *rng.sample(rules, rng.randint(0, 2)), "",
    ])  # fmt: skip


def agree_where_told_apart(seeds: range, folder: Path, solver: str) -> None:
    """Programs and enumeration by the evaluator."""
    for seed in seeds:
        text = told_apart(seed)
        problem = placedsl.loads(text).problem
        found = [evaluate(problem, placement, values) for placement, values in every_plan(problem)]
        valid = [one.objectives for one in found if not one.violations and all(map(math.isfinite, one.objectives))]
        expect(by_program(text, folder, solver), min(valid, default=None), seed)


def confirm(family: str, solver: str, seeds: range) -> None:
    """Problems of one family."""
    with tempfile.TemporaryDirectory() as folder:
        if family == "unlike":
            agree_where_told_apart(seeds, Path(folder), solver)
        else:
            agree(family, seeds, Path(folder), solver)


if __name__ == "__main__":
    confirm(sys.argv[1], sys.argv[2], range(int(sys.argv[3]), int(sys.argv[4])))
