"""The table of a sweep: a row a run, as records, as CSV, and on terminals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placedsl.sweeps import folder as folders
from placedsl.sweeps.runs import FIELDS, Run, run_of

if TYPE_CHECKING:
    from rich.table import Table as RichTable

#: What a row tells of how its run ended, in the order of the columns.
RESULTS = (
    "value", "bound", "gap", "unit", "termination", "method", "solver", "seconds", "exit_code", "message", "file",
)  # fmt: skip
#: What was asked for under a name that a result bears too.
#: How texts begin that spreadsheets take for formulas.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_ASKED = {"method": "asked_method", "solver": "asked_solver", "gap": "asked_gap"}


@dataclass(frozen=True)
class Row:
    """One run and how it ended.

    ``value``, ``bound``   of the first objective, in ``unit`` (SI); None where there is none
    ``gap``                (value - bound) / value
    ``termination``        as in an answer, ``failed``, or ``not run``
    ``method``, ``solver`` what gave the answer
    ``seconds``            from reading to the end
    ``exit_code``          what ``placedsl solve`` would have returned; None: not run
    ``file``               the document of the run; empty: not run
    ``earlier``            an earlier sweep had run it
    """

    run: Run
    termination: str = "not run"
    value: float | None = None
    bound: float | None = None
    gap: float | None = None
    unit: str = ""
    method: str | None = None
    solver: str | None = None
    seconds: float | None = None
    exit_code: int | None = None
    message: str = ""
    file: str = ""
    earlier: bool = False

    @property
    def failed(self) -> bool:
        """Whether it is tried again by the next sweep, though it was run."""
        return self.termination == "failed"


@dataclass(frozen=True)
class Table:
    """The rows of a sweep, in the order of what was asked for.  ``stopped``: it was interrupted."""

    rows: tuple[Row, ...]
    stopped: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def exit_code(self) -> int:
        """0: answers and proofs; 1: a run failed; 4: not all was run; 5: a run reached a limit without an answer."""
        if self.stopped or any(row.exit_code is None for row in self.rows):
            return 4
        if any(row.failed for row in self.rows):
            return 1
        return 5 if any(row.exit_code == 5 for row in self.rows) else 0

    def varied(self) -> list[str]:
        """The names of what is not the same in all rows; parameters by their names."""
        columns = self._asked()
        return [name for name, values in columns.items() if any(value != values[0] for value in values)]

    def to_records(self) -> list[dict[str, Any]]:
        """A flat record a row: what was asked for (where anything was), then how it ended; pandas takes them."""
        asked = self._asked()
        return [
            {name: values[k] for name, values in asked.items()} | {name: getattr(row, name) for name in RESULTS}
            for k, row in enumerate(self.rows)
        ]

    def csv(self) -> str:
        """The records as CSV, with a heading.

        A text that spreadsheets take for a formula (one that begins with =, +, - or @) has an apostrophe before it.
        """
        paper = io.StringIO()
        names = [*self._asked(), *RESULTS]
        writer = csv.DictWriter(paper, names, lineterminator="\n")
        writer.writerow({name: _no_formula(name) for name in names})
        writer.writerows({name: _no_formula(value) for name, value in row.items()} for row in self.to_records())
        return paper.getvalue()

    def _asked(self) -> dict[str, list[Any]]:
        """Columns of what was asked for: the spec, parameters, and whatever else was given."""
        out: dict[str, list[Any]] = {"spec": [row.run.spec for row in self.rows]}
        for parameter in dict.fromkeys(name for row in self.rows for name in row.run.parameters):
            taken = parameter in FIELDS or parameter in RESULTS or parameter in _ASKED.values()
            name = f"set.{parameter}" if taken else parameter
            out[name] = [row.run.parameters.get(parameter) for row in self.rows]
        for name in FIELDS[1:]:
            values = [getattr(row.run, name) for row in self.rows]
            if any(value is not None for value in values):
                out[_ASKED.get(name, name)] = values
        return out

    def __rich__(self) -> RichTable:
        return shown(self)


def _no_formula(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULAS):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value


def row_of(run: Run, document: Mapping[str, Any], file: Path, earlier: bool = False) -> Row:
    """The row of a run whose document is an answer, or the message of a failure."""
    answer = document.get("answer") if "exit_code" in document else document
    known: dict[str, Any] = {}
    if answer is not None:
        goal = answer["objective"]
        known = {name: goal[name] for name in ("value", "bound", "gap", "unit")}
        known |= {"method": answer["method"], "solver": answer["solver"], "seconds": answer["seconds"]["total"]}
    if "exit_code" in document:
        code, message = document["exit_code"], document["message"]
        return Row(run, "failed", exit_code=code, message=message, file=str(file), earlier=earlier, **known)
    status = document["status"]
    code, message = _exit_code(status["termination"], document["placement"] is not None), status["message"]
    return Row(run, status["termination"], exit_code=code, message=message, file=str(file), earlier=earlier, **known)


def _exit_code(termination: str, placed: bool) -> int:
    """As of an answer."""
    from placedsl.planner.answer import EXIT_INFEASIBLE, EXIT_LIMIT, EXIT_NOTHING, EXIT_SOLVED

    if termination in ("optimal", "gap_reached"):
        return EXIT_SOLVED
    if termination in ("infeasible", "unbounded"):
        return EXIT_INFEASIBLE
    return EXIT_LIMIT if placed else EXIT_NOTHING


def table_of(folder: Path) -> Table:
    """The table of the sweep that was last asked for in a folder, finished or not; UsageError where there is none."""
    rows = []
    for listed in folders.read_list(folder):
        run, key = run_of(listed), str(listed.get("key"))
        rows.append(row_in(folder, run, key, earlier=True) or Row(run))
    return Table(tuple(rows))


def row_in(folder: Path, run: Run, key: str, earlier: bool) -> Row | None:
    """The row of a run as its folder has it; None when it has not been run."""
    name = folders.name_of(run, key)
    answer = folders.finished(folder, name, key)
    if answer is not None:
        return row_of(run, answer, folder / name, earlier)
    failure = folders.failed(folder, name, key)
    return None if failure is None else row_of(run, failure, folder / folders.failure_of(name), earlier)


def amount(value: float | None, unit: str) -> str:
    """A value with its unit, readable; a dash where there is none."""
    from placedsl.units import CANONICAL, show

    if value is None:
        return "-"
    dimension = next((d for d, (name, _) in CANONICAL.items() if name == unit), None)
    return f"{value:.6g}" if dimension is None or not unit else show(value, dimension)


def shown(table: Table) -> RichTable:
    """What varied, and how each run ended."""
    from rich.markup import escape

    from placedsl.report.text import tables

    varied = table.varied()
    out = tables.table(indented=False)
    for name in varied:
        out.add_column(escape(name))
    for name in ("value", "bound", "gap"):
        out.add_column(name, justify="right")
    for name in ("termination", "method"):
        out.add_column(name)
    out.add_column("seconds", justify="right")
    for record, row in zip(table.to_records(), table.rows, strict=True):
        asked = ["" if record[name] is None else str(record[name]) for name in varied]
        gap = "-" if row.gap is None else f"{row.gap:.2%}"
        path = ", ".join(filter(None, (row.method or row.run.method, row.solver)))
        seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
        numbers = (amount(row.value, row.unit), amount(row.bound, row.unit), gap)
        out.add_row(*map(escape, (*asked, *numbers, row.termination.replace("_", " "), path, seconds)))
    return out
