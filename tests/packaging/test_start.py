"""What short commands import: nothing that they have no use for.  docs/architecture.md has the list."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.free_operators import text_with_free_operators

import placedsl
from placedsl.algorithms.compilation import numba_with_clock
from placedsl.algorithms.pipelines.solve import solve

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = str(ROOT / "examples" / "quickstart.place")

#: Packages that only some commands or larger problems need, and modules that take long.
NEVER = {
    "numba", "llvmlite", "scipy", "highspy", "ortools", "pyomo", "mip", "cvxpy", "networkx", "jinja2", "onnx", "torch",
    "matplotlib", "numpy.ma", "importlib.metadata", "subprocess", "multiprocessing", "tomllib", "asyncio",
}  # fmt: skip
#: What one command leaves to another, or to specs that it has not seen before.
ONLY = {
    "check": {"lark", "rich", "placedsl.algorithms.pipelines", "placedsl.evaluation", "placedsl.planner.solve"},
    "solve": {"lark", "placedsl.grounding.build", "placedsl.lowering", "placedsl.planner.strategies.program"},
}

COMMAND = """
import json, sys
from placedsl.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write(json.dumps([code, sorted(sys.modules)]))
"""


def run(script: str, *arguments: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with a cache folder of its own and compiled kernels."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "PLACEDSL"))}
    environment |= {"PYTHONPATH": str(ROOT), "PLACEDSL_CACHE": str(folder), "PLACEDSL_KERNELS": "compiled", **more}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True)


@pytest.mark.parametrize("command", ["check", "solve"])
def test_a_short_command_imports_no_more_than_it_uses(command: str, tmp_path: Path) -> None:
    run(COMMAND, command, EXAMPLE, folder=tmp_path)
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "placedsl").iterdir()}
    assert {file.name for file in before} >= {"place.tables", "constraints.place.tree"}
    done = run(COMMAND, command, EXAMPLE, folder=tmp_path)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0
    assert not set(modules) & (NEVER | ONLY[command])
    readers = {name for name in modules if name.startswith("placedsl.graph.readers.")}
    assert readers == {
        "placedsl.graph.readers.json_text",
        "placedsl.graph.readers.module_paths",
        "placedsl.graph.readers.sizes",
    }  # the graph stands in the spec
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "placedsl").iterdir()} == before


PLAINLY = """
import json, sys
import placedsl
from placedsl.algorithms import kernels
from placedsl.algorithms.pipelines.solve import solve
from support.free_operators import text_with_free_operators
kernels.MOST_PLAIN_CALLS = int(sys.argv[1])
out = []
for seed in map(int, sys.argv[2:]):
    found = solve(placedsl.loads(text_with_free_operators(seed, training=seed % 2 == 1)).problem)
    placement = None if found.placement is None else found.placement.tolist()
    out.append([placement, repr(found.value), repr(found.bound), found.complete])
print(json.dumps([out, "numba" in sys.modules]))
"""


def compiled(seed: int) -> list[object]:
    """The same with compiled kernels."""
    numba_with_clock()
    found = solve(placedsl.loads(text_with_free_operators(seed, training=seed % 2 == 1)).problem)
    placement = None if found.placement is None else found.placement.tolist()
    return [placement, repr(found.value), repr(found.bound), found.complete]


@pytest.mark.parametrize("most", [10**9, 30])
def test_small_problems_are_solved_alike_without_compiled_kernels(most: int, tmp_path: Path) -> None:
    """With next to no patience as well: they are begun anew then, with compiled kernels."""
    seeds = range(4 if most == 30 else 30)
    tests = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
    done = run(PLAINLY, str(most), *map(str, seeds), folder=tmp_path, PYTHONPATH=tests)
    found, has_numba = json.loads(done.stdout)
    assert found == [compiled(seed) for seed in seeds]
    assert has_numba == (most == 30)
