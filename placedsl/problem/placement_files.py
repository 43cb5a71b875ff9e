"""Placements as people write them: node id to device name."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from placedsl.diagnostics import Diagnostic, InputError, Source, Span, nearest
from placedsl.graph.readers.json_text import parsed
from placedsl.problem.piper_plans import is_piper_plan, plan_of_piper
from placedsl.problem.plan_decisions import plan_decisions
from placedsl.problem.plan_document import plan_from_document
from placedsl.problem.problem import Labels, Problem
from placedsl.problem.values import Values

_MOST = 20
_LARGEST = sys.float_info.max


def positions(problem: Problem, placement: Mapping[str, str], source: Source | None = None) -> list[int]:
    """The device position of each node (-1: the placement does not name it).

    Members of fused operators may be named, or the operators.  InputError for nodes and devices that do not exist, and
    for members on different devices; with ``source``, at their place in its text.
    """
    graph = problem.graph
    nodes = {str(i): k for k, i in enumerate(graph.ids)}
    if graph.fusion is not None:
        nodes |= {str(i): k for i, k in zip(graph.written.ids, graph.fusion.node_of.tolist(), strict=True)}
    devices = problem.machine.positions
    out = [-1] * problem.graph.nodes
    found: list[Diagnostic] = []
    for node, device in placement.items():
        if str(node) not in nodes:
            found.append(
                Diagnostic(f"the graph has no node '{node}'", _span(source, str(node)), nearest(str(node), nodes))
            )
        if not isinstance(device, str) or device not in devices:
            place = _span(source, str(node))
            found.append(Diagnostic(f"there is no device '{device}'", place, nearest(str(device), devices)))
        if str(node) in nodes and isinstance(device, str) and device in devices:
            before, here = out[nodes[str(node)]], devices[device]
            if before not in (-1, here):
                message = f"'{node}' is fused with what is on {problem.machine.devices[before].name}"
                hint = f"'{graph.ids[nodes[str(node)]]}' runs as one operator, on one device"
                found.append(Diagnostic(message, _span(source, str(node)), hint))
            out[nodes[str(node)]] = here
    if found:
        raise InputError(found[:_MOST])
    return out


#: The indices of the decisions of a schedule of one sample.
_DECISION_SORTS = {
    "piece": ("node",),
    "start": ("node",),
    "sent": ("integer", "device"),
    "copy_size": ("device",),
    "option": ("node",),
    "order": ("device",),
    "chunk": ("node",),
    "cluster_copies": ("cluster",),
}


def values(problem: Problem, raw: Mapping[str, object], source: Source | None = None) -> Values:
    """Values of the spec's own variables by the positions of their indices, from their names.

    Decisions of a schedule of one sample may stand among them, as scripts write them: tensors by their numbers.
    ``raw`` holds a number a variable, or an object of index names (within one another for several indices);
    InputError for what does not exist.
    """
    labels, found = Labels(problem), list[Diagnostic]()
    out: dict[str, dict[tuple[int, ...], float]] = {}

    def walk(name: str, given: object, sorts: tuple[str, ...], key: tuple[int, ...]) -> None:
        if not sorts:
            if isinstance(given, int | float) and not isinstance(given, bool) and not abs(given) > _LARGEST:
                out[name][key] = float(given)
            else:
                found.append(Diagnostic(f"a number is expected for '{name}'", _span(source, name)))
            return
        if not isinstance(given, Mapping):
            found.append(Diagnostic(f"'{name}' has a value for each index", _span(source, name)))
            return
        for word, inner in given.items():
            position = labels.position(sorts[0], str(word))
            if position is None:
                found.append(Diagnostic(f"'{name}' has no index '{word}'", _span(source, str(word))))
            else:
                walk(name, inner, sorts[1:], (*key, position))

    sorts_of = {name: _DECISION_SORTS[name] for name in problem.execution.schedule_decisions} | {
        n: v.sorts for n, v in problem.variables.items()
    }
    for name, given in raw.items():
        if name not in sorts_of:
            hint = nearest(name, problem.variables)
            found.append(Diagnostic(f"the spec has no variable '{name}'", _span(source, name), hint))
            continue
        out[name] = {}
        walk(name, given, sorts_of[name], ())
    if found:
        raise InputError(found[:_MOST])
    return out


def read_values(problem: Problem, source: Source) -> Values:
    """What stands under ``variables`` and ``schedule`` in the JSON text of an answer, which has been read as a
    placement before."""
    root = parsed(source)
    if not isinstance(root, dict):
        return {}
    if is_piper_plan(root):
        return plan_decisions(problem, plan_of_piper(problem, root, source), source)
    raw, times = root.get("variables"), root.get("schedule")
    own = values(problem, raw, source) if isinstance(raw, Mapping) else {}
    if problem.execution.options is not None and root.get("plan") is not None:
        return {**own, **plan_decisions(problem, plan_from_document(root["plan"], source), source)}
    if problem.execution.one_sample and times is not None and not isinstance(times, Mapping):
        hint = 'as in {"nodes": {"embed": {"start": 0.002}, …}}, in the file that solve --json writes'
        raise InputError([Diagnostic("a schedule is an object", _span(source, "schedule"), hint)])
    return {**own, **(schedule_decisions(problem, times, source) if isinstance(times, Mapping) else {})}


def schedule_decisions(problem: Problem, times: Mapping[str, object], source: Source | None = None) -> Values:
    """What the ``schedule`` of an answer says: the call of each node, or when nodes and transfers start.

    Nothing under a schedule of many samples.  InputError for what does not exist.
    """
    if not problem.execution.one_sample:
        return {}
    nodes = {str(i): k for k, i in enumerate(problem.graph.ids)}
    devices = problem.machine.positions
    out: dict[str, dict[tuple[int, ...], float]] = {}
    found: list[Diagnostic] = []

    def take(name: str, key: tuple[int, ...], given: object, word: str) -> None:
        if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= _LARGEST:
            out.setdefault(name, {})[key] = float(given)
        elif given is not None:
            message = f"a number of 0 or more is expected as the {name} of '{word}'"
            found.append(Diagnostic(message, _span(source, word, after="schedule")))

    per_node, transfers = times.get("nodes"), times.get("transfers")
    for word, entry in per_node.items() if isinstance(per_node, Mapping) else ():
        if word not in nodes:
            place = _span(source, word, after="schedule")
            found.append(Diagnostic(f"the graph has no node '{word}'", place, nearest(word, nodes)))
        elif isinstance(entry, Mapping):
            name = "piece" if problem.execution.run == "subgraph_calls" else "start"
            take(name, (nodes[word],), entry.get(name), word)
    for entry in transfers if isinstance(transfers, list) and problem.execution.run == "operators" else ():
        tensor, device = (entry.get("tensor"), entry.get("to")) if isinstance(entry, Mapping) else (None, None)
        number = tensor if isinstance(tensor, int) and 0 <= tensor < problem.graph.tensors else None
        if number is None or not isinstance(device, str) or device not in devices:
            found.append(Diagnostic("a transfer has the number of a tensor and a device", _span(source, "transfers")))
            break
        take("sent", (number, devices[device]), entry.get("start"), "transfers")
    if found:
        raise InputError(found[:_MOST])
    return out


def read(problem: Problem, source: Source) -> list[int]:
    """The placement in a JSON text: an object of node ids and device names, an answer that holds one under
    ``placement`` (in the stages of its ``plan`` where the spec asks for plans), a plan of Piper's program, or a split
    of the dnn-partitioning project (``fpgas``, ``cpus``), where nodes that it leaves out go to those that they must
    share a device with."""
    root = parsed(source)
    if is_piper_plan(root):
        plan = plan_of_piper(problem, root, source)
        return positions(
            problem, {str(node.id): stage.devices[0] for stage in plan.stages for node in stage.nodes}, source
        )
    if isinstance(root, dict) and {"fpgas", "cpus"} & root.keys():
        return _split(problem, root, source)
    if isinstance(root, dict) and problem.execution.options is not None and root.get("plan") is not None:
        return _by_plan(problem, root, source)
    if isinstance(root, dict) and problem.execution.options is not None and root.get("plan") is not None:
        return _by_plan(problem, root, source)
    if isinstance(root, dict) and "placement" in root:
        root = root["placement"]
        if root is None:
            hint = "its 'status' says why: infeasible, or a limit was reached"
            raise InputError([Diagnostic("this answer holds no placement", _span(source, "placement"), hint)])
    if not isinstance(root, dict) or not all(isinstance(v, str) for v in root.values()):
        hint = 'as in {"embed": "gpu[1]", …}, or the file that solve --json writes'
        raise InputError([Diagnostic("a placement is an object of node ids and device names", source.whole(), hint)])
    return positions(problem, root, source)


def _by_plan(problem: Problem, root: Mapping[str, object], source: Source) -> list[int]:
    """The first device of the stage of each node; InputError where a ``placement`` beside the plan says otherwise."""
    stages = plan_from_document(root["plan"], source).stages
    number = {str(node.id): stage.number for stage in stages for node in stage.nodes}
    own = positions(problem, {str(node.id): stage.devices[0] for stage in stages for node in stage.nodes}, source)
    placement = root.get("placement")
    if not isinstance(placement, Mapping):
        return own
    found, beside = [], positions(problem, placement, source)
    where = dict(zip(map(str, problem.graph.ids), zip(own, beside, strict=True), strict=True))
    for node, (here, there) in where.items():
        if here != there:
            device = "no device" if there < 0 else problem.machine.devices[there].name
            stage = f"in stage {number[node]}, on {problem.machine.devices[here].name}" if here >= 0 else "in no stage"
            message = f"'placement' has '{node}' on {device}, and 'plan' {stage}"
            hint = "both say the same in an answer; 'plan' alone is enough"
            found.append(Diagnostic(message, _span(source, node, after="placement"), hint))
    if found:
        raise InputError(found[:_MOST])
    return own


def _split(problem: Problem, root: Mapping[str, object], source: Source) -> list[int]:
    out: dict[str, str] = {}
    for key, kind in (("fpgas", "accelerator"), ("cpus", "host")):
        devices = [d.name for d in problem.machine.devices if d.kind == kind]
        pieces = root.get(key, [])
        if not isinstance(pieces, list) or not all(
            isinstance(p, dict) and isinstance(p.get("nodes"), list) for p in pieces
        ):
            raise InputError([Diagnostic(f"'{key}' is a list of objects with 'nodes'", _span(source, key))])
        filled = [p["nodes"] for p in pieces if p["nodes"]]
        if len(filled) > len(devices):
            message = f"the split uses {len(filled)} devices of kind {kind}, the spec has {len(devices)}"
            raise InputError([Diagnostic(message, _span(source, key))])
        for device, nodes in zip(devices, filled, strict=False):
            out |= {str(v): device for v in nodes}
    return _completed(problem, positions(problem, out, source))


def _completed(problem: Problem, places: list[int]) -> list[int]:
    """With each node that the split leaves out on the device that all the others of its colocation group are on.

    The authors split the forward part of some training graphs alone.
    """
    for labels in problem.colocation_groups():
        known: dict[int, set[int]] = {}
        for label, device in zip(labels.tolist(), places, strict=True):
            known.setdefault(label, set()).update([device] if device >= 0 else [])
        for node, label in enumerate(labels.tolist()):
            if places[node] < 0 and len(known[label]) == 1:
                places[node] = min(known[label])
    return places


def _span(source: Source | None, key: str, after: str | None = None) -> Span | None:
    """Where a key first stands, or first after another."""
    if source is None:
        return None
    at = source.text.find(f'"{key}"', 0 if after is None else max(0, source.text.find(f'"{after}"')))
    return source.whole() if at < 0 else source.span(at, at + len(key) + 2)
