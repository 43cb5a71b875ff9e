"""Files, functions and parameter lists are short, or say above them why not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINES_OF_A_FILE, LINES_OF_A_FUNCTION, PARAMETERS = 400, 80, 10
#: A comment directly above a function (a file: in its first lines) that begins so gives the reason.
LONG_FILE, LONG_FUNCTION = "# Longer than 400 lines: ", "# Longer than 80 lines: "
MANY_PARAMETERS = "# More than ten arguments: "


def oversized(text: str) -> Iterator[str]:
    """What exceeds a limit without a reason, as ``line: what``."""
    lines = text.splitlines()
    if len(lines) > LINES_OF_A_FILE and not any(line.startswith(LONG_FILE) for line in lines[:10]):
        yield f"1: {len(lines)} lines"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        comments = takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[:first]))
        above = [line.strip() for line in comments]
        length = (node.end_lineno or node.lineno) - node.lineno
        parameters = len(node.args.posonlyargs) + len(node.args.args)
        for size, most, what, reason in (
            (length, LINES_OF_A_FUNCTION, "lines", LONG_FUNCTION),
            (parameters, PARAMETERS, "parameters", MANY_PARAMETERS),
        ):
            if size > most and not any(line.startswith(reason) for line in above):
                yield f"{node.lineno}: {node.name} has {size} {what}"


def test_files_and_functions_are_short_or_say_why_not() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{finding}"
        for folder in ("placedsl", "tests", "benchmarks", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for finding in oversized(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_what_is_too_large_is_found_unless_a_reason_stands_above_it() -> None:
    body = "".join(f"    x{i} = {i}\n" for i in range(90))
    many = ", ".join(f"a{i}" for i in range(11))
    assert list(oversized("def f():\n" + body)) == ["1: f has 90 lines"]
    assert list(oversized(f"@cached\ndef f({many}):\n    pass\n")) == ["2: f has 11 parameters"]
    assert list(oversized("# Longer than 80 lines: a table.\n# Really.\n@cached\ndef f():\n" + body)) == []
    assert list(oversized("# Longer than 80 lines: no reason for this.\n" + f"def f({many}):\n    pass\n")) == [
        "2: f has 11 parameters"
    ]
    assert list(oversized("x = 0\n" * 401)) == ["1: 401 lines"]
    assert list(oversized("# Longer than 400 lines: a table.\n" + "x = 0\n" * 401)) == []
