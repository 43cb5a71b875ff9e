"""``subject to``: constraints by name, constraints of one's own, and soft ones with a price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from placedsl import plugins
from placedsl.diagnostics import Diagnostic, nearest
from placedsl.graph.sections import SECTION
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.constant_folding import fold, is_zero
from placedsl.language.checking.definitions import unfold
from placedsl.language.checking.scope import Checked, Definition, for_specs
from placedsl.language.checking.vocabulary import ERROR, PLAIN, TRUTH, Type, number
from placedsl.language.elaboration import model_library as library
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.parameters import bare_names
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import BUILT_IN, Constraint, Objective, SoftConstraint
from placedsl.units import NUMBER

#: What transfers may not share at a time.
READINGS = ("port", "link")


def meant(rule: syntax.Rule, *, clusters: bool, chunks: bool = False) -> str:
    """The name of the definition that a rule asks for: of some constraints there are several readings.

    ``chunks``: stages of a plan hold several parts of the model, in turn.
    """
    name = rule.name.text
    if name == "congestion":
        return f"congestion_by_{rule.by.text if rule.by else READINGS[0]}"
    if chunks and name in ("contiguous", "colocated", "boundaries"):
        return f"{name}_in_turn"
    return f"{name}_in_clusters" if clusters and name == "contiguous" else name


def definitions(
    defined: Sequence[Definition], formulations: Sequence[syntax.Formulation], found: list[Diagnostic]
) -> dict[str, Definition]:
    """Everything that is defined, by name: built in, by the spec, and the objectives of formulations."""
    built_in: dict[str, Definition] = {**library.constraint_definitions(), **library.defined_for_specs()}
    out: dict[str, Definition] = {}
    for statement in defined:
        name = statement.name.text
        if name in BUILT_IN:
            kind = "constraint" if isinstance(statement, syntax.ConstraintDefinition) else "definition"
            found.append(Diagnostic(f"{kind} '{name}' is built in", statement.name.at.span, "choose another name"))
        elif name in out:
            hint = first_at(statement.at, out[name].at)
            found.append(Diagnostic(f"'{name}' is defined already", statement.name.at.span, hint))
        out.setdefault(name, statement)
    for formulation in formulations:
        variables = {c.name.text for c in formulation.clauses if isinstance(c, syntax.Variable)}
        for clause in formulation.clauses:
            if isinstance(clause, syntax.Minimize):
                word, goal = formulation.name, clause.objectives[0]
                if bare_names(goal) & variables:  # told where formulations are checked
                    goal = syntax.Number(goal.at, 0.0, NUMBER)
                out.setdefault(word.text, syntax.Define(clause.at, word, (), goal))
    return built_in | out


def named(
    blocks: Sequence[syntax.Subject], known: Mapping[str, Definition], found: list[Diagnostic]
) -> list[tuple[syntax.Rule, syntax.ConstraintDefinition | None]]:
    """The rules with the definitions that they name; what is wrong without looking at the data is reported."""
    constraints = {n: d for n, d in known.items() if isinstance(d, syntax.ConstraintDefinition)}
    out: list[tuple[syntax.Rule, syntax.ConstraintDefinition | None]] = []
    names: dict[str, syntax.Rule] = {}

    def error(word: syntax.Word, message: str, hint: str = "") -> None:
        found.append(Diagnostic(message, word.at.span, hint))

    for rule in [r for block in blocks for r in block.rules]:
        name = rule.name.text
        key = f"{name} by {rule.by.text}" if rule.by else name
        if rule.arguments:
            key += f"({', '.join(' '.join(a.at.text.split()) for a in rule.arguments)})"
        if key in names:
            error(rule.name, f"constraint '{key}' stands twice", first_at(rule.at, names[key].at))
        names.setdefault(key, rule)
        definition = constraints.get(name)
        if name == "congestion" and rule.body is None:
            reading = rule.by.text if rule.by else READINGS[0]
            if reading in READINGS:
                out.append((rule, constraints[meant(rule, clusters=False)]))
            else:
                error(rule.by or rule.name, f"congestion is by {' or by '.join(READINGS)}", nearest(reading, READINGS))
            continue
        if rule.replaces:
            error(rule.name, "'replace' stands in an 'extend' block", "as in extend max_load { … }")
        elif rule.body is not None and definition is not None and not _of_the_library(name, definition):
            where = "built-in" if name in BUILT_IN else "defined"
            error(rule.name, f"'{name}' is the name of a {where} constraint", "choose another name")
        elif rule.body is not None:
            out.append((rule, None))
        elif definition is None:
            words = {*filter(for_specs, constraints), "congestion"}
            hint = nearest(name, (*words, *plugins.names("constraints")))
            if "did you mean" not in hint:
                # Of the family of constraints for runtimes, which is long, the general form is enough.
                hint = nearest(name, {*(w for w in words if not w.startswith("exportable_")), "exportable_to_NAME"})
                hint += "; a custom constraint is written `name: formula`"
            error(rule.name, f"there is no constraint '{name}'", hint)
        elif definition.by is not None and rule.by is None:
            error(rule.name, f"'{name}' needs an attribute", f"as in {name} by colorClass")
        elif definition.by is None and rule.by is not None:
            error(rule.by, f"'{name}' takes no 'by'")
        else:
            out.append((rule, definition))
    return out


def _of_the_library(name: str, definition: syntax.ConstraintDefinition) -> bool:
    """Something that comes with placedsl and takes arguments: its name may be used for a constraint of one's own."""
    return bool(definition.parameters) and library.constraint_definitions().get(name) is definition


def rule(checker: Checker, written: syntax.Rule, definition: syntax.ConstraintDefinition | None) -> Constraint | None:
    """One hard constraint, resolved; None after reporting."""
    name, span = written.name.text, written.name.at.span
    if definition is None:
        assert written.body is not None
        return Constraint(name, "", "", checker.truth(written.body), written.at.span, written.label)
    words, by = checker.vocabulary, ""
    if definition.by is not None and written.by is not None:
        by = written.by.text
        node = {n: a for n, a in words.attributes["node"].items() if not a.per_device}
        if by not in node:
            checker.error(written.by, f"nodes have no '{by}'", nearest(by, node))
            return None
        checker = Checker(
            replace(words, keys={definition.by.text: by}), checker.parameters, checker.found, checker.definitions
        )
    if name == "congestion":
        by = written.by.text if written.by else READINGS[0]
        name, shown = definition.name.text, f"congestion by {by}" if written.by else name
        body, _ = unfold(checker, syntax.Name(written.name.at, name), name, ())
        return Constraint(shown, "congestion", by, body, span, definition.label)
    nested = meant(written, clusters=bool(words.machine.clusters), chunks=words.chunks)
    body, _ = unfold(checker, syntax.Name(written.name.at, nested), nested, written.arguments)
    built_in = name if name in BUILT_IN else ""
    shown = f"{name} by {by}" if by else name
    if written.arguments:
        shown += f"({', '.join(' '.join(a.at.text.split()) for a in written.arguments)})"
    if name == "boundaries":
        built_in, by = "colocated", SECTION + by  # the sections share a device
    return Constraint(shown, built_in, by, body, span, definition.label)


def _word(written: syntax.Rule) -> syntax.Name:
    return syntax.Name(written.name.at, written.name.text)


# soft constraints


def soft_constraint(checker: Checker, written: syntax.Rule, objective: Objective) -> SoftConstraint | None:
    """A constraint with a price: its cost is the price times how far it is broken, over all its instances.

    A comparison of numbers is broken by the difference of its sides, any other condition by one.
    """
    assert written.body is not None
    assert written.price is not None
    price, kind = checker.number(written.price)
    broken, of = _broken(checker, written.body)
    if "error" in (kind.kind, of.kind):
        return None
    if walks.decided(price):
        checker.error(written.price, "a price cannot depend on the placement")
        return None
    if kind.dimension * of.dimension != objective.dimension and not is_zero(price):
        unit = number(objective.dimension / of.dimension)
        what = "each instance that is broken" if of == PLAIN else f"what is missing, {of}"
        hint = f"price times {what} is added to '{objective.name}': the price is {unit}"
        checker.error(written.price, f"this price is {kind}", hint)
        return None
    return SoftConstraint(written.name.text, fold("*", price, broken, written.at.span), written.at.span)


def _broken(checker: Checker, node: syntax.Expression) -> Checked:
    """How far a condition is from holding."""
    span = node.at.span
    match node:
        case syntax.Forall(items=items, body=body, quantifier="forall"):
            with checker.bound():
                binders = checker.binders(items)
                inner, kind = _broken(checker, body)
            return core.Aggregate("sum", binders, inner, span), kind
        case syntax.Binary(operator="and", left=left, right=right):
            return _both(checker, node, _broken(checker, left), _broken(checker, right))
        case syntax.Compare(operators=operators, operands=operands) if "!=" not in operators:
            pairs = list(zip(operators, operands, operands[1:], strict=False))
            out = _excess(checker, *pairs[0])
            for pair in pairs[1:]:
                out = _both(checker, node, out, _excess(checker, *pair))
            if out[1].kind != "truth":
                return out
    return core.Not(checker.truth(node), span), PLAIN


def _both(checker: Checker, node: syntax.Expression, left: Checked, right: Checked) -> Checked:
    (a, first), (b, second) = left, right
    if "error" in (first.kind, second.kind):
        return a, ERROR
    if first != second:
        hint = "state them as two soft constraints, each with its price"
        return checker.error(node, f"one price cannot hold for {first} and {second}", hint)
    return core.Arithmetic("+", a, b, node.at.span), first


def _excess(checker: Checker, operator: str, left: syntax.Expression, right: syntax.Expression) -> Checked:
    """By how much a comparison fails; of type truth where it does not compare numbers."""
    x, a = checker.check(left)
    y, b = checker.check(right)
    span = left.at.source.span(left.at.start, right.at.end)
    if "error" in (a.kind, b.kind):
        return x, ERROR
    numbers = [PLAIN if t == TRUTH else t for t in (a, b)]
    if any(t.kind != "number" for t in numbers) or a == b == TRUTH:
        return x, TRUTH
    dimension: Type = numbers[1] if is_zero(x) else numbers[0]
    if numbers[0].dimension != numbers[1].dimension and not (is_zero(x) or is_zero(y)):
        return checker.error(
            left, f"{numbers[0]} cannot be compared with {numbers[1]}", "both sides need one dimension"
        )
    over, under = core.Arithmetic("-", x, y, span), core.Arithmetic("-", y, x, span)
    parts: tuple[core.Expression, ...] = (core.Constant(0.0, span),)
    if operator in ("<=", "<", "=="):
        parts += (over,)
    if operator in (">=", ">", "=="):
        parts += (under,)
    return core.Largest("max", parts, span), dimension
