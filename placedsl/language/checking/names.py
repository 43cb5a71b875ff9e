"""Names, attributes, indices and calls: the part of checking that says what a word stands for."""

from __future__ import annotations

from placedsl import limits
from placedsl.diagnostics import nearest
from placedsl.language.checking.constant_folding import known_number
from placedsl.language.checking.definitions import unfold
from placedsl.language.checking.schedule_vocabulary import hint_for
from placedsl.language.checking.scope import Checked, for_specs, named
from placedsl.language.checking.sets import SetChecker, type_of_element
from placedsl.language.checking.vocabulary import ERROR, PLAIN, TRUTH, Family, Type, element
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.expressions import Sort
from placedsl.units import NUMBER

AGGREGATES = ("sum", "count", "mean", "max", "min")


class NameChecker(SetChecker):
    """Resolves what is named, indexed or called."""

    def by_name(self, node: syntax.Expression, name: str) -> Checked:
        """A bare word."""
        words, span = self.vocabulary, node.at.span
        if name in self.slots:
            slot = self.slots[name]
            if slot is None:  # its binder was reported
                return core.Constant(0.0, span), ERROR
            return core.Slot(slot.name, slot.sort, span), type_of_element(slot.sort)
        if name in self.given:
            given = self.given[name]
            return given if isinstance(given, tuple) else (core.Constant(0.0, span), Type("set", sorts=given.sorts))
        if name in self.parameters:
            value, kind = self.parameters[name]
            return core.Constant(value, span), kind
        for slot, sort in reversed(self.implicit):
            known = words.attributes.get(sort, {}).get(name)
            if known is not None and not known.per_device:
                return core.Attribute(name, sort, core.Slot(slot.name, sort, span), None, span), known.type
        if name in words.families:
            members = words.families[name]
            if len(members) == 1:
                return core.Element("device", members[0], span), element("device")
            return core.Constant(0.0, span), Type("set", sorts=("device",))
        if (cluster := words.machine.single_clusters.get(name)) is not None:
            return core.Element("cluster", cluster, span), element("cluster")
        if name in words.variables:
            return self._indexed(node, name, words.variables[name], (), decision=True)
        if name in words.tables:
            return self._indexed(node, name, words.tables[name], (), decision=False)
        quantity = words.quantities.get(name)
        if name in self.definitions and quantity is None:
            return unfold(self, node, name, ())
        if quantity is not None:
            if quantity.arguments:
                shape = ", ".join(quantity.arguments)
                return self.error(node, f"'{name}' needs what it is about: {name}({shape})", quantity.meaning)
            return core.Provided(name, (), span), quantity.type
        if name in ("true", "false"):
            return core.Constant(name == "true", span), TRUTH
        if name in words.sets:
            sorts = words.sets[name]
            return core.Constant(0.0, span), ERROR if sorts == ("error",) else Type("set", sorts=sorts)
        if name in words.node_positions:
            return core.Element("node", words.node_positions[name], span), element("node")
        hint = hint_for(name, words) or nearest(name, self.names_in_scope())
        if name in self._known_texts():
            hint = f'a text stands in quotes: "{name}"'
        return self.error(node, f"there is no '{name}' here", hint)

    def _known_texts(self) -> set[str]:
        """The texts that nodes have as attributes."""
        columns = (c for c in self.vocabulary.graph.attributes.values() if c.dtype == object)
        return {text for column in columns for text in column if isinstance(text, str)}

    def names_in_scope(self) -> list[str]:
        """Every name that could have been meant."""
        words = self.vocabulary
        known = [*self.slots, *self.given, *self.parameters, *words.sets, *words.quantities, *words.variables]
        known += [*words.tables, *filter(for_specs, self.definitions)]
        known += [a for _, sort in self.implicit for a in words.attributes.get(sort, {})]
        return known + list(words.node_positions)[:5000]

    # attributes

    def attribute(
        self, node: syntax.Expression, base: syntax.Expression, name: str, *devices: syntax.Expression
    ) -> Checked:
        """``base.name``, ``base.name[device]`` or ``base.name[from, to]``."""
        owner, kind = self.check(base)
        if kind.kind == "error":
            return owner, ERROR
        if kind.kind != "element":
            return self.error(base, f"this is {kind}, which has no attributes", "attributes belong to one element")
        return self._attribute_of(node, owner, kind.sorts[0], name, devices)

    def _attribute_of(
        self, node: syntax.Expression, owner: core.Expression, sort: Sort, name: str,
        devices: tuple[syntax.Expression, ...],
    ) -> Checked:  # fmt: skip
        span = node.at.span
        device = devices[0] if devices else None
        if sort.startswith("group:") and name == "first":
            return core.Attribute(name, sort, owner, None, span), element("node")
        known = self.vocabulary.attributes.get(sort, {})
        if sort == "cluster" and name not in known and isinstance(owner, core.Element):
            return self._within(node, owner, name, device)
        if sort == "cluster" and device is not None and name not in known:
            return self.error(node, "which cluster this is depends on what is bound", "as in pod[1].gpu[2]")
        if name not in known:
            what = sort.partition(":")[0]
            hint = "as in readers(t)" if (sort, name) == ("tensor", "readers") else nearest(name, known)
            return self.error(node, f"a {what} has no '{name}'", hint)
        attribute = known[name]
        if attribute.pair:
            if len(devices) != 2:
                return self.error(node, f"'{name}' depends on two devices", f"write it as {name}[d, e]")
            source, target = (self._device(d) for d in devices)
            return core.Attribute(name, sort, owner, source, span, target), attribute.type
        if attribute.per_device:
            if device is None:
                hint = f"write it as {name}[{attribute.per[0]}]"
                return self.error(node, f"'{name}' depends on the {attribute.per}", hint)
            index = self._device(device) if attribute.per == "device" else self.element(device, attribute.per)
            return core.Attribute(name, sort, owner, index, span), attribute.type
        if device is not None:
            return self.error(node, f"'{name}' does not depend on a device", f"write it as {name}")
        return core.Attribute(name, sort, owner, None, span), attribute.type

    def _within(
        self, node: syntax.Expression, owner: core.Element, name: str, number: syntax.Expression | None
    ) -> Checked:
        """``pod[1].gpu[2]``, ``pod[1].gpu`` where there is one: a device or a cluster of a cluster."""
        machine = self.vocabulary.machine
        outer = machine.clusters[owner.position]
        devices = [d for d in outer.devices if machine.devices[d].family == name]
        clusters = [i for i, c in enumerate(machine.clusters) if c.parent == owner.position and c.family == name]
        if not devices and not clusters:
            parts = {machine.devices[d].family for d in outer.devices}
            parts |= {c.family for c in machine.clusters if c.parent == owner.position}
            return self.error(node, f"{outer.name} holds no '{name}'", nearest(name, parts))
        members, sort = (clusters, "cluster") if clusters else (devices, "device")
        if number is None and len(members) > 1:
            hint = f"one of them is {outer.name}.{name}[1]; for all of them, sum or forall over d in {name}"
            return self.error(node, f"{outer.name} holds {len(members)} of '{name}'", hint)
        if number is None:
            return core.Element(sort, members[0], node.at.span), element(sort)
        position = self.integer(number, 1, len(members), f"'{name}'")
        if position is None:
            return core.Constant(0.0, node.at.span), ERROR
        return core.Element(sort, members[position - 1], node.at.span), element(sort)

    def _device(self, node: syntax.Expression) -> core.Expression:
        """A device, or a family standing for any of its devices (their times are the same)."""
        name = named(node)
        if name is not None and name not in self.slots and name not in self.given:
            members = self.vocabulary.families.get(name)
            if members:
                return core.Element("device", members[0], node.at.span)
        return self.element(node, "device")

    def element(self, node: syntax.Expression, sort: Sort) -> core.Expression:
        """One element of a sort."""
        if sort == "option" and isinstance(node, syntax.Text):
            return self._option(node)
        name = named(node)
        out, kind = self.check(node) if name is None else self.by_name(node, name)
        if kind.kind != "error" and kind != type_of_element(sort):
            hint = nearest("", self.vocabulary.families) if sort == "device" else ""
            if name is not None and sort == "device" and kind.kind == "set" and kind.sorts == ("device",):
                hint = f"one of them is {name}[1]; for all of them, sum or forall over d in {name}"
            if sort == "tensor" and kind == type_of_element("node"):
                hint = "those that a node makes: t in tensors where t.producer == v"
            hint = self.hidden(node) or hint
            what = "whole number" if sort == "integer" else sort
            self.error(node, f"a {what} is expected here, this is {kind}", hint)
        return out

    def _option(self, node: syntax.Text) -> core.Expression:
        """The options of a name."""
        known = self.vocabulary.option_positions
        if node.value not in known:
            given = nearest(node.value, [name for name in known if name])
            self.error(node, f"no operator has an option '{node.value}'", given)
        return core.Element("option", known.get(node.value, 0), node.at.span)

    def hidden(self, node: syntax.Expression) -> str:
        """What to write where a bound variable has the name of a node or a device; empty where none has."""
        name, words = named(node), self.vocabulary
        if name is None or name not in self.slots:
            return ""
        if name in words.node_positions:
            return f"the variable '{name}' hides the node '{name}': choose another name for the variable"
        if name in words.families:
            return f"the variable '{name}' hides the device '{name}': choose another name for the variable"
        return ""

    # indices

    def index(self, node: syntax.Index) -> Checked:
        """``x[v, d]``, ``v.time[d]``, ``time[gpu]`` within where, ``gpu[1]``, ``nodes["id"]``, ``heavy[2]``."""
        base, words = node.base, self.vocabulary
        if isinstance(base, syntax.Attribute):
            return self.attribute(node, base.base, base.name, *node.arguments)
        name = named(base)
        if name is None:
            return self.error(base, "this cannot be indexed")
        if name in words.variables:
            return self._indexed(node, name, words.variables[name], node.arguments, decision=True)
        if name in words.tables and name in self.definitions:
            return unfold(self, node, name, node.arguments)
        if name in words.tables:
            return self._indexed(node, name, words.tables[name], node.arguments, decision=False)
        for slot, sort in reversed(self.implicit):
            known = words.attributes.get(sort, {}).get(name)
            if known is not None and known.per_device:
                owner = core.Slot(slot.name, sort, base.at.span)
                return self._attribute_of(node, owner, sort, name, node.arguments)
        if name == "nodes" and isinstance(node.arguments[0], syntax.Text):
            key = node.arguments[0].value
            if key not in words.node_positions:
                return self.error(
                    node.arguments[0], f"the graph has no node '{key}'", nearest(key, words.node_positions)
                )
            return core.Element("node", words.node_positions[key], node.at.span), element("node")
        if name in words.sets or isinstance(self.given.get(name), core.SetExpression):
            return self._pick(node, base, name)
        known_names = [*words.sets, *words.variables, *words.tables]
        return self.error(base, f"there is no '{name}' to index", nearest(name, known_names))

    def _pick(self, node: syntax.Index, base: syntax.Expression, name: str) -> Checked:
        """One element of a set by its number."""
        span, given = node.at.span, self.given.get(name)
        of = (
            given
            if isinstance(given, core.SetExpression)
            else core.NamedSet(name, self.vocabulary.sets[name], base.at.span)
        )
        sorts = of.sorts
        if sorts == ("error",):
            return core.Constant(0.0, span), ERROR
        if len(node.arguments) > 1:
            return self.error(node, f"'{name}' takes one number", f"as in {name}[1]")
        out, kind = self.number(node.arguments[0])
        if kind.kind == "error":
            return core.Constant(0.0, span), ERROR
        if len(sorts) != 1:
            return self.error(node, f"'{name}' holds pairs: take them apart with (u, v) in {name}")
        if kind.dimension != NUMBER or walks.decided(out):
            return self.error(node.arguments[0], "a whole number known beforehand is expected here")
        members = self.vocabulary.families.get(name) if of is not given else None
        if isinstance(out, core.Constant):
            high = None if members is None else len(members)
            clusters = [i for i, c in enumerate(self.vocabulary.machine.clusters) if c.family == name]
            if of is not given and sorts == ("cluster",) and clusters:
                members, high = tuple(clusters), len(clusters)
            position = self.integer(node.arguments[0], 1, high, f"'{name}'")
            if position is None:
                return core.Constant(0.0, span), ERROR
            if members is not None:
                return core.Element(sorts[0], members[position - 1], span), element(sorts[0])
        if isinstance(of, core.Members) and of.owner_sort.startswith("group:") and known_number(out) == 1:
            return core.Attribute("first", of.owner_sort, of.owner, None, span), element("node")
        if walks.free_slots(of):
            return self.error(base, "a set that depends on what is bound has no numbers", "name the set: set name = …")
        return core.Pick(of, out, sorts[0], span), type_of_element(sorts[0])

    def integer(self, node: syntax.Expression, low: int, high: int | None, what: str) -> int | None:
        """A constant integer within bounds, or None after reporting."""
        return self._whole(node, low, high, f"{low}..{high}" if high is not None else f"{low} or more", what)

    def limited(self, node: syntax.Expression, low: int, limit: str, what: str) -> int | None:
        """A constant integer from ``low`` up to a limit, by its name, or None after reporting."""
        most = limits.count(limit)
        value = self._whole(node, low, None, f"{low}..{most}", what)
        if value is not None and value > most:
            hint = limits.hint(f"{what} takes {low}..{most}", limit, value)
            self.error(node, f"{value:g} is out of range", hint)
            return None
        return value

    def _whole(self, node: syntax.Expression, low: int, high: int | None, bounds: str, what: str) -> int | None:
        out, kind = self.number(node)
        if kind.kind == "error":
            return None
        value = known_number(out)
        if value is None or kind.dimension != NUMBER:
            self.error(node, "a whole number known beforehand is expected here")
            return None
        if not value.is_integer() or value < low or (high is not None and value > high):
            self.error(node, f"{value:g} is out of range", f"{what} takes {bounds}")
            return None
        return int(value)

    def _indexed(
        self,
        node: syntax.Expression,
        name: str,
        family: Family,
        arguments: tuple[syntax.Expression, ...],
        *,
        decision: bool,
    ) -> Checked:
        """A decision variable or an indexed parameter."""
        if family.single and len(arguments) == len(family.sorts) + len(family.single):
            arguments = tuple(a for i, a in enumerate(arguments) if i not in family.single)
        if len(arguments) != len(family.sorts):
            shape = f"{name}[{', '.join(s.partition(':')[0] for s in family.sorts)}]" if family.sorts else name
            count = len(family.sorts)
            said = "no index" if not count else "one index" if count == 1 else f"{count} indices"
            return self.error(node, f"'{name}' has {said}, here are {len(arguments)}", f"it is written {shape}")
        checked = tuple(self.element(a, s) for a, s in zip(arguments, family.sorts, strict=True))
        if decision:
            return core.Decision(name, checked, node.at.span), family.type
        return core.Table(name, checked, node.at.span), family.type

    # calls

    def call(self, node: syntax.Call) -> Checked:
        """``load(d)``, ``abs(x)``, a definition with what it is given."""
        name, words = node.name, self.vocabulary
        if node.body is not None:
            return self.error(
                node, f"'{name}' is nothing that ranges over a set", "known: " + ", ".join((*AGGREGATES, "forall"))
            )
        if name == "abs":
            return self._absolute(node)
        quantity = words.quantities.get(name)
        if name in self.definitions and quantity is None and name not in words.tables:
            return unfold(self, node, name, node.arguments)
        if quantity is None and (name in words.tables or name in words.variables):
            what = "an indexed parameter" if name in words.tables else "a variable"
            family = words.tables.get(name) or words.variables[name]
            return self.error(node, f"'{name}' is {what}", f"it is written {name}{'[…]' if family.sorts else ''}")
        if quantity is None and name in words.sets:
            return self.error(node, f"'{name}' is a set", f"one of its elements is written {name}[1]")
        if quantity is None:
            known = [n for n, q in words.quantities.items() if q.arguments and n != "on"]
            known += [n for n, d in self.definitions.items() if d.parameters]
            return self.error(
                node, f"there is no '{name}(…)'", hint_for(name, words) or nearest(name, [*known, *AGGREGATES, "abs"])
            )
        if len(quantity.arguments) != len(node.arguments):
            shape = f"{name}({', '.join(quantity.arguments)})" if quantity.arguments else name
            return self.error(node, f"'{name}' is written {shape}", quantity.meaning)
        arguments = tuple(self.element(a, s) for a, s in zip(node.arguments, quantity.arguments, strict=True))
        return core.Provided(name, arguments, node.at.span), quantity.type

    def _absolute(self, node: syntax.Call) -> Checked:
        span = node.at.span
        if len(node.arguments) != 1:
            return self.error(node, "'abs' takes one number", "as in abs(load(gpu[1]) - load(gpu[2]))")
        out, kind = self.number(node.arguments[0])
        if kind.kind == "error":
            return out, ERROR
        known = known_number(out)
        if known is not None:
            return core.Constant(abs(known), span), kind
        return core.Absolute(out, span), kind


__all__ = ["ERROR", "PLAIN", "NameChecker"]
