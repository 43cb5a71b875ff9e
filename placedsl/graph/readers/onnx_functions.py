"""Functions of an ONNX model put in the place of their calls.

How many operators that makes is counted beforehand: functions that call one another may double it at each level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError

#: So many functions of a circle are named.
_MOST_NAMED = 8
#: Domain, name and overload.
_Key = tuple[str, str, str]


def inlined(model: Any) -> Any:
    """The model without functions; InputError where they call themselves, or become too many operators."""
    if not model.functions:
        return model
    from onnx import checker, inliner

    _check(model)
    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, checker.ValidationError) as problem:  # two of one name, more arguments than parameters
        text = " ".join(str(problem).split())
        message = f"the functions of this ONNX model cannot be put in the place of their calls: {text}"
        raise InputError([Diagnostic(message, None, "export the model without functions")]) from None


def _check(model: Any) -> None:
    bodies = {(f.domain, f.name, f.overload): f.node for f in model.functions}
    calls = {key: [_key(node) for node in _every(body)] for key, body in bodies.items()}
    size: dict[_Key, int] = {}
    for first in bodies:
        path, on_path = [first], {first}
        while path:  # depth first, without recursion: chains of calls may be long
            function = path[-1]
            open_ = next((called for called in calls[function] if called in calls and called not in size), None)
            if open_ is None:
                size[function] = sum(size.get(called, 1) for called in calls[function])
                on_path.discard(path.pop())
            elif open_ in on_path:
                raise InputError([_recursive([*path[path.index(open_) :], open_])])
            else:
                path.append(open_)
                on_path.add(open_)
    total = sum(size.get(_key(node), 1) for node in _every(model.graph.node))
    most = limits.count("operators")
    if total > most:
        largest = max((key for key in map(_key, _every(model.graph.node)) if key in size), key=lambda key: size[key])
        message = f"with its functions written out this model has {_count(total)} operators, more than {most:,}"
        alone = f"a call of '{largest[1]}' alone is {_count(size[largest])}: export the model without functions"
        hint = limits.hint(alone, "operators", float(min(total, 10**300)))
        raise InputError([Diagnostic(message, None, hint)])


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**15 else "more than 10^15"


def _recursive(circle: list[_Key]) -> Diagnostic:
    shown = " -> ".join(f"'{name}'" for _, name, _ in circle[:_MOST_NAMED])
    more = " -> …" if len(circle) > _MOST_NAMED else ""
    message = f"functions of this model call themselves: {shown}{more}"
    return Diagnostic(message, None, "functions of ONNX are written out, and may not be recursive")


def _key(node: Any) -> _Key:
    return node.domain, node.op_type, node.overload


def _every(nodes: Iterable[Any]) -> Iterator[Any]:
    """Operators, with those of the graphs that they hold."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _every(graph.node)
