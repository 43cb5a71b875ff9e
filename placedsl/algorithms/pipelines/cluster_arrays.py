"""The arrays that the search for pipelines over clusters of devices reads and writes, as its kernels take them."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.algorithms.pipelines.replicated_kernel import ReplicationStates
from placedsl.algorithms.stages.cut_edges_kernel import StagePairs
from placedsl.arrays import Booleans, Floats, Integers, Integers16, Integers32


class ClusterStages(NamedTuple):
    """The stages that the devices of a cluster can take within a load: P pairs of ideals by the first of them.

    ``start``, ``goal``   those that begin at ideal i end at ``goal[start[i]:start[i + 1]]``, ascending
    ``load``   P x loads x c on one device, without what leaves the cluster (inf: not on this class)
    ``until``, ``base``, ``which``   those that end at ideal i begin at ``base[until[i]:until[i + 1]]``, and are these
    """

    start: Integers
    goal: Integers32
    load: Floats
    until: Integers
    base: Integers32
    which: Integers32


class ClusterEdges(NamedTuple):
    """The f edges that cost something where they leave a cluster.

    ``code``   K x f how much of each is inside an ideal: 1 for what makes it + 2 for each reader
    ``cut_start``, ``cut_edge``   which of them each ideal cuts;  ``readers``  f
    ``read``, ``make``   loads x c x f what is paid on top
    """

    code: Integers32
    cut_start: Integers
    cut_edge: Integers32
    readers: Integers32
    read: Floats
    make: Floats


class ClusterReach(NamedTuple):
    """What the search inside one cluster writes: see ``extend`` of the replicated pipeline.  K x s and K x s x 3.

    ``bought``, ``sold``   f edges whose maker, or some reader, is outside the cluster
    ``listed``   K the ideals that are reached;  ``mark``  K in which run, times two, one more where the costs of the
                 stages inside depend on where the cluster ends
    """

    reach: Integers16
    origin: Integers32
    bought: Integers32
    sold: Integers32
    listed: Integers32
    mark: Integers


class RemainingNeed(NamedTuple):
    """What the rest of the pipeline needs, once a cluster has used some of its devices.

    ``needed``  K x states of all devices: the devices of the main class that the rest needs at least
    ``state``   per state of the cluster which of these states is the one of all other classes
    ``spare``   how many devices of the main class there are in this cluster and in those left
    """

    needed: Integers16
    state: Integers
    spare: int


class ClusterProblem(NamedTuple):
    """What the search inside a cluster of one kind is given: the stages, its devices, and what the rest needs.

    ``stages``, ``pairs``, ``edges``   the stages within the load, the ideals, and the edges that cost more between
                   clusters
    ``replicas``   the devices of such a cluster;  ``bound``  the load
    ``need``       what the rest of the pipeline needs
    """

    stages: ClusterStages
    pairs: StagePairs
    edges: ClusterEdges
    replicas: ReplicationStates
    bound: float
    need: RemainingNeed


class Leaving(NamedTuple):
    """How many edges leave a cluster: those whose maker is outside, those with a reader outside; of these surely."""

    bought: int
    sold: int
    surely_bought: int
    surely_sold: int


class OuterReach(NamedTuple):
    """The search over ideals and clusters used, S states, for one kind of clusters.

    ``ways``     pairs of states before and after one more cluster;  ``number``  the kind of clusters
    ``fewest``   whether as few devices as possible are asked for
    ``fits``     K x S which matter
    ``value``    K x S with how many devices an ideal is reached by the clusters of a state
    ``came``     K x S x 2 where the last cluster begins, and its kind
    """

    ways: Integers
    number: int
    fewest: bool
    fits: Booleans
    value: Integers32
    came: Integers32
