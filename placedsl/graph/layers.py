"""Layers and modules of a model: the units that runtimes move as a whole.

A *unit* is a layer (``model.layers.3``), or a module outside of layers that has weights (``model.embed_tokens``, the
head).  Nodes without weights outside of layers are *glue* (masks, positions): they are part of no unit.

The path of a layer is that of :mod:`placedsl.graph.readers.module_paths`, from which readers make the attribute
``layer``.  Where devices may begin and end between layers is another question, which depends on the edges and has
glue in it as well: :mod:`placedsl.graph.sections`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from placedsl.graph.readers import module_paths
from placedsl.records import dataclass

Value = float | str | None

#: Longer ones are no numbers of layers.
_MOST_DIGITS = 18

_TEXT = re.compile(r"^(.*?)(?<!\d)(\d{1,18})\D*$")
_NAME = re.compile(r"^(.*?(?:layers?|blocks?))[\W_]*(\d{1,18})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Described:
    """What a graph says of a node: name, attributes ``layer`` and ``module``, weights, and the pass.

    ``weights``  bytes: the attribute ``parameters`` where the node has it, else what it occupies; a node with weights
                 of another module (``tied``) occupies them where it is on another device
    """

    name: str
    layer: Value
    module: Value
    weights: float
    backward: bool = False

    @classmethod
    def of(cls, name: str, given: Mapping[str, Value], memory: float, *, backward: bool) -> Described:
        """A node with these attributes."""
        parameters, tied = given.get("parameters"), given.get("tied") is not None
        weights = float(parameters) if isinstance(parameters, int | float) and not tied else memory
        return cls(name, given.get("layer"), given.get("module"), weights, backward)


@dataclass(frozen=True)
class Unit:
    """A layer, or a module with weights outside of layers.

    ``name``    what messages call it
    ``module``  its path in the model; empty: the graph does not say
    ``kind``, ``layer``  of a layer: the prefix that tells kinds of layers apart, and its number; else "" and None
    ``nodes``   positions of its nodes, ascending
    """

    name: str
    module: str
    kind: str
    layer: int | None
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Units:
    """The units of a model in the order in which its forward part runs through them.

    ``of_node``  the position of each node's unit; -1: glue
    ``source``   what said which node is part of which layer; empty: nothing
    """

    units: tuple[Unit, ...]
    of_node: tuple[int, ...]
    source: str

    @property
    def layers(self) -> tuple[Unit, ...]:
        """The layers among them."""
        return tuple(unit for unit in self.units if unit.layer is not None)


def units(nodes: Sequence[Described]) -> Units:
    """The units of nodes in the order in which the model runs them."""
    layers, source = _layers(nodes)
    containers = _containers(nodes)
    keys: list[tuple[str, str, int | None] | None] = []
    for node, layer in zip(nodes, layers, strict=True):
        if layer is not None:
            keys.append(("layer", *layer))
        elif isinstance(node.module, str) and node.module:
            keys.append(None if node.module in containers else ("module", node.module, None))
        else:
            keys.append(("node", node.name, None) if node.weights > 0 and not node.backward else None)
    members: dict[tuple[str, str, int | None], list[int]] = {}
    for position, key in enumerate(keys):
        if key is not None:
            members.setdefault(key, []).append(position)
    kept = {
        key: own for key, own in members.items() if key[0] == "layer" or any(nodes[v].weights > 0 for v in own)
    }  # fmt: skip
    ordered = sorted(kept, key=lambda key: next((v for v in kept[key] if not nodes[v].backward), len(nodes)))
    number = {key: k for k, key in enumerate(ordered)}
    made = tuple(_unit(key, kept[key], nodes) for key in ordered)
    return Units(made, tuple(-1 if key is None else number.get(key, -1) for key in keys), source)


def _unit(key: tuple[str, str, int | None], members: Sequence[int], nodes: Sequence[Described]) -> Unit:
    kind, word, layer = key
    if kind == "module":
        return Unit(word, word, "", None, tuple(members))
    if layer is None:
        return Unit(word, "", "", None, tuple(members))
    module = next((path for v in members if (path := _path(nodes[v].module))), "")
    said = next((text for v in members if isinstance(text := nodes[v].layer, str)), "")
    if not module and "." in said:
        module = _path(said)
    return Unit(f"layer {layer}", module, word, layer, tuple(members))


def _containers(nodes: Sequence[Described]) -> set[str]:
    """Module paths that other modules of the graph are within."""
    out: set[str] = set()
    for path in {node.module for node in nodes if isinstance(node.module, str)}:
        parts = path.split(".")
        out.update(".".join(parts[:k]) for k in range(1, len(parts)))
    return out


def _layers(nodes: Sequence[Described]) -> tuple[list[tuple[str, int] | None], str]:
    """The kind and number of each node's layer, and what says so: an attribute, else module paths, else names."""
    for source, of in (("the attribute 'layer'", _by_attribute), ("module paths", _by_module), ("names", _by_name)):
        found = [of(node) for node in nodes]
        if any(one is not None for one in found):
            return found, source
    return [None] * len(nodes), ""


def _by_attribute(node: Described) -> tuple[str, int] | None:
    value = node.layer
    if isinstance(value, str):
        match = _TEXT.match(value)
        return (match[1], int(match[2])) if match else None
    return None if value is None or value != int(value) else ("", int(value))


def _by_module(node: Described) -> tuple[str, int] | None:
    path = _path(node.module)
    prefix, _, number = path.rpartition(".")
    return (prefix, int(number)) if path else None


def _path(module: Value) -> str:
    """The path of the layer that a module is or is within; empty: it is in none."""
    path = module_paths.layer(module) if isinstance(module, str) else None
    number = (path or "").rpartition(".")[2]
    return path or "" if number.isascii() and len(number) <= _MOST_DIGITS else ""


def _by_name(node: Described) -> tuple[str, int] | None:
    match = _NAME.match(node.name)
    return (match[1].lower(), int(match[2])) if match else None
