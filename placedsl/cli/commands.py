"""The command line: ``placedsl solve | conflict | check | explain | emit | evaluate | export | import | …``."""

from __future__ import annotations

from typing import Any

import click

from placedsl.cli import editing, exporting, listing, solving, sweeping, timing, writing
from placedsl.system.installation import package_version
from placedsl.system.interruption import Stopped


class _Commands(click.Group):
    """All commands; click itself makes two lines of an interrupt."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Stopped from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_version(), prog_name="placedsl")
def cli() -> None:
    """Place neural-network operators on devices, with a proven bound on the result."""


for _command in (
    solving.solve, solving.conflict, solving.check, solving.explain, writing.emit, solving.evaluate, timing.timeline,
    exporting.export, sweeping.sweep, writing.import_, listing.solvers, listing.methods, listing.plugins_,
    editing.fmt, editing.lsp,
):  # fmt: skip
    cli.add_command(_command)
