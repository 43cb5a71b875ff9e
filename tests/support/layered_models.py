"""Random models with layers, as specs, and placements of them: runs of layers, cuts anywhere, loops, anything."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

DEVICES = 4
KINDS = ("runs", "cuts", "loops", "anything", "nearly")


@dataclass(frozen=True)
class Node:
    """A node of the graph; ``unit``: what a runtime moves as a whole, empty for glue."""

    id: str
    module: str
    unit: str
    weights: int
    backward: bool = False


@dataclass(frozen=True)
class LayeredModel:
    """``layers``: how many there are; ``nodes`` in the order of the file; ``text``: the spec without constraints;
    ``tied``: the head has the weights of the embedding."""

    layers: int
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    host: bool
    text: str
    tied: bool = False

    @property
    def units(self) -> list[str]:
        """In the order of the model."""
        return list(dict.fromkeys(node.unit for node in self.nodes if node.unit))

    @property
    def devices(self) -> list[str]:
        return [f"gpu[{k + 1}]" for k in range(DEVICES)] + ["cpu"] * self.host


def layered_model(
    random: Random, *, training: bool = False, host: bool = True, shared: str = "", tied: bool = False
) -> LayeredModel:
    """Embedding, one to seven layers of one to three operators with a residual edge, norm and head, a mask as glue."""
    layers = random.randint(1, 7)
    nodes = [Node("embed", "model.embed_tokens", "model.embed_tokens", 4)]
    edges = []
    mask = random.random() < 0.7
    if mask:
        nodes.append(Node("mask", "model", "", 0))
    previous = "embed"
    for k in range(layers):
        first = previous
        for part in ("norm", "attention", "mlp")[: random.randint(1, 3)]:
            own = Node(f"{part}_{k}", f"model.layers.{k}.{part}", f"model.layers.{k}", random.choice((0, 8)))
            nodes.append(own)
            edges.append((previous, own.id))
            if mask and part == "attention":
                edges.append(("mask", own.id))
            previous = own.id
        if first != previous and (first, previous) not in edges and random.random() < 0.5:
            edges.append((first, previous))
    if random.random() < 0.8:
        nodes.append(Node("norm", "model.norm", "model.norm", 1))
        edges.append((previous, "norm"))
        previous = "norm"
    nodes.append(Node("head", "lm_head", "lm_head", 4))
    edges.append((previous, "head"))
    if training:
        forward = [node for node in nodes if node.unit]
        back = [Node(f"{node.id}_back", node.module, node.unit, 0, True) for node in reversed(forward)]
        edges += [(f"{v}_back", f"{u}_back") for u, v in edges if u != "mask"]
        edges += [("head", "head_back")]
        edges += [(node.id, f"{node.id}_back") for node in forward if node.id != "head"]
        nodes += back
    lines = ["graph {"]
    for node in nodes:
        said = (
            f'time = {random.randint(1, 9)} ms, memory = {node.weights} MiB, output = 1 MiB, module = "{node.module}"'
        )
        said += f', layer = "{node.unit}"' if ".layers." in node.unit else ""
        said += ", backward = true" if node.backward else ""
        if tied and node.unit in ("model.embed_tokens", "lm_head"):
            said += ', tied = "model.embed_tokens"' + ", parameters = 0 MiB" * (node.unit == "lm_head")
        lines.append(f"    node {node.id} {{ {said} }}")
    lines += [f"    {u} -> {v}" for u, v in edges]
    lines += ["}", f"device gpu[{DEVICES}]: accelerator", *(["device cpu: host"] if host else [])]
    lines += ["interconnect { bandwidth = 16 GiB/s }", shared, "minimize time_per_sample"]
    return LayeredModel(layers, tuple(nodes), tuple(edges), host, "\n".join([*lines, ""]), tied)


def placement(random: Random, model: LayeredModel, kind: str) -> dict[str, str]:
    """Node to device; backward nodes mostly with their forward ones."""
    forward = [node for node in model.nodes if not node.backward]
    if kind == "anything":
        chosen = random.sample(model.devices, random.randint(1, len(model.devices)))
        out = {node.id: random.choice(chosen) for node in forward}
    elif kind == "cuts":
        out = _cut(random, model, [[node] for node in forward], random.randint(1, DEVICES))
    else:
        by_unit: dict[str, list[Node]] = {}
        for node in forward:
            by_unit.setdefault(node.unit or node.id, []).append(node)
        groups = list(by_unit.values())
        out = _cut(random, model, groups, random.randint(1, DEVICES), loops=kind == "loops")
        if kind == "nearly":
            out[random.choice(forward).id] = random.choice(model.devices)
    for node in model.nodes:
        if node.backward:
            alone = kind == "anything" and random.random() < 0.3
            out[node.id] = random.choice(model.devices) if alone else out[node.id.removesuffix("_back")]
    return out


def _cut(
    random: Random, model: LayeredModel, groups: list[list[Node]], stages: int, *, loops: bool = False
) -> dict[str, str]:
    """Runs of the groups, each on a device of its own; with ``loops`` they go round over the devices."""
    number = min(len(groups), stages * (2 if loops else 1))
    cuts = sorted(random.sample(range(1, len(groups)), number - 1)) if number > 1 else []
    order = random.sample(model.devices if random.random() < 0.3 else model.devices[:DEVICES], DEVICES)[:stages]
    out = {}
    for k, group in enumerate(groups):
        stage = sum(cut <= k for cut in cuts)
        out |= {node.id: order[stage % len(order)] for node in group}
    return out
