"""``convex`` and ``pipeline`` of sets that a formula describes."""

from __future__ import annotations

from collections.abc import Callable

from placedsl.evaluation.binder_loops import Env, Loop
from placedsl.evaluation.graph_paths import coming_back, cycle_of_sets, successors
from placedsl.evaluation.problem_data import ProblemData


def property_witness(
    data: ProblemData,
    name: str,
    outer: Loop,
    slots: list[tuple[int, str]],
    inner: Loop,
    register: int,
    member: Callable[[Env], bool],
) -> Callable[[Env], str]:
    """A function that tells what breaks the property, or gives an empty text.

    ``outer`` runs over the sets (``slots``: register and sort of its variables), ``inner`` over the
    nodes of one, which stand in ``register``.
    """

    def convex(env: Env) -> str:
        for _ in outer(env):
            among: set[int] = set()
            members: set[int] = set()
            for _ in inner(env):
                among.add(env[register])
                if member(env):
                    members.add(env[register])
            found = coming_back(members, successors(data.edges, among)) if members else None
            if found is not None:
                return "a path leaves the set and comes back: " + path(data, found)
        return ""

    def pipeline(env: Env) -> str:
        labels: list[str] = []
        set_of: dict[int, int] = {}
        for number, _ in enumerate(outer(env)):
            labels.append(", ".join(data.label(sort, env[r]) for r, sort in slots) or "the set")
            for _ in inner(env):
                node = env[register]
                if member(env) and set_of.setdefault(node, number) != number:
                    return f"{data.node_names[node]} is in two sets, {labels[set_of[node]]} and {labels[number]}"
        found = cycle_of_sets(set_of, data.pairs)
        if found is None:
            return ""
        vertices = [labels[i] if kind == "set" else data.node_names[i] for kind, i in found.vertices]
        return "a cycle: " + cycle(data, vertices, found.steps)

    return convex if name == "convex" else pipeline


def path(data: ProblemData, nodes: tuple[int, ...]) -> str:
    """Nodes along a path, by name."""
    return " -> ".join(data.node_names[v] for v in nodes)


def cycle(data: ProblemData, vertices: list[str], steps: tuple[tuple[int, int], ...]) -> str:
    """The vertices of a cycle with the pair of nodes that leads from each to the next."""
    parts = [
        f"{vertex} -> {after} ({path(data, step)})"
        for vertex, after, step in zip(vertices, [*vertices[1:], vertices[0]], steps, strict=True)
    ]
    return ", ".join(parts)
