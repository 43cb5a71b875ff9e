"""Parameters: values declared in the spec, given on the command line, each possibly made of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placedsl import expressions as core
from placedsl.diagnostics import UsageError, nearest
from placedsl.language import syntax
from placedsl.language.checking import Checker
from placedsl.language.vocabulary import PLAIN, TEXT, TRUTH, Type, Value, number
from placedsl.units import DATA, TIME, UnitError, parse_quantity


def read(checker: Checker, declared: Sequence[syntax.Param], overrides: Mapping[str, str]) -> None:
    """Fill ``checker.parameters``, each after those that it uses; UsageError for an override that fits none."""
    statements: dict[str, syntax.Param] = {}
    for statement in declared:
        if statement.name.text in statements:
            checker.error(statement.name, f"parameter '{statement.name.text}' is declared twice")
        statements.setdefault(statement.name.text, statement)
    for name in overrides:
        if name not in statements:
            hint = nearest(name, statements) or "the spec declares no parameters"
            raise UsageError(f"--set {name}: the spec has no parameter '{name}' ({hint})")
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
            if other in statements:
                resolve(other)
        open_names.pop()
        if name not in known:
            known[name] = _value(checker, statement, overrides)

    for name in statements:
        resolve(name)


def _value(checker: Checker, statement: syntax.Param, overrides: Mapping[str, str]) -> Value:
    """The value of one parameter, given or its default."""
    name = statement.name.text
    declared = statement.type.text if statement.type else None
    kinds = {"int": PLAIN, "number": PLAIN, "real": PLAIN, "time": number(TIME), "data": number(DATA),
             "text": TEXT, "bool": TRUTH}  # fmt: skip
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
    given = default
    if name in overrides:
        given = _override(name, overrides[name], wanted)
    elif default is not None and wanted is not None and default[1] != wanted:
        checker.error(statement.value or statement.name,
                      f"parameter '{name}' is declared {wanted}, its value is {default[1]}")  # fmt: skip
    if given is None:
        checker.error(statement.name, f"parameter '{name}' has no value", f"give one with --set {name}=…")
        return 0.0, Type("error")
    if declared == "int" and not float(given[0]).is_integer():
        checker.error(statement.value or statement.name, f"parameter '{name}' is declared int, its value is {given[0]}")
    return given


def _override(name: str, text: str, wanted: Type | None) -> Value:
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


def bare_names(node: object) -> set[str]:
    """Every bare name in a piece of syntax."""
    out: set[str] = set()
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, syntax.Name):
            out.add(part.name)
        elif isinstance(part, tuple):
            stack.extend(part)
        elif hasattr(part, "__slots__") and not isinstance(part, syntax.Word):
            stack.extend(getattr(part, s) for s in part.__slots__)
    return out
