"""Intervals that do not overlap: what the language says of them, what the evaluator finds, and every solver alike."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from support.paths import child_environment

from placedsl import InputError, loads
from placedsl.evaluation.overlap import overlapping_pairs
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.printer import expression

pytestmark = pytest.mark.rotates(3)

SOLVERS = ("highs", "cp-sat", "pyomo", "mip", "cvxpy")
GRAPH = """
graph {
    node a { time = {accelerator: 4 s} }
    node b { time = {accelerator: 6 s} }
    node c { time = {accelerator: 5 s} }
    node e { time = {accelerator: 0 s} }
    a -> b
}
device gpu[2]: accelerator
interconnect { bandwidth = 16 GiB/s }
var begin[v in nodes]: time in 0 s..100 s
define length(v in nodes) = sum(d in devices: v.time[d] * (v on d))
minimize max(v in nodes: begin[v] + length(v))
subject to
    order: forall (u, v) in edges: begin[v] >= begin[u] + length(u)
"""


def overlaps(*intervals: tuple[float, float]) -> list[tuple[str, str, float]]:
    named = [(start, finish, str(i)) for i, (start, finish) in enumerate(intervals)]
    return [tuple(found) for found in overlapping_pairs(named, loosely=False)]


def test_what_overlaps() -> None:
    assert overlaps((0, 2), (2, 3), (3, 7)) == []
    assert overlaps((0, 2), (1, 3)) == [("0", "1", 1)]
    assert overlaps((0, 9), (1, 2), (4, 6)) == [("0", "1", 1), ("0", "2", 2)]
    assert overlaps((5, 6), (0, 9)) == [("1", "0", 1)]


def test_what_has_no_length_overlaps_nothing() -> None:
    assert overlaps((0, 9), (4, 4), (9, 9), (0, 0)) == []
    assert overlaps((4, 3), (0, 9)) == []


def test_less_than_the_tolerance_is_nothing() -> None:
    assert overlaps((0, 1 + 1e-12), (1, 2)) == []
    assert len(overlaps((0, 1 + 1e-8), (1, 2))) == 1


def test_a_violation_names_both_and_by_how_much() -> None:
    rule = "alone: forall d in devices: no_overlap(v in nodes: v on d => begin[v]..begin[v] + length(v))"
    spec = loads(GRAPH + f"    {rule}\n")
    begin = {"a": 0.0, "b": 4.0, "c": 2.5, "e": 1.0}
    found = spec.evaluate({"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[1]", "e": "gpu[1]"}, {"begin": begin})
    (violation,) = found.violations
    assert (violation.rule, violation.amount) == ("alone", 1.5)
    assert violation.message == "d=gpu[1]: a and c overlap by 1.5 s"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("no_overlap(nodes)", "'no_overlap' needs intervals"),
        ("no_overlap(v in nodes: v on gpu[1])", "an interval is expected here, from its start to its finish"),
        ("no_overlap(v in nodes: begin[v]..4)", "both ends need one dimension"),
        ("no_overlap(v in nodes: 3 s => begin[v]..4 s)", "a condition is expected here"),
        ("no_overlap(v in heavy: begin[v]..4 s)", "there is no set 'heavy'"),
    ],
)
def test_errors(written: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        loads(GRAPH + f"    wrong: {written}\n")
    assert said in str(caught.value)
    assert all(d.span is not None and d.span.line == GRAPH.count("\n") + 1 for d in caught.value.diagnostics)


def test_it_stands_alone() -> None:
    for written in ("not no_overlap(v in nodes: begin[v]..begin[v] + 1 s)",
                    "a on gpu[1] => no_overlap(v in nodes: begin[v]..begin[v] + 1 s)"):  # fmt: skip
        with pytest.raises(InputError, match="cannot be part of a logical combination"):
            loads(GRAPH + f"    wrong: {written}\n").solve(method="program", solver="cp-sat")


def test_it_prints_as_it_is_written() -> None:
    text = "no_overlap(v in nodes, d in devices where d.number == 1: v on d => begin[v]..begin[v] + 1 s)"
    (rule,) = parse_rules(f"subject to\n    alone: {text}\n")
    assert expression(rule.body) == text


def parse_rules(text: str) -> list:
    from placedsl.diagnostics import Source

    return [rule for statement in parse(Source("spec", text)).statements for rule in statement.rules]


# against brute force


def random_spec(seed: int) -> tuple[str, dict]:
    """Jobs with lengths by device, precedence, and sets of which no two run at once."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    long = rng.integers(0, 6, (n, 2)) if seed % 2 else np.round(rng.uniform(0, 5, (n, 2)), 3)
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.3]
    shared = sorted(rng.choice(n, int(rng.integers(2, n + 1)), replace=False).tolist())
    alone = bool(rng.random() < 0.7)
    release = int(rng.integers(0, 4))
    lines = ["graph {"]
    lines += [f"    node n{v} {{ time = {{big: {long[v, 0]} s, small: {long[v, 1]} s}} }}" for v in range(n)]
    lines += [f"    n{u} -> n{v}" for u, v in edges]
    lines += ["}", "device big: accelerator", "device small: accelerator", "interconnect { bandwidth = 1 GiB/s }"]
    lines += ["var begin[v in nodes]: time in 0 s..60 s"]
    lines += ["define length(v in nodes) = sum(d in devices: v.time[d] * (v on d))"]
    lines += ["minimize max(v in nodes: begin[v] + length(v))", "subject to"]
    lines += ["    order: forall (u, v) in edges: begin[v] >= begin[u] + length(u)"]
    lines += [f"    late: begin[n0] >= {release} s"]
    if alone:
        lines += ["    alone: forall d in devices: no_overlap(v in nodes: v on d => begin[v]..begin[v] + length(v))"]
    else:
        names = ", ".join(f"n{v}" for v in shared)
        lines += [f"    shared: no_overlap(v in {{{names}}}: begin[v]..begin[v] + length(v))"]
    return "\n".join(lines) + "\n", {
        "long": long, "edges": edges, "shared": shared, "alone": alone, "release": release,
    }  # fmt: skip


def least(known: dict) -> float:
    """The shortest of all schedules: every placement with every order of what may not overlap."""
    long, best = known["long"], math.inf
    n = len(long)
    for place in itertools.product((0, 1), repeat=n):
        length = [float(long[v, d]) for v, d in enumerate(place)]
        groups = [[v for v in range(n) if place[v] == d] for d in (0, 1)] if known["alone"] else [known["shared"]]
        groups = [[v for v in group if length[v] > 0] for group in groups]
        for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
            arcs = [*known["edges"], *(pair for order in orders for pair in itertools.pairwise(order))]
            begin = [0.0] * n
            begin[0] = float(known["release"])
            for _ in range(n + 1):
                for u, v in arcs:
                    begin[v] = max(begin[v], begin[u] + length[u])
            if any(begin[v] < begin[u] + length[u] - 1e-9 for u, v in arcs):
                continue  # a circle
            best = min(best, max(b + x for b, x in zip(begin, length, strict=True)))
    return best


def compare(solver: str, first: int, last: int) -> int:
    """How many specs this solver answers as brute force does; one that differs ends the process."""
    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    for seed in range(first, last):
        text, known = random_spec(seed)
        spec = loads(text)
        answer = solve(
            spec.problem, spec.elaborated.checked_formulations, Request(solver, "program", workers=1), isolated=False
        )
        best = least(known)
        near = 2e-6 * max(1.0, best)
        if not (answer.termination == "optimal" and abs(answer.value - best) <= near and answer.bound <= best + near):
            sys.exit(
                f"seed {seed}: {answer.termination} {answer.value} {answer.bound} {answer.message}; best {best}\n{text}"
            )
    return last - first


@pytest.mark.parametrize("solver", SOLVERS)
def test_agrees_with_brute_force(solver: str) -> None:
    """In a process of its own, because two solver libraries do not go into one."""
    environment = child_environment()
    command = [sys.executable, __file__, solver, "0", "12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "agree: 12"


if __name__ == "__main__":
    print("agree:", compare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))  # noqa: T201
