"""A quantity that follows from others is one line in ``models/quantities.place``."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.models_folder import changed_models
from support.three_in_a_row import SPEC

from placedsl import loads

LINE = "define imbalance = max(d in devices: load(d)) - min(d in devices: load(d))\n"
#: 1 MiB over 1 GiB/s.
MOVE = 1 / 1024


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_models(tmp_path, monkeypatch, {"quantities.place": lambda text: text + LINE})


@pytest.mark.usefixtures("extended")
@pytest.mark.parametrize("schedule", ["pipedream", "overlapped", "calls", "dataflow"])
def test_one_line_makes_an_objective_of_every_schedule(schedule: str) -> None:
    answer = loads(SPEC + f"schedule {schedule}\nminimize imbalance\n").solve(solver="highs", method="program")
    assert answer.termination == "optimal", answer.message
    assert answer.evaluation is not None
    loads_of_devices = answer.evaluation.loads
    assert answer.value == pytest.approx(max(loads_of_devices) - min(loads_of_devices))


@pytest.mark.usefixtures("extended")
def test_its_value_is_that_of_the_definition() -> None:
    """a and c against b: 6 ms and 3 ms, two transfers each; a against b and c: 4 ms and 5 ms, one each."""
    answer = loads(SPEC + "minimize imbalance\n").solve(solver="highs", method="program")
    assert answer.value == pytest.approx(0.001)
    together = loads(SPEC + "minimize imbalance\nsubject to\n    all: forall v in nodes: v on gpu[1]\n")
    assert together.solve(solver="highs", method="program").value == pytest.approx(0.009)


@pytest.mark.usefixtures("extended")
def test_a_spec_may_define_the_name_otherwise() -> None:
    text = SPEC + "define imbalance = peak_memory\nminimize imbalance\n"
    assert loads(text).solve(solver="highs", method="program").value == 2 * 2**30
