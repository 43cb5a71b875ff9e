"""The calls that an exported program of PyTorch consists of, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Operators with a graph of their own that is run once, and the position of that graph among their arguments.
_REGIONS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}


@dataclass(frozen=True)
class Step:
    """One call: its id in the graph, the node of the program, what it calls, and the results that end with it.

    ``context`` makes the context in which it is called (None: none).
    """

    name: str
    key: Any
    call: Any
    arguments: Any
    options: Any
    ends: tuple[Any, ...]
    context: Any = None


def steps_of(module: Any, names: Mapping[Any, str], given: Mapping[Any, Any], context: Any = None) -> Iterator[Step]:
    """The calls of a module in their order, regions in their places.

    ``names``: ids of nodes that are not called as in the program; ``given``: what placeholders stand for.
    """
    import torch

    known: dict[Any, Any] = dict(given)
    nodes = list(module.graph.nodes)
    ends = _ends(nodes)
    for node in nodes:
        if node.op == "get_attr":
            known[node] = _attribute(module, node.target)
        elif node.op == "call_function":
            kind = getattr(node.target, "__name__", "")
            arguments = torch.fx.node.map_arg(node.args, lambda n: known.get(n, n))
            options = torch.fx.node.map_arg(node.kwargs, lambda n: known.get(n, n))
            if kind in _REGIONS and isinstance(arguments[_REGIONS[kind]], torch.nn.Module):
                yield from _region(node, kind, arguments)
                continue
            name = names.get(node, node.name)
            yield Step(name, node, node.target, arguments, options, ends.get(node, ()), context)


def _region(node: Any, kind: str, arguments: Sequence[Any]) -> Iterator[Step]:
    """The calls of a region; at its end stands what it gives, under the region's own node."""
    import torch

    at = _REGIONS[kind]
    inner = arguments[at]
    placeholders = [n for n in inner.graph.nodes if n.op == "placeholder"]
    results = next(n for n in inner.graph.nodes if n.op == "output").args[0]
    called = {user.args[1]: user.name for user in node.users if getattr(user.target, "__name__", "") == "getitem"}
    names = {n: f"{node.name}.{n.name}" for n in inner.graph.nodes}
    names |= {n: called[i] for i, n in enumerate(results) if i in called}
    context = None
    if kind == "wrap_with_autocast":
        names_of = ("device_type", "dtype", "enabled", "cache_enabled")
        asked = dict(zip(names_of, arguments, strict=False))
        context = lambda: torch.autocast(**asked)  # noqa: E731
    yield from steps_of(inner, names, dict(zip(placeholders, arguments[at + 1 :], strict=False)), context)
    yield Step("", node, lambda *made: made, tuple(results), {}, ())


def _ends(nodes: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
    """By node, the results that nothing reads after it."""
    last: dict[Any, Any] = {}
    for node in nodes:
        for read_here in node.all_input_nodes:
            last[read_here] = node
    out: dict[Any, tuple[Any, ...]] = {}
    for made, reader in last.items():
        if made.op == "call_function":
            out[reader] = (*out.get(reader, ()), made)
    return out


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def first_readers(steps: Sequence[Step], position: Mapping[str, int]) -> dict[Any, int]:
    """By call, the position of its operator, or of the first one that depends on what it makes."""
    import torch

    out: dict[Any, int] = {}
    for step in reversed(steps):
        if step.name in position:
            out[step.key] = position[step.name]
        if step.key in out:
            with_it = out[step.key]

            def note(read_here: Any, with_it: int = with_it) -> Any:
                out[read_here] = with_it  # steps come backwards: the last to say so is the first to read it
                return read_here

            torch.fx.node.map_arg((step.arguments, step.options), note)
    return out
