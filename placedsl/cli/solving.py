"""``placedsl solve``, ``conflict``, ``check``, ``explain`` and ``evaluate``."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from placedsl.cli.options import DATA, METHOD, SET, SOLVER, SPEC, Quantity, console, write
from placedsl.diagnostics import UsageError
from placedsl.system import first_run, interruption, paths

if TYPE_CHECKING:
    from placedsl.api.spec import Spec
    from placedsl.diagnosis.infeasibility.conflict import Conflict
    from placedsl.diagnosis.sensitivity.report import Why
    from placedsl.planner.answer import Answer
    from placedsl.problem.values import Values

#: Columns that pages of text need at least.
_NARROWEST = 60


#: So many devices make as much work in the search for plans as a node does elsewhere: in plain Python 37 layers take
#: 2 s on 512 devices and 15 s on 2,048, and the kernels 9 s to compile.
_DEVICES_OF_A_NODE = 340
#: The least that is left of a time limit where the command has begun again.
_LEAST_S = 0.1


# Longer than 80 lines: the command has many outputs, in the order of the run.
@click.command()
@SPEC
@SOLVER
@METHOD
@click.option(
    "--time-limit", type=Quantity("time", "60s or '10 min'"), help="Stop after this time, as in 60s or '10 min'."
)
@click.option("--gap", type=Quantity("share", "1% or 0.01", 1.0), help="Stop at this relative gap, as in 1%.")
@click.option("--workers", type=click.IntRange(min=1), help="Maximum number of solver threads.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of random choices.")
@click.option(
    "--dask", metavar="ADDRESS", help="Also search and prove on the Dask cluster of this scheduler: tcp://host:8786."
)
@SET
@DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the answer as JSON to a file, or to stdout (-).")
@click.option("--picture", type=click.Path(path_type=Path), metavar="FILE", help="Draw the answer (svg, png, pdf).")
@click.option(
    "--certificate", type=click.Path(path_type=Path), metavar="FILE", help="Write what proves the bound, as JSON."
)
@click.option(
    "--export",
    "exported",
    metavar="RUNTIME[=PATH]",
    help="Write the files of a runtime (PATH: its name).",
)
@click.option(
    "--start", type=click.Path(path_type=Path), metavar="FILE", help="Begin with a placement: an answer, or see --from."
)
@click.option("--from", "runtime", metavar="RUNTIME", help="--start is a file or folder of a runtime: vllm, …")
@click.option("--html", "page", type=click.Path(path_type=Path), metavar="FILE", help="Write the answer as a page.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
@click.option(
    "--explain-conflict/--no-conflict", "by_instance", default=None,
    help="If infeasible: report the conflicting instances of constraints, or do not search for a conflict.",
)  # fmt: skip
@click.option(
    "--why", is_flag=True, help="Report binding constraints, bottlenecks, and the effect of more devices or memory."
)
def solve(
    spec: Path,
    parameters: dict[str, str],
    data: Path | None,
    json_file: str | None,
    picture: Path | None,
    certificate: Path | None,
    page: Path | None,
    quiet: bool,
    by_instance: bool | None,
    why: bool,
    **wanted: Any,
) -> int:
    """Find a placement for SPEC."""
    from placedsl.api import spec as api
    from placedsl.cli.verifying import LACKS, remove_certificate, write_certificate
    from placedsl.report.text.heartbeat import Heartbeat

    start, runtime, exported = _runtimes(wanted)
    with Heartbeat(f"reading {spec}", quiet=quiet):
        loaded = api.load(spec, parameters, data)
        wanted["start"] = None if start is None else _placement(loaded, start, runtime)
    nodes = loaded.problem.graph.nodes
    if loaded.problem.execution.options is not None:
        nodes = max(nodes, nodes * len(loaded.problem.machine.devices) // _DEVICES_OF_A_NODE)
    limit = wanted["time_limit"]
    limit = loaded.problem.settings.time_limit if limit is None else limit
    spent = first_run.spent()
    if limit is not None and spent:
        wanted["time_limit"] = limit = max(limit - spent, _LEAST_S)

    def say(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    again = interruption.installed() and paths.is_file(spec) and (data is None or paths.is_file(data))
    tried = first_run.prepare(nodes, limit, say, again=again)
    from placedsl.report.text.progress import ProgressLine

    target = None if json_file in (None, "-") else Path(str(json_file))
    _refuse_places({"--json": target, "--certificate": certificate, "--html": page})
    if picture is not None:
        from placedsl.report.pictures import placement_picture as pictures

        pictures.check(picture)
    if certificate is not None:
        remove_certificate(certificate, spec, data)
    with ProgressLine(loaded.problem.objectives[0], quiet) as line, interruption.stoppable():
        answer = loaded.solve(progress=line.update, **wanted | ({} if tried is None else {"time_limit": tried}))
    if tried is not None and answer.termination == "time_limit":
        first_run.begin_again(say)
    if json_file != "-":
        _say(answer, _how_to_see_the_schedule(spec, parameters, data, json_file))
    conflict = reasons = None
    if why and answer.placement is not None:
        reasons = _reasons(loaded, answer, wanted, quiet)
    if reasons is not None and json_file != "-":
        from placedsl.report.text.why_text import print_why

        print_why(reasons, console())
    if answer.termination == "infeasible" and by_instance is not False:
        conflict = _conflict(loaded, bool(by_instance), wanted, quiet)
    if conflict is not None and json_file != "-":
        from placedsl.report.text.conflict_text import print_conflict

        print_conflict(conflict, console())
    if json_file is not None:
        from placedsl.report.json.answer_document import document

        text = json.dumps(document(answer, conflict, reasons), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write(target, text)
    if page is not None:
        from placedsl.api.pages import answer_page

        write(page, answer_page(loaded, answer, conflict, reasons))
    written = certificate is None or write_certificate(answer, certificate, quiet)
    if picture is not None and answer.placement is not None:
        pictures.draw(answer, picture)
    if exported is not None and answer.placement is not None:
        _export(answer, exported, err=json_file == "-")
    return answer.exit_code if written or answer.exit_code else LACKS


def _reasons(loaded: Spec, answer: Answer, wanted: Mapping[str, Any], quiet: bool) -> Why | None:
    """What binds, and what more devices or memory bring; None where that was interrupted."""
    from placedsl.diagnosis.sensitivity.report import EACH
    from placedsl.report.text.heartbeat import Heartbeat

    with interruption.abandonable(), Heartbeat(quiet=quiet) as beat:
        chosen = {k: wanted[k] for k in ("solver", "method", "workers", "seed")}
        limit = min(EACH, wanted["time_limit"] or math.inf)
        return loaded.why(answer, time_limit=limit, progress=beat.doing, **chosen)
    return None


def _say(answer: Answer, schedule: str) -> None:
    """Print an answer; ``schedule``: how to see that of one sample."""
    from placedsl.report.text.summary import print_answer

    print_answer(answer, console())
    if answer.problem.execution.one_sample and answer.placement is not None:
        click.echo(schedule)


def _runtimes(wanted: dict[str, Any]) -> tuple[Path | None, str | None, str | None]:
    """``--start``, ``--from`` and ``--export``, taken out of the options; UsageError before anything is solved."""
    start, runtime, exported = (wanted.pop(name) for name in ("start", "runtime", "exported"))
    if runtime is not None and start is None:
        raise UsageError("--from: it says what --start is; name a file, as in --start vllm.env --from vllm")
    if exported is not None:
        from placedsl.export.registry import known

        known(exported.partition("=")[0])
    return start, runtime, exported


def _export(answer: Answer, exported: str, *, err: bool) -> None:
    """Write the files of a runtime, ``NAME`` or ``NAME=PATH``."""
    from placedsl.cli.exporting import write as write_files

    name, _, path = exported.partition("=")
    made = answer.export(name)
    write_files(made, Path(path or name))
    click.echo(f"  {name}: {', '.join(made)} in {path or name}", err=err)


def _refuse_places(files: dict[str, Path | None]) -> None:
    """UsageError where a file cannot be written, before anything is solved."""
    for option, file in files.items():
        if file is not None and not paths.is_folder(file.parent):
            raise UsageError(f"{option} {file}: there is no folder '{file.parent}'")
        if file is not None and paths.is_folder(file):
            raise UsageError(f"{option} {file}: this is a folder")


def _how_to_see_the_schedule(spec: Path, parameters: dict[str, str], data: Path | None, json_file: str | None) -> str:
    """One line: the commands that show when each node of the answer runs."""
    options = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in parameters.items()]
    options += [f"--data {shlex.quote(str(data))}"] if data is not None else []
    shown = " ".join(["placedsl timeline", shlex.quote(str(spec)), shlex.quote(json_file or "answer.json"), *options])
    return f"  schedule: {shown}" if json_file else f"  schedule: solve with --json answer.json, then {shown}"


def _conflict(loaded: Spec, by_instance: bool, wanted: dict[str, Any], quiet: bool) -> Conflict | None:
    """The conflict of a spec that has no placement, within a time of its own; None when the user stops the search."""
    from placedsl.diagnosis.infeasibility.conflict import LONG, SHORT
    from placedsl.report.text.heartbeat import Heartbeat

    given = wanted["time_limit"] or math.inf
    limit = min(given, LONG if by_instance else SHORT)
    with interruption.abandonable(), Heartbeat(quiet=quiet) as beat:
        return loaded.conflict(
            by_instance=by_instance, infeasible=True, time_limit=limit, progress=beat.doing,
            solver=wanted["solver"], workers=wanted["workers"], seed=wanted["seed"],
        )  # fmt: skip
    return None


@click.command()
@SPEC
@SOLVER
@click.option("--instances", "by_instance", is_flag=True, help="Report the instances of each constraint.")
@click.option(
    "--time-limit", type=Quantity("time", "60s or '10 min'"), help="Stop after this time, as in 60s or '10 min'."
)
@click.option("--workers", type=click.IntRange(min=1), help="Maximum number of solver threads.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of random choices.")
@SET
@DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the conflict as JSON to a file, or to stdout (-).")
def conflict(spec: Path, parameters: dict[str, str], data: Path | None, json_file: str | None, **wanted: Any) -> int:
    """Report the conflicting constraints of SPEC, and possible repairs."""
    from placedsl.api import spec as api
    from placedsl.report.json.answer_document import conflict_document
    from placedsl.report.text.conflict_text import print_conflict
    from placedsl.report.text.heartbeat import Heartbeat

    with Heartbeat(f"reading {spec}") as beat:
        found = api.load(spec, parameters, data).conflict(**wanted, progress=beat.doing)
    if json_file is not None:
        told = None if found is None else conflict_document(found)
        write(None if json_file == "-" else Path(json_file), json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    if found is None:
        if json_file != "-":
            click.echo(f"{spec}: there is a placement; nothing conflicts")
        return 0
    if json_file != "-":
        print_conflict(found, console())
    return 3


@click.command()
@SPEC
@SET
@DATA
@click.option("--nodes", is_flag=True, help="List the graph's nodes as CSV: id, type, module and layer.")
def check(spec: Path, parameters: dict[str, str], data: Path | None, nodes: bool) -> int:
    """Check SPEC for errors: syntax, names, types, units, data, linearity.  This does not solve it.

    --nodes needs a graph that can be read, and nothing else: a profile that names no nodes does not matter.
    """
    from placedsl.api import spec as api
    from placedsl.report.text.heartbeat import Heartbeat

    if nodes:
        from placedsl.report.text.node_table import node_table

        with Heartbeat(f"reading {spec}"):
            graph = api.graph_of(spec, parameters, data)
        write(None, node_table(graph))
        return 0
    with Heartbeat(f"reading {spec}") as beat:
        loaded = api.load(spec, parameters, data)
        beat.doing("stating the program")
        loaded.check()
    problem = loaded.problem
    devices = len(problem.machine.devices)
    stated = len(problem.constraints) + len(problem.soft_constraints)
    constraints = f"{stated} constraint" + ("" if stated == 1 else "s")
    click.echo(f"{spec}: {problem.graph.nodes} nodes, {devices} devices, {constraints}; no errors")
    for note in problem.notes:
        click.echo(f"note: {note}")
    return 0


@click.command()
@SPEC
@SOLVER
@METHOD
@SET
@DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the explanation as JSON to a file, or to stdout (-).")
def explain(
    spec: Path,
    solver: str | None,
    method: str | None,
    parameters: dict[str, str],
    data: Path | None,
    json_file: str | None,
) -> int:
    """Print the elaborated SPEC, the chosen methods with reasons, and the program part by part."""
    from placedsl.api import spec as api
    from placedsl.report.explanation.elaborated_spec import elaborated
    from placedsl.report.explanation.explanation_document import explanation_document
    from placedsl.report.explanation.explanation_text import WIDTH, explained
    from placedsl.report.text.heartbeat import Heartbeat

    # Narrower where a terminal is, and in JSON and files always the same.
    narrow = sys.stdout.isatty() and json_file is None
    width = min(WIDTH, max(_NARROWEST, shutil.get_terminal_size().columns)) if narrow else WIDTH
    with Heartbeat(f"reading {spec}") as beat:
        loaded = api.load(spec, parameters, data)
        beat.doing("choosing the methods and stating the program")
        found, meaning = loaded.explanation(solver=solver, method=method), elaborated(loaded.elaborated, width)
    if json_file is not None:
        told = json.dumps(explanation_document(found, meaning), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write(None if json_file == "-" else Path(json_file), told)
    if json_file == "-":
        return 0
    text = explained(meaning, found, width)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        from placedsl.language.syntax.pygments_lexer import coloured

        text = coloured(text)
    click.echo(text, nl=False)
    return 0


@click.command()
@SPEC
@click.argument("placement", type=click.Path(path_type=Path))
@SET
@DATA
@click.option("--from", "runtime", metavar="RUNTIME", help="PLACEMENT is a file or folder of a runtime: vllm, …")
@click.option("--json", "json_file", metavar="FILE", help="Write the evaluation as JSON to a file, or to stdout (-).")
def evaluate(
    spec: Path, placement: Path, parameters: dict[str, str], data: Path | None, runtime: str | None,
    json_file: str | None,
) -> int:  # fmt: skip
    """Report the costs and violations of PLACEMENT (JSON) under SPEC."""
    from placedsl.api import spec as api
    from placedsl.evaluation.evaluate import evaluate as evaluated
    from placedsl.report.json.answer_document import evaluation_document
    from placedsl.report.text.heartbeat import Heartbeat
    from placedsl.report.text.summary import print_evaluation

    with Heartbeat(f"reading {spec}") as beat:
        loaded = api.load(spec, parameters, data)
        beat.doing(f"evaluating {placement}")
        evaluation = evaluated(loaded.problem, *_placement(loaded, placement, runtime))
    if json_file is not None:
        result = evaluation_document(loaded.problem, evaluation)
        target = None if json_file == "-" else Path(json_file)
        write(target, json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    if json_file != "-":
        print_evaluation(loaded.problem, evaluation, console())
    return 0 if not evaluation.violations else 3


def _placement(loaded: Spec, file: Path, runtime: str | None) -> tuple[list[int], Values]:
    """The placement in a file with the values of variables: an answer, or what a runtime is configured with."""
    from placedsl.graph.readers import load as load_text
    from placedsl.problem import placement_files as placements

    if runtime is None:
        source = load_text(file)
        places = placements.read(loaded.problem, source)
        return places, placements.read_values(loaded.problem, source)
    from placedsl.export import registry
    from placedsl.export.model import Model

    split = registry.read(file, runtime, Model.of(loaded.problem))
    return placements.positions(loaded.problem, split.placement), placements.values(loaded.problem, split.variables)
