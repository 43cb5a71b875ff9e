"""The elaborated problem as a spec: imports resolved, defaults filled in, values of parameters written out."""

from __future__ import annotations

import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from placedsl.language.elaboration.constraints import meant
from placedsl.language.elaboration.elaborate import Elaborated
from placedsl.language.elaboration.model_library import constraint_definitions
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.expressions import At, Name
from placedsl.language.syntax.printer import block, expression, statement, word
from placedsl.problem.execution import Execution
from placedsl.report.explanation.parameter_values import scalar, values_written_out

_ORDER = (
    syntax.GraphFile, syntax.GraphInline, syntax.Fuse, syntax.Param, syntax.DeviceFamily, syntax.Cluster,
    syntax.LinkBetween, syntax.Interconnect,
    syntax.SetOf, syntax.Define, syntax.Variable, syntax.ConstraintDefinition, syntax.Part, syntax.Formulation,
    syntax.Alias, syntax.Schedule,
    syntax.Option, syntax.Parallelism, syntax.Minimize, syntax.Subject, syntax.Solve,
)  # fmt: skip
#: Columns of a page.
WIDTH = 120
#: A text in quotes, blanks, or a word, each with the blanks that follow it.
_PIECE = re.compile(r"""(?:"(?:[^"\\\n]|\\.)*"|[^\s"])+\s*|\s+""")
#: What a line can end with and go on in the next.
_CUT = re.compile(r"(?:,|(?:^|\s)(?:and|or|=>|<=>|[-+*/=]|<=|>=|==|!=|<|>))\s+$")


def elaborated(spec: Elaborated, width: int = WIDTH) -> str:
    """A spec that means the same and imports nothing; what is built in stands beside it as comments.

    Lines are at most ``width`` long where they can be cut; objectives are as they were written.

    File names in it are relative to the folder of the spec itself.
    """
    lines: list[str] = []
    statements: list[syntax.Statement] = [s for s in spec.statements if isinstance(s, _ORDER)]
    if not any(isinstance(s, syntax.Schedule) for s in statements):
        statements.append(_schedule(statements[0].at, spec.problem.execution))
    statements.sort(key=lambda s: next(i for i, kind in enumerate(_ORDER) if isinstance(s, kind)))
    previous: type | None = None
    for item in statements:
        if isinstance(item, syntax.Subject) and not item.rules:
            continue
        if type(item) is not previous:
            lines.append("")
            if isinstance(item, syntax.Subject):
                lines.append("subject to")
        previous = type(item)
        for line in _shown(spec, item):
            lines += wrapped(line, width) if not isinstance(item, syntax.Minimize) else [line]
    return "\n".join(lines).strip("\n") + "\n"


def _schedule(at: At, execution: Execution) -> syntax.Schedule:
    """The statement of a model that the spec leaves to the language."""
    if not execution.device_to_device or execution.one_sample:
        return syntax.Schedule(at, syntax.Word(at, execution.name))
    entry = syntax.Entry(at, syntax.Word(at, "transfers"), Name(at, execution.transfers))
    return syntax.Schedule(at, syntax.Word(at, execution.order), (entry,))


def _shown(spec: Elaborated, item: syntax.Statement) -> Iterable[str]:
    """The lines of one statement."""
    graph = spec.problem.graph
    size = f"# {graph.nodes} nodes, {len(graph.edge_source)} edges, {graph.tensors} tensors"
    match item:
        case syntax.GraphFile(path=path):
            moved = replace(item, path=replace(path, text=_from_main(spec, item)))
            return [size, statement(moved)]
        case syntax.GraphInline():
            return [size, *statement(item).split("\n")]
        case syntax.Param(items=()):
            given = "" if item.type is None else f": {item.type.text}"
            return [f"param {word(item.name.text)}{given} = {scalar(spec, item)}"]
        case syntax.Param():
            return [statement(values_written_out(spec, item))]
        case syntax.DeviceFamily():
            counts = Counter(d.family for d in spec.problem.machine.devices)
            number = "" if item.count is None else f"[{counts[item.name.text]}]"
            kind = f": {item.kind.text}" if item.kind else ""
            return [f"device {word(item.name.text)}{number}{kind}{block(item.block)}"]
        case syntax.Minimize(objectives=objectives):
            # As it was written: answers call an objective by its text.
            return ["minimize " + " then ".join(_as_written(o) for o in objectives)]
        case syntax.Subject(rules=rules):
            clusters, chunks = bool(spec.problem.machine.clusters), spec.problem.execution.chunks > 1
            return [line for rule in rules for line in (*_meaning(rule, clusters, chunks), "    " + _rule(rule))]
    return statement(item).split("\n")


def _from_main(spec: Elaborated, item: syntax.GraphFile) -> str:
    """The name of a graph file, from the folder of the main spec."""
    main, own = spec.folders[spec.module.source], spec.folders[item.at.source]
    given = Path(item.path.text)
    if given.is_absolute() or own == main:
        return item.path.text
    try:
        return Path(os.path.relpath(own / given, main)).as_posix()
    except ValueError:  # on another drive
        return str((own / given).resolve())


def _as_written(node: syntax.Expression) -> str:
    text = node.at.text
    if "\n" not in text:
        return text
    # On one line, unless it may hold a comment or a text with blanks of its own.
    return expression(node) if "#" in text or '"' in text else " ".join(text.split())


def _rule(rule: syntax.Rule) -> str:
    text = statement(syntax.Subject(rule.at, (replace(rule, arguments=()),))).split("\n    ", 1)[1]
    if not rule.arguments:
        return text
    # As they were written: they are part of the constraint's name.
    return f"{text}({', '.join(_as_written(a) for a in rule.arguments)})"


def _meaning(rule: syntax.Rule, clusters: bool, chunks: bool) -> list[str]:
    """What a built-in constraint says, as a comment."""
    if rule.body is not None:
        return []
    known = constraint_definitions().get(meant(rule, clusters=clusters, chunks=chunks))
    return [] if known is None else [f"    # {rule.name.text}: {expression(known.body)}"]


def wrapped(text: str, width: int = WIDTH) -> Iterable[str]:
    """A long line over several, cut after commas and operators, where the end of a line means nothing."""
    if len(text) <= width:
        return [text]
    if text.lstrip().startswith("#"):
        margin = text[: text.index("#")] + "# "
        body = text.lstrip()[1:].strip()
        return textwrap.wrap(body, width, initial_indent=margin, subsequent_indent=f"{margin}    ",
                             break_long_words=False, break_on_hyphens=False)  # fmt: skip
    segments = [""]
    for piece in _PIECE.findall(text):
        segments[-1] += piece
        if _CUT.search(piece):
            segments.append("")
    indent = " " * (len(text) - len(text.lstrip()) + 4)
    lines, line = [], segments[0]
    for segment in segments[1:]:
        if len(line) + len(segment.rstrip()) > width:
            lines.append(line.rstrip())
            line = indent
        line += segment
    return [*lines, line]
