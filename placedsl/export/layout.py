"""What runtimes ask of a plan: units, stages in order, runs of layers, numbers of devices; and why a plan has none.

Every function that ends in ``_against`` gives reasons, in the words of the spec, each with what would change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from placedsl.graph.layers import Described, Unit, Units, units
from placedsl.problem.plan import Plan, PlannedNode, Stage

#: So many nodes are named in a reason.
_MOST_NAMED = 4
OFF_HOSTS = "add 'on_accelerators: forall v in nodes, d in hosts: not (v on d)'"


def described(nodes: Iterable[PlannedNode]) -> list[Described]:
    """What the graph says of nodes, as :func:`placedsl.graph.layers.units` takes it."""
    return [Described.of(node.name, node.attributes or {}, node.memory, backward=node.backward) for node in nodes]


def in_order(nodes: Iterable[PlannedNode]) -> list[PlannedNode]:
    """Nodes in the order in which the model runs them, where the plan says it; else as they stand."""
    every = list(nodes)
    return sorted(every, key=lambda node: node.position) if all(node.position for node in every) else every


@dataclass(frozen=True)
class Layout:
    """A plan with the units of its model.

    ``nodes``   all of them, in the order of the model
    ``units``   with positions in ``nodes``
    ``stages``  those that hold a unit, in order; what holds glue alone says nothing to a runtime
    """

    plan: Plan
    nodes: tuple[PlannedNode, ...]
    units: Units
    stages: tuple[Stage, ...]

    @classmethod
    def of(cls, plan: Plan) -> Layout:
        """The layout of any plan."""
        nodes = in_order(node for stage in plan.stages for node in stage.nodes)
        found = units(described(nodes))
        glue = {nodes[v].id for v, unit in enumerate(found.of_node) if unit < 0}
        stages = [stage for stage in plan.stages if any(node.id not in glue for node in stage.nodes)]
        if not found.units:
            stages = list(plan.stages)
        return cls(plan, tuple(nodes), found, tuple(_joined(stages)))

    @cached_property
    def held(self) -> tuple[tuple[Unit, ...], ...]:
        """The units of each stage, in the order of the model; a unit may be in several."""
        unit_of = {self.nodes[v].id: u for v, u in enumerate(self.units.of_node) if u >= 0}
        own = [sorted({unit_of[node.id] for node in stage.nodes if node.id in unit_of}) for stage in self.stages]
        return tuple(tuple(self.units.units[u] for u in stage) for stage in own)

    @cached_property
    def stages_of(self) -> dict[Unit, list[int]]:
        """The positions of the stages that hold each unit."""
        out: dict[Unit, list[int]] = {unit: [] for unit in self.units.units}
        for k, held in enumerate(self.held):
            for unit in held:
                out[unit].append(k)
        return out

    @cached_property
    def tied(self) -> tuple[tuple[Unit, ...], ...]:
        """Units that have weights in common, those of each such module together."""
        out: dict[float | str, list[Unit]] = {}
        for unit in self.units.units:
            for module in dict.fromkeys(self.nodes[v].attribute("tied") for v in unit.nodes):
                if module is not None:
                    out.setdefault(module, []).append(unit)
        return tuple(tuple(own) for own in out.values() if len(own) > 1)

    @cached_property
    def apart(self) -> list[list[int]]:
        """The positions of units that have the same weights and are in several stages."""
        position = {unit: u for u, unit in enumerate(self.units.units)}
        several = (own for own in self.tied if len({k for unit in own for k in self.stages_of[unit]}) > 1)
        return [[position[unit] for unit in own] for own in several]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many layers each stage holds."""
        return tuple(sum(unit.layer is not None for unit in held) for held in self.held)

    @property
    def outer(self) -> tuple[tuple[Unit, ...], tuple[Unit, ...], tuple[Unit, ...]]:
        """The units outside of layers: before the first layer, among the layers, after the last."""
        where = [k for k, unit in enumerate(self.units.units) if unit.layer is not None]
        every = list(enumerate(self.units.units))
        if not where:
            return (), (), tuple(unit for _, unit in every)
        before = tuple(unit for k, unit in every if k < where[0])
        after = tuple(unit for k, unit in every if k > where[-1])
        among = tuple(unit for k, unit in every if where[0] < k < where[-1] and unit.layer is None)
        return before, among, after

    @property
    def tensor(self) -> int:
        """The devices of each copy of the first stage."""
        return self.stages[0].parallelism.get("tensor", 1)

    @property
    def data(self) -> int:
        """The copies of the first stage."""
        return len(self.stages[0].devices) // self.tensor

    @property
    def ranks(self) -> tuple[str, ...]:
        """The devices of one copy of the pipeline after another, in the order of the stages."""
        size = self.tensor
        return tuple(
            name for copy in range(self.data) for stage in self.stages
            for name in stage.devices[copy * size : (copy + 1) * size]
        )  # fmt: skip

    def number(self, device: str) -> int:
        """The number of an accelerator from 0, in the order of declaration."""
        return [one.name for one in self.plan.devices if one.kind == "accelerator"].index(device)

    @property
    def in_one_place(self) -> bool:
        """Whether all devices of the pipeline are in one cluster, or in none, so that numbers tell them apart."""
        return len({self.plan.device(name).cluster for name in self.ranks}) <= 1


def _joined(stages: Sequence[Stage]) -> list[Stage]:
    """Neighbours on the same devices as one stage: what lay between them was glue."""
    out: list[Stage] = []
    for stage in stages:
        if out and out[-1].devices == stage.devices and out[-1].chunk == stage.chunk:
            out[-1] = replace(out[-1], nodes=(*out[-1].nodes, *stage.nodes))
        else:
            out.append(stage)
    return out


# reasons against a plan


def pipeline_against(plan: Plan) -> list[str]:
    """The plan is for one sample."""
    if plan.run == "pipeline":
        return []
    return ["the plan is for one sample; a pipeline of layers needs schedule pipedream, overlapped or duplex"]


def training_against(plan: Plan, runtime: str) -> list[str]:
    """The graph has a backward part, and the runtime serves inference."""
    backward = next((node for stage in plan.stages for node in stage.nodes if node.backward), None)
    if backward is None:
        return []
    return [f"{runtime} serves inference, and the graph has a backward part ('{backward.id}')"]


def hosts_against(layout: Layout, where: str = "every stage runs on an accelerator") -> Iterator[str]:
    """Stages on hosts."""
    for stage in layout.stages:
        leader = stage.devices[0]
        if layout.plan.device(leader).kind == "host":
            yield f"{leader} is a host and holds {named(stage.nodes)}: {where}; {OFF_HOSTS}"


def alone_against(layout: Layout) -> Iterator[str]:
    """Stages that several devices share."""
    for stage in layout.stages:
        if len(stage.devices) > 1:
            yield (
                f"stage {stage.number} is shared by {some(stage.devices)}: a stage is on one device here; "
                "leave 'parallelism' out"
            )


def clusters_against(layout: Layout, what: str) -> Iterator[str]:
    """Accelerators in several clusters, which numbers do not tell apart."""
    kept = [device for stage in layout.stages for name in stage.devices
            if (device := layout.plan.device(name)).kind != "host"]  # fmt: skip
    if len({device.cluster for device in kept}) > 1:
        yield (
            f"{some(dict.fromkeys(device.name for device in kept))} are in several clusters, and {what} is of one "
            "process: add 'one_cluster: forall c in clusters, d in c, e in devices except c: not (used(d) and used(e))'"
        )


def degrees_against(layout: Layout, *, tensor: bool = True) -> Iterator[str]:
    """Degrees of parallelism that differ from stage to stage; ``tensor``: the runtime splits tensors at all."""
    by_stage = [(stage, stage.parallelism.get("tensor", 1)) for stage in layout.stages]
    for stage, degree in by_stage:
        if not tensor and degree > 1:
            yield f"stage {stage.number} splits tensors over {degree} devices: write 'tensor = {{1}}' in 'parallelism'"
        if tensor and degree != layout.tensor:
            yield (
                f"stage {layout.stages[0].number} splits tensors over {layout.tensor} devices and stage {stage.number} "
                f"over {degree}: add 'equal: forall v in nodes, w in nodes: tensor(v) == tensor(w)'"
            )
    for stage in layout.stages:
        copies = len(stage.devices) // stage.parallelism.get("tensor", 1)
        if copies != layout.data:
            yield (
                f"stage {layout.stages[0].number} has {_copies(layout.data)} and stage {stage.number} has "
                f"{_copies(copies)}: all have as many here; "
                + ("add 'equal: forall v in nodes, w in nodes: data(v) == data(w)'" if "tensor" in stage.parallelism
                   else "leave 'parallelism' out")
            )  # fmt: skip


def _copies(number: int) -> str:
    return "1 copy" if number == 1 else f"{number} copies"


def unknown_against(layout: Layout) -> list[str]:
    """Nothing says which layer a node is part of, or there are layers of several kinds."""
    layers = layout.units.layers
    if not layers:
        return [
            "no node says which layer it is part of: give the graph's nodes an attribute 'layer' (a number from 0), "
            "or a 'module' with the number in its path, as in model.layers.3.mlp"
        ]
    kinds = sorted({unit.kind for unit in layers})
    if len(kinds) > 1:
        return [f"there are layers of several kinds: {some(repr(kind) for kind in kinds)}; one kind is expected"]
    numbers = sorted(unit.layer for unit in layers if unit.layer is not None)
    return [
        f"the graph has layer {a} and layer {b}, and none between: layers are counted here, so give them numbers "
        "without gaps"
        for a, b in pairwise(numbers) if b > a + 1
    ][:1]  # fmt: skip


def modules_against(layout: Layout) -> list[str]:
    """Units whose module the graph does not name."""
    if not any(unit.module for unit in layout.units.units):
        return [
            "no node says which module it is part of: give the graph's nodes an attribute 'module', as in "
            "model.layers.3.mlp; files of torch.export have it, and onnx-split does without"
        ]
    out = []
    for unit in layout.units.units:
        if not unit.module:
            node = layout.nodes[unit.nodes[0]]
            out.append(f"'{node.id}' has weights, and no node of {unit.name} says which module it is part of")
    return out


def split_against(layout: Layout) -> Iterator[str]:
    """Units that are on several devices."""
    for unit, stages in layout.stages_of.items():
        devices = list(dict.fromkeys(layout.stages[k].devices[0] for k in stages))
        if len(devices) > 1 or len(stages) > 1:
            nodes = [layout.nodes[v] for v in unit.nodes]
            where = (
                some(devices) if len(devices) > 1 else f"stages {some(str(layout.stages[k].number) for k in stages)}"
            )
            cure = "boundaries by layer" if unit.layer is not None else "colocated by module"
            yield f"{unit.name} is on {where} ({named(nodes)}): add '{cure}'"


def tied_against(layout: Layout) -> Iterator[str]:
    """Weights that modules on several devices have in common."""
    for own in layout.tied:
        places = {layout.stages[k].devices[0]: unit.name for unit in own for k in layout.stages_of[unit]}
        if len(places) > 1:
            where = some(f"'{name}' on {device}" for device, name in places.items())
            yield f"{where} have the same weights, and these are on one device: add 'colocated by tied'"


def copies_against(layout: Layout, runtime: str, *, layers: bool = False) -> Iterator[str]:
    """Weights that modules in several stages have in common, where a runtime trains each copy apart; ``layers``: only
    those that a layer has."""
    for own in layout.tied:
        places = {layout.stages[k].number: unit.name for unit in own for k in layout.stages_of[unit]}
        if len(places) > 1 and (not layers or any(unit.layer is not None for unit in own)):
            where = some(f"'{name}' in stage {number}" for number, name in places.items())
            yield (
                f"{where} have the same weights, and {runtime} trains a copy of them in each stage apart: add "
                "'contiguous' and 'colocated by tied', for which all that lies between them is in one stage"
                + ("" if layers else "; deepspeed and megatron keep the copies of an embedding and a head equal")
            )


def pieces_against(layout: Layout) -> Iterator[str]:
    """Devices that hold several stages."""
    stages_on: dict[str, list[int]] = {}
    for stage in layout.stages:
        stages_on.setdefault(stage.devices[0], []).append(stage.number)
    for device, numbers in stages_on.items():
        if len(numbers) > 1:
            yield f"{device} holds stages {some(map(str, numbers))}, which are not one run of layers: add 'contiguous'"


def order_against(layout: Layout) -> Iterator[str]:
    """Stages whose layers are no runs in the order of their numbers."""
    previous: tuple[int, int] | None = None
    alone = {unit: stages[0] for unit, stages in layout.stages_of.items() if len(stages) == 1}
    for k, stage in enumerate(layout.stages):
        own = [unit.layer for unit in layout.held[k] if unit.layer is not None and unit in alone]
        if own and previous is not None and min(own) < previous[0]:
            yield (
                f"layer {previous[0]} is in stage {previous[1]} and layer {min(own)} in stage {stage.number}: "
                "stages hold runs of layers in their order"
            )
        if own:
            previous = max(own), stage.number


def empty_against(layout: Layout) -> Iterator[str]:
    """Stages without a layer."""
    for k, stage in enumerate(layout.stages):
        if not layout.counts[k]:
            yield (
                f"stage {stage.number} ({stage.devices[0]}: {named(stage.nodes)}) holds no layer, and no stage may be "
                "empty: add 'boundaries by layer'"
            )


def ends_against(layout: Layout) -> Iterator[str]:
    """Weights outside of layers that are neither in the first stage nor in the last, as they belong."""
    before, among, after = layout.outer
    last, number = len(layout.stages) - 1, len(layout.stages)
    wrong: dict[tuple[int, str], list[PlannedNode]] = {}
    for units_, right in ((before, (0,)), (among, (0, last)), (after, (last,))):
        for unit in units_:
            for k in layout.stages_of[unit]:
                if k not in right and layout.counts[k]:
                    ends = "the first stage" if right == (0,) else "the last" if right == (last,) else "both"
                    held = {node.id for node in layout.stages[k].nodes}
                    own = [layout.nodes[v] for v in unit.nodes if layout.nodes[v].id in held]
                    wrong.setdefault((k, ends), []).extend(own)
    for (k, ends), nodes in sorted(wrong.items()):
        stage = layout.stages[k]
        if 0 < k < last:
            yield (
                f"stage {stage.number} of {number} ({stage.devices[0]}) holds {named(nodes)}, which have "
                "weights and are part of no layer: only the first stage and the last hold more than layers"
            )
        else:
            place = "before the layers, in the first" if ends == "the first stage" else "after the layers, in the last"
            yield (
                f"stage {stage.number} of {number} ({stage.devices[0]}) holds {named(nodes)}, which belong "
                f"{place} stage: add a constraint 'together(...)'"
            )


def runs_against(layout: Layout) -> list[str]:
    """Why the stages are not runs of whole layers, one a device, with all else in the first stage and the last."""
    unknown = unknown_against(layout)
    early = [*pieces_against(layout)]
    if unknown:
        return [*early, *unknown]
    return [
        *early, *split_against(layout), *empty_against(layout), *order_against(layout), *ends_against(layout),
    ]  # fmt: skip


def named(nodes: Sequence[PlannedNode]) -> str:
    """The first few nodes by their ids."""
    return some(f"'{node.id}'" for node in nodes)


def some(words: Iterable[str]) -> str:
    """The first few, and how many more."""
    every = list(words)
    more = f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
    shown = every[:_MOST_NAMED]
    if more or len(shown) < 2:
        return ", ".join(shown) + more
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
