"""Problems that differ in one thing from a given one: a device more, more memory, or a rule less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placedsl import expressions as core
from placedsl.conflicts.feasibility import restricted
from placedsl.graph.graph import Floats
from placedsl.language.assemble import moves_of, transfers
from placedsl.language.estimates import on_device
from placedsl.machine.machine import Cluster, Device, Machine
from placedsl.machine.moves import Moves
from placedsl.problem import Problem
from placedsl.units import DATA, show

_GIB = 2.0**30
#: A device with less memory than this is given a tenth of it more, and any other one GiB more.
_LARGE = 4 * _GIB


@dataclass(frozen=True, eq=False)
class Change:
    """A changed problem, and the change in words.  Devices keep their positions; a new one is the last."""

    text: str
    problem: Problem


def changes(problem: Problem) -> Iterator[Change]:
    """One more device of each family, more memory for each family that has a limit, and each rule left out."""
    families = dict.fromkeys(d.family for d in problem.machine.devices)
    # In which cluster one more would be, nobody says.
    machine = problem.machine
    clustered = {device.family for i, device in enumerate(machine.devices) if machine.innermost(i) >= 0}
    named = _named_families(problem) | clustered
    for family in families:
        if family not in named and (larger := with_device(problem, family)) is not None:
            yield Change(f"one more {family}", larger)
    if any(_asks_for_memory(rule.body) for rule in problem.rules):
        for family in families:
            least = min(d.memory for d in problem.machine.devices if d.family == family)
            if 0.0 < least < math.inf:
                extra = _GIB if least >= _LARGE else least / 10
                share = "" if least >= _LARGE else ", a tenth"
                text = f"{show(extra, DATA)} more on each {family}{share}"
                yield Change(text, with_memory(problem, family, extra))
    for rule in problem.rules:
        others = tuple(r for r in problem.rules if r is not rule)
        yield Change(f"without {rule.name}", replace(restricted(problem, others), objectives=problem.objectives))


def _named_families(problem: Problem) -> set[str]:
    """Families of which the spec names single devices or gives values by device: of one more it says nothing."""
    bodies: list[core.Expression | core.SetExpression] = [o.body for o in problem.objectives]
    bodies += [*(r.body for r in problem.rules), *problem.sets.values()]
    devices = problem.machine.devices
    parts = (part for body in bodies for part in core.every(body))
    named = {devices[p.position].family for p in parts if isinstance(p, core.Element) and p.sort == "device"}
    by_device = any("device" in table.sorts and () not in table.values for table in problem.tables.values())
    return {d.family for d in devices} if by_device else named


def with_device(problem: Problem, family: str) -> Problem | None:
    """One more device of a family, as if the spec had declared that many: like its last, but for what has a number.

    None where nothing says how tensors would reach it from every other device (schedule ``dataflow``).
    """
    devices = problem.machine.devices
    alike = [i for i, d in enumerate(devices) if d.family == family]
    last = devices[alike[-1]]
    new = Device(f"{family}[{len(alike) + 1}]", family, last.kind, last.memory, last.attributes)
    alone = tuple(
        Cluster(new.name, "", level + 1, (len(devices),), None, alone=True) for level in range(problem.machine.levels)
    )
    clusters = (*problem.machine.clusters, *alone)
    machine = replace(problem.machine, devices=(*devices, new), clusters=clusters)
    time, measured = on_device(problem.graph, machine, len(devices))
    transfer, _, missing = transfers(problem.graph, machine, problem.objectives[0].span.source)
    # Where links are declared device by device there is none to a new one: it has that of its fellow.
    column = problem.transfer[:, alike[-1]] if missing else transfer[:, -1]
    transfer = np.column_stack((problem.transfer, column))
    between = None if problem.moves is None else _moves(problem, machine, transfer)
    if problem.moves is not None and between is None:
        return None
    replication = problem.replication
    if replication is not None:
        known = replication.synchronisation
        replication = replace(replication, synchronisation=np.column_stack((known, known[:, alike[-1]])))
    return replace(
        problem, machine=machine, time=np.column_stack((problem.time, time)), replication=replication,
        transfer=transfer, moves=between, measured=np.column_stack((problem.measured, measured)),
        leaving=np.concatenate((problem.leaving, np.zeros((len(alone), problem.leaving.shape[1])))),
    )  # fmt: skip


def _moves(problem: Problem, machine: Machine, transfer: Floats) -> Moves | None:
    """How tensors move when there is one more device; None where a profile or links of single devices leave it out."""
    if problem.graph.tensor_matrix is not None:
        return None
    between = moves_of(problem.graph, machine, transfer, problem.size)
    return None if np.isinf(between.fixed).any() else between


def with_memory(problem: Problem, family: str, extra: float) -> Problem:
    """So many bytes more on each device of a family."""
    devices = tuple(
        replace(d, memory=d.memory + extra) if d.family == family else d for d in problem.machine.devices
    )  # fmt: skip
    return replace(problem, machine=replace(problem.machine, devices=devices))


def _asks_for_memory(body: core.Expression) -> bool:
    attributes = (part for part in core.every(body) if isinstance(part, core.Attribute))
    return any(part.sort == "device" and part.name == "memory" for part in attributes)
