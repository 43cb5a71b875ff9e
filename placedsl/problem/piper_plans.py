"""Plans as the program of Tarnawski et al. 2021 (Piper) writes them: stages with degrees and the option of each node.

An object with ``stages``, the input's first; each has ``nodes`` (ids), ``dataParallelDegree``, ``tensorParallelDegree``
and, by node, the names of options as ``TMPCids`` (an object, or pairs).
"""

from __future__ import annotations

from collections.abc import Mapping

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.problem.json_entries import Document, Entry
from placedsl.problem.plan import Plan, PlannedNode, Stage
from placedsl.problem.problem import Problem

_DOCUMENT = Document("this plan of Piper's program", (), "docs/graph-format.md describes it under 'Piper'")


def is_piper_plan(root: object) -> bool:
    """Whether a JSON value looks like such a plan."""
    stages = root.get("stages") if isinstance(root, Mapping) else None
    if isinstance(stages, list) and not stages:
        return True
    return isinstance(stages, list) and any(isinstance(one, Mapping) and "dataParallelDegree" in one for one in stages)


def plan_of_piper(problem: Problem, root: object, source: Source) -> Plan:
    """The plan on devices of the problem in their order; InputError for what is none, or has no place there."""
    entries = list(Entry(root, (), source, _DOCUMENT).at("stages").each())
    if not entries:
        hint = "the program writes no stages where it finds no plan"
        raise InputError([Diagnostic("this plan holds no stages", source.whole(), hint)])
    if problem.execution.options is None:
        hint = "as in parallelism { microbatches = 64, tensor = {1, 2} }"
        raise InputError([Diagnostic("this is a plan of copies, and the spec asks for none", source.whole(), hint)])
    devices, used, stages = [device.name for device in problem.machine.devices], 0, []
    at: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        data, tensor = entry.at("dataParallelDegree").positive(), entry.at("tensorParallelDegree").positive()
        held = devices[used : used + data * tensor]
        used += data * tensor
        if used > len(devices):
            raise entry.wrong(f"takes more devices than there are: {used:,} up to here, of {len(devices):,}")
        options = _options(entry.get("TMPCids"))
        nodes = []
        for node in entry.at("nodes").some():
            own = node.id()
            if at.setdefault(str(own), number) != number:
                raise node.wrong(f"is in stage {at[str(own)]} already")
            nodes.append(PlannedNode(own, str(own), option=options.get(str(own))))
        stages.append(Stage(number, tuple(held), tuple(nodes), {"data": data, "tensor": tensor}))
    execution = problem.execution
    return Plan(
        problem.name.strip("<>"), "pipeline", execution.run, execution.order, execution.communication, (),
        tuple(stages), (), execution.transfers,
    )  # fmt: skip


def _options(entry: Entry | None) -> Mapping[str, str]:
    """The name of the option of each node, from an object or a list of pairs."""
    if entry is None:
        return {}
    if isinstance(entry.value, Mapping):
        return {node: option.text() for node, option in entry.fields().items()}
    pairs = [list(pair.each()) for pair in entry.each()]
    if any(len(pair) != 2 for pair in pairs):
        raise entry.wrong("is a list of pairs: a node and an option")
    return {str(node.id()): option.text() for node, option in pairs}
