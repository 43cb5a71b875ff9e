"""Small problems made by hand, and short names for the nodes of expressions."""

from __future__ import annotations

import numpy as np

from placedsl.diagnostics import Source
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Device, Machine
from placedsl.problem import expressions as core
from placedsl.problem.execution import SCHEDULES
from placedsl.problem.problem import Constraint, Objective, Problem, Settings
from placedsl.units import NUMBER

SOURCE = Source("test", "text")
SPAN = SOURCE.whole()
INF = float("inf")


# More than ten arguments: what a problem has, all with defaults.
def problem_of(
    edges,  # (source, target, tensor)
    producers,
    time,
    transfer,
    backward=None,
    memory=None,
    kinds=("accelerator", "accelerator", "host"),
    device_memory=(10.0, 10.0, INF),
    size=None,
    pairs=None,
    schedule="pipedream",
    rules=(),
    objectives=(),
    sets=None,
    groups=None,
    attributes=None,
    names=None,
):
    """A problem; a transfer is one number a tensor, the same on every accelerator."""
    n, t = len(time), len(producers)
    names = tuple(names or [chr(97 + i) if n <= 26 else f"n{i}" for i in range(n)])
    triples = np.array(edges, dtype=np.int64).reshape(-1, 3)
    pairs = [(u, v) for u, v, _ in edges] if pairs is None else pairs
    pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    counts = {"accelerator": "gpu", "host": "cpu"}
    devices = []
    for i, kind in enumerate(kinds):
        family = counts[kind]
        number = kinds[: i + 1].count(kind)
        devices.append(
            Device(f"{family}[{number}]", family, kind, device_memory[i], {"price": 2.0} if number == 1 else {})
        )
    graph = Graph(
        ids=tuple(range(n)), names=names, time={}, memory=np.array(memory or [1.0] * n),
        backward=np.array(backward or [False] * n), attributes=attributes or {},
        edge_source=triples[:, 0], edge_target=triples[:, 1], edge_tensor=triples[:, 2],
        tensor_producer=np.array(producers, dtype=np.int64), tensor_time=np.array(transfer, dtype=float),
        tensor_bytes=np.full(t, np.nan), time_in_seconds=True, source=SOURCE,
    )  # fmt: skip
    per_device = np.array([[x if k == "accelerator" else 0.0 for k in kinds] for x in transfer]).reshape(t, len(kinds))
    return Problem(
        name="test", graph=graph, machine=Machine(tuple(devices)), execution=SCHEDULES[schedule],
        objectives=tuple(objectives), constraints=tuple(rules), sets=sets or {}, settings=Settings(),
        time=np.array(time, dtype=float), transfer=per_device,
        size=np.array(size if size is not None else transfer, dtype=float),
        precedence_source=pairs[:, 0], precedence_target=pairs[:, 1], orientation="",
        groups={k: np.array(v) for k, v in (groups or {}).items()},
    )  # fmt: skip


def diamond(**changes):
    """a -> b, a -> c (twice), b -> d, c -> d; d -> e backward.  Devices gpu[1], gpu[2], cpu[1].

    Tensors: 0 of a (read by b, c, c), 1 of b, 2 of c, 3 of d.
    """
    given = {
        "edges": [(0, 1, 0), (0, 2, 0), (0, 2, 0), (1, 3, 1), (2, 3, 2), (3, 4, 3)],
        "producers": [0, 1, 2, 3],
        "time": [[1, 1, 10], [2, 2, 20], [3, 3, 30], [4, 4, INF], [5, 5, 50]],
        "transfer": [0.5, 0.25, 0.125, 0.0625],
        "size": [100, 200, 400, 800],
        "backward": [False, False, False, False, True],
        "memory": [1.0, 2.0, 3.0, 4.0, 5.0],
        "attributes": {
            "flops": np.array([7.0, np.nan, 1.0, 2.0, 3.0]),
            "layer": np.array(["in", "mid.1", "mid.2", None, None], dtype=object),
        },
        "groups": {"layer": [0, 1, 1, 2, 3]},
    }
    return problem_of(**(given | changes))


def built_in(name, by=""):
    return Constraint(f"{name} by {by}" if by else name, name, by, truth(True), SPAN)


def custom(body, name="mine"):
    return Constraint(name, "", "", body, SPAN)


def goal(body):
    return Objective("goal", body, NUMBER, SPAN)


def truth(value):
    return core.Constant(value, SPAN)


def number(value):
    return core.Constant(float(value), SPAN)


def text(value):
    return core.Constant(value, SPAN)


def slot(name, sort="node"):
    return core.Slot(name, sort, SPAN)


def element(sort, position):
    return core.Element(sort, position, SPAN)


def node(position):
    return element("node", position)


def device(position):
    return element("device", position)


def named(name, *sorts):
    return core.NamedSet(name, sorts or ("node",), SPAN)


def bind(slots, of, where=None):
    return core.Binder(tuple(slots.split()), of, where, SPAN)


def nodes(name="v", where=None):
    return bind(name, named("nodes"), where)


def devices(name="d", where=None):
    return bind(name, named("devices", "device"), where)


def attribute(owner, name, sort="node", on=None):
    return core.Attribute(name, sort, owner, on, SPAN)


def quantity(name, *arguments):
    return core.Provided(name, arguments, SPAN)


def on(v, d):
    return quantity("on", v, d)


def v_on_d():
    return on(slot("v"), slot("d", "device"))


def compare(left, operator, right, of="number"):
    return core.Comparison(operator, left, right, SPAN, of)


def arithmetic(left, operator, right):
    return core.Arithmetic(operator, left, right, SPAN)


def aggregate(operator, binders, body):
    return core.Aggregate(operator, tuple(binders), body, SPAN)


def forall(binders, body):
    return core.Forall(tuple(binders), body, SPAN)


def logic(operator, *parts):
    return core.Logic(operator, parts, SPAN)


def negated(part):
    return core.Not(part, SPAN)


def within(item, of):
    return core.Within((item,), of, SPAN)


def glob(subject, pattern):
    return core.Glob(subject, pattern, SPAN)
