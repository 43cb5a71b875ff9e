"""The command line: ``placedsl solve | conflict | check | explain | emit | evaluate | export | import | …``."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import os
import sys
from pathlib import Path

import click

from placedsl.cli import editing, exporting, listing, solving, sweeping, timing, writing
from placedsl.diagnostics import Diagnostic, InputError, PlacedslError
from placedsl.installation import package_version

_EXIT_FAULT = 70
_EXIT_USAGE = 2
_EXIT_LIMIT = 4
_EXIT_NOTHING = 5
#: As shells tell of programs that a closed pipe ends.
_EXIT_UNREAD = 141


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_version(), prog_name="placedsl")
def cli() -> None:
    """Place neural-network operators on devices, with a proven bound on the result."""


for _command in (
    solving.solve, solving.conflict, solving.check, solving.explain, writing.emit, solving.evaluate, timing.timeline,
    exporting.export, sweeping.sweep, writing.import_, listing.solvers, listing.methods, listing.plugins_,
    editing.fmt, editing.lsp,
):  # fmt: skip
    cli.add_command(_command)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code; every expected failure is reported as a message."""
    stdout = sys.stdout
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
        return _EXIT_UNREAD
    except SystemExit as ended:
        # Click ends so when a pipe closes, and wraps what is left of it; the language server when its client says so.
        return int(ended.code or 0) if sys.stdout is stdout else _EXIT_UNREAD
    except MemoryError:
        click.echo(
            "error: the memory of this machine was not enough; contract the graph, or ask for fewer devices", err=True
        )
        return _EXIT_NOTHING
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _fault(problem)
        else:
            click.echo(f"error: the output could not be written: {problem.strerror}", err=True)
        return _EXIT_FAULT
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
    # Most objects of a run live to its end; looking for garbage among them takes a tenth of a short one, and taking
    # them apart one by one at the end a quarter.  (Besides, after an interrupt within an import CPython would end
    # itself by the signal, though it was handled.)
    gc.set_threshold(200_000, 20, 20)
    code = main()
    atexit._run_exitfuncs()
    try:
        with contextlib.suppress(BrokenPipeError):  # who reads has seen enough
            if not sys.stdout.closed:  # the language server closes it itself
                sys.stdout.flush()
    except OSError as problem:
        click.echo(f"error: the output could not be written: {problem.strerror}", err=True)
        code = _EXIT_FAULT
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)
