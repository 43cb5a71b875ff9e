"""The elaborated problem as a spec: defaults filled in, parameters resolved, units normalised."""

from __future__ import annotations

from collections import Counter

from placedsl.language import syntax
from placedsl.language.elaborate import Elaborated
from placedsl.language.formatting import block, expression, statement, word
from placedsl.language.library import constraint_definitions
from placedsl.units import exact

_ORDER = (
    syntax.GraphFile, syntax.GraphInline, syntax.Param, syntax.DeviceFamily, syntax.LinkBetween, syntax.Interconnect,
    syntax.SetOf, syntax.Define, syntax.Variable, syntax.ConstraintDefinition, syntax.Formulation, syntax.Schedule,
    syntax.Minimize, syntax.Subject, syntax.Solve,
)  # fmt: skip


def elaborated(spec: Elaborated) -> str:
    """A spec that means the same; what is built in stands beside it as comments."""
    problem = spec.problem
    counts = Counter(d.family for d in problem.machine.devices)
    lines: list[str] = []
    by_kind = sorted(spec.statements, key=lambda s: next((i for i, k in enumerate(_ORDER) if isinstance(s, k)), 99))
    schedule_said = any(isinstance(s, syntax.Schedule) for s in spec.statements)
    previous: type | None = None
    for item in by_kind:
        if not isinstance(item, _ORDER):
            continue
        if isinstance(item, syntax.Minimize) and not schedule_said:
            lines += ["", f"schedule {problem.schedule}"]
            previous = syntax.Schedule
        if type(item) is not previous:
            lines.append("")
        previous = type(item)
        if isinstance(item, syntax.GraphFile | syntax.GraphInline):
            graph = problem.graph
            lines.append(f"# {graph.nodes} nodes, {len(graph.edge_source)} edges, {graph.tensors} tensors")
        if isinstance(item, syntax.Param):
            value, kind = spec.parameters[item.name.text]
            shown = exact(float(value), kind.dimension) if kind.kind == "number" else str(value).lower()
            if kind.kind == "text":
                shown = expression(syntax.Text(item.at, str(value)))
            lines.append(f"param {word(item.name.text)}{': ' + item.type.text if item.type else ''} = {shown}")
        elif isinstance(item, syntax.DeviceFamily):
            number = "" if item.count is None else f"[{counts[item.name.text]}]"
            kind_word = f": {item.kind.text}" if item.kind else ""
            lines.append(f"device {word(item.name.text)}{number}{kind_word}{block(item.block)}")
        elif isinstance(item, syntax.Subject):
            lines.append("subject to")
            for rule in item.rules:
                lines += _meaning(rule)
                lines.append("    " + statement(syntax.Subject(item.at, (rule,))).split("\n    ", 1)[1])
        else:
            lines.append(statement(item))
    return "\n".join(lines).strip("\n") + "\n"


def _meaning(rule: syntax.Rule) -> list[str]:
    """What a built-in constraint says, as a comment."""
    if rule.body is not None:
        return []
    known = constraint_definitions().get(rule.name.text)
    return [] if known is None else [f"    # {rule.name.text}: {expression(known.body)}"]
