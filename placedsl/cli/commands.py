"""The command line: ``placedsl solve | conflict | check | explain | emit | evaluate | export | import | …``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from placedsl import limits
from placedsl.system.interruption import Stopped

#: Commands by module, each imported when it is asked for.  A function whose name Python or its module needs otherwise
#: ends in an underscore.
COMMANDS = {
    "solving": ("solve", "conflict", "check", "explain", "evaluate"),
    "writing": ("emit", "import_"),
    "timing": ("timeline",),
    "exporting": ("export",),
    "reporting": ("report",),
    "sweeping": ("sweep",),
    "bounding": ("bounds",),
    "verifying": ("verify",),
    "measuring": ("profile",),
    "listing": ("solvers", "methods", "plugins_"),
    "editing": ("fmt", "lsp"),
}
_PLACES = {name.rstrip("_"): (module, name) for module, names in COMMANDS.items() for name in names}


class _Commands(click.Group):
    """All commands; click itself makes two lines of an interrupt."""

    def list_commands(self, _: click.Context) -> list[str]:
        return sorted(_PLACES)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        # Where there is no such command, click suggests one of all.
        for name in (cmd_name,) if cmd_name in _PLACES else _PLACES:
            module, function = _PLACES[name]
            if name not in self.commands:
                self.add_command(getattr(import_module(f"placedsl.cli.{module}"), function), name)
        return self.commands.get(cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        limits.settings()
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Stopped from None


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from placedsl.system.installation import package_version

        click.echo(f"placedsl, version {package_version()}")
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
def cli() -> None:
    """Place neural-network operators on devices, with a proven bound on the result."""
