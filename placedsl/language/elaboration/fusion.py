"""``fuse conv + bn`` and ``fuse by layer``: operators that are placed together and run as one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from placedsl.arrays import Integers
from placedsl.diagnostics import nearest
from placedsl.graph.contraction import attribute_groups
from placedsl.graph.fusion import fused_graph, levels, matches, type_codes
from placedsl.graph.graph import Graph
from placedsl.graph.order import cycle
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration.imports import first_at
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.printer import statement as text_of
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core

#: So many nodes of a circle are named.
_MOST_NAMED = 8


def fused(checker: Checker, statements: Sequence[syntax.Fuse], graph: Graph) -> tuple[Graph, tuple[str, ...]]:
    """The graph of fused operators, and what is worth knowing: rules first, then attributes in the order of the text.

    What is wrong is reported at its place, and the statement then left out.
    """
    rules = _rules(checker, [s for s in statements if s.by is None], graph)
    notes = _unknown_types(rules, graph)
    if rules:
        found = matches(graph, [[word.text for word in rule.types] for rule in rules])
        said = [" + ".join(word.text for word in rule.types) for rule in rules]
        made = list(zip(said, found.counts, strict=True))
        ids = _joined_ids(graph, found.unit)
        if _free(checker, rules[0], graph, ids.values()):
            graph = fused_graph(graph, found.unit, ids, made, one_kernel=True)
    seen: dict[str, syntax.Fuse] = {}
    for one in statements:
        if one.by is not None:
            if seen.setdefault(one.by.text, one) is not one:
                hint = first_at(one.at, seen[one.by.text].at)
                checker.error(syntax.Word(one.at, ""), f"'{text_of(one)}' is there twice", hint)
                continue
            graph, told = _by_attribute(checker, one, one.by, graph)
            notes = (*notes, *told)
    return graph, notes


def _rules(checker: Checker, written: Sequence[syntax.Fuse], graph: Graph) -> list[syntax.Fuse]:
    """The rules that can be used."""
    column = graph.attributes.get("type")
    if written and (column is None or column.dtype != object):
        what = "its nodes have no attribute 'type'" if column is None else "their attribute 'type' is a number"
        hint = 'as in node conv1 { time = 4 ms, type = "conv" }'
        checker.error(syntax.Word(written[0].at, ""), f"operators of this graph have no types: {what}", hint)
        return []
    rules: dict[tuple[str, ...], syntax.Fuse] = {}
    for rule in written:
        key = tuple(word.text.casefold() for word in rule.types)
        first = rules.setdefault(key, rule)
        if first is not rule:
            hint = first_at(rule.at, first.at)
            checker.error(syntax.Word(rule.at, ""), f"'{text_of(rule)}' is there twice", hint)
    return list(rules.values())


def _unknown_types(rules: Sequence[syntax.Fuse], graph: Graph) -> tuple[str, ...]:
    """Types that no node has: a rule may serve several graphs, or a type be misspelt."""
    if not rules:
        return ()
    known = type_codes(graph)
    texts = {str(text) for text in graph.attributes["type"] if text is not None}
    words = dict.fromkeys(word.text for rule in rules for word in rule.types if word.text.casefold() not in known)
    out = []
    for word in words:
        hint = nearest(word, texts)
        out.append(f"no node has the type '{word}' that is to be fused" + (f" ({hint})" if hint else ""))
    return tuple(out)


def _joined_ids(graph: Graph, unit: Integers) -> dict[int, str]:
    """``conv1+bn1`` for each unit of several nodes, in the order of the graph."""
    members: dict[int, list[str]] = {}
    for v in np.flatnonzero(np.bincount(unit, minlength=graph.nodes)[unit] > 1).tolist():
        members.setdefault(int(unit[v]), []).append(str(graph.ids[v]))
    return {one: "+".join(names) for one, names in members.items()}


def _by_attribute(checker: Checker, one: syntax.Fuse, by: syntax.Word, graph: Graph) -> tuple[Graph, tuple[str, ...]]:
    """Nodes of one value of an attribute become one, forward and backward ones apart; and what is worth knowing.

    Values whose operators would wait for one another in a circle are fused in parts.
    """
    known = [*graph.attributes, "name"]
    if by.text not in known:
        checker.error(by, f"nodes have no attribute '{by.text}'", nearest(by.text, known))
        return graph, ()
    labels = attribute_groups(graph, by.text)
    _, first, part = np.unique(2 * labels + graph.backward, return_index=True, return_inverse=True)
    unit = first[part]
    source, target = unit[graph.edge_source], unit[graph.edge_target]
    circle = cycle(graph.nodes, source[source != target], target[source != target])
    told: tuple[str, ...] = ()
    level = np.zeros(graph.nodes, dtype=np.int64)
    if circle:
        told = (_circle_note(by.text, circle, _value_ids(graph, by.text, labels, unit, level), graph),)
        level = levels(graph, unit)
        _, first, part = np.unique(np.stack((unit, level)), axis=1, return_index=True, return_inverse=True)
        unit = first[part.ravel()]
    ids = _value_ids(graph, by.text, labels, unit, level)
    if not _free(checker, one, graph, ids.values()):
        return graph, ()
    return fused_graph(graph, unit, ids, [(f"by {by.text}", len(ids))], one_kernel=False), told


def _value_ids(graph: Graph, attribute: str, labels: Integers, unit: Integers, level: Integers) -> dict[int, str]:
    """``layer=3`` for each unit of several nodes; its backward part, where there are two, is ``layer=3 backward``.

    Where the operators of one value have several levels they are ``layer=3 part 1`` and so on.
    """
    written = graph.written
    column = np.array(written.names, dtype=object) if attribute == "name" else written.attributes[attribute]
    of_written = labels if graph.fusion is None else labels[graph.fusion.node_of]
    texts: dict[int, str] = {}
    for label, value in zip(of_written.tolist(), column.tolist(), strict=True):
        if isinstance(value, str) or (value is not None and not math.isnan(value)):
            texts.setdefault(label, value if isinstance(value, str) else f"{value:g}")
    units, sizes = np.unique(unit, return_counts=True)
    ways: dict[int, set[bool]] = {}
    parts: dict[tuple[int, bool], list[int]] = {}
    for u in units.tolist():
        ways.setdefault(int(labels[u]), set()).add(bool(graph.backward[u]))
        parts.setdefault((int(labels[u]), bool(graph.backward[u])), []).append(int(level[u]))
    out = {}
    for u in units[sizes > 1].tolist():
        label, backward = int(labels[u]), bool(graph.backward[u])
        of = sorted(parts[label, backward])
        part = f" part {of.index(int(level[u])) + 1}" if len(of) > 1 else ""
        out[u] = f"{attribute}={texts[label]}{' backward' if len(ways[label]) > 1 and backward else ''}{part}"
    return out


def _free(checker: Checker, one: syntax.Fuse, graph: Graph, ids: Iterable[str]) -> bool:
    """Whether no node is called as a fused operator would be."""
    known = {str(i) for i in graph.ids}
    taken = next((name for name in ids if name in known), None)
    if taken is not None:
        hint = "fused operators are called after their members: rename the node"
        checker.error(syntax.Word(one.at, ""), f"there is a node '{taken}' already", hint)
    return taken is None


def _circle_note(attribute: str, circle: list[int], ids: dict[int, str], graph: Graph) -> str:
    shown = " -> ".join(f"'{ids.get(u, graph.ids[u])}'" for u in [*circle[:_MOST_NAMED], *circle[:1]])
    more = "" if len(circle) <= _MOST_NAMED else f" ({len(circle)} in all)"
    return (
        f"'fuse by {attribute}' fuses some values in parts: as a whole they would wait for one another in a circle, "
        f"such as {shown}{more}"
    )


def unclear(
    graph: Graph, bodies: Iterable[core.Expression | core.SetExpression | core.Binder]
) -> Iterator[tuple[core.Attribute, int | str]]:
    """Where expressions ask for an attribute in which the members of some fused operator differ, and which one."""
    known = {} if graph.fusion is None else graph.fusion.unclear
    for part in (part for body in bodies if known for part in walks.every(body)):
        if isinstance(part, core.Attribute) and part.sort == "node" and part.name in known:
            yield part, known[part.name]
