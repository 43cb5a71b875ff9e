"""A sweep from what is asked for to its table: the same for the command and from Python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from placedsl.api import arguments
from placedsl.diagnostics import Diagnostic, UsageError
from placedsl.sweeps import folder as folders
from placedsl.sweeps import plan as plans
from placedsl.sweeps.cluster import Cluster
from placedsl.sweeps.jobs import Job, jobs_of
from placedsl.sweeps.processes import Processes, processors
from placedsl.sweeps.runs import MOST, PARAMETER, Axes, Run, ValueProblem, count, product, usable
from placedsl.sweeps.table import Row, Table, row_in
from placedsl.system import files, interruption
from placedsl.units import whole

Progress = Callable[[Row, int, int], None]


class Listener(Protocol):
    """What hears of a sweep."""

    def begins(self, rows: Sequence[Row], left: int, size: int) -> None:
        """Before anything is run: rows that are there already, how many runs are left, how many go on at a time."""

    def ended(self, row: Row) -> None:
        """A run has ended."""


def sweep(
    *specs: str | Path,
    vary: Mapping[str, object] | None = None,
    method: object = None,
    solver: object = None,
    seed: object = None,
    plan: str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
    data: str | Path | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    workers: int | None = None,
    out: str | Path = "runs",
    jobs: int | None = None,
    dask: str | None = None,
    most: int = MOST,
    progress: Progress | None = None,
) -> Table:
    """Solve every combination, and give the table of it; finished runs of an earlier sweep are taken from ``out``.

    ``vary`` says for parameters of the specs, and for ``schedule``, which values they take; ``method``, ``solver`` and
    ``seed`` are a value or several.  Several are any iterable; a text is one value, or a range as ``"1..8"``.
    ``plan`` is a file of further combinations, ``parameters`` what all runs share, ``time_limit`` in seconds a run.
    ``jobs`` runs go on at a time (None: one a processor), or those that the Dask cluster ``dask`` has threads for.
    ``progress`` hears of each run that ends: (row, how many have ended, how many there are).  Ctrl-C ends it with the
    table so far.  InputError or UsageError before anything is run; what goes wrong in a run is told in its row.
    """
    axes: dict[str, tuple[str, ...]] = {}
    vary = arguments.mapping("vary", vary, "{'gpus': [2, 4]}")
    parameters = arguments.mapping("parameters", parameters, "{'room': '16 GiB'}")
    for name, number in (("jobs", jobs), ("most", most)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise arguments.wrong(name, number, "a whole number is expected, from 1 on")
    named = {PARAMETER + name: value for name, value in {**parameters, **vary}.items()}
    if PARAMETER + "schedule" in named:
        named["schedule"] = named.pop(PARAMETER + "schedule")
    asked = {"spec": specs or None, **named, "data": data, "method": method, "solver": solver, "seed": seed}
    for name, value in (asked | {"time_limit": time_limit, "gap": gap, "workers": workers}).items():
        if value is not None:
            axes[name] = values_of(value)
    runs, wrong = planned(axes, None if plan is None else arguments.path("plan", plan), most)
    listener = None if progress is None else _Told(progress)
    return swept(jobs_of(runs, wrong), arguments.path("out", out), jobs, dask, listener)


def values_of(value: object) -> tuple[str, ...]:
    """The texts of a value as Python gives it, or of several."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return tuple(text for one in value for text in values_of(one))
    try:
        return plans.values(str(value) if isinstance(value, Path) else value)
    except ValueProblem as problem:
        raise UsageError(str(problem)) from None


def planned(axes: Axes, plan: Path | None, most: int = MOST) -> tuple[list[Run], list[Diagnostic]]:
    """Every run of a product, or of a plan whose entries say what differs from it; and which values cannot be.

    UsageError where there is no spec, or more runs than ``most``; InputError for a plan that cannot be used.
    """
    good, problems = usable(axes)
    wrong = [Diagnostic(problem) for problem in problems]
    entries = [{}] if plan is None else [entry for entry, _ in plans.read(plan)]
    every = [{**good, **entry} for entry in entries]
    if any("spec" not in entry for entry in every):
        raise UsageError("no spec is given: placedsl sweep SPEC …, or a spec in each entry of the plan")
    total = sum(map(count, every))
    if total > most:
        by = f" ({factors(every[0])})" if len(every) == 1 else ""
        raise UsageError(
            f"this asks for {total:,} runs{by}, more than {most:,}: vary less, split it into several sweeps, "
            f"or allow as many with --most {total}"
        )
    return [run for entry in every for run in product(entry)], wrong


def factors(axes: Axes) -> str:
    """The sizes of a product, as ``8 gpus x 2 method``."""
    sizes = [(len(values), name.removeprefix(PARAMETER)) for name, values in axes.items()]
    return " x ".join(f"{size:,} {name}" for size, name in sizes if size > 1)


def swept(
    jobs: Sequence[Job],
    folder: Path,
    size: int | None = None,
    dask: str | None = None,
    listener: Listener | None = None,
) -> Table:
    """Run what the folder does not hold yet, and keep it there; the table of all."""
    if size is not None and dask is not None:
        raise UsageError("--jobs is for processes of this machine; a Dask cluster runs as many as it has threads")
    jobs = list({job.key: job for job in jobs}.values())
    folders.ready(folder)
    folders.write_list(folder, jobs)
    rows = _finished(folder, jobs, earlier=True)
    left = sorted((job for job in jobs if job.key not in rows), key=_largest_first)
    stopped = False
    try:
        if left:
            _run(left, folder, rows, size, dask, listener)
        elif listener is not None:
            listener.begins(list(rows.values()), 0, 0)
    except KeyboardInterrupt:
        interruption.caught()
        stopped = True
    except Exception:
        if not interruption.pending():
            raise
        interruption.caught()
        stopped = True
    if stopped:  # an answer may have been written when the interrupt came, and its row not been noted
        rows |= _finished(folder, [job for job in jobs if job.key not in rows], earlier=False)
    table = Table(tuple(rows.get(job.key) or Row(job.run) for job in jobs), stopped and len(rows) < len(jobs))
    files.write(folder / folders.TABLE, table.csv())
    return table


def _finished(folder: Path, jobs: Sequence[Job], *, earlier: bool) -> dict[str, Row]:
    """The rows of the jobs whose answers the folder holds, by key."""
    found = {job.key: row_in(folder, job.run, job.key, earlier=earlier) for job in jobs}
    return {key: row for key, row in found.items() if row is not None and not row.failed}


def _largest_first(job: Job) -> tuple[str, tuple[int, ...]]:
    """The place of a run among those of its spec: what takes longest begins first, and what is found for many devices
    holds for fewer."""
    numbers = (whole(job.run.parameters[name]) or 0 for name in sorted(job.run.parameters))
    return job.run.spec, tuple(-number for number in numbers)


def _run(
    left: Sequence[Job],
    folder: Path,
    rows: dict[str, Row],
    size: int | None,
    dask: str | None,
    listener: Listener | None,
) -> None:
    """Run the jobs, keep what becomes of each, and add its row."""
    pool = Processes(min(size or processors(), len(left))) if dask is None else Cluster(dask)
    if listener is not None:
        listener.begins(list(rows.values()), len(left), pool.size)
    with contextlib.closing(pool.results(left)) as results:
        for job, result in results:
            folders.keep(folder, job, result)
            row = row_in(folder, job.run, job.key, earlier=False)
            assert row is not None
            rows[job.key] = row
            if listener is not None:
                listener.ended(row)


class _Told:
    """A function that hears of rows, as a listener."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.done = self.total = 0

    def begins(self, rows: Sequence[Row], left: int, size: int) -> None:  # noqa: ARG002 - as the protocol has it
        self.done, self.total = len(rows), len(rows) + left

    def ended(self, row: Row) -> None:
        self.done += 1
        self.progress(row, self.done, self.total)
