"""The command: ``placedsl`` and ``python -m placedsl``.

A signal is answered before anything else is imported.  ``_signal`` is built into the interpreter, ``os`` is there
already; :mod:`placedsl.system.interruption` takes over from here.
"""

import _signal  # type: ignore[import-not-found]
import os


def _ended(_number: int, _frame: object) -> None:
    try:
        os.write(2, b"stopped\n")
    finally:
        os._exit(5)


for _number in (_signal.SIGINT, _signal.SIGTERM):
    if _signal.getsignal(_number) is not _signal.SIG_IGN:
        _signal.signal(_number, _ended)


def run() -> None:
    """The entry point."""
    from placedsl.cli.main import run as command

    command()


if __name__ == "__main__":
    run()
