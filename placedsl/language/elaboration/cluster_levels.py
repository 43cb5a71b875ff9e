"""``across = server`` of ``parallelism``: clusters whose copies share samples."""

from __future__ import annotations

from placedsl.diagnostics import nearest
from placedsl.language.checking.checker import Checker
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Cluster, Machine
from placedsl.problem.cluster_levels import ClusterLevels

_HINT = "clusters of a level that share samples have the same devices, clusters and interconnects"


def levels(checker: Checker, entry: syntax.Entry | None, machine: Machine) -> ClusterLevels | None:
    """All levels of clusters, the innermost first; None where the entry is not there, or wrong (which was reported)."""
    if entry is None:
        return None
    found = [(position, c) for position, c in enumerate(machine.clusters) if not c.alone]
    families = {c.family: c.level for _, c in found}
    if not isinstance(entry.value, syntax.Name) or entry.value.name not in families:
        said = entry.value.name if isinstance(entry.value, syntax.Name) else ""
        hint = nearest(said, families) if families else "as in cluster server[4] { device gpu[8]: accelerator }"
        checker.error(entry.value, "a family of clusters is expected", hint)
        return None
    inner = next(family for family, level in families.items() if level == machine.levels)
    if families[entry.value.name] < machine.levels:
        hint = f"across = {inner}; the clusters around it share samples as well"
        checker.error(entry.value, f"'{entry.value.name}' has clusters within", hint)
        return None
    by_level = [
        [(position, cluster) for position, cluster in found if cluster.level == level]
        for level in range(machine.levels, 0, -1)
    ]
    size = [len(by_level[0][0][1].devices)]
    for below, own in zip(by_level, [*by_level[1:], None], strict=True):
        size.append(len(below) if own is None else len(below) // len(own))
    out = ClusterLevels(
        tuple(size), tuple(own[0][1].family for own in by_level),
        tuple(tuple(position for position, _ in own) for own in by_level),
        tuple(device for _, cluster in by_level[0] for device in cluster.devices),
    )  # fmt: skip
    outside = [device.name for k, device in enumerate(machine.devices) if k not in set(out.devices)]
    unlike = f"'{outside[0]}' is in none of '{inner}'" if outside else _unlike(by_level, size, machine)
    if unlike is not None:
        checker.error(entry.value, unlike, _HINT)
        return None
    return out


def within_clusters(
    checker: Checker, entry: syntax.Entry | None, degrees: tuple[int, ...], across: ClusterLevels
) -> tuple[int, ...]:
    """The numbers of devices of a copy that an innermost cluster has; an error where the spec asks for more."""
    most, family = across.size[0], across.families[0]
    larger = [t for t in degrees if t > most]
    if entry is not None and larger:
        devices = "1 device" if most == 1 else f"{most} devices"
        message = f"a copy of {larger[0]} devices lies within one '{family}', which has {devices}"
        checker.error(entry.value, message, "clusters share samples, not operators")
    return tuple(t for t in degrees if t <= most) or (1,)


def _unlike(by_level: list[list[tuple[int, Cluster]]], size: list[int], machine: Machine) -> str | None:
    """What tells clusters of a level apart, in words."""
    wide = 1
    for own, each in zip(by_level, size[:-1], strict=True):
        wide *= each
        first = own[0][1]
        for _, cluster in own:
            if cluster.family != first.family:
                return f"'{cluster.name}' and '{first.name}' are two families of clusters"
            if len(cluster.devices) != wide or any(
                machine.devices[a].family != machine.devices[b].family
                for a, b in zip(cluster.devices, first.devices, strict=True)
            ):
                return f"'{cluster.name}' has other devices than '{first.name}'"
            links = [machine.around(position) for position in (own[0][0], _position(machine, cluster))]
            if len({(link.bandwidth, link.latency) for link in links if link is not None}) > 1:
                return f"'{cluster.name}' has another interconnect than '{first.name}'"
    return None


def _position(machine: Machine, cluster: Cluster) -> int:
    return machine.clusters.index(cluster)
