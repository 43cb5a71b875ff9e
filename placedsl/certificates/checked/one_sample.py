"""Bounds on the latency of one sample: a path, and what all devices have to work between other nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from placedsl.certificates.checked.numbers import RefusedError, amount, position
from placedsl.certificates.checked.orders import sorted_vertices


def path(problem: Mapping[str, Any], proof: Mapping[str, Any]) -> Fraction:
    """Nodes of which each reads what the one before makes: the sum of their least times."""
    least, edges, _ = graph(problem)
    along = [position(v, len(least), "a node") for v in proof["nodes"]]
    if any(pair not in edges for pair in pairwise(along)):
        raise RefusedError("no edge leads from one node of the path to the next")
    return sum((least[v] for v in along), Fraction(0))


def busy(problem: Mapping[str, Any], proof: Mapping[str, Any]) -> Fraction:
    """Nodes on devices that run one at a time: what comes before the first of them, their least times shared out over
    all devices, and what comes after the last of them."""
    devices = problem["one_at_a_time"]
    if type(devices) is not int or devices < 1:
        raise RefusedError("devices may run several nodes at once")
    least, edges, order = graph(problem)
    head, tail = around(least, edges, order)
    nodes = {position(v, len(least), "a node") for v in proof["nodes"]}
    if not nodes:
        raise RefusedError("no nodes")
    work = sum((least[v] for v in nodes), Fraction(0))
    return min(head[v] for v in nodes) + work / devices + min(tail[v] for v in nodes)


#: How each kind is checked.
LATENCY: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Fraction]] = {"path": path, "busy": busy}


def graph(problem: Mapping[str, Any]) -> tuple[list[Fraction], set[tuple[int, int]], list[int]]:
    """The least time of each node, which reads what which makes, and an order; RefusedError where there is none."""
    nodes = problem["nodes"]
    edges = {(position(v, len(nodes), "a node"), position(w, len(nodes), "a node")) for v, w in problem["edges"]}
    order = sorted_vertices(len(nodes), sorted(edges))
    if len(order) < len(nodes):
        raise RefusedError("what a node reads comes from itself")
    times = [[amount(t, "a time") for t in node["time"]] for node in nodes]
    if not all(times):
        raise RefusedError("a node runs nowhere")
    return [min(own) for own in times], edges, order


def around(
    least: list[Fraction], edges: set[tuple[int, int]], order: list[int]
) -> tuple[list[Fraction], list[Fraction]]:
    """What the longest path to each node takes, and that from it, both without the node."""
    ahead: list[list[int]] = [[] for _ in least]
    for v, w in edges:
        ahead[v].append(w)
    head, tail = [Fraction(0)] * len(least), [Fraction(0)] * len(least)
    for v in order:
        for w in ahead[v]:
            head[w] = max(head[w], head[v] + least[v])
    for v in reversed(order):
        for w in ahead[v]:
            tail[v] = max(tail[v], least[w] + tail[w])
    return head, tail
