"""What the dynamic program does not get through is recognised, and goes another way."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous

pytestmark = pytest.mark.rotates(3)

#: Three rows of nodes side by side.
BRANCHES = (
    "graph {\n"
    + "\n".join(f"    node n{i} {{ time = {{accelerator: {3 + 7 * i % 11} ms}}, output = 2 MiB }}" for i in range(17))
    + "\n"
    + "\n".join(f"    n0 -> n{r} -> n{r + 3} -> n{r + 6} -> n{r + 9} -> n{r + 12} -> n16" for r in (1, 2, 3))
    + "\n}\ndevice gpu[3]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\n"
    "minimize time_per_sample\nsubject to\n    contiguous\n"
)


def wide(folder: Path, cells: int, *, training: bool = False, more: str = "") -> placedsl.Spec:
    """Cells like NASNet's on four devices."""
    from cells import graph

    (folder / "wide.json").write_text(json.dumps(graph(cells, training=training)), encoding="utf-8")
    return placedsl.loads(
        'graph from "wide.json"\ndevice gpu[4]: accelerator { memory = 16 GiB }\n'
        "interconnect { bandwidth = 12 GB/s }\nminimize time_per_sample\n"
        f"subject to\n    contiguous\n    memory\n    colocated by layer\n{more}",
        folder,
    )


@pytest.mark.parametrize("training", [False, pytest.param(True, marks=pytest.mark.everything)])
def test_wide_cells_are_recognised(tmp_path: Path, training: bool) -> None:
    """1,500 operators: the dynamic program says that it is not for it, and still has a pipeline and a bound."""
    problem = wide(tmp_path, 24, training=training).problem
    assert problem.graph.nodes > (3000 if training else 1500)
    assert contiguous.fits(problem).ideals is None
    heard: list[float] = []
    found = contiguous.solve(problem, progress=lambda _placement, value, _bound: heard.append(value))
    assert not found.complete
    assert found.message.startswith("more than")
    assert found.value == heard[0]
    assert 0.0 < found.bound < found.value


def test_wide_cells_go_another_way(tmp_path: Path) -> None:
    """Within a time limit: a verified pipeline, no worse than the cut of an order, and a bound no worse than shares."""
    spec = wide(tmp_path, 24)
    answer = spec.solve(time_limit=12, workers=2)
    # Where the machine is slow, all of the time may go into finding out.
    given_up = any(note.startswith("dynamic programming was not used: more than") for note in answer.notes)
    assert answer.method == ("program" if given_up else "dp")
    assert answer.evaluation is not None
    assert not answer.evaluation.violations
    start = contiguous.sliced(spec.problem)
    assert answer.value <= start.value
    assert start.bound * (1 - 1e-9) <= answer.bound <= answer.value
    assert answer.termination in ("time_limit", "optimal")


def test_dp_alone_says_what_it_has(tmp_path: Path) -> None:
    """FeasibilityResult for by name, it ends with its best pipeline and without a proof."""
    answer = wide(tmp_path, 24).solve(method="dp")
    assert answer.method == "dp"
    assert answer.placement is not None
    assert answer.termination == "error"
    assert "more than" in answer.message
    assert np.isfinite(answer.bound)


def test_rules_that_the_search_does_not_know_are_kept(tmp_path: Path) -> None:
    """Nothing searches beside then; the answer satisfies them."""
    spec = wide(tmp_path, 24, more="    few: forall d in gpu: count(v in nodes: v on d) <= 460\n")
    answer = spec.solve(time_limit=8, workers=2)
    assert answer.placement is None or (answer.evaluation is not None and not answer.evaluation.violations)


def test_the_search_settles_what_dynamic_programming_is_slow_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a dynamic program that does not end, a bound that meets the value does."""
    from placedsl.planner.strategies import dynamic_programming as planner

    spec = placedsl.loads(BRANCHES)
    best = spec.solve()
    assert best.method == "dp"
    assert best.termination == "optimal"
    whole = contiguous.solve

    def endless(problem, *, stop=None, deadline=None, progress=None, **rest):  # type: ignore[no-untyped-def]
        found = contiguous.sliced(problem)
        assert progress is not None
        assert stop is not None
        progress(found.placement, found.value, found.bound)
        while not stop():
            time.sleep(0.05)
        return contiguous.PlacementResult(found.placement, found.value, found.bound, False)

    monkeypatch.setattr(planner.contiguous, "solve", endless)
    answer = spec.solve(time_limit=60)
    monkeypatch.setattr(planner.contiguous, "solve", whole)
    assert answer.termination == "optimal"
    assert answer.message.startswith("proven by ")
    assert answer.message != best.message == "proven by dynamic programming over ideals"
    assert answer.value == pytest.approx(best.value)


@pytest.mark.parametrize("fits", [True, False])
def test_without_a_first_placement_the_program_runs_beside(monkeypatch: pytest.MonkeyPatch, fits: bool) -> None:
    """A dynamic program that finds nothing to begin with, and does not end."""
    from placedsl.planner.strategies import dynamic_programming as planner

    limit = "memory = 8 MiB" if fits else "memory = 5 MiB"
    text = BRANCHES.replace("output = 2 MiB", "output = 2 MiB, memory = 1 MiB").replace(
        "    contiguous", "    contiguous\n    memory"
    )
    spec = placedsl.loads(text.replace("gpu[3]: accelerator", f"gpu[3]: accelerator {{ {limit} }}"))
    expected = spec.solve()
    whole = contiguous.solve

    def endless(problem, *, stop=None, deadline=None, progress=None, **rest):  # type: ignore[no-untyped-def]
        assert stop is not None
        while not stop():
            time.sleep(0.05)
        return contiguous.PlacementResult(None, np.inf, 0.0, False)

    monkeypatch.setattr(planner.contiguous, "solve", endless)
    answer = spec.solve(time_limit=120)
    monkeypatch.setattr(planner.contiguous, "solve", whole)
    assert answer.termination == expected.termination == ("optimal" if fits else "infeasible")
    if fits:
        assert answer.value == pytest.approx(expected.value)
    else:
        assert answer.message == "the program in cp-sat proved that no placement satisfies the constraints"
