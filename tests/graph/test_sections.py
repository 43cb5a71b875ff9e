"""Sections: what has no layer goes with the layer that it leads to, and boundaries lie between layers only."""

from __future__ import annotations

import functools
import itertools
import random

import pytest
from support.brute_force import best_by_evaluation

import placedsl
from placedsl.graph.sections import SECTION, groups_by, sections

LINKS = "interconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\n"
MACHINE = "device gpu[2]: accelerator { memory = 40 MiB }\n" + LINKS


def spec_of(nodes: dict[str, str], edges: list[tuple[str, str]], rest: str = MACHINE) -> placedsl.Spec:
    """A spec over nodes with their entries."""
    lines = [f"    node {name} {{ {entries} }}" for name, entries in nodes.items()]
    lines += [f"    {u} -> {v}" for u, v in edges]
    return placedsl.loads("\n".join(["graph {", *lines, "}", rest]))


def named_sections(spec: placedsl.Spec) -> set[frozenset[str]]:
    graph = spec.problem.graph
    groups: dict[int, set[str]] = {}
    for name, label in zip(graph.names, groups_by(graph, f"{SECTION}layer").tolist(), strict=True):
        groups.setdefault(label, set()).add(name)
    return {frozenset(own) for own in groups.values()}


def test_embedding_glue_norm_and_head_go_with_layers() -> None:
    """Rotary tables are read by all layers, and stay with the first; an auxiliary head hangs on layer 1."""
    plain, time = "time = 1 ms, output = 1 MiB", "time = 1 ms"
    nodes = {"embed": plain, "rotary": plain, "positions": plain, "between": plain, "norm": plain, "head": time}
    nodes |= {f"{part}{k}": f"{plain}, layer = {k}" for k in range(3) for part in ("attention", "mlp")}
    nodes |= {"auxiliary": time, "alone": time}
    edges = [("positions", "rotary"), ("embed", "attention0"), ("mlp0", "between"), ("between", "attention1")]
    edges += [("mlp1", "attention2"), ("mlp1", "auxiliary"), ("mlp2", "norm"), ("norm", "head")]
    edges += [(f"attention{k}", f"mlp{k}") for k in range(3)] + [("rotary", f"attention{k}") for k in range(3)]
    assert named_sections(spec_of(nodes, edges)) == {
        frozenset(("embed", "rotary", "positions", "attention0", "mlp0")),
        frozenset(("between", "attention1", "mlp1", "auxiliary")),
        frozenset(("attention2", "mlp2", "norm", "head")), frozenset(("alone",)),
    }  # fmt: skip


def test_the_backward_part_of_a_section_is_in_it() -> None:
    """The loss stands between the passes, gradients are clipped where the backward pass ends."""
    forward = {"embed": "", "f0": ", layer = 0", "f1": ", layer = 1", "head": "", "loss": ""}
    backward = {"head_b": "", "b1": ", layer = 1", "b0": ", layer = 0", "embed_b": "", "clip": ""}
    nodes = {name: f"time = 1 ms, output = 1 MiB{more}" for name, more in forward.items()}
    nodes |= {name: f"time = 1 ms, output = 1 MiB, backward = true{more}" for name, more in backward.items()}
    chain = list(nodes)
    edges = [*itertools.pairwise(chain), ("b1", "clip"), ("embed", "embed_b"), ("head", "head_b")]
    assert named_sections(spec_of(nodes, edges)) == {
        frozenset(("embed", "f0", "b0", "embed_b", "clip")), frozenset(("f1", "head", "loss", "head_b", "b1")),
    }  # fmt: skip


def random_layers(seed: int, most: int = 40) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """A random graph: layers in a chain, with nodes of no layer before, in, between and after them, in any order."""
    chosen = random.Random(seed)
    layers = chosen.randint(1, 4)
    order = [f"v{i}" for i in range(chosen.randint(max(2, layers), most))]
    layer_of = {v: min(layers - 1, i * layers // len(order)) for i, v in enumerate(order)}
    kept = {v: k for v, k in layer_of.items() if chosen.random() < 0.6}
    for k in range(layers):
        kept.setdefault(chosen.choice([v for v, own in layer_of.items() if own == k]), k)
    edges = {(u, v) for i, u in enumerate(order) for v in order[i + 1 :] if chosen.random() < 2 / len(order)}
    for k in range(1, layers):  # so that layers have one order
        edges.add(next((u, v) for u in order if kept.get(u) == k - 1 for v in order if kept.get(v) == k))
    nodes = {}
    for v in chosen.sample(order, len(order)):
        said = f", layer = {kept[v]}" if v in kept else ""
        size = chosen.choice((1, 3, 7))
        nodes[v] = f"time = {chosen.randint(1, 9)} ms, memory = {size} MiB, output = {chosen.randint(0, 5)} MiB{said}"
    return nodes, sorted(edges)


@pytest.mark.parametrize("seed", range(40))
def test_sections_by_the_words_of_their_definition(seed: int) -> None:
    nodes, edges = random_layers(seed)
    layer = {v: int(text.partition("layer = ")[2]) for v, text in nodes.items() if "layer" in text}

    @functools.cache
    def following(v: str) -> int | None:
        return layer.get(v, min((k for u, w in edges if u == v and (k := following(w)) is not None), default=None))

    @functools.cache
    def section(v: str) -> int | None:
        if following(v) is not None:
            return following(v)
        return max((k for u, w in edges if w == v and (k := section(u)) is not None), default=None)

    @functools.cache
    def left(v: str) -> int | None:
        """Where neither what follows nor what is before has one: what follows from what is before."""
        known = [k for u, w in edges if u == v and (k := section(w)) is not None]
        own = section(v)
        return own if own is not None else min(known, default=None) if known else None

    groups: dict[object, set[str]] = {}
    for v in nodes:
        own = left(v)
        groups.setdefault(v if own is None else own, set()).add(v)
    found = named_sections(spec_of(nodes, edges))
    sure = {v for v in nodes if left(v) is not None}
    assert {own & sure for own in found} - {frozenset()} == {frozenset(own & sure) for own in groups.values()} - {
        frozenset()
    }


@pytest.mark.parametrize("seed", range(12))
def test_boundaries_between_layers_are_proven_and_the_best_there_are(seed: int) -> None:
    """Dynamic programming against every placement that the evaluator accepts."""
    nodes, edges = random_layers(100 + seed, most=8)
    rest = MACHINE + "subject to\n    memory\n    contiguous\n    boundaries by layer\n"
    spec = spec_of(nodes, edges, rest)
    least = best_by_evaluation(spec.problem)
    answer = spec.solve()
    if least is None:
        assert answer.termination == "infeasible"
        return
    assert answer.proven()
    assert answer.value == pytest.approx(least[0], rel=1e-9)
    assert answer.method == "dp"


@pytest.mark.parametrize("seed", range(6))
def test_fused_operators_are_in_one_section(seed: int) -> None:
    """Sections of the graph as written, those with a common fused operator joined."""
    nodes, edges = random_layers(200 + seed)
    nodes = {v: f'{text}, type = "{"ab"[i % 2]}"' for i, (v, text) in enumerate(nodes.items())}
    spec = spec_of(nodes, edges, "fuse a + b\n" + MACHINE)
    fused = spec.problem.graph
    own, of = sections(fused.written, "layer").tolist(), groups_by(fused, f"{SECTION}layer").tolist()
    joined: dict[int, set[int]] = {}
    for v, operator in enumerate(range(fused.nodes) if fused.fusion is None else fused.fusion.node_of.tolist()):
        joined.setdefault(own[v], set()).add(of[operator])
    assert all(len(labels) == 1 for labels in joined.values())
