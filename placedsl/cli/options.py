"""What several commands share: arguments, options, where output goes."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import click

from placedsl.system import files


class Quantity(click.ParamType[float]):
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


def settings(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``name=value`` pairs."""
    out = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"'{value}' is not name=value")
        out[name.strip()] = text.strip()
    return out


SPEC = click.argument("spec", type=click.Path(path_type=Path))
SET = click.option(
    "--set", "parameters", multiple=True, metavar="NAME=VALUE", callback=settings, help="Set a parameter."
)
DATA = click.option(
    "--data", type=click.Path(path_type=Path), metavar="FILE", help="Values of parameters (JSON or TOML)."
)
SOLVER = click.option("--solver", metavar="NAME", help="auto, or a name from 'placedsl solvers'.")
METHOD = click.option("--method", metavar="NAME", help="auto, dp, program, or a name from 'placedsl methods'.")


def console() -> Any:
    """Where tables go."""
    from rich.console import Console

    class Output(Console):
        """What is printed; a reader that goes before the end does not change how the command ends."""

        def on_broken_pipe(self) -> None:
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return Output(width=None if sys.stdout.isatty() else 120)


def write(target: Path | None, text: str) -> None:
    """To a file (:func:`placedsl.system.files.write`), or to stdout; in UTF-8, whatever the terminal takes."""
    if target is not None:
        files.write(target, text)
    elif (sys.stdout.encoding or "").lower() in ("utf-8", "utf8"):
        click.echo(text, nl=False)
    else:
        click.echo(text.encode("utf-8", "backslashreplace"), nl=False)
