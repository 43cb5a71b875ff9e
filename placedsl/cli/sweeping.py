"""``placedsl sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from placedsl.cli.options import SET, console, write
from placedsl.diagnostics import Diagnostic, UsageError
from placedsl.system import interruption

if TYPE_CHECKING:
    from placedsl.sweeps.table import Table


# More than ten arguments: one per option of the command.
@click.command()
@click.argument("specs", nargs=-1, type=click.Path(path_type=Path), metavar="[SPEC]...")
@click.option(
    "--vary", multiple=True, metavar="NAME=VALUES", help="A parameter, or schedule: 1..4,8 or '8 GiB,16 GiB'."
)
@click.option("--method", metavar="NAMES", help="As for solve; several with commas.")
@click.option("--solver", metavar="NAMES", help="As for solve; several with commas.")
@click.option("--seed", metavar="VALUES", help="As for solve; several as in 0..4.")
@click.option(
    "--plan", type=click.Path(path_type=Path), metavar="FILE", help="Runs other than a full product (TOML or CSV)."
)
@SET
@click.option("--data", metavar="FILE", help="Values of parameters (JSON or TOML), the same for all runs.")
@click.option("--time-limit", metavar="TIME", help="Per run, as in 60s or '10 min'.")
@click.option("--gap", metavar="SHARE", help="Per run, as in 1%.")
@click.option("--workers", metavar="N", help="Solver threads per run (default: processors / jobs).")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs"), metavar="FOLDER", show_default=True,
              help="Folder of the answers.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Parallel runs (default: one per processor).")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler, as in tcp://host:8786.")
@click.option("--most", type=click.IntRange(min=1), default=10_000, metavar="N", show_default=True,
              help="Maximum number of runs; more are an error.")  # fmt: skip
@click.option(
    "--table", type=click.Path(path_type=Path), metavar="FOLDER", help="Print the table of a folder; run nothing."
)
@click.option("--csv", "csv_file", metavar="FILE", help="Also write the table to this file, or to stdout instead (-).")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def sweep(
    specs: tuple[Path, ...],
    vary: tuple[str, ...],
    parameters: dict[str, str],
    plan: Path | None,
    out: Path,
    jobs: int | None,
    dask: str | None,
    most: int,
    table: Path | None,
    csv_file: str | None,
    quiet: bool,
    **wanted: str | None,
) -> int:
    """Solve every combination of the varied settings, in parallel; finished runs are not repeated."""
    from placedsl.report.text import tables
    from placedsl.sweeps.engine import factors, planned, swept
    from placedsl.sweeps.jobs import jobs_of
    from placedsl.sweeps.progress import ProgressBar
    from placedsl.sweeps.runs import PARAMETER, several
    from placedsl.sweeps.table import shown, table_of

    if table is not None:
        if specs or plan:
            raise UsageError("--table prints the table of a folder, and runs nothing: give it without specs or a plan")
        found = table_of(table)
    else:
        axes = {"spec": tuple(map(str, specs))} if specs else {}
        axes |= {PARAMETER + name: (value,) for name, value in parameters.items()}
        wrong: list[Diagnostic] = []
        for option, name, text in _several(vary, wanted):
            values, problems = several(text, most)
            problems += ["it is given twice; several values are written with commas"] if name in axes else []
            axes |= {name: values} if values else {}
            wrong += [Diagnostic(f"{option}: {problem}") for problem in problems]
        for name in ("data", "time_limit", "gap", "workers"):
            single = wanted[name]
            axes |= {} if single is None else {name: (single,)}
        runs, unusable = planned(axes, plan, most)
        asked = jobs_of(runs, [*wrong, *unusable])
        with ProgressBar(quiet, "" if plan else factors(axes)) as bar, interruption.stoppable():
            found = swept(asked, out, jobs, dask, bar)
    if csv_file is not None:
        write(None if csv_file == "-" else Path(csv_file), found.csv())
    if csv_file != "-":
        tables.print_table(shown(found), console())
        _tell_failures(found)
    if found.stopped:
        left = sum(row.exit_code is None for row in found)
        click.echo(f"stopped: {left} of {len(found)} were not run; the same command goes on from here", err=True)
    return found.exit_code


def _tell_failures(table: Table) -> None:
    """Each message once, with the first of the runs that failed with it."""
    failed = [row for row in table if row.failed]
    for message in dict.fromkeys(row.message for row in failed):
        alike = [row for row in failed if row.message == message]
        others = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        click.echo(f"failed: {alike[0].run.words()}{others}: {message}", err=True)


def _several(vary: tuple[str, ...], wanted: dict[str, str | None]) -> list[tuple[str, str, str]]:
    """The options that take several values: as they were given, their axes, their texts."""
    from placedsl.sweeps.runs import PARAMETER

    out = []
    for pair in vary:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise UsageError(f"--vary {pair}: as in --vary gpus=1..8")
        out.append((f"--vary {name}", "schedule" if name == "schedule" else PARAMETER + name, text))
    for name in ("method", "solver", "seed"):
        given = wanted[name]
        out += [] if given is None else [(f"--{name}", name, given)]
    return out
