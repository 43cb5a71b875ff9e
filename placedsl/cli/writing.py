"""``placedsl emit`` and ``placedsl import``: specs and programs as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from placedsl.cli.options import DATA, SET, SPEC, settings, write
from placedsl.diagnostics import UsageError

if TYPE_CHECKING:
    from placedsl.export.workload_spec import PlanRequest


@click.command()
@SPEC
@click.option("--to", "format_name", metavar="FORMAT", required=True, help="lp, mps, pyomo, mip, cp-sat, a plug-in's.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Output file (default: stdout).")
@SET
@DATA
def emit(spec: Path, format_name: str, output: Path | None, parameters: dict[str, str], data: Path | None) -> int:
    """Write the program of SPEC as an LP or MPS file, or as a script for Pyomo, python-mip or CP-SAT."""
    from placedsl.api import spec as api
    from placedsl.export.programs.formats import known
    from placedsl.report.text.heartbeat import Heartbeat

    known(format_name)
    with Heartbeat(f"reading {spec}") as beat:
        loaded = api.load(spec, parameters, data)
        beat.doing("stating the program")
        text = loaded.emit(format_name)
    write(None if output is None or str(output) == "-" else output, text)
    return 0


@click.command(name="import")
@click.argument("format_name", metavar="FORMAT", type=click.Choice(["dnn-partitioning", "moirai", "piper"]))
@click.argument("workload", type=click.Path(path_type=Path))
@click.option(
    "--objective",
    type=click.Choice(["throughput", "latency"]),
    help="Objective (default: latency for moirai, else throughput).",
)
@click.option("--non-contiguous", is_flag=True, help="Omit the constraint 'contiguous' (throughput).")
@click.option("--devices", type=click.IntRange(min=1), help="piper: number of devices (default 8).")
@click.option("--memory", metavar="SIZE", help="piper: memory of each device (default 8GiB); a number is bytes.")
@click.option("--bandwidth", metavar="RATE", help="piper: bandwidth between devices (default 25GiB/s).")
@click.option("--microbatches", type=click.IntRange(min=1), help="piper: microbatches of a batch (default 1920).")
@click.option(
    "--exchange",
    type=click.Choice(["batch", "round"]),
    help="piper: period of the exchange of weights (default batch).",
)
@click.option(
    "--only", multiple=True, metavar="KIND=VALUE", callback=settings,
    help="piper: data=1, tensor=1 or recompute=no.",
)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Output file (- is stdout).")
def import_(
    format_name: str, workload: Path, objective: str | None, non_contiguous: bool, output: Path, **plan: Any
) -> int:
    """Write a spec that refers to a published WORKLOAD, with its deployment."""
    from placedsl.export import workload_spec as specs
    from placedsl.graph.readers import read
    from placedsl.report.text.heartbeat import Heartbeat

    if format_name == "moirai" and objective == "throughput":
        raise UsageError("a profile of moirai is for one sample: --objective latency")
    if non_contiguous and (objective == "latency" or format_name != "dnn-partitioning"):
        raise UsageError("--non-contiguous is for throughput: a call of an accelerator is not interrupted")
    asked = _plan_request(plan) if format_name == "piper" else None
    given = [name for name, value in plan.items() if value]
    if asked is None and given:
        raise UsageError(f"--{given[0]} is for workloads of piper")
    if asked is not None and objective == "latency":
        raise UsageError("a workload of piper is a pipeline: --objective throughput")
    to_stdout = str(output) == "-"
    folder = Path() if to_stdout else output.parent
    with Heartbeat(f"reading {workload}"):
        graph = read(workload, format_name)
        if asked is not None:
            text = specs.spec_of_plan(graph, workload, folder, asked)
        elif format_name == "moirai":
            text = specs.spec_of_profile(graph, workload, folder)
        elif objective == "latency":
            text = specs.latency_spec_of_workload(graph, workload, folder)
        else:
            text = specs.spec_of_workload(graph, workload, folder, contiguous=not non_contiguous)
    write(None if to_stdout else output, text)
    return 0


#: What may be restricted, and to what.
_ONLY = {"data": ("1",), "tensor": ("1",), "recompute": ("no",)}


def _plan_request(given: Mapping[str, Any]) -> PlanRequest:
    """What a plan is for; UsageError for what is no size or no rate."""
    from placedsl.export.workload_spec import PlanRequest
    from placedsl.units import BANDWIDTH, DATA, UnitError, parse_quantity

    amounts = []
    for name, default, dimension in (("memory", "8 GiB", DATA), ("bandwidth", "25 GiB/s", BANDWIDTH)):
        text = given[name] or default
        text += " B" if name == "memory" and text.strip().isdigit() else ""
        try:
            quantity = parse_quantity(text)
        except UnitError as problem:
            raise UsageError(f"--{name}: {problem}") from None
        if quantity.dimension != dimension or not quantity.value > 0:
            raise UsageError(f"--{name}: '{text}' is no {dimension} above 0; as in --{name} '{default}'")
        amounts.append(quantity.value)
    for kind, value in given["only"].items():
        if value not in _ONLY.get(kind, ()):
            known = ", ".join(f"{name}={values[0]}" for name, values in _ONLY.items())
            raise UsageError(f"--only {kind}={value} is not known: {known}")
    return PlanRequest(
        given["devices"] or 8, amounts[0], amounts[1], given["microbatches"] or 1920, given["exchange"] or "batch",
        given["only"],
    )  # fmt: skip
