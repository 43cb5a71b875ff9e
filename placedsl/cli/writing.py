"""``placedsl emit`` and ``placedsl import``: specs and programs as files."""

from __future__ import annotations

from pathlib import Path

import click

from placedsl.cli.options import DATA, SET, SPEC, write
from placedsl.diagnostics import UsageError


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
@click.argument("format_name", metavar="FORMAT", type=click.Choice(["dnn-partitioning", "moirai"]))
@click.argument("workload", type=click.Path(path_type=Path))
@click.option(
    "--objective",
    type=click.Choice(["throughput", "latency"]),
    help="Objective (default: latency for moirai, else throughput).",
)
@click.option("--non-contiguous", is_flag=True, help="Omit the constraint 'contiguous' (throughput).")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Output file (- is stdout).")
def import_(format_name: str, workload: Path, objective: str | None, non_contiguous: bool, output: Path) -> int:
    """Write a spec that refers to a published WORKLOAD, with its deployment."""
    from placedsl.export.workload_spec import latency_spec_of_workload, spec_of_profile, spec_of_workload
    from placedsl.graph.readers import read
    from placedsl.report.text.heartbeat import Heartbeat

    if format_name == "moirai" and objective == "throughput":
        raise UsageError("a profile of moirai is for one sample: --objective latency")
    if non_contiguous and (objective == "latency" or format_name == "moirai"):
        raise UsageError("--non-contiguous is for throughput: a call of an accelerator is not interrupted")
    to_stdout = str(output) == "-"
    folder = Path() if to_stdout else output.parent
    with Heartbeat(f"reading {workload}"):
        graph = read(workload, format_name)
        if format_name == "moirai":
            text = spec_of_profile(graph, workload, folder)
        elif objective == "latency":
            text = latency_spec_of_workload(graph, workload, folder)
        else:
            text = spec_of_workload(graph, workload, folder, contiguous=not non_contiguous)
    write(None if to_stdout else output, text)
    return 0
