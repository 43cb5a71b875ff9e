"""``placedsl emit`` and ``placedsl import``: specs and programs as files."""

from __future__ import annotations

from pathlib import Path

import click

from placedsl.commands.options import DATA, SET, SPEC, write


@click.command()
@SPEC
@click.option("--to", "format_name", metavar="FORMAT", required=True, help="lp, mps, pyomo, mip, cp-sat, a plug-in's.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it (else stdout)."
)
@SET
@DATA
def emit(spec: Path, format_name: str, output: Path | None, parameters: dict[str, str], data: Path | None) -> int:
    """Write the program of SPEC as an LP or MPS file, or as a script for Pyomo, python-mip or CP-SAT."""
    from placedsl import api
    from placedsl.export.formats import known

    known(format_name)
    text = api.load(spec, parameters, data).emit(format_name)
    write(None if output is None or str(output) == "-" else output, text)
    return 0


@click.command(name="import")
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
    write(None if to_stdout else output, text)
    return 0
