"""A linear constraint is one line in ``models/constraints.place``."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.models_folder import changed_models
from support.three_in_a_row import SPEC

from placedsl import loads
from placedsl.language.elaboration import model_library

LINE = "constraint spread(most: int) (7) = forall d in accelerators: count(v in nodes: v on d) <= most\n"


def test_one_line_makes_a_constraint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_models(tmp_path, monkeypatch, {"constraints.place": lambda text: text + LINE})
    model_library.constraint_definitions.cache_clear()
    try:
        for most, devices in ((3, 1), (2, 2)):
            text = SPEC + f"minimize devices_used\nsubject to\n    spread({most})\n"
            assert loads(text).solve(solver="highs", method="program").value == devices
        assert loads(SPEC + "minimize devices_used\nsubject to\n    spread(1)\n").solve().termination == "infeasible"
    finally:
        model_library.constraint_definitions.cache_clear()
