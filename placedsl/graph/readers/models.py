"""From the operators of a model to a graph: the same for every format of models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.build import build
from placedsl.graph.graph import Folded, Graph
from placedsl.graph.readers import module_paths
from placedsl.graph.readers.operations import Operator, Tensor

#: So many defects are told; a model with more is wrong as a whole.
MOST = 20


@dataclass(frozen=True)
class Step:
    """An operator of a model, its id, the names of the tensors that it reads and makes, and the path of its module.

    ``tied``: the module whose weights it has as well, where several modules have the same.
    """

    id: str
    operator: Operator
    reads: Sequence[str]
    makes: Sequence[str]
    module: str | None = None
    tied: str | None = None

    def __str__(self) -> str:
        return f"operator '{self.id}' ({self.operator.type})"


def graph_of(
    source: Source,
    steps: Sequence[Step],
    shapes: Mapping[str, Tensor],
    inputs: Collection[str],
    constants: Mapping[str, float],
    operations: Callable[[Operator], float | None],
    moved: Callable[[Operator], float],
    notes: Sequence[str] = (),
    folded: Folded | None = None,
) -> Graph:
    """The graph whose nodes are the steps.  InputError with every defect.

    ``shapes`` by name of tensor; ``inputs`` are what the model is given; ``constants`` the bytes of each tensor that
    depends on no input: they are memory of every node that reads them.  ``operations`` and ``moved`` tell what an
    operator computes (None: its type is not known) and how many bytes it reads and writes.  ``folded``: operators that
    are no steps, as they depend on no input.
    """
    found: list[Diagnostic] = []
    producer = {name: i for i, step in enumerate(steps) for name in step.makes}
    _report_broken(steps, {*producer, *inputs, *constants}, shapes, found)
    _stop(found)
    flops, moves, memory = (np.zeros(len(steps)) for _ in range(3))
    unknown: Counter[str] = Counter()
    flows: dict[tuple[int, int], list[str]] = {}
    for i, step in enumerate(steps):
        try:
            computed, moves[i] = operations(step.operator), moved(step.operator)
        except OverflowError:
            found.append(Diagnostic(f"{step}: it computes more than can be counted", None, "are its sizes right?"))
            continue
        except (ValueError, IndexError) as problem:
            found.append(Diagnostic(f"{step}: {problem}", None, "what it reads is not as its type expects"))
            continue
        unknown[step.operator.type] += computed is None
        flops[i] = np.nan if computed is None else computed
        for name in dict.fromkeys(step.reads):
            memory[i] += constants.get(name, 0.0)
            if name in producer:
                flows.setdefault((producer[name], i), []).append(name)
    _stop(found)
    ids = [step.id for step in steps]
    told = [
        f"type '{kind}' is not known: the times of its {count} operators are estimated from bytes alone"
        for kind, count in sorted(unknown.items())
        if count
    ]
    types = np.array([step.operator.type for step in steps], dtype=object)
    return build(
        source=source, ids=ids, names=ids, time={}, memory=memory, backward=np.zeros(len(steps), dtype=bool),
        attributes={
            "type": types, "flops": flops, "bytes": moves, **module_paths.attributes([step.module for step in steps]),
            **({"tied": np.array([step.tied for step in steps], dtype=object)} if any(s.tied for s in steps) else {}),
        },
        edges=[(ids[u], ids[v]) for u, v in flows], edge_time=None,
        edge_bytes=np.array([sum(shapes[name].bytes for name in names) for names in flows.values()], dtype=float),
        edge_value=[tuple(names) for names in flows.values()],
        time_in_seconds=True, locate=lambda _: None, notes=(*notes, *told), folded=folded,
    )  # fmt: skip


def _report_broken(
    steps: Sequence[Step], known: Collection[str], shapes: Mapping[str, Tensor], found: list[Diagnostic]
) -> None:
    """What nothing makes or several make; else the first tensors without a shape, and not what follows from them."""
    for step in steps:
        for name in step.reads:
            if name not in known:
                found.append(Diagnostic(f"{step} reads '{name}', which nothing makes", None, "was the file cut off?"))
    made = Counter(name for step in steps for name in step.makes)
    for name, count in made.items():
        if count > 1:
            hint = "every tensor has one operator that makes it"
            found.append(Diagnostic(f"tensor '{name}' is made {count} times", None, hint))
    most = limits.limit("elements")
    for name in sorted(name for name, tensor in shapes.items() if math.prod(tensor.shape) > most):
        hint = limits.hint("are its sizes right?", "elements", math.prod(shapes[name].shape))
        found.append(Diagnostic(f"tensor '{name}' has more than {most:.3g} elements", None, hint))
    if found:
        return
    wanting: set[str] = set()
    used = {name for step in steps for name in step.reads} | {name for step in steps for name in step.makes[:1]}
    for step in steps:
        nameless = [name for name in (*step.reads, *step.makes) if name in used and name not in shapes]
        if nameless and wanting.isdisjoint(step.reads):
            hint = "it cannot be inferred: export the model with shapes, or simplify it"
            found.append(Diagnostic(f"{step}: the shape of '{nameless[0]}' is not known", None, hint))
        wanting.update(nameless)


def _stop(found: Sequence[Diagnostic]) -> None:
    if found:
        raise InputError(found[:MOST])
