"""The formulation that the guide builds has the optimum of the one that comes along."""

from __future__ import annotations

import math
import re

import pytest
from support.paths import ROOT
from support.random_specs import random_spec

from placedsl import loads

TEXT = (ROOT / "docs" / "first-formulation.md").read_text(encoding="utf-8")
(FIGURE,) = re.findall(r"^<!-- file: figure6.place -->\n```[\w-]+\n(.*?)^```\n", TEXT, re.MULTILINE | re.DOTALL)


def throughput(seed: int) -> str:
    """A random spec that asks for nothing but throughput and memory."""
    text = random_spec(seed).replace("schedule gpipe\n", "")
    return text[: text.index("subject to")] + "subject to\n    memory\n" if "subject to" in text else text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(8))
def test_same_optimum_as_max_load(seed: int) -> None:
    theirs, mine = loads(throughput(seed)), loads(throughput(seed) + FIGURE)
    assert "formulation figure6" in mine.explain(method="program")
    expected, found = theirs.solve(method="program"), mine.solve(method="program")
    assert found.termination == expected.termination
    if expected.termination == "optimal":
        assert math.isclose(found.value, expected.value, rel_tol=1e-6)
