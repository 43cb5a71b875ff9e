"""``placedsl fmt`` and ``placedsl lsp``: what an editor, and a check before a commit, need."""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path

import click

from placedsl.diagnostics import Diagnostic, InputError, Source, UsageError
from placedsl.system.files import write


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Change nothing; name the files that would change, exit code 1 if any.")
@click.option("--diff", is_flag=True, help="Change nothing; print what would change.")
def fmt(files: tuple[str, ...], check: bool, diff: bool) -> int:
    """Format each FILE in place (- is stdin to stdout).  Only blanks and indentation change.

    A file with syntax errors is not changed.
    """
    from placedsl.language.syntax.formatter import formatted

    found: list[Diagnostic] = []
    different: list[str] = []
    for name in files:
        try:
            source = _read(name)
            new = formatted(source.text, source.name)
        except InputError as problem:
            found += problem.diagnostics
            continue
        if new != source.text:
            different.append(source.name)
        if diff:
            click.echo(_difference(source, new), nl=False)
        if check or diff:
            continue
        if name == "-":
            click.echo(new, nl=False)
        elif new != source.text:
            write(Path(name), new)
    if check:
        for name in different:
            click.echo(f"{name} would change", err=diff)
    if found:
        raise InputError(found)
    return 1 if check and different else 0


@click.command()
@click.option(
    "--stdio", is_flag=True, expose_value=False, help="Accepted for compatibility; the server always uses stdio."
)
def lsp() -> int:
    """Run the language server for editors, over stdin and stdout."""
    try:
        from placedsl.server.protocol import serve
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "cattrs", "attrs"):
            raise
        raise UsageError(
            f"the language server needs {problem.name}, which is not installed: pip install 'placedsl[editor]'"
        ) from None
    return serve()


def _read(name: str) -> Source:
    """A file with its line ends as they are, or stdin."""
    from placedsl.language.syntax.source_files import read_source

    if name != "-":
        source = read_source(Path(name))
        return Source(source.name, Path(name).read_bytes().decode("utf-8-sig")) if source.text else source
    try:
        return Source("<stdin>", sys.stdin.buffer.read().decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        raise InputError([Diagnostic(f"stdin is not a text in UTF-8: byte {problem.start} cannot be read")]) from None


def _difference(source: Source, new: str) -> str:
    """A unified diff; it marks a last line without a line end."""
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (source.text, new))
    lines = difflib.unified_diff(before, after, source.name, f"{source.name} (laid out)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
