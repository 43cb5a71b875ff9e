"""What a name or a number means, in a few lines of Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from placedsl.diagnostics import InputError
from placedsl.language.checking.vocabulary import Quantity, Type
from placedsl.language.elaboration.statement_entries import DEVICE_KINDS, STATEMENTS
from placedsl.language.syntax.printer import clause, expression, statement
from placedsl.language.syntax.statements import Cluster
from placedsl.language.syntax.tokens import Token, number_and_unit
from placedsl.machine.machine import Cluster as MachineCluster
from placedsl.machine.machine import Machine
from placedsl.problem.streaming import RESERVE
from placedsl.server.analysis import STAND_IN
from placedsl.server.blocks import HOLDERS
from placedsl.server.built_in import built_in_constraints, parts
from placedsl.server.document_state import DocumentState, Meaning
from placedsl.server.reading import Place
from placedsl.server.symbols import Occurrence
from placedsl.units import CANONICAL, DATA, NUMBER, TIME, Dimension, UnitError, parse_quantity, show

_FEW = 5
Hover = tuple[str, Place]


def hover(state: DocumentState, offset: int) -> Hover | None:
    """What stands at an offset, and from where to where; None for what needs no words."""
    token = state.reading.token_at(offset)
    if token is None:
        return None
    if token.type in ("QUANTITY", "NUMBER"):
        text = quantity_text(token.text)
        return (text, (token.start, token.end)) if text else None
    found = state.names.at(offset)
    if found is None or found.kind == "unknown":
        found = _unparsed(state, token)
    if found is None:
        return None
    text = described(state, found)
    return (text, found.at) if text else None


def described(state: DocumentState, name: Occurrence) -> str:
    """The words for one name; empty where nothing is known."""
    describe = _DESCRIBED.get(name.kind)
    return describe(state, name) if describe is not None else ""


def quantity_text(text: str) -> str:
    """A number with a unit in SI, with its dimension; empty for a plain number."""
    number, unit = number_and_unit(text)
    if not unit:
        return ""
    try:
        quantity = parse_quantity(f"{number} {unit}")
    except UnitError as problem:
        return str(problem)
    return f"`{number}{'' if unit == '%' else ' '}{unit}` = {_in_si(quantity.value, quantity.dimension)}"


def signature(name: str, quantity: Quantity) -> str:
    """How a quantity is written: ``load(device)``."""
    if name == "on":
        return "node on device"
    return f"{name}({', '.join(quantity.arguments)})" if quantity.arguments else name


def _in_si(value: float, dimension: Dimension) -> str:
    if dimension == NUMBER:
        return f"{value:.12g}"
    unit, size = CANONICAL.get(dimension, ("", 1.0))
    return f"{value / size:.12g} {unit} ({dimension})" if unit else f"{value:.12g} in SI units ({dimension})"


def _value(value: float | bool | str, kind: Type) -> str:
    if kind.kind == "truth":
        return "true" if value else "false"
    if kind.kind == "text":
        return f'"{value}"'
    number = float(value)
    exact = _in_si(number, kind.dimension)
    return f"{exact.partition(' (')[0] if kind.dimension == NUMBER else show(number, kind.dimension)}, {kind}"


def _unparsed(state: DocumentState, token: Token) -> Occurrence | None:
    """A name in a line that cannot be read, taken for what that name is in the rest of the text."""
    if token.type != "NAME":
        return None
    at = (token.start, token.end)
    symbols = [s for s in state.names.symbols if s.name == token.text and s.kind != "variable"]
    if symbols:
        return Occurrence(at, token.text, symbols[0].kind, symbols[0])
    words = state.words
    earlier = state.reading.before(token.start)
    if earlier and earlier[-1].text == ".":
        sort = next((s for s, known in words.attributes.items() if token.text in known), "")
        return Occurrence(at, token.text, "attribute", None, sort)
    for kind, known in (("device", words.families), ("quantity", words.quantities), ("set", words.sets),
                        ("node", words.nodes), ("constraint", built_in_constraints())):  # fmt: skip
        if token.text in known:
            return Occurrence(at, token.text, kind)
    if any(token.text in m.elaborated.parameters for m in state.meanings):
        return Occurrence(at, token.text, "parameter")
    return None


# one kind of name each


def _parameter(state: DocumentState, name: Occurrence) -> str:
    for meaning in state.meanings:
        if name.name in meaning.elaborated.parameters:
            value, kind = meaning.elaborated.parameters[name.name]
            return f"parameter `{name.name}` = {_value(value, kind)}" if kind.kind != "error" else ""
    written = f"  \n`{statement(name.symbol.node)}`" if name.symbol is not None else ""
    return f"parameter `{name.name}`{written}"


def _set(state: DocumentState, name: Occurrence) -> str:
    what = Type("set", sorts=state.words.sets[name.name]) if name.name in state.words.sets else "a set"
    for meaning in state.meanings:
        sorts = meaning.elaborated.vocabulary.sets.get(name.name)
        try:
            elements = meaning.elements(name.name) if sorts else ()
        except InputError:
            return f"set `{name.name}`, {what}"
        shown = [_element(meaning, sorts or (), e) for e in elements[:_FEW]]
        if sorts and STAND_IN not in shown:
            more = ", …" if len(elements) > _FEW else ""
            listed = f": {', '.join(shown)}{more}" if shown else ""
            return f"set `{name.name}`, {what}  \n{_counted(len(elements), 'element')}{listed}"
    return f"set `{name.name}`, {what}"


def _element(meaning: Meaning, sorts: tuple[str, ...], element: int | tuple[int, ...]) -> str:
    if isinstance(element, tuple):
        return f"({', '.join(meaning.data.label(s, e) for s, e in zip(sorts, element, strict=True))})"
    return meaning.data.label(sorts[0], element)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _device(state: DocumentState, name: Occurrence) -> str:
    for meaning in state.meanings:
        machine = meaning.elaborated.problem.machine
        clusters = [c for c in machine.clusters if c.family == name.name and not c.alone]
        if clusters:
            return f"cluster `{name.name}`: {_counted(len(clusters), 'cluster')}{_held(machine, clusters)}"
        members = [i for i, d in enumerate(machine.devices) if d.family == name.name]
        if not members:
            continue
        first = machine.devices[members[0]]
        memory = show(first.memory, DATA) if math.isfinite(first.memory) else "not limited"
        lines = [f"device `{name.name}`: {_counted(len(members), first.kind)}{_each(machine, members)}"]
        lines.append(f"memory {memory}")
        attributes = meaning.elaborated.vocabulary.attributes["device"]
        shown = {n: show(v, attributes[n].type.dimension) for n, v in first.attributes.items()}
        shown |= {RESERVE: "the peak of activations"} if first.reserves_peak else {}
        lines += [f"{n} {v}" for n, v in shown.items()]
        lines += [f"{name} {text}" for name, text in first.texts.items()]
        return "  \n".join(lines)
    written = name.symbol.node if name.symbol is not None else None
    return f"cluster `{name.name}`" if isinstance(written, Cluster) else f"device `{name.name}`"


def _held(machine: Machine, clusters: list[MachineCluster]) -> str:
    """The devices of clusters of one family, by family."""
    counts = Counter(machine.devices[d].family for d in clusters[0].devices)
    each = " in each" if len(clusters) > 1 else ""
    return "".join(f"  \n{count} `{family}`{each}" for family, count in counts.items())


def _each(machine: Machine, members: list[int]) -> str:
    """How many of a family each cluster of those that they lie in has."""
    homes = Counter(machine.innermost(i) for i in members)
    families = {machine.clusters[home].family for home in homes if home >= 0}
    if len(families) != 1 or len(set(homes.values())) != 1:
        return ""
    return f", {next(iter(homes.values()))} in each `{families.pop()}`"


def _node(state: DocumentState, name: Occurrence) -> str:
    for meaning in state.meanings:
        graph = meaning.elaborated.problem.graph
        i = meaning.elaborated.vocabulary.node_positions.get(name.name)
        if i is None:
            continue
        times = [
            f"{k} {show(float(v[i]), TIME) if graph.time_in_seconds else f'{v[i]:g}'}"
            for k, v in graph.time.items()
            if math.isfinite(v[i])
        ]
        lines = [f"node `{name.name}`" + (f" ({graph.names[i]})" if graph.names[i] != name.name else "")]
        lines += [f"time: {', '.join(times)}"] if times else []
        lines.append(f"memory: {show(float(graph.memory[i]), DATA)}" + (", backward" if graph.backward[i] else ""))
        lines += [f"{k}: {v[i]}" for k, v in graph.attributes.items() if v[i] is not None and v[i] == v[i]]
        return "  \n".join(lines)
    return f"node `{name.name}`"


def _quantity(state: DocumentState, name: Occurrence) -> str:
    quantity = state.words.quantities.get(name.name)
    if quantity is None:
        return ""
    return f"`{signature(name.name, quantity)}`: {quantity.meaning}  \n{quantity.type}"


def _attribute(state: DocumentState, name: Occurrence) -> str:
    sorts = [name.sort] if name.sort else list(state.words.attributes)
    for sort in sorts:
        if sort.startswith("group:") and name.name == "first":
            return "`first`: the first node of the group"
        found = state.words.attribute(sort, name.name)
        if found is not None:
            shape = f"{name.name}[device]" if found.per_device else name.name
            return f"`{shape}`, attribute of a {sort}: {found.type}"
    return ""


def _constraint(_: DocumentState, name: Occurrence) -> str:
    if name.symbol is not None:
        return f"constraint `{name.name}`  \n`{expression(name.symbol.node.body)}`"
    known = built_in_constraints().get(name.name)
    return f"built-in constraint `{name.name}`  \n`{expression(known[0].body)}`" if known is not None else ""


def _variable(_: DocumentState, name: Occurrence) -> str:
    sort = name.symbol.sort.partition(":")[0] if name.symbol is not None else ""
    return f"`{name.name}`: a {sort}" if sort else f"`{name.name}`: bound here"


def _part(_: DocumentState, name: Occurrence) -> str:
    node = name.symbol.node if name.symbol is not None else parts().get(name.name)
    return f"part `{name.name}`" + (f"  \n```place\n{statement(node)}\n```" if node is not None else "")


def _decision(_: DocumentState, name: Occurrence) -> str:
    return f"decision variable  \n`{clause(name.symbol.node)}`" if name.symbol is not None else ""


def _entry(state: DocumentState, name: Occurrence) -> str:
    statement = STATEMENTS.get(HOLDERS.get(name.sort, ""))
    known = None if statement is None else statement.entries.get(name.name)
    if known is None:
        return _attribute(state, Occurrence(name.at, name.name, "attribute", None, "node"))
    return f"`{name.name}`: {known.meaning}" + (f" ({known.dimension})" if known.dimension is not None else "")


def _word(_: DocumentState, name: Occurrence) -> str:
    return f"`{name.name}`: {DEVICE_KINDS[name.name]}" if name.name in DEVICE_KINDS else ""


_DESCRIBED: dict[str, Callable[[DocumentState, Occurrence], str]] = {
    "parameter": _parameter, "set": _set, "device": _device, "node": _node, "quantity": _quantity,
    "attribute": _attribute, "constraint": _constraint, "variable": _variable, "decision": _decision,
    "entry": _entry, "word": _word,
    "key": lambda _, name: f"`{name.name}`: the attribute that stands after `by`",
    "definition": lambda _, name: f"`{statement(name.symbol.node)}`" if name.symbol is not None else "",
    "formulation": lambda _, name: f"formulation `{name.name}`",
    "part": _part,
}  # fmt: skip
