"""Definitions in use, with arguments in place of their parameters, and checked by themselves."""

from __future__ import annotations

from placedsl import limits
from placedsl.diagnostics import nearest
from placedsl.language.checking.constant_folding import known_number
from placedsl.language.checking.scope import Checked
from placedsl.language.checking.sets import SetChecker, type_of_element
from placedsl.language.checking.vocabulary import ERROR, TRUTH, Type
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expressions as core
from placedsl.problem.expressions import Sort

_GROWTH = "definitions that use one another several times double with each step"


def unfold(
    checker: SetChecker, node: syntax.Expression, name: str, arguments: tuple[syntax.Expression, ...]
) -> Checked:
    """A definition's body, with what it is given in place of its parameters."""
    definition = checker.definitions[name]
    span = node.at.span
    if name in checker.unfolding:
        return checker.error(node, f"'{name}' is defined by itself")
    if name in checker.unfolded and not arguments:
        return checker.unfolded[name]
    checker.expansion.unfolded += 1
    most = limits.count("definitions")
    if checker.expansion.unfolded >= most:
        if checker.expansion.unfolded == most:
            hint = limits.hint(_GROWTH, "definitions")
            checker.error(node, f"definitions are used here more than {most:,} times", hint)
        return core.Constant(0.0, span), ERROR
    if len(arguments) != len(definition.parameters):
        by = definition.by if isinstance(definition, syntax.ConstraintDefinition) else None
        if by is not None:
            return checker.error(node, f"'{name}' goes by an attribute", f"it is written {name} by {by.text}")
        shape = ", ".join(p.name.text for p in definition.parameters)
        count = len(definition.parameters)
        said = "no argument" if not count else f"{count} argument" + ("" if count == 1 else "s")
        written = f"{name}({shape})" if count else name
        return checker.error(node, f"'{name}' takes {said}, here are {len(arguments)}", f"it is written {written}")
    given: dict[str, Checked | core.SetExpression] = {}
    for parameter, argument in zip(definition.parameters, arguments, strict=True):
        bound = _argument(checker, parameter, argument)
        given[parameter.name.text] = bound if bound is not None else (core.Constant(0.0, span), ERROR)
    with checker.inside(name, given):
        out, kind = checker.check(definition.body)
    if isinstance(definition, syntax.ConstraintDefinition) and kind.kind != "error" and kind != TRUTH:
        return checker.error(definition.body, f"a constraint is a condition, this is {kind}")
    parts, most = checker.expansion.parts(out), limits.count("parts")
    if parts > most:
        hint = limits.hint(_GROWTH, "parts", parts)
        out, kind = checker.error(node, f"with its definitions in place, this has more than {most:,} parts", hint)
    if not definition.parameters:
        checker.unfolded[name] = out, kind
    return out, kind


def _argument(
    checker: SetChecker, parameter: syntax.Parameter, argument: syntax.Expression
) -> Checked | core.SetExpression | None:
    """What a parameter stands for in one use; None after reporting."""
    expected = _expected(checker, parameter)
    if isinstance(expected, tuple):  # a set of these sorts
        of = checker.set(argument)
        if of is not None and of.sorts != expected:
            wanted = Type("set", sorts=expected)
            checker.error(argument, f"'{parameter.name.text}' is {wanted}, this is {Type('set', sorts=of.sorts)}")
            return None
        return of
    if expected is None:
        return None
    if expected.kind == "element":
        return checker.element(argument, expected.sorts[0]), expected
    out, kind = checker.check(argument)
    if kind.kind == "error":
        return None
    zero = known_number(out) == 0.0 and expected.kind == "number"
    if kind != expected and not zero:
        checker.error(argument, f"'{parameter.name.text}' is {expected}, this is {kind}")
        return None
    return out, expected


def _expected(checker: SetChecker, parameter: syntax.Parameter) -> Type | tuple[Sort, ...] | None:
    """What a parameter takes: one element, a value of a type, or (the sorts of) a set; None after reporting."""
    if parameter.set is not None:
        with checker.inside(parameter.name.text, {}):
            of = checker.set(parameter.set)
        if of is None:
            return None
        if len(of.sorts) != 1:
            checker.error(parameter.set, "one element is expected here, this set holds pairs")
            return None
        return type_of_element(of.sorts[0])
    assert parameter.type is not None
    name = parameter.type.text
    if name in checker.vocabulary.types:
        return checker.vocabulary.types[name]
    if name in checker.vocabulary.sets:
        return checker.vocabulary.sets[name]
    known = [*checker.vocabulary.types, *checker.vocabulary.sets]
    checker.error(parameter.type, f"'{name}' is no type", nearest(name, known))
    return None


def check_definition(checker: SetChecker, definition: syntax.Define | syntax.ConstraintDefinition) -> Checked:
    """Check a definition's body by itself, whoever uses it; returns it with its type."""
    given: dict[str, Checked | core.SetExpression] = {}
    for parameter in definition.parameters:
        expected, span, name = _expected(checker, parameter), parameter.at.span, parameter.name.text
        if name in given:
            checker.error(parameter.name, f"'{name}' stands twice among the parameters")
        if isinstance(expected, tuple):
            given[name] = core.NamedSet("nodes", expected, span)
        elif expected is None:
            given[name] = core.Constant(0.0, span), ERROR
        else:
            sort = expected.sorts[0] if expected.kind == "element" else "integer"
            given[name] = core.Slot(name, sort, span), expected
    with checker.inside(definition.name.text, given):
        body, kind = checker.check(definition.body)
    if isinstance(definition, syntax.ConstraintDefinition) and kind.kind not in ("error", "truth"):
        checker.error(definition.body, f"a constraint is a condition, this is {kind}")
    return body, kind
