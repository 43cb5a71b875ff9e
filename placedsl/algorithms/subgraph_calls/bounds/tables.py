"""The arrays of the dynamic program over ideals for the least latency of subgraph calls."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.arrays import Booleans, Floats, Integers


class IdealLattice(NamedTuple):
    """h nodes in topological order, t tensors, N ideals by size (the first is empty, the last has all nodes).

    ``fast``, ``slow``, ``memory``    h: seconds on an accelerator and on the host, bytes
    ``capacity``    the bytes of a call; ``budget``: what all calls take at most: each takes 1 if ``grain`` is 0, else
                    the whole grains of as many bytes in what it holds
    ``part``        h: the bytes of ``memory`` that a call does not hold if it does not hold the node's maker
    ``shared``      whether an accelerator makes more than two calls
    ``partner``     h: the second node of the pair of which a node is the first (-1: of none)
    ``parted``      the first nodes of the pairs that ideal i parts, from ``parted_start[i]``
    ``out``, ``into``  t: the seconds that a call pays for a tensor; ``reader[read_start[t]:read_start[t + 1]]`` read it
    ``made``        the tensors that node v makes, from ``made_start[v]`` to ``made_start[v + 1]``
    ``maker``       the nodes that node v reads from, from ``maker_start[v]`` to ``maker_start[v + 1]``
    ``inside``      N x h flags
    ``next_ideal``, ``next_node``   the ideals with one node more, and that node, from ``next_start[i]``
    ``open_node``   the nodes of ideal i that a node outside reads, from ``open_start[i]`` to ``open_start[i + 1]``
    ``open_out``    for each entry of ``open_node``, the seconds that a call pays for those of its tensors that a node
                    outside reads; ``ends``: N, how many nodes of ideal i nobody reads
    ``tail``        for each entry of ``open_node``, by the budget left: a lower bound on the time from the node's end
                    to the end of all, when the ideal has run
    ``ahead``       N, by the budget left: the same from the end of the last of the ideal's open nodes
    ``narrow``      N: the number of a narrow ideal (-1: it is not narrow)
    """

    fast: Floats
    slow: Floats
    memory: Floats
    capacity: float
    budget: int
    grain: float
    part: Floats
    shared: bool
    partner: Integers
    parted_start: Integers
    parted: Integers
    out: Floats
    into: Floats
    read_start: Integers
    reader: Integers
    made_start: Integers
    made: Integers
    maker_start: Integers
    maker: Integers
    inside: Booleans
    next_start: Integers
    next_ideal: Integers
    next_node: Integers
    open_start: Integers
    open_node: Integers
    open_out: Floats
    ends: Integers
    tail: Floats
    ahead: Floats
    narrow: Integers


class StateTable(NamedTuple):
    """The states met, s at most.

    ``used``: what its calls have taken of the budget; ``times``: of the ideal's open nodes, then of the latest end;
    ``later``: the next state of its ideal; ``first``: N, the first state of each ideal (-1: none); ``number``: how many
    states there are, and how many were dropped for lack of space; ``ideal``: of each state; ``before``: its predecessor
    (-1: none), and ``called``: whether it came from that by a call; ``since``: the ideals from which the last calls
    began that parted pairs, the last of all first (-1: none); ``held``: the bytes of each of these, and of the others
    at least; ``found``: by the budget allowed, the predecessor, the ideal, what was used, and whether by a call, that
    attained the least time.
    """

    used: Integers
    times: Floats
    later: Integers
    first: Integers
    number: Integers
    ideal: Integers
    before: Integers
    called: Booleans
    since: Integers
    held: Floats
    found: Integers


class ExplorationScratch(NamedTuple):
    """Working memory: N each, then h, then one per open node of an ideal, then as a state has of parted pairs."""

    stamp: Integers
    queue: Integers
    held: Floats
    length: Floats
    where: Integers
    times: Floats
    needed: Booleans
    since: Integers
    room: Floats
