"""Repairs that can be bought: more devices of a family, or as many with more memory.

Each is told only when a placement of the changed problem has been found and evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from placedsl.diagnosis.infeasibility.feasibility import Feasibility
from placedsl.diagnosis.sensitivity.what_if import asks_for_memory, in_each, with_device
from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Constraint, Problem
from placedsl.units import DATA, exact, parse_quantity, show

#: Further devices of a family (in each of its clusters) that are tried.
_MOST_DEVICES = 8
#: Memory is the least up to this share; that many steps are taken towards it.
_NEAR, _MOST_STEPS = 1e-3, 16


def hardware_repairs(
    asked: Feasibility, rules: Sequence[Constraint], changed: Collection[tuple[str, str]]
) -> Iterator[str]:
    """For each family how much memory each device needs, where memory is in the conflict, and how many more are enough.

    ``changed``: ("devices" or "memory", family) that a parameter repairs already; these are left out.
    """
    families = list(dict.fromkeys(d.family for d in asked.problem.machine.devices))
    if any(asks_for_memory(rule.body) for rule in rules):
        for family in families:
            if ("memory", family) not in changed and asked.left != 0.0:
                asked.progress(f"what would repair it? memory of {family}")
                yield from _more_memory(asked, family)
    for family in families:
        if ("devices", family) not in changed and asked.left != 0.0:
            asked.progress(f"what would repair it? more of {family}")
            yield from _more_devices(asked, family)


def question(asked: Feasibility, problem: Problem) -> Feasibility:
    """The same questions about a changed problem."""
    return Feasibility(
        problem, asked.formulation, asked.request, asked.deadline, asked.isolated, progress=asked.progress,
        purpose="what would repair it?",
    )  # fmt: skip


def _more_devices(asked: Feasibility, family: str) -> Iterator[str]:
    """The smallest number that is enough; none where the largest that is tried is not."""
    problem = asked.problem
    if any("device" in table.sorts for table in problem.tables.values()):
        return  # what the values of a further device are the spec does not say
    larger: list[Problem] = []
    try:
        for _ in range(_MOST_DEVICES):
            more = with_device(larger[-1] if larger else problem, family)
            if more is None:
                return
            larger.append(more)
        if not question(asked, larger[-1]).together(problem.constraints):
            return
        smallest = True
        for count, one in enumerate(larger, 1):
            held = True if count == _MOST_DEVICES else question(asked, one).together(problem.constraints)
            if held:
                words = "one more" if count == 1 else f"{count} more"
                yield f"{words} {family}{in_each(problem.machine, family)}" + ("" if smallest else " (fewer may do)")
                return
            smallest = smallest and held is False
    except InputError:
        return  # costs of a further device cannot be had


def _more_memory(asked: Feasibility, family: str) -> Iterator[str]:
    """The least memory that each device of a family needs, other than the least that has been found."""
    problem = asked.problem
    own = [d.memory for d in problem.machine.devices if d.family == family]
    now, enough = min(own), 2.0 * float(problem.graph.memory.sum())
    if not 0.0 < now < enough:
        return
    # Fewer bytes never help, but where a constraint of the user asks for devices with little memory.
    steady = not any(asks_for_memory(rule.body) for rule in problem.constraints if not rule.built_in)
    found = _holds(asked, family, enough)
    if found is None or not found[0]:
        return
    high, low, smallest = found[1], now, False
    for step in range(_MOST_STEPS):
        # Just below what is enough, which is often refuted at once, in turns with halves.
        near = high * (1.0 - _NEAR)
        wanted = near if step % 2 == 0 or low >= near * (1.0 - _NEAR) else (low + high) / 2
        if wanted <= low:
            smallest = steady
            break
        found = _holds(asked, family, wanted)
        if found is None:
            break
        if found[0]:
            high = found[1]
        elif wanted == near:
            smallest = steady
            break
        else:
            low = wanted
    text = readable(high)
    told = _holds(asked, family, parse_quantity(text).value)
    if told is None or not told[0]:
        return
    changed = instead(text, now) if max(own) == now else f"at least {text}"
    yield f"memory of {family}: {changed}" + ("" if smallest else " (less may be enough)")


def _holds(asked: Feasibility, family: str, memory: float) -> tuple[bool, float] | None:
    """Whether so much memory on each device of a family is enough, and how much of it is used; None: not known."""
    problem = asked.problem
    devices = tuple(
        replace(d, memory=max(d.memory, memory)) if d.family == family else d for d in problem.machine.devices
    )  # fmt: skip
    changed = replace(problem, machine=replace(problem.machine, devices=devices))
    least = min(d.memory for d in problem.machine.devices if d.family == family)

    def peak(placement: tuple[int, ...]) -> float:
        used = evaluate(changed, placement).memory
        return max([least, *(used[i] for i, d in enumerate(devices) if d.family == family)])

    if not problem.variables:
        good = [placement for placement in asked.known if not evaluate(changed, placement).violations]
        if good:
            return True, min(memory, *map(peak, good))
    one = question(asked, changed)
    held = one.together(problem.constraints)
    if held and one.known:
        asked.known.append(one.known[-1])
        return True, min(memory, peak(one.known[-1]))
    return None if held is None else (held, memory)


def instead(text: str, now: float) -> str:
    """An amount of memory in place of the present bytes, which are told exactly where the two read alike."""
    present = show(now, DATA)
    return f"{text} instead of {exact(now, DATA) if present == text else present}"


def readable(value: float) -> str:
    """An amount of memory in few digits, not smaller than it is."""
    text, wanted = show(value, DATA), value
    while parse_quantity(text).value < value:
        wanted *= 1.0001
        text = show(wanted, DATA)
    return text if math.isfinite(value) else show(value, DATA)
