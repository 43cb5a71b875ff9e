"""A few problems of ``benchmarks/campaign.py`` and a few inputs of ``benchmarks/fuzzing.py``, others on each commit.

The seed is the choice of cases of the run (``--cases``).  What fails is printed with the command that repeats it.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest
from support.paths import ROOT, child_environment

PROBLEMS = 10
#: Inputs of each kind.
INPUTS = 110
KINDS = ("grammar", "mutation", "tokens", "json", "text", "onnx", "pt2", "profile", "data", "plan")

pytestmark = [
    pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="benchmarks/ is not in this archive"),
    pytest.mark.rotates(2),
]


def run(script: str, *arguments: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
    done = subprocess.run(
        command, env=child_environment(), capture_output=True, text=True, encoding="utf-8", check=False
    )
    repeated = f"\npython benchmarks/{script} {' '.join(arguments)}"
    assert done.returncode == 0, done.stdout + done.stderr + repeated


def test_random_problems_agree_with_an_enumeration_in_fractions(pytestconfig: pytest.Config) -> None:
    # Seeds of problems follow one another: those of two commits seldom overlap.
    run("campaign.py", "--seed", str(100 * int(pytestconfig.option.cases)), "--problems", str(PROBLEMS))


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and time are those of Linux")
def test_inputs_that_nobody_would_write_are_read_or_refused(pytestconfig: pytest.Config) -> None:
    kinds = [kind for kind in KINDS if kind != "onnx" or find_spec("onnx") is not None]
    run("fuzzing.py", *kinds, "--count", str(INPUTS), "--seed", str(pytestconfig.option.cases))
