"""Problems that differ in one thing from a given one: one more device, more memory, or one constraint less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placedsl import cost_model
from placedsl.arrays import Floats
from placedsl.diagnosis.infeasibility.feasibility import restricted
from placedsl.machine.machine import Cluster, Machine
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.execution import OptionCosts
from placedsl.problem.problem import Problem
from placedsl.problem.streaming import STREAMS
from placedsl.units import DATA, show

_GIB = 2.0**30
#: A device with less memory than this is given a tenth of it more, and any other one GiB more.
_LARGE = 4 * _GIB


@dataclass(frozen=True, eq=False)
class Change:
    """A changed problem, and the change in words.  Devices keep their positions; new ones come last."""

    text: str
    problem: Problem


def changes(problem: Problem) -> Iterator[Change]:
    """One more device, or cluster, of each family, more memory for each family that has a limit, and each rule left
    out."""
    families = dict.fromkeys(d.family for d in problem.machine.devices)
    named = _named_families(problem)
    for family in families:
        if family not in named and (larger := with_device(problem, family)) is not None:
            yield Change(f"one more {family}{in_each(problem.machine, family)}", larger)
    for family in _cluster_families(problem.machine):
        if not named & _within(problem.machine, family) and (larger := with_cluster(problem, family)) is not None:
            yield Change(f"one more {family}{_in_each_of(problem.machine, family)}", larger)
    asked, streams = any(asks_for_memory(rule.body) for rule in problem.constraints), _streaming(problem)
    if asked or streams:
        for family in families if asked else streams:
            least = min(d.memory for d in problem.machine.devices if d.family == family)
            if 0.0 < least < math.inf:
                extra = _GIB if least >= _LARGE else least / 10
                share = "" if least >= _LARGE else ", a tenth"
                text = f"{show(extra, DATA)} more on each {family}{share}"
                yield Change(text, with_memory(problem, family, extra))
    for family in streams:
        yield Change(f"streams twice as fast on each {family}", with_faster_streams(problem, family))
    for rule in problem.constraints:
        if problem.execution.options is not None and rule.built_in == "contiguous":
            continue  # the stages of a plan are contiguous
        others = tuple(r for r in problem.constraints if r is not rule)
        yield Change(f"without {rule.name}", replace(restricted(problem, others), objectives=problem.objectives))


def _named_families(problem: Problem) -> set[str]:
    """Families of which the spec names single devices or gives values by device: of one more it says nothing."""
    bodies: list[core.Expression | core.SetExpression] = [o.body for o in problem.objectives]
    bodies += [*(r.body for r in problem.constraints), *problem.sets.values()]
    devices = problem.machine.devices
    parts = (part for body in bodies for part in walks.every(body))
    named = set[str]()
    for part in parts:
        if isinstance(part, core.Element) and part.sort == "device":
            named.add(devices[part.position].family)
        if isinstance(part, core.Element) and part.sort == "cluster":
            named |= {devices[d].family for d in problem.machine.clusters[part.position].devices}
    by_device = any(
        {"device", "cluster"} & {*table.sorts} and () not in table.values for table in problem.tables.values()
    )
    return {d.family for d in devices} if by_device else named


def in_each(machine: Machine, family: str) -> str:
    """The cluster family that each gets one more device; empty for devices outside of clusters."""
    homes = {machine.innermost(i) for i, device in enumerate(machine.devices) if device.family == family}
    names = sorted({machine.clusters[home].family for home in homes if home >= 0})
    return "".join(f" in each {name}" for name in names)


def _cluster_families(machine: Machine) -> list[str]:
    """The families of clusters, outer ones first."""
    return list(dict.fromkeys(cluster.family for cluster in machine.clusters if not cluster.alone))


def _within(machine: Machine, family: str) -> set[str]:
    """The families of the devices in the clusters of a family."""
    return {machine.devices[d].family for c in machine.clusters if c.family == family for d in c.devices}


def _in_each_of(machine: Machine, family: str) -> str:
    """The cluster family that each gets one more cluster; empty for outermost ones."""
    homes = {cluster.parent for cluster in machine.clusters if cluster.family == family}
    names = sorted({machine.clusters[home].family for home in homes if home >= 0})
    return "".join(f" in each {name}" for name in names)


def with_cluster(problem: Problem, family: str) -> Problem | None:
    """One more cluster of a family, as if the spec had declared that many: in each cluster around some, like the last
    there with all that is in it.

    None where nothing says how tensors would reach it from every other device (schedule ``dataflow``).
    """
    return _with(problem, *_machine_with_cluster(problem.machine, family))


def with_device(problem: Problem, family: str) -> Problem | None:
    """One more device of a family, as if the spec had declared that many: in each of its clusters, like the last there.

    None where nothing says how tensors would reach it from every other device (schedule ``dataflow``).
    """
    return _with(problem, *_machine_with_device(problem.machine, family))


def _with(problem: Problem, machine: Machine, fellows: list[int]) -> Problem | None:
    """The problem on a machine with further devices at the end, and the device that each of these is like."""
    execution, sharing, variables = problem.execution, problem.execution.data_parallelism, problem.variables
    directly, weights = problem.device_to_device is not None, None if sharing is None else sharing.weights
    planned = sharing is not None and sharing.planned
    names = None if sharing is None else sharing.names
    levels = None if sharing is None or sharing.across is None else sharing.across.on(machine)
    options = cost_model.Options(
        directly, not execution.one_sample, weights, planned=planned, names=names, levels=levels
    )  # fmt: skip
    costs = cost_model.build(problem.graph, machine, options)
    if directly and (problem.graph.tensor_matrix is not None or not _all_reached(costs)):
        return None
    if sharing is not None:
        synchronisation = _like_fellows(costs.weight_exchange, fellows)
        options_of_all = None if costs.options is None else _options_like_fellows(costs.options, fellows)
        sharing = replace(sharing, across=levels).on(len(machine.devices))
        priced = replace(sharing, synchronisation=synchronisation, options=options_of_all, across=costs.cluster_levels)
        execution = replace(execution, data_parallelism=priced)
        most = float(priced.degrees[-1])
        variables = {**variables, "copies": replace(variables["copies"], high=most)}
    return replace(
        problem, machine=machine, variables=variables, time=costs.time, measured=costs.measured,
        cluster_surcharge=costs.cluster_surcharge, transfer=_like_fellows(costs.transfer, fellows),
        device_to_device=costs.device_to_device, execution=execution, own_shares_exact=costs.own_shares_exact,
    )  # fmt: skip


def _machine_with_cluster(machine: Machine, family: str) -> tuple[Machine, list[int]]:
    """The machine with one more cluster of the family wherever there are some, and what each new device is like."""
    last: dict[int, list[int]] = {}
    for i, cluster in enumerate(machine.clusters):
        if cluster.family == family:
            last.setdefault(cluster.parent, []).append(i)
    devices, clusters, fellows = list(machine.devices), list(machine.clusters), list[int]()
    for parent, alike in last.items():
        copied = machine.clusters[alike[-1]]
        prefix = "" if parent < 0 else f"{machine.clusters[parent].name}."
        name = f"{prefix}{family}[{len(alike) + 1}]"
        place = {d: len(devices) + k for k, d in enumerate(copied.devices)}
        fellows += copied.devices
        devices += [
            replace(machine.devices[d], name=name + machine.devices[d].name.removeprefix(copied.name))
            for d in copied.devices
        ]
        number: dict[int, int] = {}
        for i, cluster in enumerate(machine.clusters):
            if (
                cluster is not copied
                and cluster.parent not in number
                and not (cluster.alone and cluster.devices[0] in place)
            ):
                continue
            number[i] = len(clusters)
            clusters.append(
                replace(
                    cluster, name=name + cluster.name.removeprefix(copied.name),
                    parent=parent if cluster is copied else number.get(cluster.parent, -1),
                    devices=tuple(place[d] for d in cluster.devices),
                )
            )  # fmt: skip
        around = parent
        while around >= 0:
            clusters[around] = replace(clusters[around], devices=(*clusters[around].devices, *place.values()))
            around = clusters[around].parent
    return replace(machine, devices=tuple(devices), clusters=tuple(clusters)), fellows


def _machine_with_device(machine: Machine, family: str) -> tuple[Machine, list[int]]:
    """The machine with one more device of the family per cluster that has some, and the fellow that each is like."""
    at_home: dict[int, list[int]] = {}
    for i, device in enumerate(machine.devices):
        if device.family == family:
            at_home.setdefault(machine.innermost(i), []).append(i)
    devices, clusters, alone = list(machine.devices), list(machine.clusters), list[Cluster]()
    for home, alike in at_home.items():
        last, position = machine.devices[alike[-1]], len(devices)
        prefix = "" if home < 0 else f"{machine.clusters[home].name}."
        devices.append(replace(last, name=f"{prefix}{family}[{len(alike) + 1}]"))
        level = 0 if home < 0 else machine.clusters[home].level
        alone += [
            Cluster(devices[-1].name, "", deeper, (position,), None, alone=True)
            for deeper in range(level + 1, machine.levels + 1)
        ]
        around = home
        while around >= 0:
            clusters[around] = replace(clusters[around], devices=(*clusters[around].devices, position))
            around = clusters[around].parent
    fellows = [alike[-1] for alike in at_home.values()]
    return replace(machine, devices=tuple(devices), clusters=(*clusters, *alone)), fellows


def _like_fellows(times: Floats, fellows: list[int]) -> Floats:
    """Times by device; what nothing says of a new device is as it is for the device it is like.

    Where links are declared device by device there is none to a new one.
    """
    new = times[:, -len(fellows) :]
    return np.column_stack((times[:, : -len(fellows)], np.where(np.isnan(new), times[:, fellows], new)))


def _options_like_fellows(options: OptionCosts, fellows: list[int]) -> OptionCosts:
    """The same for what options cost."""
    per_byte = options.per_byte.copy()
    per_byte[-len(fellows) :] = per_byte[fellows]
    weights = options.weights.copy()
    weights[:, -len(fellows) :] = weights[:, fellows]
    return replace(options, weights=weights, per_byte=per_byte)


def _all_reached(costs: cost_model.Costs) -> bool:
    """Whether tensors get from every device to every other one; links of single devices may leave a new one out."""
    return costs.device_to_device is not None and not np.isinf(costs.device_to_device.latency).any()


def with_memory(problem: Problem, family: str, extra: float) -> Problem:
    """So many bytes more on each device of a family."""
    devices = tuple(
        replace(d, memory=d.memory + extra) if d.family == family else d for d in problem.machine.devices
    )  # fmt: skip
    return replace(problem, machine=replace(problem.machine, devices=devices))


def _streaming(problem: Problem) -> list[str]:
    """The families whose devices stream what does not fit."""
    per_byte = problem.streaming.per_byte.tolist()
    return list(dict.fromkeys(d.family for d, each in zip(problem.machine.devices, per_byte, strict=True) if each))


def with_faster_streams(problem: Problem, family: str) -> Problem:
    """Twice the rate at which each device of a family streams what does not fit."""
    devices = tuple(
        replace(d, attributes={**d.attributes, STREAMS: 2.0 * d.attributes[STREAMS]}) if d.family == family else d
        for d in problem.machine.devices
    )
    return replace(problem, machine=replace(problem.machine, devices=devices))


def asks_for_memory(body: core.Expression) -> bool:
    """Whether a condition speaks of how much memory devices have."""
    attributes = (part for part in walks.every(body) if isinstance(part, core.Attribute))
    return any(part.sort == "device" and part.name == "memory" for part in attributes)
