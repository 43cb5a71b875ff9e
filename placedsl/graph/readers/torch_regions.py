"""Regions of an exported program, what stood under ``torch.no_grad()`` or ``torch.autocast``, put in their places.

The format holds each as an operator with a graph of its own.  It is run once, so its operators may stand beside the
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_REGIONS = frozenset(("wrap_with_set_grad_enabled", "wrap_with_autocast"))

#: What an argument or an output of an operator is called in the format, with what it holds.
Argument = Mapping[str, Any]


def flattened(graph: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """The operators of a graph and the shapes of its tensors by name, those of its regions among them."""
    nodes: list[Mapping[str, Any]] = []
    values = dict(graph["tensor_values"])
    for node in graph["nodes"]:
        if node["target"].rpartition(".")[2] not in _REGIONS:
            nodes.append(node)
            continue
        arguments = [given["arg"] for given in node["inputs"]]
        at = next(i for i, argument in enumerate(arguments) if "as_graph" in argument)
        region = arguments[at]["as_graph"]["graph"]
        inside, shapes = flattened(region)
        names = _paired(region["inputs"], arguments[at + 1 :])
        made = [name for output in node["outputs"] for name in tensors(output)]
        for inner, outer in zip((n for output in region["outputs"] for n in tensors(output)), made, strict=True):
            if inner in names:  # handed on as it is, or twice
                nodes.append(_alias(names[inner], outer))
            names.setdefault(inner, outer)
        for name, shape in shapes.items():
            values.setdefault(names.setdefault(name, f"{node.get('name') or made[0]}.{name}"), shape)
        nodes += [_renamed(one, names) for one in inside]
    return nodes, values


def form_of(given: Argument) -> tuple[str, Any]:
    """What an argument or output is called in the format, and what it holds; ValueError where it is empty."""
    for form, inner in given.items():
        return form, inner
    raise ValueError("an argument without a value")


def tensors(given: Argument) -> Iterator[str]:
    """The names of the tensors of an argument or output."""
    form, inner = form_of(given)
    if form == "as_tensor":
        yield inner["name"]
    elif form == "as_tensors":
        yield from (one["name"] for one in inner)
    elif form == "as_optional_tensors":
        yield from (one["as_tensor"]["name"] for one in inner if "as_tensor" in one)


def _paired(inner: list[Argument], outer: list[Argument]) -> dict[str, str]:
    """What a region calls the tensors that it is given, and what they are called outside."""
    pairs = zip(inner, outer, strict=False)
    return {a["as_tensor"]["name"]: b["as_tensor"]["name"] for a, b in pairs if "as_tensor" in a and "as_tensor" in b}


def _alias(of: str, name: str) -> Mapping[str, Any]:
    given = {"name": "self", "arg": {"as_tensor": {"name": of}}}
    outputs = [{"as_tensor": {"name": name}}]
    return {"target": "torch.ops.aten.alias.default", "inputs": [given], "outputs": outputs, "name": name}


def _renamed(node: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """The same operator on tensors by other names; it is called after the first that it makes."""
    inputs = [{**given, "arg": _argument(given["arg"], names)} for given in node["inputs"]]
    outputs = [_argument(output, names) for output in node["outputs"]]
    own = next((name for output in outputs for name in tensors(output)), node.get("name"))
    return {**node, "inputs": inputs, "outputs": outputs, "name": own}


def _argument(given: Argument, names: Mapping[str, str]) -> Argument:
    form, inner = form_of(given)
    if form == "as_tensor":
        return {form: {**inner, "name": names.get(inner["name"], inner["name"])}}
    if form == "as_tensors":
        return {form: [{**one, "name": names.get(one["name"], one["name"])} for one in inner]}
    if form == "as_optional_tensors":
        return {form: [_argument(one, names) for one in inner]}
    return given
