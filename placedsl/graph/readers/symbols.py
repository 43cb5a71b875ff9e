"""Sizes of an exported program: whole numbers, or expressions over symbols such as ``2*s77``."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Mapping


class UnknownSizeError(ValueError):
    """An expression that cannot be read."""


def symbol(text: str) -> str | None:
    """The name of the symbol that an expression is, if it is nothing else."""
    try:
        return _name(_parsed(text))
    except UnknownSizeError:
        return None


def value(text: str, known: Mapping[str, int]) -> int:
    """The number that an expression is, given its symbols; UnknownSizeError when it cannot be read."""
    return _value(_parsed(text), known)


def _parsed(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnknownSizeError(text) from None


def _name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name)), *_]):
            return name
    return None


def _value(node: ast.expr, known: Mapping[str, int]) -> int:
    name = _name(node)
    if name is not None:
        if name not in known:
            raise UnknownSizeError(name)
        return known[name]
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, known)
        case ast.BinOp(left=left, op=op, right=right):
            names = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Pow: "Pow", ast.FloorDiv: "FloorDiv",
                     ast.Div: "FloorDiv", ast.Mod: "Mod"}  # fmt: skip
            return _applied(names.get(type(op), ""), [_value(left, known), _value(right, known)])
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return _applied(function, [_value(argument, known) for argument in arguments])
    raise UnknownSizeError(ast.unparse(node))


def _applied(function: str, numbers: list[int]) -> int:
    match function, numbers:
        case "Integer", [number]:
            return number
        case "Add", _:
            return sum(numbers)
        case "Sub", [a, b]:
            return a - b
        case "Mul", _:
            return math.prod(numbers)
        case "Pow", [a, b] if 0 <= b <= 8:
            return int(a**b)
        case (("FloorDiv" | "CleanDiv" | "IntTrueDiv"), [a, b]) if b:
            return a // b
        case "CeilDiv", [a, b] if b:
            return -(-a // b)
        case (("Mod" | "PythonMod"), [a, b]) if b:
            return a % b
        case "Max", [_, *_]:
            return max(numbers)
        case "Min", [_, *_]:
            return min(numbers)
    raise UnknownSizeError(function)
