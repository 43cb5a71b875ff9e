"""An explanation as lines of text, at most 120 wide: what stands under the elaborated spec as comments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from placedsl.diagnostics import Span
from placedsl.lowering.context import Note
from placedsl.report.explanation.coefficients import SPREAD
from placedsl.report.explanation.contributions import Contribution
from placedsl.report.explanation.explain import Explanation

_WIDTH = 118
_MIB = 2.0**20
_KINDS = {
    "variable": "var ", "objective": "minimize ", "constraint": "", "row family": "row ", "tight rows": "tight ",
}  # fmt: skip
_HEAD = ("what", "line", "rows", "columns", "entries", "native", "coefficients", "seconds", "MiB")
_MOST = (28, 20)


def explained(elaborated: str, found: Explanation) -> str:
    """The elaborated spec with the explanation as comments."""
    return elaborated + "\n" + "".join(f"# {line}".rstrip() + "\n" for line in explanation_lines(found))


def explanation_lines(found: Explanation) -> list[str]:
    """All of it, line by line."""
    lines = [line for word, text in found.facts for line in _hanging(f"{word:13}", text)]
    lines += ["", "dynamic programming over ideals", *_dynamic_programming(found)]
    for one in found.candidates:
        lines += ["", one.plugin, *([f"  does not fit: {reason}" for reason in one.against] or ["  fits"])]
    lines += ["", "program", *_program(found)]
    lines += ["", f"what each part adds to the program that {found.solver} gets", *_table(found)]
    if found.lowerings:
        lines += ["", f"lowerings for {found.solver}, by line", *_lowerings(found)]
    lines += ["", "numbers", *_numbers(found)]
    return [*lines, "", *_hanging("path taken: ", found.path)]


def _hanging(start: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _dynamic_programming(found: Explanation) -> Iterator[str]:
    fit = found.fit
    if fit.against:
        for reason in fit.against:
            yield from _hanging("  does not fit: ", reason)
        return
    yield "  objective time_per_sample, pieces contiguous, devices alike within each class"
    counted = "more ideals than can be counted" if fit.ideals is None else f"{fit.ideals:,} ideals"
    yield f"  {counted} (budget {found.budget:,})"
    if fit.beyond:
        yield from _hanging("  as a bound only, for it does not know: ", ", ".join(fit.beyond))
    else:
        yield "  exact for this problem"


def _program(found: Explanation) -> Iterator[str]:
    linear = found.program
    if not found.needed:
        yield "  not needed; --method program would solve:"
    source = found.formulation.span.source.name.replace("\\", "/").rsplit("/", 1)[-1]
    yield f"  formulation {found.formulation.name} ({source}), solver {found.solver}"
    yield (
        f"  {linear.columns:,} columns ({int(linear.integer.sum()):,} integer), {linear.rows:,} rows, "
        f"{len(linear.column):,} entries; {found.units} units of {found.nodes} nodes"
    )
    (_, own), *others = found.native
    yield f"  taken natively by {found.solver}: " + (", ".join(own) or "nothing; all becomes rows")
    taking = [f"{name}: {', '.join(kinds)}" for name, kinds in others if kinds]
    nothing = [name for name, kinds in others if not kinds]
    text = "; ".join([*taking, *([f"{', '.join(nothing)}: nothing"] if nothing else [])])
    if text:
        yield from _hanging("  by the others: ", text)


def place(span: Span | None, spec: str) -> str:
    """The line of the spec, or file and line of what stands elsewhere."""
    if span is None:
        return ""
    if span.source.name == spec:
        return str(span.line)
    return f"{span.source.name.replace(chr(92), '/').rsplit('/', 1)[-1]}:{span.line}"


def _table(found: Explanation) -> Iterator[str]:
    rows = [_cells(one, found.spec) for one in found.contributions]
    total = found.contributions
    rows.append((
        "in all", "", f"{sum(c.rows for c in total):,}", f"{sum(c.columns for c in total):,}",
        f"{sum(c.entries for c in total):,}", f"{sum(c.native for c in total):,}", "",
        f"{sum(c.seconds for c in total):.4f}", f"{sum(c.bytes for c in total) / _MIB:.3f}",
    ))  # fmt: skip
    widths = [max(len(row[k]) for row in (_HEAD, *rows)) for k in range(len(_HEAD))]
    for row in (_HEAD, *rows):
        yield "  " + "  ".join(
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )


def _cells(one: Contribution, spec: str) -> tuple[str, ...]:
    sizes = f"{one.smallest:.2g} .. {one.largest:.2g}" if one.largest else "-"
    return (
        _short(_KINDS[one.kind] + one.name, _MOST[0]), _short(place(one.span, spec), _MOST[1]), f"{one.rows:,}",
        f"{one.columns:,}", f"{one.entries:,}", f"{one.native:,}", sizes, f"{one.seconds:.4f}",
        f"{one.bytes / _MIB:.3f}",
    )  # fmt: skip


def _short(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _lowerings(found: Explanation) -> Iterator[str]:
    for note in sorted(found.lowerings, key=lambda note: _order(note.span, found.spec)):
        times = "once" if note.instances == 1 else f"{note.instances:,} times"
        text = f"{_short(note.constraint, 60)}: {note.rewrite}, {times}"
        big = note.big_m not in (0.0, 1.0)
        yield from _hanging(*_placed(note.span, found, text + (f", largest big-M {note.big_m:.6g}" if big else "")))
        if big and note.because:
            yield from _hanging(" " * 6, note.because)


def _order(span: Span | None, spec: str) -> tuple[bool, str, int]:
    """The spec's own lines first."""
    return (True, "", 0) if span is None else (span.source.name != spec, span.source.name, span.line)


def _numbers(found: Explanation) -> Iterable[str]:
    if not found.warnings:
        yield f"  no row family and no objective has coefficients that lie more than {SPREAD:.0e} apart"
    for warning in found.warnings:
        text = f"{_short(warning.name, 60)}: warning: {warning.message}"
        yield from _hanging(*_placed(warning.span, found, text))
        yield from _hanging(" " * 6, warning.hint)
    strict = [note for note in found.lowerings if note.rewrite.startswith("strict")]
    if strict:
        text = "placements within the margin of a strict comparison are not considered"
        lines = ", ".join(_placed_names(strict, found))
        yield from _hanging("  ", f"{text}: {lines}; write <= or >= where that matters")


def _placed_names(notes: Iterable[Note], found: Explanation) -> Iterator[str]:
    for name, line in dict.fromkeys((note.constraint, place(note.span, found.spec)) for note in notes):
        yield f"{name} (line {line})" if line else name


def _placed(span: Span | None, found: Explanation, text: str) -> tuple[str, str]:
    """The beginning of a line and its text."""
    where = place(span, found.spec)
    return f"  {where:>3} ", text
