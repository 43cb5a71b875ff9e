"""Members of a portfolio that do what the tests need; their processes import them from here."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def counts(channel, most):
    """Say bounds 1 to ``most`` and end."""
    for bound in range(1, most + 1):
        channel.report(None, float(bound))


def places(channel, placement, pause):
    """Say one placement, and wait."""
    channel.report(np.array(placement), -np.inf)
    time.sleep(pause)


def fails(channel):
    raise ValueError("nothing comes of this")


def starts_another(channel, note):
    """Start a process of its own, and write down its number."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(note).write_text(str(child.pid), encoding="utf-8")
    channel.report(None, 1.0)
    time.sleep(600)


def repeats(channel):
    """Say each better value that is told."""
    last = np.inf
    while True:
        if channel.best < last:
            last = channel.best
            channel.report(None, last)
        time.sleep(0.01)
