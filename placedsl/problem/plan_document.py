"""A plan as plain data, the ``plan`` of an answer's JSON, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any, get_args

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.readers.json_text import parsed
from placedsl.problem.execution import Communication, Order, Run, Transfers
from placedsl.problem.json_entries import Document, Entry
from placedsl.problem.plan import Kind, Plan, PlannedDevice, PlannedNode, Stage, Transfer

DOCUMENT = Document("'plan'", ("plan",), "docs/answer.md describes it; solve --json writes it")


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as JSON holds it; what is not known, or is the same for all without being said, is left out."""
    return {
        "spec": plan.spec,
        "kind": plan.kind,
        "execution": {"run": plan.run, "order": plan.order, "communication": plan.communication}
        | ({} if plan.routing is None else {"transfers": plan.routing})
        | ({} if plan.microbatches is None else {"microbatches": plan.microbatches}),
        "devices": [
            {"name": d.name, "kind": d.kind, "family": d.family, "number": d.number}
            | ({"cluster": d.cluster} if d.cluster else {})
            for d in plan.devices
        ],
        "stages": [_stage(plan, stage) for stage in plan.stages],
    }


def plan_from_document(document: object, source: Source | None = None) -> Plan:
    """The plan that :func:`plan_document` wrote; InputError for what is none.

    ``source`` is the JSON text of an answer that holds the document as its ``plan``: errors then have places.
    """
    root = Entry(document, (), source, DOCUMENT)
    execution = root.at("execution")
    routing, batch = execution.get("transfers"), execution.get("microbatches")
    devices = tuple(_device(d) for d in root.at("devices").each())
    kind, stages = root.at("kind").one_of(get_args(Kind)), list(root.at("stages").each())
    held = [_stage_of(s, {d.name for d in devices}) for s in stages]
    _refuse_twice(stages, [stage for stage, _ in held], kind)
    return Plan(
        root.at("spec").text(), kind,
        execution.at("run").one_of(get_args(Run)), execution.at("order").one_of(get_args(Order)),
        execution.at("communication").one_of(get_args(Communication)),
        devices, tuple(stage for stage, _ in held), tuple(t for _, sent in held for t in sent),
        None if routing is None else routing.one_of(get_args(Transfers)),
        None if batch is None else batch.positive(),
    )  # fmt: skip


def read_plan(source: Source) -> Plan:
    """The plan in the JSON text of an answer; InputError where it holds none."""
    root = parsed(source)
    hint = "a file that 'placedsl solve --json' writes is expected"
    if not isinstance(root, dict) or "plan" not in root:
        raise InputError([Diagnostic("this is not an answer with a 'plan'", source.whole(), hint)])
    if root["plan"] is None:
        hint = "its 'status' says why: infeasible, or a limit was reached"
        raise InputError([Diagnostic("this answer holds no placement, and so no plan", source.whole(), hint)])
    return plan_from_document(root["plan"], source)


def _stage(plan: Plan, stage: Stage) -> dict[str, Any]:
    options = {str(node.id): node.option for node in stage.nodes if node.option}
    known = {
        "slot": stage.slot, "start": stage.start, "finish": stage.finish, "in_flight": stage.in_flight,
        "load": stage.load, "memory": stage.memory, "across": None if stage.across is None else dict(stage.across),
        "chunk": stage.chunk, "options": options or None,
    }  # fmt: skip
    return {
        "stage": stage.number,
        "devices": list(stage.devices),
        **stage.parallelism,
        **{name: value for name, value in known.items() if value is not None},
        "nodes": [_node_document(node) for node in stage.nodes],
        "receives": [
            {"tensor": t.tensor, "from": t.source, "bytes": t.size, "links": list(t.links)}
            for t in plan.receives(stage.number)
        ],
        "sends": [
            {"tensor": t.tensor, "to": t.target, "bytes": t.size, "links": list(t.links)}
            for t in plan.sends(stage.number)
        ],
    }


def _node_document(node: PlannedNode) -> dict[str, Any]:
    known: dict[str, Any] = {
        "name": None if node.name == str(node.id) else node.name, "backward": node.backward or None,
        "operator": node.operator, "memory": node.memory or None, "start": node.start, "finish": node.finish,
        "attributes": dict(node.attributes or {}) or None, "position": node.position or None,
    }  # fmt: skip
    return {"id": node.id} | {name: value for name, value in known.items() if value is not None}


def _device(entry: Entry) -> PlannedDevice:
    cluster = entry.get("cluster")
    return PlannedDevice(
        entry.at("name").text(), entry.at("kind").one_of(("accelerator", "host")), entry.at("family").text(),
        entry.at("number").positive(), "" if cluster is None else cluster.text(),
    )  # fmt: skip


def _stage_of(entry: Entry, known: Collection[str]) -> tuple[Stage, list[Transfer]]:
    """A stage on devices that are known, and what it sends."""
    devices = entry.at("devices").some()
    for device in devices:
        if device.text() not in known:
            raise device.wrong(f"names a device, and there is no '{device.text()}'")
    number, slot, in_flight = entry.at("stage").positive(), entry.get("slot"), entry.get("in_flight")
    given, across, chunk = entry.get("options"), entry.get("across"), entry.get("chunk")
    options = {} if given is None else {word: option.text() for word, option in given.fields().items()}
    nodes = tuple(_node(node, options) for node in entry.at("nodes").some())
    for word, option in {} if given is None else given.fields().items():
        if word not in {str(node.id) for node in nodes}:
            raise option.wrong(f"is of '{word}', which is no node of this stage")
    degrees = {kind: entry.at(kind).positive() for kind in ("data", "tensor") if kind == "data" or entry.get(kind)}
    names = tuple(d.text() for d in devices)
    if len(set(names)) < len(names) or len(names) != prod(degrees.values()):
        wanted = " and ".join(f"{kind} = {degree}" for kind, degree in degrees.items())
        raise entry.at("devices").wrong(f"names {len(set(names))}, with {wanted}")
    stage = Stage(
        number, names, nodes, degrees,
        None if slot is None else slot.positive(), _number(entry, "start"), _number(entry, "finish"),
        None if in_flight is None else in_flight.positive(), _number(entry, "load"), _number(entry, "memory"),
        None if across is None else {family: number.positive() for family, number in across.fields().items()},
        None if chunk is None else chunk.positive(),
    )  # fmt: skip
    sent = [
        Transfer(
            t.at("tensor").text(), number, t.at("to").positive(),
            None if t.at("bytes").value is None else t.at("bytes").number(),
            tuple(link.text() for link in t.at("links").each()),
        )
        for t in entry.at("sends").each()
    ]  # fmt: skip
    return stage, sent


def _refuse_twice(entries: Sequence[Entry], stages: Sequence[Stage], kind: Kind) -> None:
    """InputError for a number, a node, or a device of a pipeline that two stages have; the chunks of a stage share
    devices."""
    numbers, holder, on = set[int](), dict[str, int](), dict[str, Stage]()
    for entry, stage in zip(entries, stages, strict=True):
        if stage.number in numbers:
            raise entry.at("stage").wrong(f"is {stage.number}, which a stage before it has")
        numbers.add(stage.number)
        for place, node in zip(entry.at("nodes").each(), stage.nodes, strict=True):
            if str(node.id) in holder:
                raise place.wrong(f"has '{node.id}', which is in stage {holder[str(node.id)]} already")
            holder[str(node.id)] = stage.number
        for place, device in zip(entry.at("devices").each(), stage.devices, strict=True):
            other = on.setdefault(device, stage)
            if kind == "pipeline" and other is not stage and not _chunks_of_one(other, stage):
                raise place.wrong(f"is '{device}', on which stage {other.number} is")


def _chunks_of_one(a: Stage, b: Stage) -> bool:
    return a.devices == b.devices and a.chunk is not None and b.chunk is not None and a.chunk != b.chunk


def _number(entry: Entry, key: str) -> float | None:
    found = entry.get(key)
    return None if found is None else found.number()


def _node(entry: Entry, options: Mapping[str, str]) -> PlannedNode:
    own = entry.at("id").id()
    name, backward, operator = (entry.get(key) for key in ("name", "backward", "operator"))
    attributes, position = entry.get("attributes"), entry.get("position")
    return PlannedNode(
        own, str(own) if name is None else name.text(), backward is not None and backward.truth(),
        None if operator is None else operator.id(), _number(entry, "memory") or 0.0,
        {key: given.value if isinstance(given.value, str) else given.number()
         for key, given in ({} if attributes is None else attributes.fields()).items()},
        _number(entry, "start"), _number(entry, "finish"), options.get(str(own)),
        0 if position is None else position.positive(),
    )  # fmt: skip
