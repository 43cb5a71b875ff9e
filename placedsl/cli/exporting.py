"""``placedsl export``: the files of a runtime from an answer."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from placedsl.cli.options import DATA, SET, Quantity
from placedsl.cli.options import write as write_text
from placedsl.diagnostics import Diagnostic, InputError, Source, UsageError
from placedsl.system import files, interruption, paths

if TYPE_CHECKING:
    from placedsl.api.spec import Spec
    from placedsl.evaluation.evaluation import Evaluation
    from placedsl.planner.answer import Answer
    from placedsl.problem.plan import Plan

TO = click.option(
    "--to", "name", metavar="RUNTIME", required=True, help="vllm, megatron, accelerate …; docs/exporting.md."
)


@click.command()
@click.argument("inputs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="[SPEC] ANSWER")
@TO
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Output folder, or file (default: stdout)."
)
@SET
@DATA
@click.option("--microbatches", type=click.IntRange(min=1), help="Microbatches of a batch, for schedules.")
@click.option(
    "--fix", is_flag=True, help="If refused: add the runtime's constraint to SPEC, solve again, tell the cost."
)
@click.option("--time-limit", type=Quantity("time", "60s or '10 min'"), help="Time limit of --fix.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the answer of --fix.")
def export(
    inputs: tuple[Path, ...],
    name: str,
    output: Path | None,
    parameters: dict[str, str],
    data: Path | None,
    microbatches: int | None,
    fix: bool,
    time_limit: float | None,
    json_file: Path | None,
) -> int:
    """Write the configuration of a runtime for ANSWER, a file from solve --json; with SPEC for any placement."""
    from placedsl.export import registry
    from placedsl.graph.readers import load

    if len(inputs) > 2:
        raise UsageError("a spec and an answer are expected, or an answer alone")
    registry.known(name)
    _refuse_output(output, inputs)
    if len(inputs) == 1 and (fix or parameters or data is not None):
        raise UsageError(
            f"{'--fix' if fix else '--set and --data'}: the spec is needed as well: placedsl export SPEC ANSWER"
        )
    if json_file is not None and not fix:
        raise UsageError("--json: the answer of --fix is written; use --fix")
    if len(inputs) == 1 and inputs[0].suffix == ".place":
        first = f"placedsl solve {inputs[0]} --json answer.json"
        raise UsageError(f"an answer is expected: {first}, then placedsl export answer.json --to {name}")
    source = load(inputs[-1])
    model: Source | None = None
    if len(inputs) == 1:
        from placedsl.problem.plan_document import read_plan

        plan = read_plan(source)
    else:
        from placedsl.api import spec as api

        loaded = api.load(inputs[0], parameters, data)
        model = loaded.problem.graph.written.source
        plan, evaluation = _placed(loaded, source)
        if fix and registry.refused(plan, name):
            rule = registry.constraint(name)
            if not rule:
                raise UsageError(f"--fix: exporter '{name}' of a plug-in has no constraint")
            answer = _fixed(api.load(inputs[0], parameters, data, also=(rule,)), rule, evaluation, time_limit)
            if answer.placement is None:
                return answer.exit_code
            plan = answer.plan
            if json_file is not None:
                from placedsl.report.json.answer_document import document

                write_text(json_file, json.dumps(document(answer), indent=2, ensure_ascii=False) + "\n")
            source = None  # type: ignore[assignment]  # reasons against it have no place in the given answer
    if microbatches is not None:
        plan = replace(plan, microbatches=microbatches)
    write(registry.files(plan, name, source, model), output)
    return 0


def _refuse_output(output: Path | None, inputs: tuple[Path, ...]) -> None:
    if output is None or not paths.exists(output) or paths.is_folder(output):
        return
    if not output.suffix or any(paths.exists(given) and output.samefile(given) for given in inputs):
        raise UsageError(f"-o {output}: this is a file; a folder is expected")


def _placed(loaded: Spec, source: Source) -> tuple[Plan, Evaluation]:
    """The plan of a placement, and what the evaluator says of it."""
    from placedsl.evaluation.evaluate import evaluate
    from placedsl.problem import placement_files as placements
    from placedsl.problem.plan import Plan

    problem = loaded.problem
    places = placements.read(problem, source)
    missing = [problem.graph.ids[v] for v, d in enumerate(places) if d < 0]
    if missing:
        hint = "is it an answer of this spec?"
        raise InputError([Diagnostic(f"the answer has no device for node '{missing[0]}'", source.whole(), hint)])
    evaluation = evaluate(problem, places, placements.read_values(problem, source))
    if evaluation.violations:
        rules = ", ".join(dict.fromkeys(violation.rule for violation in evaluation.violations))
        click.echo(f"note: the placement violates {rules}", err=True)
    return Plan.of(problem, evaluation), evaluation


def _fixed(loaded: Spec, rule: str, before: Evaluation, time_limit: float | None) -> Answer:
    """The answer under one more constraint; what it costs is told on stderr."""
    from placedsl.report.text.heartbeat import Heartbeat
    from placedsl.report.text.summary import amount

    with interruption.stoppable(), Heartbeat(f"solving with {rule}"):
        answer = loaded.solve(time_limit=time_limit)
    goal = loaded.problem.objectives[0]
    old = before.objectives[0]
    click.echo(f"added to the spec: subject to {rule}", err=True)
    if answer.placement is None:
        click.echo(f"{answer.termination}: no placement satisfies it; {answer.message}", err=True)
        return answer
    share = f" ({(answer.value - old) / abs(old):+.2%})" if old else ""
    proof = "proven optimal" if answer.proven() else f"gap {answer.gap:.2%}"
    told = (
        f"{goal.name}: {amount(old, goal.dimension)} before, {amount(answer.value, goal.dimension)} now{share}, {proof}"
    )
    click.echo(told, err=True)
    return answer


def write(made: Mapping[str, str | bytes], output: Path | None) -> None:
    """To a folder; to a file of that name, with the others beside it; or to stdout."""
    if output is None:
        binary = next((file for file, content in made.items() if isinstance(content, bytes)), None)
        if binary is not None:
            raise UsageError(f"-o FOLDER is needed: '{binary}' is no text")
        for file, content in made.items():
            click.echo((f"==> {file} <==\n" if len(made) > 1 else "") + str(content), nl=False)
        return
    folder, named = output, made
    if output.suffix and not paths.is_folder(output):
        first, *others = made
        folder = output.parent
        named = {output.name: made[first], **{f"{output.name}.{file}": made[file] for file in others}}
    write_folder(folder, named)
    for file in named:
        click.echo(f"written: {folder / file}", err=True)


def write_folder(folder: Path, texts: Mapping[str, str | bytes]) -> None:
    """All texts in a folder, or none: they are written beside it first; other files of the folder stay."""
    with interruption.finishing():
        _write_folder(folder, texts)


def _write_folder(folder: Path, texts: Mapping[str, str | bytes]) -> None:
    partial: Path | None = None
    try:
        if not folder.parent.is_dir():
            raise UsageError(f"-o {folder}: there is no folder '{folder.parent}'")
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name[:80]}.partial-", dir=folder.parent))
        for name, text in texts.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            files.write(partial / name, text)
        blocked = next((name for name in texts if (folder / name).is_dir()), None)
        if blocked is not None:
            raise UsageError(f"'{folder / blocked}' cannot be written: this is a folder")
        for name, text in texts.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_symlink() or (target.exists() and not target.is_file()):
                files.write(target, text)
            else:
                (partial / name).replace(target)
    except OSError as problem:
        raise UsageError(f"'{folder}' cannot be written: {(problem.strerror or 'failed').lower()}") from None
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
