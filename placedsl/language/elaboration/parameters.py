"""Parameters: values declared in the spec or given from outside, each possibly made of others."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.diagnostics import Diagnostic, UsageError, nearest
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.vocabulary import TEXT, TRUTH, Type, Value, number, types
from placedsl.language.elaboration.external_values import ExternalValues
from placedsl.language.elaboration.imports import first_at
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expressions as core
from placedsl.units import UnitError, parse_quantity


def read(checker: Checker, declared: Sequence[syntax.Param], given: ExternalValues) -> None:
    """Fill ``checker.parameters``, each after those that it uses; indexed ones are read elsewhere.

    UsageError for a value from the command line that fits no parameter.
    """
    statements: dict[str, syntax.Param] = {}
    for statement in declared:
        first = statements.setdefault(statement.name.text, statement)
        if first is not statement:
            name = statement.name.text
            checker.error(statement.name, f"parameter '{name}' is declared twice", first_at(statement.at, first.at))
    _unknown(checker, statements, given)
    known, open_names = checker.parameters, list[str]()

    def resolve(name: str) -> None:
        if name in known:
            return
        statement = statements[name]
        if name in open_names:
            checker.error(statement.name, f"parameter '{name}' is defined by itself")
            known[name] = (0.0, Type("error"))
            return
        open_names.append(name)
        for other in bare_names(statement.value):
            if other in statements and not statements[other].items:
                resolve(other)
        open_names.pop()
        if name not in known:
            known[name] = _value(checker, statement, given)

    for name, statement in statements.items():
        if not statement.items:
            resolve(name)


def _unknown(checker: Checker, statements: dict[str, syntax.Param], given: ExternalValues) -> None:
    for name in given.texts:
        if name not in statements:
            hint = nearest(name, statements) or "the spec declares no parameters"
            raise UsageError(f"--set {name}: the spec has no parameter '{name}' ({hint})")
        if statements[name].items:
            raise UsageError(f"--set {name}: '{name}' has a value for each of its indices; give them in a data file")
    for name in given.data:
        if name not in statements:
            hint = nearest(name, statements) or "the spec declares no parameters"
            checker.found.append(Diagnostic(f"the spec has no parameter '{name}'", given.place([name]), hint))


def _value(checker: Checker, statement: syntax.Param, given: ExternalValues) -> Value:
    """The value of one parameter, given or its default."""
    name = statement.name.text
    declared = statement.type.text if statement.type else None
    kinds = types()
    if statement.type and declared not in kinds:
        checker.error(statement.type, f"'{declared}' is no type", nearest(str(declared), kinds))
        declared = None
    default: Value | None = None
    if statement.value is not None:
        out, kind = checker.check(statement.value)
        if kind.kind == "error":
            return 0.0, kind
        if not isinstance(out, core.Constant):
            checker.error(statement.value, "a parameter's value must be known beforehand")
            return 0.0, Type("error")
        default = (out.value, kind)
    wanted = kinds[declared] if declared else default[1] if default else None
    value = default
    if name in given.texts:
        value = _from_text(name, given.texts[name], wanted)
    elif name in given.data:
        value = from_data(checker, given, [name], given.data[name], wanted)
    elif default is not None and wanted is not None and default[1] != wanted:
        checker.error(statement.value or statement.name,
                      f"parameter '{name}' is declared {wanted}, its value is {default[1]}")  # fmt: skip
    if value is None:
        hint = f"give one with --set {name}=…, or in a data file"
        checker.error(statement.name, f"parameter '{name}' has no value", hint)
        return 0.0, Type("error")
    if declared == "int" and not isinstance(value[0], str) and not float(value[0]).is_integer():
        checker.error(statement.value or statement.name, f"parameter '{name}' is declared int, its value is {value[0]}")
    return value


def _from_text(name: str, text: str, wanted: Type | None) -> Value:
    """A value from the command line."""
    if wanted is not None and wanted.kind == "text":
        return text, TEXT
    if wanted is not None and wanted.kind == "truth":
        if text not in ("true", "false"):
            raise UsageError(f"--set {name}={text}: true or false is expected")
        return text == "true", TRUTH
    try:
        quantity = parse_quantity(text)
    except UnitError as problem:
        raise UsageError(f"--set {name}={text}: {problem}") from None
    given = number(quantity.dimension)
    if wanted is not None and given != wanted:
        raise UsageError(f"--set {name}={text}: parameter '{name}' is {wanted}, this is {given}")
    return quantity.value, given


def from_data(checker: Checker, given: ExternalValues, path: list[str], raw: object, wanted: Type | None) -> Value:
    """A value of a data file: a number, true or false, or a text (``"16 GiB"`` where a number is wanted)."""
    problem = ""
    value: Value = 0.0, Type("error")
    if isinstance(raw, bool):
        value = raw, TRUTH
    elif isinstance(raw, int | float):
        value = float(raw), number(parse_quantity("1").dimension)
    elif isinstance(raw, str) and (wanted is None or wanted.kind == "text"):
        value = raw, TEXT
    elif isinstance(raw, str):
        try:
            quantity = parse_quantity(raw)
            value = quantity.value, number(quantity.dimension)
        except UnitError as found:
            problem = str(found)
    else:
        problem = "a number, a text, true or false is expected here"
    if not problem and wanted is not None and value[1] != wanted and not (value[0] == 0.0 and wanted.kind == "number"):
        problem = f"'{path[0]}' is {wanted}, this is {value[1]}"
    if problem:
        checker.found.append(Diagnostic(problem, given.place(path)))
        return 0.0, Type("error")
    return value


def bare_names(node: object) -> set[str]:
    """Every bare name in a piece of syntax, also that of a call; a text is one, unless it is compared."""
    out: set[str] = set()
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, syntax.Name | syntax.Call):
            out.add(part.name)
        elif isinstance(part, syntax.Text):
            out.add(part.value)
        if isinstance(part, syntax.At | syntax.Word):
            continue
        if isinstance(part, syntax.Compare):
            stack.extend(o for o in part.operands if not isinstance(o, syntax.Text))
        elif isinstance(part, tuple):
            stack.extend(part)
        elif hasattr(part, "__slots__"):
            stack.extend(getattr(part, s) for s in part.__slots__)
    return out
