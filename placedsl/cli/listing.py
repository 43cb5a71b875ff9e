"""``placedsl solvers``, ``placedsl methods`` and ``placedsl plugins``: what is there."""

from __future__ import annotations

import click

from placedsl.cli.options import console


@click.command()
def solvers() -> int:
    """List the solvers: the installed versions, and the constraints with native support."""
    from rich.markup import escape

    from placedsl.report.text import tables
    from placedsl.solvers.registry import installed

    table = tables.table(indented=False)
    for heading in ("solver", "version", "takes natively", "warm start", "remarks"):
        table.add_column(heading)
    for features, version in installed():
        native = ", ".join(sorted(features.native)) or "linear rows"
        warm, note = "yes" if features.warm_start else "no", escape(features.note)
        table.add_row(features.name, version or "not installed", native, warm, note)
    tables.print_table(table, console())
    return 0


@click.command()
def methods() -> int:
    """List the methods: their purpose, and whether they are tried automatically."""
    from rich.markup import escape

    from placedsl.algorithms import registry
    from placedsl.planner.request import tried
    from placedsl.report.text import tables

    table = tables.table(indented=False)
    for heading in ("method", "what it does", "under auto"):
        table.add_column(heading)
    table.add_row("auto", "what fits best: dynamic programming, plug-ins, a program for a solver", "")
    table.add_row("dp", "dynamic programming over ideals; exact for contiguous splits", "yes")
    table.add_row("program", "an integer program, by the solver that --solver names", "yes")
    for method in registry.NAMED:
        table.add_row(method.name, method.meaning, "no")
    for name in tried():
        table.add_row(escape(name), escape(f"by {registry.find(name).distribution}"), "where it fits")
    tables.print_table(table, console())
    return 0


@click.command(name="plugins")
def plugins_() -> int:
    """List the plug-ins, their distributions and their errors.  This imports all of them."""
    from rich.markup import escape

    from placedsl import plugins
    from placedsl.algorithms import registry
    from placedsl.export.programs.formats import FORMATS
    from placedsl.export.registry import built_in
    from placedsl.graph.readers import READERS
    from placedsl.language.elaboration.model_library import constraint_definitions
    from placedsl.planner.request import METHODS
    from placedsl.report.text import tables
    from placedsl.solvers.registry import BUILT_IN

    taken = {
        "readers": READERS,
        "solvers": BUILT_IN,
        "algorithms": (*METHODS, *registry.own()),
        "constraints": constraint_definitions(),
        "exporters": (*FORMATS, *built_in()),
    }
    table = tables.table(indented=False)
    for heading in ("kind", "name", "brought by", "remarks"):
        table.add_column(heading)
    for plugin, problem in plugins.listing(taken):
        table.add_row(plugin.kind, escape(plugin.name), escape(plugin.distribution), escape(problem))
    if not table.row_count:
        click.echo("no plug-ins are installed; docs/plugins.md says what they are")
        return 0
    tables.print_table(table, console())
    return 0
