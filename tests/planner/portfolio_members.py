"""Members of a portfolio that do what the tests need; their processes import them from here."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def counts(link, most):
    """Say bounds 1 to ``most`` and end."""
    for bound in range(1, most + 1):
        link.say(None, float(bound))


def places(link, placement, pause):
    """Say one placement, and wait."""
    link.say(np.array(placement), -np.inf)
    time.sleep(pause)


def fails(link):
    raise ValueError("nothing comes of this")


def starts_another(link, note):
    """Start a process of its own, and write down its number."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(note).write_text(str(child.pid), encoding="utf-8")
    link.say(None, 1.0)
    time.sleep(600)


def repeats(link):
    """Say each better value that is told."""
    last = np.inf
    while True:
        if link.best < last:
            last = link.best
            link.say(None, last)
        time.sleep(0.01)
