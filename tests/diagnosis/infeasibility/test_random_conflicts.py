"""Random infeasible problems: enumeration confirms the conflict that every solver finds.

The constraints of a conflict have no placement together, and have one as soon as any of them is left out; the same
holds of its instances; and every repair that is offered gives a placement.  Each solver has a process of its own,
because two solver libraries do not go into one process.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from support.paths import child_environment

import placedsl
from placedsl.problem.problem import Problem

pytestmark = pytest.mark.rotates(3)

SEEDS = 160
SOLVERS = ("highs", "cp-sat", "pyomo", "mip", "cvxpy")


@pytest.mark.parametrize("solver", SOLVERS)
def test_enumeration_confirms_the_conflict(solver: str, pytestconfig: pytest.Config) -> None:
    seeds = SEEDS if pytestconfig.getoption("--everything") else SEEDS // 16
    command = [sys.executable, __file__, solver, "0", str(seeds)]
    environment = child_environment()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    problems, several, repairs, instances = map(int, done.stdout.splitlines()[-1].removeprefix("confirmed: ").split())
    assert problems >= seeds // 3
    assert several >= seeds // 12, "too few conflicts of two constraints and more"
    assert repairs >= seeds // 6, "too few repairs"
    assert instances >= seeds // 12, "too few conflicts of some instances only"


def confirm(solver: str, first: int, last: int) -> tuple[int, int, int, int]:
    """How many problems, conflicts of several constraints, repairs, and conflicts of some instances were confirmed."""
    from support.infeasible_specs import feasible, infeasible_specs

    from placedsl.diagnosis.infeasibility.conflict import find
    from placedsl.planner.request import Request

    counts = [0, 0, 0, 0]
    for seed, text in infeasible_specs(first, last):
        spec = placedsl.loads(text)
        request = Request(solver, workers=1)
        formulations = spec.elaborated.checked_formulations
        conflict = find(spec.problem, formulations, request, by_instance=True, isolated=False)
        assert conflict is not None, f"seed {seed}: no conflict found\n{text}"
        names = [m.name for m in conflict.members if m.span is not None]
        what = f"seed {seed}: {names} {conflict}\n{text}"
        assert conflict.smallest, what
        assert not feasible(text, names), what
        everything = {r.name for r in spec.problem.constraints}
        for member in conflict.members:
            if member.span is not None:
                assert feasible(text, set(names) - {member.name}), what
                assert member.cures in (None, feasible(text, everything - {member.name})), what
        assert conflict.never or all(m.cures is not None for m in conflict.members if m.span is not None), what
        counts[0] += 1
        counts[1] += len(names) > 1
        counts[2] += sum(repaired(spec.problem, text, repair, what) for repair in conflict.repair)
        counts[3] += instances_confirmed(spec.problem, conflict, what)
    return counts[0], counts[1], counts[2], counts[3]


def instances_confirmed(problem: Problem, conflict: object, what: str) -> bool:
    """The instances that are told cannot hold together, and none can be spared; False where there are none to tell."""
    from support.infeasible_specs import satisfiable

    from placedsl.diagnosis.infeasibility.conflict import Conflict
    from placedsl.diagnosis.infeasibility.feasibility import restricted
    from placedsl.evaluation.constraint_instances import instances

    assert isinstance(conflict, Conflict)
    if not any(m.instances for m in conflict.members) or conflict.never:
        return False
    rules, some = [], False
    for member in conflict.members:
        if member.span is None:
            continue
        rule = next(r for r in problem.constraints if r.name == member.name)
        listed = instances(problem, rule)
        if len(listed) < 2:
            rules.append(rule)
            continue
        chosen = [i for i in listed if i.label in member.instances]
        assert len(chosen) == len(member.instances) > 0, what
        some |= len(chosen) < len(listed)
        rules += [i.as_rule(f"{member.name}#{k}") for k, i in enumerate(chosen)]
    named = [r for r in problem.constraints if r.name in {m.name for m in conflict.members}]
    part = replace(restricted(problem, named), objectives=problem.objectives)
    assert not satisfiable(replace(part, constraints=tuple(rules))), what
    for rule in rules:
        assert satisfiable(replace(part, constraints=tuple(r for r in rules if r is not rule))), (rule.name, what)
    return some


def bought_repair(problem: Problem, repair: str) -> tuple[Problem, Problem | None] | None:
    """The problem with what is to be bought, and with one device or a hundredth of the memory less; None: no such."""
    from placedsl.diagnosis.sensitivity.what_if import with_device
    from placedsl.units import parse_quantity

    more = re.fullmatch(r"(one|\d+) more (\w+)(?: in each \w+)?(?: \(fewer may do\))?", repair)
    if more is not None:
        machines = [problem]
        for _ in range(1 if more[1] == "one" else int(more[1])):
            larger = with_device(machines[-1], more[2])
            assert larger is not None
            machines.append(larger)
        return machines[-1], machines[-2]
    memory = re.fullmatch(r"memory of (\w+): (?:at least )?([\d.]+ \w+)(?: instead of .+)?(?: \(less .+\))?", repair)
    if memory is None:
        return None
    with_memory = []
    for share in (1.0, 0.99):
        wanted = parse_quantity(memory[2]).value * share
        devices = tuple(
            replace(d, memory=max(d.memory, wanted)) if d.family == memory[1] else d for d in problem.machine.devices
        )
        with_memory.append(replace(problem, machine=replace(problem.machine, devices=devices)))
    return with_memory[0], with_memory[1]


def repaired(problem: Problem, text: str, repair: str, what: str) -> bool:
    """With the repair there is a placement: memory is added, instances are dropped, or missed by the amount."""
    from support.infeasible_specs import feasible, satisfiable, satisfying

    from placedsl.evaluation.constraint_instances import instances
    from placedsl.evaluation.evaluate import evaluate
    from placedsl.units import parse_quantity

    bought = bought_repair(problem, repair)
    if bought is not None:
        larger, smaller = bought
        assert satisfiable(larger), (repair, what)
        assert smaller is None or "may" in repair or not satisfiable(smaller), (repair, what)
        return True
    dropped = re.fullmatch(r"drop (.+?)(?: for (.+))?", repair)
    name = dropped[1] if dropped else repair.partition(":")[0]
    rule = next(r for r in problem.constraints if r.name == name)
    others = tuple(r for r in problem.constraints if r.name != name)
    if dropped and not dropped[2]:
        assert feasible(text, {r.name for r in others}), (repair, what)
        return True
    if dropped:
        labels = dropped[2].split("; ")
        listed = instances(problem, rule)
        kept = tuple(i.as_rule(f"{name}#{k}") for k, i in enumerate(listed) if i.label not in labels)
        assert len(kept) == len(listed) - len(labels), (repair, what)
        assert satisfiable(replace(problem, constraints=others + kept)), (repair, what)
        return True
    if name == "memory":
        devices = list(problem.machine.devices)
        for amount, device in re.findall(r"([\d.e+-]+ \w+) more on ([\w\[\]]+)", repair):
            at = problem.machine.position(device)
            devices[at] = replace(devices[at], memory=devices[at].memory + parse_quantity(amount).value)
        machine = replace(problem.machine, devices=tuple(devices))
        assert satisfiable(replace(problem, machine=machine)), (repair, what)
        repair = re.sub(r"more on ([\w\[\]]+)", r"more for d=\1", repair)
    given = {}
    assert "may be enough" not in repair, (repair, what)
    for amount, label in re.findall(
        r"([\d.e+-]+(?: \w+)?) (?:more|less|of difference)(?: for (.+?))?(?=, \d|$)", repair
    ):
        given[label] = parse_quantity(amount).value
    parts = {f"#{k}": i for k, i in enumerate(instances(problem, rule))}
    assert set(given) <= {i.label for i in parts.values()}, (repair, what)
    elastic = replace(problem, constraints=tuple(i.as_rule(k) for k, i in parts.items()))
    enough, least = False, float("inf")
    for placement in satisfying(replace(problem, constraints=others)):
        missed = {parts[v.rule].label: v.amount for v in evaluate(elastic, placement).violations}
        # Both are sums of times; what is told in decimals may be the other's last bit.
        enough |= all(given.get(label, -1.0) * (1.0 + 1e-12) >= amount for label, amount in missed.items())
        least = min(least, sum(missed.values()))
    assert enough, (repair, what)
    assert sum(given.values()) <= least * 1.001, (repair, least, what)
    return True


if __name__ == "__main__":
    print("confirmed:", *confirm(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))  # noqa: T201
