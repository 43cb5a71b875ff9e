"""What runs in this process prints nothing: standard output belongs to answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
import numpy as np
import placedsl

problem = placedsl.load("examples/two-kinds.place").problem
from placedsl.algorithms.partitions.bounds import named
for one in named.NAMED:
    if not one.against(problem):
        one.run(problem, np.inf, 5.0, lambda bound: None)
"""


@pytest.mark.rotates(1)
def test_bounds_by_programs() -> None:
    """HiGHS says on standard output who it is when its first object of a process is made."""
    done = subprocess.run([sys.executable, "-c", TEXT], capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("", "")
