"""A communication model is a name, a formula of the evaluator and lines in ``models/``: docs/adding-a-schedule.md.

The one that is added: transfers into a device are hidden behind computation, those out of it are not.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.brute_force import beside
from support.models_folder import changed_models
from support.random_specs import random_spec

from placedsl import loads
from placedsl.algorithms.pipelines import solve as pipelines
from placedsl.algorithms.stages.stage_costs import STAGE_COSTS, Load, stage_costs
from placedsl.algorithms.supports import reasons_against
from placedsl.api.spec import Spec
from placedsl.diagnostics import PlacedslError, UsageError
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
    plain = load_components.Components.busy

    def busy(self: load_components.Components, communication: str) -> float:
        if communication != NAME:
            return plain(self, communication)  # type: ignore[arg-type]
        return max(total(self.computation), total(self.received)) + total(self.sent)

    monkeypatch.setattr(load_components.Components, "busy", busy)


@pytest.fixture
def with_stage_costs(half_overlapped: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The larger of two sums: computation and transfers out, and all transfers."""
    monkeypatch.setitem(STAGE_COSTS, NAME, (Load(True, False, True), Load(False, True, True)))  # type: ignore[misc]
    known = {"executions": (execution.SCHEDULES[NAME],), "communications": tuple(STAGE_COSTS)}
    monkeypatch.setattr(pipelines, "SUPPORTS", replace(pipelines.SUPPORTS, **known))


def spec_of(seed: int, *rest: str) -> Spec:
    text = random_spec(seed).partition("minimize")[0]
    lines = [line for line in text.splitlines() if not line.startswith("schedule")]
    return loads("\n".join([*lines, f"schedule {NAME}", "minimize time_per_sample", *rest, ""]))


@pytest.mark.usefixtures("half_overlapped")
@pytest.mark.parametrize("seed", range(8))
def test_the_program_finds_what_enumeration_finds(seed: int) -> None:
    spec = spec_of(seed)
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


@pytest.mark.usefixtures("half_overlapped")
def test_without_costs_of_stages_dynamic_programming_refuses() -> None:
    spec = spec_of(0, "subject to", "    contiguous")
    name = spec.problem.execution.name
    every = "pipedream or overlapped or duplex or gpipe"
    every += "".join(f" or gpipe {{ communication = {c} }}" for c in ("overlapped", "full_duplex"))
    refusal = f"it knows schedule {every}, not {name}"
    assert reasons_against(spec.problem, pipelines.SUPPORTS) == [refusal]
    refused = f"it knows no costs of stages under communication {NAME}"
    assert reasons_against(spec.problem, pipelines.STARTS) == [refused]
    with pytest.raises(UsageError, match=re.escape(f"method dp does not fit: {refusal}")):
        spec.solve(method="dp")
    with pytest.raises(PlacedslError, match=f"internal error: .* {NAME}"):
        stage_costs(spec.problem.execution.communication)


@pytest.mark.usefixtures("with_stage_costs")
@pytest.mark.parametrize("seed", range(4))
def test_with_costs_of_stages_dynamic_programming_finds_what_the_program_finds(seed: int) -> None:
    spec = spec_of(seed, "subject to", "    contiguous")
    found, proven = spec.solve(method="dp"), spec.solve(solver="highs", method="program")
    assert found.termination == proven.termination == "optimal", found.message
    assert found.value == pytest.approx(proven.value, rel=1e-6)
