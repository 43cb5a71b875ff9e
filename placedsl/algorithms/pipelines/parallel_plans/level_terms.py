"""What questions about plans over clusters are asked of: terms, states, and what is known, as tuples for kernels."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.algorithms.pipelines.parallel_plans.options import OptionTable, Workspace
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import Exchanges
from placedsl.arrays import Booleans, Floats, Integers, Integers32


class StageLimits(NamedTuple):
    """Bounds of a spec on stages.  c kinds.

    ``fewest``, ``most``, ``in_flight``   c copies, and samples on each, of a stage with nodes of that kind
    ``of_kinds``  whether any binds
    """

    fewest: Integers
    most: Integers
    in_flight: Integers
    of_kinds: bool


class LevelTerms(NamedTuple):
    """K ideals, c kinds, g degrees, l levels.

    ``inside``    K x K whether the first ideal is in the second
    ``edges``     K x K x (g + l - 1) seconds of what the stage between two ideals reads and sends: over the links of
                  devices, by degree, and over those around clusters, by level
    ``unsupported``  g x K units without an option;  ``weight``  K least seconds of devices
    ``time``      g x K seconds of the quickest options
    ``weights``   g x K seconds to send weights over the link of a device;  ``sharded``  g x K bytes
    ``lightest``, ``heaviest``   K the least and the most that the weights of a copy can be, from all its devices
    ``table``, ``of_kind``   the options, and K x c units of each kind
    ``degree``    g;  ``allowed``  numbers of copies: whether a stage may have so many, and whether a multiple of it may
    ``size``      l: devices of an innermost cluster, and clusters in one of the next level
    ``devices``   l: of such a device or cluster
    ``slower``    l: by how much a byte takes longer around a cluster than over a device's link, from level 1 on
    ``most``      copies of all stages;  ``capacity``  bytes of a device
    ``exchange``, ``held``   as in :class:`PlanTerms`;  ``limits``  of the spec
    """

    inside: Booleans
    edges: Floats
    unsupported: Integers
    weight: Floats
    time: Floats
    weights: Floats
    lightest: Floats
    heaviest: Floats
    sharded: Floats
    table: OptionTable
    of_kind: Integers32
    degree: Integers
    allowed: Booleans
    multiple: Booleans
    size: Integers
    devices: Integers
    slower: Floats
    most: int
    capacity: float
    exchange: Exchanges
    held: int
    limits: StageLimits


class LevelStates(NamedTuple):
    """Triples by level, ideal and number, and where they came from.

    ``number``    l x K how many: those of which none is better in all
    ``copies``, ``used``, ``weights``   copies behind, devices or clusters, and weights (0 where they do not matter)
    ``base``, ``state``   the ideal and the triple before the last part
    ``choice``    the position of the part's degree; of a cluster, how many there are of it
    ``part``      its copies; of a cluster, those of what is inside;  ``part_weights``  the weights of what is inside
    """

    number: Integers32
    copies: Integers32
    used: Integers32
    weights: Floats
    base: Integers32
    state: Integers32
    choice: Integers32
    part: Integers32
    part_weights: Floats


class KnownClusters(NamedTuple):
    """What can be inside of clusters, a table that is emptied where it is full.

    ``key``      of what was asked (-1: nothing);  ``begin``, ``end``   its part of the further arrays
    ``goal``, ``copies``, ``weights``   what a cluster can hold up to an ideal;  ``used``  how many keys, and rows
    """

    key: Integers
    begin: Integers
    end: Integers
    goal: Integers32
    copies: Integers32
    weights: Floats
    used: Integers


class KnownStages(NamedTuple):
    """Samples in flight with which stages are known to fit, and not to: a cache by stage, degree and copies; and room
    for knapsacks.  ``seen``: knapsacks given up on, and triples that there was no room for."""

    key: Integers
    fits: Integers32
    exceeds: Integers32
    space: Workspace
    units: Integers
    kinds: Integers
    seen: Integers
