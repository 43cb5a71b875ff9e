"""A communication model is a name, a formula of the evaluator and lines in ``models/``: docs/adding-a-schedule.md.

The one that is added: transfers into a device are hidden behind computation, those out of it are not.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from support.brute_force import beside
from support.models_folder import changed_models
from support.random_specs import random_spec

from placedsl import loads
from placedsl.algorithms.pipelines import solve as pipelines
from placedsl.evaluation import load_components
from placedsl.evaluation.evaluate import evaluate
from placedsl.evaluation.tolerance import total
from placedsl.language.elaboration import composition
from placedsl.problem import execution

NAME = "half_overlapped"
LOADS = (
    "    under communication half_overlapped: define busy(d in devices, p: int) = max(computing(d, p), "
    "sum(r in replicas: receiving(d, p, r) / r)) + sum(r in replicas: sending(d, p, r) / r) + synchronising(d, p)\n}\n"
)
TRANSFERS = "    under order 1f1b, communication half_overlapped: use both_directions\n"


@pytest.fixture
def half_overlapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {
        "loads.place": lambda text: text.rstrip().removesuffix("}") + LOADS,
        "throughput.place": lambda text: text.replace("    use placement", TRANSFERS + "    use placement"),
    }
    changed_models(tmp_path, monkeypatch, changes)
    model = execution.Execution(communication=NAME)  # type: ignore[arg-type]
    monkeypatch.setitem(execution.SCHEDULES, NAME, model)  # type: ignore[misc]
    monkeypatch.setitem(execution.SHORTHANDS, NAME, model)  # type: ignore[misc]
    monkeypatch.setitem(composition.AXES, "communication", (*execution.COMMUNICATIONS, NAME))  # type: ignore[misc]
    # Where dynamic programming does not know the model, what it finds under another one is a start.
    monkeypatch.setitem(pipelines._STAGES, NAME, pipelines._STAGES["sequential"])  # type: ignore[misc]
    plain = load_components.Components.busy

    def busy(self: load_components.Components, communication: str) -> float:
        if communication != NAME:
            return plain(self, communication)  # type: ignore[arg-type]
        return max(total(self.computation), total(self.received)) + total(self.sent)

    monkeypatch.setattr(load_components.Components, "busy", busy)


@pytest.mark.usefixtures("half_overlapped")
@pytest.mark.parametrize("seed", range(8))
def test_the_program_finds_what_enumeration_finds(seed: int) -> None:
    text = random_spec(seed).partition("minimize")[0]
    lines = [line for line in text.splitlines() if not line.startswith("schedule")]
    spec = loads("\n".join([*lines, f"schedule {NAME}", "minimize time_per_sample", ""]))
    problem = spec.problem
    devices, nodes = len(problem.machine.devices), problem.graph.nodes
    every = np.array(list(itertools.product(range(devices), repeat=nodes)))
    every = every[np.isfinite(problem.time[np.arange(nodes), every]).all(axis=1)]
    computing, read, written = beside(problem, every)
    least = (np.maximum(computing, read) + written).max(axis=1)
    best = int(np.argmin(least))
    assert evaluate(problem, every[best].tolist()).objectives[0] == pytest.approx(least[best])
    answer = spec.solve(solver="highs", method="program")
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(least[best], rel=1e-6)
