"""The Pyomo program of the guide and the spec beside it find the same optimum."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

from support.paths import ROOT

from placedsl import loads

TEXT = (ROOT / "docs" / "moving.md").read_text(encoding="utf-8")


def fence(kind: str) -> str:
    """The one example of a kind."""
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```\n", TEXT, re.MULTILINE | re.DOTALL)
    return str(text)


def test_both_models_have_the_same_optimum(tmp_path: Path) -> None:
    """Pyomo runs in a process of its own, for it loads HiGHS."""
    program = tmp_path / "placement.py"
    program.write_text(fence("python"), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, cwd=tmp_path)
    first, *placed = done.stdout.splitlines()
    found = re.fullmatch(r"time_per_sample = (\S+) ms", first)
    assert found is not None, done.stdout
    spec = loads(fence("place"))
    answer = spec.solve()
    assert math.isclose(float(found[1]) / 1000, answer.value, rel_tol=1e-6)
    named = {"gpu1": "gpu[1]", "gpu2": "gpu[2]", "cpu": "cpu"}
    evaluation = spec.evaluate({node: named[device] for node, device in (line.split() for line in placed)})
    assert evaluation.feasible
    assert math.isclose(evaluation.objectives[0], answer.value, rel_tol=1e-6)
