"""``option split(v in nodes, t in {2, 4}) { tensor = t, … }``: further ways to run operators, by rule.

A rule ranges over nodes, whole numbers and devices.  It gives every node that it ranges over an option for each of its
degrees; where it ranges over devices, the option takes a time of its own on each.  What a rule leaves out is the
node's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import nearest
from placedsl.graph.graph import Graph
from placedsl.graph.options import Moved, OperatorOptions
from placedsl.grounding.expressions import ExpressionGrounder
from placedsl.grounding.frames import ROOT, Columns, Frame
from placedsl.grounding.universe import original
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Problem
from placedsl.units import DATA, NUMBER, Dimension, show

_KNOWN = STATEMENTS["option"].entries
_AMOUNTS = ("parameters", "stash", "memory", "sharded")
_MOVED = ("gather", "scatter")
#: Attributes in which devices of a family differ.
_OF_ONE = ("name", "number")
#: No machine has more.
_MOST_DEVICES = 2.0**31


@dataclass(frozen=True, eq=False)
class _Rule:
    """A checked rule: its binders, and the number of each entry with its dimension."""

    statement: syntax.Option
    node: str
    device: str | None
    binders: tuple[core.Binder, ...]
    entries: Mapping[str, tuple[core.Expression, Dimension, syntax.Entry]]


@dataclass(eq=False)
class _Rows:
    """Columns of options, a list of arrays each; ``time`` has a column per class of devices.

    ``known``: name, node and degree of every option that there is.
    """

    known: set[tuple[str, int, int]]
    node: list[Integers] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    degree: list[Integers] = field(default_factory=list)
    time: list[Floats] = field(default_factory=list)
    amounts: dict[str, list[Floats]] = field(default_factory=lambda: {key: [] for key in _AMOUNTS})
    moved: dict[str, list[tuple[int, int, float]]] = field(default_factory=lambda: {key: [] for key in _MOVED})


def with_bytes(graph: Graph) -> Graph:
    """The graph as rules see it: every node has all bytes that plans count, none where it does not say."""
    bytes_of = {key: amounts for key, amounts in _own(graph).items() if key != "memory"}  # every graph has these
    return replace(graph, attributes={**graph.attributes, **bytes_of})


def with_options(statements: Sequence[syntax.Option], problem: Problem, checker: Checker) -> Graph:
    """The graph with the options that rules give its operators; what is wrong with them goes to ``checker.found``.

    ``problem``: graph (:func:`with_bytes`), machine, running times, sets and tables, of a spec without these rules.
    """
    rules = [rule for rule in (_checked(checker, statement) for statement in statements) if rule is not None]
    classes = _Classes(problem, apart=any(_tells_apart(rule, problem) for rule in rules))
    given = _as_they_stand(problem, classes)
    rows = _Rows(set(zip(given.name, given.node.tolist(), given.degree.tolist(), strict=True)))
    grounder = ExpressionGrounder(original(problem), Columns(), problem.sets, problem.tables)
    for rule in rules:
        _Application(rule, problem, grounder, classes, checker, rows).run()
    labels = dict.fromkeys(rule.statement.name.text for rule in rules)
    idle = tuple(f"option '{label}' ranges over no node" for label in labels if label not in rows.name)
    graph = problem.graph
    return replace(graph, options=_joined(given, classes, rows), notes=(*graph.notes, *idle))


class _Classes:
    """Devices of one family on which every node takes the same time, or, ``apart``, each device by itself.

    ``first`` is a device of each class, ``of`` the class of each device, ``names`` what times are known by.
    """

    def __init__(self, problem: Problem, apart: bool) -> None:
        families = [device.family for device in problem.machine.devices]
        codes = {name: k for k, name in enumerate(dict.fromkeys(families))}
        columns = np.vstack(([codes[name] for name in families], problem.time))
        if apart:
            columns = np.arange(len(families))[None]
        _, first, of = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        self.first: Integers = first
        self.of: Integers = of.reshape(-1)
        several = {f for f in codes if len(set(self.of[[f == own for own in families]].tolist())) > 1}
        devices = problem.machine.devices
        self.names = [
            [devices[first].family]
            if devices[first].family not in several
            else [devices[d].name for d in np.flatnonzero(self.of == k)]
            for k, first in enumerate(first.tolist())
        ]


def _tells_apart(rule: _Rule, problem: Problem) -> bool:
    """Whether a rule may say something else of each device of a family."""
    if rule.device is None:
        return False
    whole = {"devices", "accelerators", "hosts", *(device.family for device in problem.machine.devices)}
    (own,) = (binder for binder in rule.binders if binder.slots == (rule.device,))
    if not isinstance(own.set, core.NamedSet) or own.set.name not in whole:
        return True
    parts: list[core.Expression] = [body for body, _, _ in rule.entries.values()]
    parts += [binder.condition for binder in rule.binders if binder.condition is not None]
    uses = 0
    for part in (inner for expression in parts for inner in walks.every(expression)):
        match part:
            case core.Slot(name=name):
                uses += name == rule.device
            case core.Attribute(owner=core.Slot(name=name)) if name == rule.device and part.name not in _OF_ONE:
                uses -= 1
            case core.Attribute(device=core.Slot(name=name)):
                uses -= name == rule.device
    return uses > 0


def _checked(checker: Checker, statement: syntax.Option) -> _Rule | None:
    """A rule with its names resolved, or None after reporting."""
    before = len(checker.found)
    example = "as in option split(v in nodes, t in {2, 4}) { tensor = t, time = … }"
    with checker.bound():
        binders = checker.binders(statement.items)
        if len(binders) < len(statement.items):
            return None
        nodes, devices = ([b.slots[0] for b in binders if b.sorts == (sort,)] for sort in ("node", "device"))
        for item, binder in zip(statement.items, binders, strict=True):
            if binder.sorts not in (("node",), ("device",), ("integer",)):
                checker.error(item, "options range over nodes, whole numbers and devices", example)
        if len(nodes) != 1:
            checker.error(statement.name, "an option is of one node", example)
        elif len(devices) > 1:
            checker.error(statement.name, "an option takes its time on one device", "as in d in devices, once")
        entries: dict[str, tuple[core.Expression, Dimension, syntax.Entry]] = {}
        for entry in statement.block:
            key = entry.name.text
            if key not in _KNOWN:
                checker.error(entry.name, f"an option has no '{key}'", nearest(key, _KNOWN))
            elif key in entries:
                checker.error(entry.name, f"'{key}' is given twice")
            else:
                entries[key] = (*_entry(checker, entry), entry)
    for key, (body, _, entry) in entries.items():
        if key != "time" and devices and devices[0] in walks.free_slots(body):
            checker.error(entry.value, "only the time of an option depends on the device")
    if len(checker.found) > before:
        return None
    return _Rule(statement, nodes[0], devices[0] if devices else None, binders, entries)


def _entry(checker: Checker, entry: syntax.Entry) -> tuple[core.Expression, Dimension]:
    """The number of an entry."""
    key = entry.name.text
    out, kind = checker.number(entry.value)
    wanted = checker.vocabulary.types["time"].dimension if key == "time" else _KNOWN[key].dimension
    allowed = (DATA, NUMBER) if key in _MOVED else (wanted,)
    zero = isinstance(out, core.Constant) and out.value == 0.0
    if kind.kind == "error":
        return out, NUMBER
    if walks.decided(out):
        checker.error(entry.value, "an option cannot depend on the placement")
    elif kind.dimension not in allowed and not zero:
        checker.error(entry.value, f"'{key}' is {wanted}, this is {kind}", f"as in {key} = {_KNOWN[key].example}")
    return out, kind.dimension


class _Application:
    """A rule applied to the nodes that it ranges over."""

    def __init__(
        self,
        rule: _Rule,
        problem: Problem,
        grounder: ExpressionGrounder,
        classes: _Classes,
        checker: Checker,
        rows: _Rows,
    ) -> None:
        self.rule, self.problem, self.grounder, self.classes = rule, problem, grounder, classes
        self.checker, self.rows = checker, rows
        self.wrong = 0

    def run(self) -> None:
        """Add its rows, or report what is wrong with them."""
        rule, frame = self.rule, ROOT
        for binder in rule.binders:
            frame, _ = self.grounder.sets.expand(frame, (binder,))
            if binder.slots[0] == rule.device:
                frame = frame.take(np.flatnonzero(np.isin(frame.slots[rule.device], self.classes.first)))
        node = frame.slots[rule.node]
        if not frame.size:
            return
        degree = self.value("tensor", frame, np.ones(frame.size))
        odd = np.flatnonzero((degree != np.round(degree)) | (degree < 1.0) | (degree > _MOST_DEVICES))
        self.report("tensor", frame, odd, degree, "is no number of devices")
        own = self.own(node)
        amounts = {key: self.value(key, frame, own[key]) for key in _AMOUNTS}
        moved = {key: self.value(key, frame, np.zeros(frame.size)) for key in _MOVED}
        time = self.times(frame, degree, own["time"])
        for key, values in (*amounts.items(), *moved.items(), ("time", time.min(axis=1, initial=np.inf))):
            self.report(key, frame, np.flatnonzero(values < 0.0), values, "is negative")
        if not self.wrong:
            on = None if rule.device is None else self.classes.of[frame.slots[rule.device]]
            self.add(np.stack((node, degree.astype(np.int64)), axis=1), on, time, amounts, moved)

    def own(self, node: Integers) -> dict[str, Floats]:
        """What the nodes have that a rule ranges over, as they stand; their times per class of devices."""
        out = {key: amounts[node] for key, amounts in _own(self.problem.graph).items()}
        return out | {"time": self.problem.time[node][:, self.classes.first]}

    def value(self, key: str, frame: Frame, default: Floats) -> Floats:
        """The number of an entry for each row."""
        if key not in self.rule.entries:
            return default
        body = self.rule.entries[key][0]
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is reported
            out = self.grounder.value(body, frame).constant
        lacking = np.flatnonzero(np.isnan(out) if key == "time" else ~np.isfinite(out))
        self.report(key, frame, lacking, out, "has no value")
        return np.asarray(out)

    def times(self, frame: Frame, degree: Floats, own: Floats) -> Floats:
        """Rows x classes."""
        if "time" not in self.rule.entries:
            several = np.flatnonzero(degree > 1.0)
            if len(several):
                message = f"option '{self.rule.statement.name.text}' does not say how long it takes on several devices"
                self.checker.error(self.rule.statement.name, message, "as in time = v.time[d] / t, with d in devices")
                self.wrong += 1
            return own
        given = self.value("time", frame, np.zeros(0))
        if self.rule.device is None:
            return np.repeat(given[:, None], len(self.classes.first), axis=1)
        out = np.full((frame.size, len(self.classes.first)), np.inf)
        out[np.arange(frame.size), self.classes.of[frame.slots[self.rule.device]]] = given
        return out

    def report(self, key: str, frame: Frame, rows: Integers, values: Floats, what: str) -> None:
        """Rows for which an entry is wrong: the first of them, and how many more."""
        if not len(rows):
            return
        row, (_, dimension, entry) = int(rows[0]), self.rule.entries[key]
        numbers = [
            f"{slot} = {int(column[row])}" for slot, column in frame.slots.items() if frame.sorts[slot] == "integer"
        ]
        where = ", ".join([f"node '{self.problem.graph.names[frame.slots[self.rule.node][row]]}'", *numbers])
        said = f" ({show(float(values[row]), dimension)})" if np.isfinite(values[row]) else ""
        more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
        self.checker.error(entry.value, f"'{key}' {what} for {where}{said}{more}", "narrow the rule with 'where'")
        self.wrong += len(rows)

    def add(
        self,
        nodes_and_degrees: Integers,
        on: Integers | None,
        time: Floats,
        amounts: Mapping[str, Floats],
        moved: Mapping[str, Floats],
    ) -> None:
        """One option for each node and degree; the rows of several classes of devices (``on``) are one."""
        statement, names = self.rule.statement, self.problem.graph.names
        name = statement.name.text
        keys, first, group = np.unique(nodes_and_degrees, axis=0, return_index=True, return_inverse=True)
        group = group.reshape(-1)
        merged = np.full((len(keys), time.shape[1]), np.inf)
        np.minimum.at(merged, group, time)
        rows = group * time.shape[1] + (0 if on is None else on)
        several = set((np.flatnonzero(np.bincount(rows) > 1) // time.shape[1]).tolist())
        found = []
        for g, (v, t) in enumerate(keys.tolist()):
            if g in several or (name, v, t) in self.rows.known:
                found.append(f"node '{names[v]}' has two options '{name}' for {t} device{'s' * (t > 1)}")
            self.rows.known.add((name, v, t))
        if found:
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            hint = "tensor = t where the rule ranges over t; another name for another option"
            self.checker.error(statement.name, found[0] + more, hint)
            return
        for key in _MOVED:
            self.rows.moved[key] += self._moved(key, keys[:, 0], moved[key][first])
        self.rows.node.append(keys[:, 0])
        self.rows.degree.append(keys[:, 1])
        self.rows.name += [name] * len(keys)
        self.rows.time.append(merged)
        for key in _AMOUNTS:
            self.rows.amounts[key].append(amounts[key][first])

    def _moved(self, key: str, node: Integers, amount: Floats) -> list[tuple[int, int, float]]:
        """Row, tensor and bytes: so many bytes for each tensor, or so often the tensor itself."""
        if key not in self.rule.entries or not amount.any():
            return []
        graph, (_, dimension, entry) = self.problem.graph, self.rule.entries[key]
        pairs = set[tuple[int, int]]()
        if key == "gather":
            pairs.update(zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True))
        else:
            pairs.update((v, tensor) for tensor, v in enumerate(graph.tensor_producer.tolist()))
        of_node: dict[int, list[int]] = {}
        for v, tensor in sorted(pairs):
            of_node.setdefault(v, []).append(tensor)
        out = []
        for row, (v, own) in enumerate(zip(node.tolist(), amount.tolist(), strict=True)):
            for tensor in of_node.get(v, ()):
                size = float(graph.tensor_bytes[tensor]) if dimension == NUMBER else 1.0
                if np.isnan(size):
                    message = f"the size of the tensor of '{graph.tensor_names[tensor]}' is not known"
                    self.checker.error(entry.value, message, f"{key} in bytes, as in {key} = 8 MiB")
                    return []
                out.append((len(self.rows.name) + row, tensor, own * size))
        return out


def _as_they_stand(problem: Problem, classes: _Classes) -> OperatorOptions:
    """The options that the graph has; without any, each node as it stands, on one device."""
    graph = problem.graph
    if graph.options is not None:
        return graph.options
    own = _own(graph)
    return OperatorOptions(
        np.arange(graph.nodes), ("",) * graph.nodes, np.ones(graph.nodes, dtype=np.int64),
        _times(classes, problem.time[:, classes.first]), own["parameters"], own["stash"], own["memory"],
        own["sharded"],
    )  # fmt: skip


def _own(graph: Graph) -> dict[str, Floats]:
    """Per node the bytes that it has as it stands; none where it does not say."""
    out = {"memory": graph.memory}
    for key in _AMOUNTS:
        column = graph.attributes.get(key)
        known = column is not None and column.dtype.kind == "f"
        out.setdefault(key, np.nan_to_num(np.asarray(column, dtype=float)) if known else np.zeros(graph.nodes))
    return out


def _times(classes: _Classes, columns: Floats) -> dict[str, Floats]:
    """Rows x classes as a column for each name."""
    return {name: columns[:, k] for k, names in enumerate(classes.names) for name in names}


def _joined(given: OperatorOptions, classes: _Classes, rows: _Rows) -> OperatorOptions:
    """The options that there were and those of the rules, by nodes."""
    if not rows.name:
        return given
    old, new = len(given.name), len(rows.name)
    node = np.concatenate((given.node, *rows.node))
    order = np.argsort(node, kind="stable")
    place = np.empty(old + new, dtype=np.int64)
    place[order] = np.arange(old + new)
    ruled = _times(classes, np.concatenate(rows.time))
    time = {
        name: np.concatenate((given.time.get(name, np.full(old, np.inf)), ruled.get(name, np.full(new, np.inf))))[order]
        for name in dict.fromkeys((*given.time, *ruled))
    }
    names = (*given.name, *rows.name)
    parameters, stash, memory, sharded = (
        np.concatenate((had, *rows.amounts[key]))[order]
        for key, had in zip(_AMOUNTS, (given.parameters, given.stash, given.memory, given.sharded), strict=True)
    )
    gathered, scattered = (
        Moved.of([
            (int(place[option]), tensor, amount)
            for option, tensor, amount in (
                *zip(*(column.tolist() for column in had), strict=True),
                *((old + row, tensor, amount) for row, tensor, amount in rows.moved[key]),
            )
        ])
        for key, had in (("gather", given.gathered), ("scatter", given.scattered))
    )  # fmt: skip
    return OperatorOptions(
        node[order], tuple(names[k] for k in order.tolist()),
        np.concatenate((given.degree, *rows.degree))[order], time, parameters, stash, memory, sharded, gathered,
        scattered,
    )  # fmt: skip
