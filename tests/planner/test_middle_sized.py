"""Problems of 20 to 60 nodes, beyond brute force: the dynamic program against the integer program of two solvers.

All schedules, training graphs, memory that is short, groups, two kinds of accelerators and hosts.  The program begins
without a start and with nothing beside it, so that the two paths share no more than the problem.  Each solver has
processes of its own.
"""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from support.paths import child_environment

import placedsl

PROBLEMS, CHUNK, FEW = 640, 160, 10
SOLVERS = ("highs", "cp-sat")
SCHEDULES = ("pipedream", "gpipe", "overlapped", "duplex")
#: Seconds of one program.
LIMIT = 20.0


def middle_spec(seed: int) -> str:
    """Layers of up to three nodes, each fed by one to three nodes of the few layers before it."""
    rng = random.Random(seed)
    training = seed % 2 == 1
    schedule = SCHEDULES[seed // 2 % len(SCHEDULES)]
    # Of a training graph the forward part is half.
    count = rng.randint(10, 20) if training else rng.randint(20, 40 if schedule == "gpipe" else 60)
    second = rng.random() < 0.4
    nodes, edges = [], []

    def node(name: str, layer: int, factor: int, more: str = "") -> None:
        time = factor * rng.randint(1, 20)
        times = [f"accelerator: {time} ms", *([f"tpu: {max(1, time + rng.randint(-3, 6))} ms"] if second else [])]
        if rng.random() < 0.9:
            times.append(f"host: {time * rng.randint(4, 9)} ms")
        if rng.random() < 0.05:
            times = times[1:]  # some run on hosts or on the other kind alone
        output = rng.choice([0, 1, 1, 2, 4, 8])
        nodes.append(
            f"    node {name} {{ time = {{{', '.join(times or ['host: 9 ms'])}}}, memory = {rng.randint(0, 9)} MiB, "
            f"output = {output} MiB, layer = {layer}{more} }}"
        )

    at, width = 0, 0
    layers: list[list[int]] = [[]]
    for i in range(count):
        if len(layers[-1]) > width:
            layers.append([])
            width = rng.choice([0, 0, 0, 1, 1, 2])
        layers[-1].append(i)
        at = i // 2 if rng.random() < 0.2 else i
        node(f"f{i}", at, 1)
    sources: dict[int, list[int]] = {}
    for k, layer in enumerate(layers[1:], start=1):
        known = [u for one in layers[max(0, k - rng.choice([1, 1, 1, 2])) : k] for u in one]
        for v in layer:
            sources[v] = rng.sample(known, min(len(known), rng.randint(1, 2)))
        # As in a network, what is made is read.
        read = {u for row in sources.values() for u in row}
        for u in set(layers[k - 1]) - read:
            sources[rng.choice(layer)].append(u)
    edges += [f"    f{u} -> f{v}" for v, row in sources.items() for u in row]
    if training:
        for i in range(count):
            # A backward node belongs to the layer of its forward node.
            layer = next(text.split("layer = ")[1].split()[0] for text in nodes if text.startswith(f"    node f{i} "))
            node(f"b{i}", int(layer), 2, ", backward = true")
        edges += [f"    b{v} -> b{u}" for v, row in sources.items() for u in row]
        edges += [f"    f{i} -> b{i}" for i in range(count) if rng.random() < 0.5 or i == count - 1]
    room = rng.choice([50, 80, 200]) * (2 if training else 1) * count / 24
    devices = [f"device gpu[{rng.randint(2, 3)}]: accelerator {{ memory = {room:.0f} MiB }}"]
    if second:
        devices.append(f"device tpu[{rng.randint(1, 2)}]: accelerator {{ memory = {room * 1.5:.0f} MiB }}")
    devices.append(f"device cpu[{rng.randint(0 if second else 1, 1)}]: host")
    rules = ["contiguous"]
    if rng.random() < 0.6:
        rules.append("memory")
    if training or rng.random() < 0.3:
        rules.append("colocated by layer")
    lines = ["graph {", *nodes, *edges, "}", *devices, "interconnect { bandwidth = 500 MiB/s }"]
    lines += [f"schedule {schedule}", "minimize time_per_sample", "subject to", *(f"    {rule}" for rule in rules)]
    return "\n".join(lines) + "\n"


def cases() -> list[object]:
    """A few by default, all of them when everything is asked for."""
    out: list[object] = []
    for solver in SOLVERS:
        out.append((solver, 0, FEW))
        for first in range(0, PROBLEMS, CHUNK):
            out.append(pytest.param(solver, first, CHUNK, marks=pytest.mark.everything))
    return out


@pytest.mark.rotates(1)
@pytest.mark.parametrize(("solver", "first", "count"), cases())
def test_agrees_with_the_integer_program(solver: str, first: int, count: int) -> None:
    """Where the solver ends within the limit, both say the same; else its value and bound enclose the optimum."""
    command = [sys.executable, __file__, solver, str(first), str(first + count)]
    environment = child_environment()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    compared, settled = map(int, done.stdout.splitlines()[-1].split())
    assert compared == count
    assert settled >= 0.75 * count


def compare(solver: str, first: int, last: int) -> tuple[int, int]:
    """How many problems were compared, and how many the solver settled; one that differs ends the process."""
    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    settled = 0
    for seed in range(first, last):
        spec = placedsl.loads(middle_spec(seed))
        formulations = spec.elaborated.checked_formulations
        exact = solve(spec.problem, formulations, Request(method="dp"), isolated=False)
        program = Request(solver, "program", LIMIT, workers=1, start=False)
        answer = solve(spec.problem, formulations, program, isolated=False)
        settled += answer.termination in ("optimal", "infeasible")
        what = (
            f"seed {seed}: dp {exact.termination} {exact.value}; {solver} {answer.termination} {answer.value} "
            f"{answer.bound} {answer.message} after {answer.seconds['total']:.1f} s"
        )
        if exact.termination not in ("optimal", "infeasible"):
            sys.exit(what)
        # Nothing is found that is better, and nothing is proven that is not so.
        near = 2e-6 * exact.value if exact.placement is not None else 0.0
        agrees = answer.bound <= exact.value + near and answer.value >= exact.value - near
        if answer.termination == "optimal":
            agrees = agrees and answer.value <= exact.value + near
        elif answer.termination == "infeasible":
            agrees = exact.termination == "infeasible"
        if not agrees:
            sys.exit(what)
    return last - first, settled


if __name__ == "__main__":
    print(*compare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))  # noqa: T201
