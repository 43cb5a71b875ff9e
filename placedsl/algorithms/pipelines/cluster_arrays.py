"""The arrays that the search for pipelines over clusters of devices reads and writes, as its kernels take them."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.algorithms.pipelines.replicated_kernel import ReplicationStates
from placedsl.algorithms.stages.cut_edges_kernel import StagePairs
from placedsl.arrays import Booleans, Floats, Integers, Integers16, Integers32


class ClusterStages(NamedTuple):
    """The stages that devices can take within a load: P pairs of ideals by the first of them.

    ``start``, ``goal``   those that begin at ideal i end at ``goal[start[i]:start[i + 1]]``, ascending
    ``load``   P x loads x c on one device, without what leaves a cluster (inf: not on this class); those last in
               which no weights are sent
    ``until``, ``base``, ``which``   those that end at ideal i begin at ``base[until[i]:until[i + 1]]``, and are these
    """

    start: Integers
    goal: Integers32
    load: Floats
    until: Integers
    base: Integers32
    which: Integers32


class ClusterEdges(NamedTuple):
    """The f edges that cost something where they leave a cluster of any of L levels.

    ``code``   K x f how much of each is inside an ideal: 1 for what makes it + 2 for each reader
    ``cut_start``, ``cut_edge``   which of them each ideal cuts;  ``readers``  f
    ``paid``   L x f whether it costs something on a level
    ``read``, ``make``   loads x c x (L f) what is paid on top, level by level
    """

    code: Integers32
    cut_start: Integers
    cut_edge: Integers32
    readers: Integers32
    paid: Booleans
    read: Floats
    make: Floats


class KindStates(NamedTuple):
    """What clusters of Z kinds have, and how many of it can have been used.  c classes, M parts at most.

    A *member* of a cluster is a device of a class (0 to c - 1) or a cluster within (from c on, by the kind's parts).

    ``first``    Z + 1: the states of kind x are rows ``first[x]`` to ``first[x + 1] - 1`` of the next three
    ``digits``   how many of each member have been used, 0 for the main class of the kind
    ``direct``   how many devices these are, those of clusters within aside
    ``used``     c how many devices of each class these are, those of clusters within all counted
    ``stride``   Z x (c + M): one more of a member is ``state + stride``;  ``number``  the same: how many there are
    ``main``     Z the class whose devices are not counted by state (-1: none, where there are clusters within)
    ``allowed``  Z x c x (n + 1) the least allowed number of devices to share a stage that is no less; 0: none
    ``part``     Z x M the kinds of the clusters within; -1: no more
    """

    first: Integers
    digits: Integers
    direct: Integers
    used: Integers
    stride: Integers
    number: Integers
    main: Integers
    allowed: Integers
    part: Integers


class ClusterProblem(NamedTuple):
    """What the search is given.

    ``stages``, ``pairs``, ``edges``   the stages within the load, the ideals, and the edges that cost more between
               clusters
    ``kinds``  what clusters have;  ``every``  all devices, by states of the others than the main class
    ``bound``  the load;  ``fewest``  whether as few devices as possible are asked for
    ``fits``   K x s: which ideals matter between two members of the machine
    ``needed`` L x K x s the devices of the main class that the rest needs at least after an ideal between two members
               of a cluster of that level, by states of ``every``
    """

    stages: ClusterStages
    pairs: StagePairs
    edges: ClusterEdges
    kinds: KindStates
    every: ReplicationStates
    bound: float
    fewest: bool
    fits: Booleans
    needed: Integers16


class ClusterReach(NamedTuple):
    """What the search writes.  Depth 0 is the machine, depth l a cluster of level l; it is in two of 2 L + 2 slots:

    slot 2 l as if only those edges left the cluster that surely do, or with a known end; slot 2 l + 1 repeated for one
    end.

    ``reach``, ``origin``   all slots one after another: the fewest devices (of the main class, where there is one) that
               reach each ideal in each state, and where the last member begins, which it is, and of how many devices
    ``start``, ``width``   where a slot begins in ``reach``, and how many states it has
    ``listed``, ``number``  slots x K the ideals that are reached, and how many they are
    ``bought``, ``sold``   depths x (L f) x 2 the edges whose maker, or some reader, is outside the cluster or one
               around it; and where their costs are
    ``leaving``  depths x 4 how many these are; and how many of them surely
    ``mark``   depths x K in which run, times two, one more where what is reached depends on where the cluster ends
    ``frame``  depths x 11 how far the search has come, see ``hierarchical_kernel``
    ``left``   depths x c how many devices are left at the most, those of the cluster included
    ``state``, ``spare``   depths x s: of each state, the state of ``every``, and the devices of the main class that are
               left then at the most
    """

    reach: Integers16
    origin: Integers32
    start: Integers
    width: Integers
    listed: Integers32
    number: Integers
    bought: Integers32
    sold: Integers32
    leaving: Integers
    mark: Integers
    frame: Integers
    left: Integers
    state: Integers
    spare: Integers


class Members(NamedTuple):
    """A cluster on its way through the search: its members' states, and what the rest needs beside them.

    ``replicas`` its members as devices;  ``direct``  s devices used by state
    ``machine``  whether it is the whole machine, where ``fits`` decides
    ``needed``   K x states;  ``state``, ``spare``   see :class:`ClusterReach`
    """

    replicas: ReplicationStates
    direct: Integers
    machine: bool
    fits: Booleans
    needed: Integers16
    state: Integers
    spare: Integers
