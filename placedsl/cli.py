"""The command line: ``placedsl solve | conflict | check | explain | evaluate | import | solvers | fmt | lsp``."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from placedsl.commands import editing
from placedsl.diagnostics import Diagnostic, InputError, PlacedslError, UsageError

if TYPE_CHECKING:
    from placedsl.api import Spec
    from placedsl.conflicts.conflict import Conflict

_EXIT_FAULT = 70
_EXIT_USAGE = 2
_EXIT_LIMIT = 4
_EXIT_NOTHING = 5


class _Quantity(click.ParamType[float]):
    """``60s`` where a time is wanted, ``1%`` where a share is; plain numbers do for both."""

    def __init__(self, name: str, example: str, most: float = math.inf) -> None:
        self.name, self.example, self.most = name, example, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number in seconds, or the share of one."""
        from placedsl.units import NUMBER, TIME, UnitError, parse_quantity

        if isinstance(value, float):
            return value
        try:
            quantity = parse_quantity(str(value))
        except UnitError as problem:
            self.fail(str(problem), param, ctx)
        wanted = (TIME, NUMBER) if self.name == "time" else (NUMBER,)
        if quantity.dimension not in wanted or not 0 <= quantity.value < self.most:
            self.fail(f"'{value}' is no {self.name}: as in {self.example}", param, ctx)
        return quantity.value


def _settings(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    out = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"'{value}' is not name=value")
        out[name.strip()] = text.strip()
    return out


_SPEC = click.argument("spec", type=click.Path(path_type=Path))
_SET = click.option(
    "--set", "parameters", multiple=True, metavar="NAME=VALUE", callback=_settings, help="Give a parameter its value."
)
_DATA = click.option(
    "--data", type=click.Path(path_type=Path), metavar="FILE", help="Values of parameters (JSON or TOML)."
)
_SOLVER = click.option("--solver", metavar="NAME", help="auto, cp-sat, highs, pyomo[:NAME], mip or cvxpy.")
_METHOD = click.option("--method", metavar="NAME", help="auto, dp or program.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="placedsl")
def cli() -> None:
    """Say where the operators of a neural network may run; get a placement with a proven bound."""


@cli.command()
@_SPEC
@_SOLVER
@_METHOD
@click.option("--time-limit", type=_Quantity("time", "60s or '10 min'"), help="As in 60s or '10 min'.")
@click.option("--gap", type=_Quantity("share", "1% or 0.01", 1.0), help="Stop this near the bound, as in 1%.")
@click.option("--workers", type=click.IntRange(min=1), help="Threads that the solver may use.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of whatever is random.")
@_SET
@_DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the answer as JSON to a file, or to stdout (-).")
@click.option("--picture", type=click.Path(path_type=Path), metavar="FILE", help="Draw the answer (svg, png, pdf).")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.option(
    "--explain-conflict/--no-conflict", "by_instance", default=None,
    help="Where nothing is feasible: which instances of the constraints conflict; or do not look for a conflict.",
)  # fmt: skip
@click.option("--why", is_flag=True, help="What binds, the bottleneck, and what more devices or memory would bring.")
def solve(
    spec: Path,
    parameters: dict[str, str],
    data: Path | None,
    json_file: str | None,
    picture: Path | None,
    quiet: bool,
    by_instance: bool | None,
    why: bool,
    **wanted: Any,
) -> int:
    """Find a placement for SPEC."""
    from placedsl import api
    from placedsl.report import picture as pictures
    from placedsl.report.conflict import print_conflict
    from placedsl.report.document import document
    from placedsl.report.progress import ProgressLine
    from placedsl.report.summary import print_answer
    from placedsl.report.why import print_why
    from placedsl.sensitivity.why import EACH

    loaded = api.load(spec, parameters, data)
    target = None if json_file in (None, "-") else Path(str(json_file))
    if target is not None and not target.parent.is_dir():
        raise UsageError(f"--json {target}: there is no folder '{target.parent}'")
    if target is not None and target.is_dir():
        raise UsageError(f"--json {target}: this is a folder")
    if picture is not None:
        pictures.check(picture)
    with ProgressLine(loaded.problem.objectives[0], quiet) as line:
        answer = loaded.solve(progress=line.update, **wanted)
    if json_file != "-":
        print_answer(answer, _console())
    conflict = reasons = None
    if why and answer.placement is not None:
        with contextlib.suppress(KeyboardInterrupt):
            chosen = {k: wanted[k] for k in ("solver", "method", "workers", "seed")}
            reasons = loaded.why(answer, time_limit=min(EACH, wanted["time_limit"] or math.inf), **chosen)
    if reasons is not None and json_file != "-":
        print_why(reasons, _console())
    if answer.termination == "infeasible" and by_instance is not False:
        conflict = _conflict(loaded, bool(by_instance), wanted)
    if conflict is not None and json_file != "-":
        print_conflict(conflict, _console())
    if json_file is not None:
        text = json.dumps(document(answer, conflict, reasons), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        _write(target, text)
    if picture is not None and answer.placement is not None:
        pictures.draw(answer, picture)
    return answer.exit_code


def _conflict(loaded: Spec, by_instance: bool, wanted: dict[str, Any]) -> Conflict | None:
    """The conflict of a spec that has no placement, within a time of its own; None when the user stops the search."""
    from placedsl.conflicts.conflict import LONG, SHORT

    given = wanted["time_limit"] or math.inf
    limit = min(given, LONG if by_instance else SHORT)
    with contextlib.suppress(KeyboardInterrupt):
        return loaded.conflict(
            by_instance=by_instance, infeasible=True, time_limit=limit,
            solver=wanted["solver"], workers=wanted["workers"], seed=wanted["seed"],
        )  # fmt: skip
    return None


@cli.command()
@_SPEC
@_SOLVER
@click.option("--instances", "by_instance", is_flag=True, help="Down to the instances of each constraint.")
@click.option("--time-limit", type=_Quantity("time", "60s or '10 min'"), help="As in 60s or '10 min'.")
@click.option("--workers", type=click.IntRange(min=1), help="Threads that the solver may use.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of whatever is random.")
@_SET
@_DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the conflict as JSON to a file, or to stdout (-).")
def conflict(spec: Path, parameters: dict[str, str], data: Path | None, json_file: str | None, **wanted: Any) -> int:
    """Say which constraints of SPEC cannot hold together, and what would repair it."""
    from placedsl import api
    from placedsl.report.conflict import print_conflict
    from placedsl.report.document import conflict_document

    found = api.load(spec, parameters, data).conflict(**wanted)
    if json_file is not None:
        told = None if found is None else conflict_document(found)
        _write(None if json_file == "-" else Path(json_file), json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    if found is None:
        if json_file != "-":
            click.echo(f"{spec}: there is a placement; nothing conflicts")
        return 0
    if json_file != "-":
        print_conflict(found, _console())
    return 3


@cli.command()
@_SPEC
@_SET
@_DATA
def check(spec: Path, parameters: dict[str, str], data: Path | None) -> int:
    """Check SPEC: syntax, names, types, units, its data, and that it is linear.  Nothing is solved."""
    from placedsl import api

    loaded = api.load(spec, parameters, data)
    loaded.check()
    problem = loaded.problem
    devices = len(problem.machine.devices)
    click.echo(f"{spec}: {problem.graph.nodes} nodes, {devices} devices, {len(problem.rules)} constraints; no errors")
    return 0


@cli.command()
@_SPEC
@_SOLVER
@_METHOD
@_SET
@_DATA
def explain(spec: Path, solver: str | None, method: str | None, parameters: dict[str, str], data: Path | None) -> int:
    """Print the elaborated SPEC, which path will be taken and why the others were not, and sizes."""
    from placedsl import api

    text = api.load(spec, parameters, data).explain(solver=solver, method=method)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        from placedsl.report.pygments_lexer import coloured

        text = coloured(text)
    click.echo(text, nl=False)
    return 0


@cli.command()
@_SPEC
@click.argument("placement", type=click.Path(path_type=Path))
@_SET
@_DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the evaluation as JSON to a file, or to stdout (-).")
def evaluate(spec: Path, placement: Path, parameters: dict[str, str], data: Path | None, json_file: str | None) -> int:
    """Say what PLACEMENT (JSON) costs under SPEC, and what it violates."""
    from placedsl import api
    from placedsl import placement as placements
    from placedsl.cost.evaluate import evaluate as evaluated
    from placedsl.graph.readers import load as load_text
    from placedsl.report.document import evaluation_document
    from placedsl.report.summary import print_evaluation

    loaded = api.load(spec, parameters, data)
    source = load_text(placement)
    places = placements.read(loaded.problem, source)
    evaluation = evaluated(loaded.problem, places, placements.read_values(loaded.problem, source))
    if json_file is not None:
        result = evaluation_document(loaded.problem, evaluation)
        target = None if json_file == "-" else Path(json_file)
        _write(target, json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    if json_file != "-":
        print_evaluation(loaded.problem, evaluation, _console())
    return 0 if not evaluation.violations else 3


@cli.command(name="import")
@click.argument("format_name", metavar="FORMAT", type=click.Choice(["dnn-partitioning"]))
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--non-contiguous", is_flag=True, help="Do not ask for contiguous pieces.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The spec to write (- is stdout).")
def import_(format_name: str, workload: Path, non_contiguous: bool, output: Path) -> int:
    """Write a spec that refers to a published WORKLOAD, with its deployment."""
    from placedsl.export.spec import spec_of_workload
    from placedsl.graph.readers import read

    to_stdout = str(output) == "-"
    folder = Path() if to_stdout else output.parent
    text = spec_of_workload(read(workload, format_name), workload, folder, contiguous=not non_contiguous)
    _write(None if to_stdout else output, text)
    return 0


@cli.command()
def solvers() -> int:
    """List the solvers: what is installed, which version, what each takes natively."""
    from rich.table import Table

    from placedsl.solvers.registry import installed

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("solver", "version", "takes natively", "warm start", "remarks"):
        table.add_column(heading)
    for features, version in installed():
        native = ", ".join(sorted(features.native)) or "linear rows"
        table.add_row(
            features.name, version or "not installed", native, "yes" if features.warm_start else "no", features.note
        )
    _console().print(table)
    return 0


cli.add_command(editing.fmt)
cli.add_command(editing.lsp)


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120)


def _write(target: Path | None, text: str) -> None:
    """To a file (whole or not at all), or to stdout."""
    if target is None:
        click.echo(text, nl=False)
        return
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        raise UsageError(f"'{target}' cannot be written: {(problem.strerror or 'failed').lower()}") from None


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code; every expected failure is told in words."""
    try:
        return int(cli.main(args=arguments, prog_name="placedsl", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        return _EXIT_NOTHING
    except click.ClickException as problem:
        problem.show()
        return _EXIT_USAGE
    except InputError as problem:
        _show(problem.diagnostics)
        return problem.exit_code
    except PlacedslError as problem:
        click.echo(f"error: {problem}", err=True)
        return problem.exit_code
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        return _EXIT_NOTHING
    except BrokenPipeError:
        return _EXIT_FAULT
    except MemoryError:
        click.echo(
            "error: the memory of this machine was not enough; contract the graph, or ask for fewer devices", err=True
        )
        return _EXIT_NOTHING
    except Exception as problem:  # noqa: BLE001 - the last line of defence: our own fault, told without a traceback
        _fault(problem)
        return _EXIT_FAULT


def _show(diagnostics: tuple[Diagnostic, ...]) -> None:
    click.echo("\n\n".join(d.render() for d in diagnostics), err=True)
    if len(diagnostics) > 1:
        click.echo(f"\n{len(diagnostics)} errors", err=True)


def _fault(problem: Exception) -> None:
    import traceback

    where = traceback.extract_tb(problem.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    click.echo(
        f"error: a fault of placedsl itself: {type(problem).__name__}: {problem} ({place}). "
        "Please report it with the spec.",
        err=True,
    )


def run() -> None:
    """The entry point."""
    code = main()
    if code in (_EXIT_LIMIT, _EXIT_NOTHING):
        # After an interrupt within an import CPython ends itself by the signal, though it was handled.
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
