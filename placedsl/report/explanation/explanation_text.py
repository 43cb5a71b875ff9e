"""An explanation as lines of text: what stands under the elaborated spec as comments.

Lines are at most 120 long, or as long as is asked for; numbers and places are never cut.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from placedsl.diagnostics import Span
from placedsl.lowering.context import Note
from placedsl.report.explanation.coefficients import SPREAD
from placedsl.report.explanation.contributions import Contribution
from placedsl.report.explanation.explain import Explanation

#: Columns of a page, and those that the marks of comments take.
WIDTH, _MARK = 120, 2
_MIB = 2.0**20
_KINDS = {
    "variable": "var ", "objective": "minimize ", "constraint": "", "row family": "row ", "tight rows": "tight ",
}  # fmt: skip
_HEAD = ("what", "line", "rows", "columns", "entries", "native", "coefficients", "seconds", "MiB")
#: Longer names of parts are cut; places never are.
_LONGEST_NAME = 28
#: The columns of names: what the part is, and where it stands.
_NAMES = 2


def explained(elaborated: str, found: Explanation, width: int = WIDTH) -> str:
    """The elaborated spec with the explanation as comments, in lines of at most ``width`` where words allow it."""
    lines = explanation_lines(found, width - _MARK)
    return elaborated + "\n" + "".join(f"# {line}".rstrip() + "\n" for line in lines)


def explanation_lines(found: Explanation, width: int = WIDTH - _MARK) -> list[str]:
    """All of it, line by line; ``width`` is that of the lines."""
    lines = [line for word, text in found.facts for line in _hanging(f"{word:13}", text, width)]
    lines += ["", "dynamic programming over ideals", *_dynamic_programming(found, width)]
    for one in found.candidates:
        lines += ["", one.plugin, *_against(one.against, width)]
    if found.program is None:
        lines += ["", "program", f"  {found.unstated}"]
        return [*lines, "", *_hanging("path taken: ", found.path, width)]
    lines += ["", "program", *_program(found, width)]
    lines += ["", f"what each part adds to the program that {found.solver} gets", *_table(found, width)]
    if found.lowerings:
        lines += ["", f"lowerings for {found.solver}, by line", *_lowerings(found, width)]
    lines += ["", "numbers", *_numbers(found, width)]
    return [*lines, "", *_hanging("path taken: ", found.path, width)]


def _hanging(start: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=start, subsequent_indent=" " * len(start), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _dynamic_programming(found: Explanation, width: int) -> Iterator[str]:
    fit = found.fit
    if fit.against:
        for reason in fit.against:
            yield from _hanging("  does not fit: ", reason, width)
        return
    yield from _hanging("  ", "objective time_per_sample, pieces contiguous, devices alike within each class", width)
    if fit.presolve:
        yield from _hanging("  ", fit.presolve, width)
    counted = "more ideals than can be counted" if fit.ideals is None else f"{fit.ideals:,} ideals"
    yield f"  {counted} (budget {found.budget:,})"
    if fit.beyond:
        yield from _hanging("  as a bound only, for it does not know: ", ", ".join(fit.beyond), width)
    else:
        yield "  exact for this problem"


def _program(found: Explanation, width: int) -> Iterator[str]:
    linear, formulation = found.program, found.formulation
    assert linear is not None
    assert formulation is not None
    if not found.needed:
        yield "  not needed; --method program would solve:"
    source = formulation.span.source.name.replace("\\", "/").rsplit("/", 1)[-1]
    yield from _hanging("  ", f"formulation {formulation.name} ({source}), solver {found.solver}", width)
    sizes = (
        f"{linear.columns:,} columns ({int(linear.integer.sum()):,} integer), {linear.rows:,} rows, "
        f"{len(linear.column):,} entries; {found.units} units of {found.nodes} nodes"
    )
    yield from _hanging("  ", sizes, width)
    (_, own), *others = found.native
    taken = ", ".join(own) or "nothing; all becomes rows"
    yield from _hanging("  ", f"taken natively by {found.solver}: {taken}", width)
    taking = [f"{name}: {', '.join(kinds)}" for name, kinds in others if kinds]
    nothing = [name for name, kinds in others if not kinds]
    text = "; ".join([*taking, *([f"{', '.join(nothing)}: nothing"] if nothing else [])])
    if text:
        yield from _hanging("  by the others: ", text, width)


def place(span: Span | None, spec: str) -> str:
    """The line of the spec, or file and line of what stands elsewhere."""
    if span is None:
        return ""
    if span.source.name == spec:
        return str(span.line)
    return f"{span.source.name.replace(chr(92), '/').rsplit('/', 1)[-1]}:{span.line}"


def _table(found: Explanation, width: int) -> Iterator[str]:
    rows = [_cells(one, found.spec) for one in found.contributions]
    total = found.contributions
    rows.append((
        "in all", "", f"{sum(c.rows for c in total):,}", f"{sum(c.columns for c in total):,}",
        f"{sum(c.entries for c in total):,}", f"{sum(c.native for c in total):,}", "",
        f"{sum(c.seconds for c in total):.4f}", f"{sum(c.bytes for c in total) / _MIB:.3f}",
    ))  # fmt: skip
    widths = [max(len(row[k]) for row in (_HEAD, *rows)) for k in range(len(_HEAD))]
    if sum(widths) + 2 * len(widths) <= width:
        yield from (_row(row, widths) for row in (_HEAD, *rows))
        return
    # What each part is on a line of its own, and its numbers beneath.
    for row in (_HEAD, *rows):
        yield f"  {row[0]}  {row[1]}".rstrip()
        yield "  " + _row(row[_NAMES:], widths[_NAMES:], names=0)


def _row(cells: Sequence[str], widths: Sequence[int], names: int = _NAMES) -> str:
    """The cells of a row: names to the left, numbers to the right of their columns."""
    return "  " + "  ".join(
        cell.ljust(width) if k < names else cell.rjust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )


def _against(reasons: Sequence[str], width: int) -> list[str]:
    """Why a method of a plug-in does not fit."""
    return [line for reason in reasons for line in _hanging("  does not fit: ", reason, width)] or ["  fits"]


def _cells(one: Contribution, spec: str) -> tuple[str, ...]:
    sizes = f"{one.smallest:.2g} .. {one.largest:.2g}" if one.largest else "-"
    return (
        _short(_KINDS[one.kind] + one.name, _LONGEST_NAME), place(one.span, spec), f"{one.rows:,}",
        f"{one.columns:,}", f"{one.entries:,}", f"{one.native:,}", sizes, f"{one.seconds:.4f}",
        f"{one.bytes / _MIB:.3f}",
    )  # fmt: skip


def _short(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _lowerings(found: Explanation, width: int) -> Iterator[str]:
    for note in sorted(found.lowerings, key=lambda note: _order(note.span, found.spec)):
        times = "once" if note.instances == 1 else f"{note.instances:,} times"
        text = f"{_short(note.constraint, 60)}: {note.rewrite}, {times}"
        big = note.big_m not in (0.0, 1.0)
        text += f", largest big-M {note.big_m:.6g}" if big else ""
        yield from _hanging(*_placed(note.span, found, text), width)
        if big and note.because:
            yield from _hanging(" " * 6, note.because, width)


def _order(span: Span | None, spec: str) -> tuple[bool, str, int]:
    """The spec's own lines first."""
    return (True, "", 0) if span is None else (span.source.name != spec, span.source.name, span.line)


def _numbers(found: Explanation, width: int) -> Iterable[str]:
    if not found.warnings:
        text = f"no row family and no objective has coefficients that lie more than {SPREAD:.0e} apart"
        yield from _hanging("  ", text, width)
    for warning in found.warnings:
        text = f"{_short(warning.name, 60)}: warning: {warning.message}"
        yield from _hanging(*_placed(warning.span, found, text), width)
        yield from _hanging(" " * 6, warning.hint, width)
    strict = [note for note in found.lowerings if note.rewrite.startswith("strict")]
    if strict:
        text = "placements within the margin of a strict comparison are not considered"
        lines = ", ".join(_placed_names(strict, found))
        yield from _hanging("  ", f"{text}: {lines}; write <= or >= where that matters", width)


def _placed_names(notes: Iterable[Note], found: Explanation) -> Iterator[str]:
    for name, line in dict.fromkeys((note.constraint, place(note.span, found.spec)) for note in notes):
        yield f"{name} (line {line})" if line else name


def _placed(span: Span | None, found: Explanation, text: str) -> tuple[str, str]:
    """The beginning of a line and its text."""
    where = place(span, found.spec)
    return f"  {where:>3} ", text
