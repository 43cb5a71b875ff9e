"""Which devices, and which clusters that share samples, nothing in a spec and its formulation tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placedsl.arrays import Booleans, Integers
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Problem
from placedsl.problem.streaming import RESERVE, STREAMS

#: Attributes that devices have in common which are alike.
_OF_A_CLASS = ("memory", "kind", "class", "turn", STREAMS, RESERVE, "reserves_peak")
#: Sets that do not tell devices apart that are alike, and clusters.
_OF_ALL_DEVICES = ("devices", "accelerators", "hosts", "leaders")
_OF_ALL_CLUSTERS = ("clusters", "memberships")


@dataclass(frozen=True, eq=False)
class Likeness:
    """Numbers, the same for two of a kind that may change places: a number a device, and one a cluster.

    Like devices are in one innermost cluster, like clusters in one cluster or in none.
    """

    devices: Integers
    clusters: Integers

    @classmethod
    def none(cls, problem: Problem) -> Likeness:
        """All are told apart."""
        return cls(np.arange(len(problem.machine.devices)), np.arange(len(problem.machine.clusters)))

    def leaders(self, problem: Problem) -> Booleans:
        """The devices that can lead a stage: of like ones, and in like clusters, the first."""
        out = _among_like(self.devices) < problem.graph.nodes
        levels = problem.execution.cluster_levels
        beyond = np.flatnonzero(_among_like(self.clusters) >= problem.graph.nodes) if levels is not None else ()
        for cluster in beyond:
            out[list(problem.machine.clusters[cluster].devices)] = False
        return np.asarray(out, dtype=np.bool_)


def _among_like(number: Integers) -> Integers:
    """How many before each are like it."""
    out: Integers = np.tril(number[:, None] == number, -1).sum(axis=1)
    return out


def likeness_of(problem: Problem, said: Sequence[walks.Part]) -> Likeness:
    """What may change places; devices that a constraint names are each for themselves, and so is what they are in.

    ``said``: all parts of the formulation's expressions.
    """
    rules = [part for rule in problem.constraints for part in walks.every(rule.body)]
    goals = [part for goal in problem.objectives for part in walks.every(goal.body)]
    named = {part.position for part in rules if isinstance(part, core.Element) and part.sort == "device"}
    others = [part for part in rules if not isinstance(part, core.Element)]
    if tells_devices_apart(problem, [*said, *others]):
        return Likeness.none(problem)
    devices: Integers = problem.interchangeable().copy()
    devices[sorted(named)] = devices.max() + 1 + np.arange(len(named))
    clusters = np.arange(len(problem.machine.clusters))
    levels = problem.execution.cluster_levels
    if levels is not None and not _tell_clusters_apart([*rules, *goals], levels.families):
        for cluster, parent in levels.parent.items():
            if named.isdisjoint(levels.members(cluster)):
                clusters[cluster] = len(clusters) + 1 + parent
    return Likeness(devices, clusters)


def tells_devices_apart(problem: Problem, said: Sequence[walks.Part]) -> bool:
    """Whether an objective or the formulation says something of one device and not of another that is like it.

    ``said``: all parts of the formulation's expressions.
    """
    for part in (*said, *(part for goal in problem.objectives for part in walks.every(goal.body))):
        match part:
            case core.Element(sort="device") | core.Pick(sort="device") | core.Table():
                return True
            case core.NamedSet(name=name, sorts=("device",)) if name not in _OF_ALL_DEVICES:
                return True
            case core.Attribute(sort="device", name=name) if name not in _OF_A_CLASS:
                return True
    return False


def _tell_clusters_apart(said: Sequence[walks.Part], families: tuple[str, ...]) -> bool:
    """Whether constraints or objectives say something of one cluster and not of another of its level."""
    for part in said:
        match part:
            case core.Element(sort="cluster") | core.Pick(sort="cluster"):
                return True
            case core.NamedSet(name=name, sorts=sorts) if "cluster" in sorts:
                if name not in (*_OF_ALL_CLUSTERS, *families):
                    return True
            case core.Attribute(sort="cluster", name=name) if name != "level":
                return True
            case core.Attribute(sort="device", name="class"):
                return True
    return False
