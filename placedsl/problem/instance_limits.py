"""How many combinations of bound variables are kept, and stated in a program."""

from __future__ import annotations

from collections.abc import Mapping

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.problem import expressions as core
from placedsl.problem.problem import Problem


def refuse_many(count: int, span: Span, width: int = 1, *, stated: bool = False) -> None:
    """InputError for more combinations than are kept, each of ``width`` numbers, or than are stated in a program."""
    if stated and count > limits.count("stated"):
        raise too_many(count, span, "stated")
    if count > limits.count("combinations"):
        raise too_many(count, span, "combinations")
    if count * width > limits.count("cells"):
        raise too_many(count, span, "cells", width)


def refuse_many_instances(problem: Problem) -> None:
    """InputError for a constraint that plainly has more instances than a program states, before any is looked at."""
    sizes = {"nodes": problem.graph.nodes, "devices": len(problem.machine.devices)}
    for rule in problem.constraints:
        if not rule.built_in:
            refuse_many(_plain_instances(rule.body, sizes), rule.span, stated=True)


def _plain_instances(node: core.Expression, sizes: Mapping[str, int]) -> int:
    """How many instances a constraint has; 0 where conditions, or sets that depend on others, decide."""
    count = 1
    while isinstance(node, core.Forall):
        for binder in node.binders:
            match binder.set:
                case core.Range(low=core.Constant(value=low), high=core.Constant(value=high)):
                    count *= max(0, int(high) - int(low) + 1)
                case core.NamedSet(name=name) if name in sizes:
                    count *= sizes[name]
                case _:
                    return 0
            if binder.condition is not None:
                return 0
        node = node.body
    return count


def too_many(count: int, span: Span, limit: str, width: int = 1) -> InputError:
    """The message about a limit, and how it is raised."""
    message = f"this ranges over {count:,} combinations, more than {limits.count(limit) // width:,}"
    hint = limits.hint("narrow it with 'where' or smaller sets", limit, count * width)
    return InputError([Diagnostic(message, span, hint)])
