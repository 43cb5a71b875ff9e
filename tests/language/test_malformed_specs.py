"""Malformed specs: each gives exactly the diagnostics beside it in ``malformed_specs.txt``, and never a traceback.

Cases are separated by ``=====``, a spec from its diagnostics by ``-----``; ``@start`` and the like stand
for the texts below.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from placedsl import InputError, loads

GRAPH = """\
graph {
    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node b { time = 2 ms, memory = 1 GiB, output = 1 MiB }
    a -> b
}
"""
DEVICES = """\
device gpu[2]: accelerator { memory = 4 GiB }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
"""
MINIMIZE = "minimize time_per_sample\n"
PARTS = {
    "@start\n": GRAPH + DEVICES + MINIMIZE,
    "@graph\n": GRAPH,
    "@devices\n": DEVICES,
    "@minimize\n": MINIMIZE,
    "\n@no-newline\n": "",
}
CASES = (Path(__file__).parent / "malformed_specs.txt").read_text(encoding="utf-8").split("=====\n")


@pytest.mark.parametrize("case", CASES)
def test_diagnostics(case: str, tmp_path: Path) -> None:
    text, expected = case.split("-----\n")
    for name, part in PARTS.items():
        text = text.replace(name, part)
    with pytest.raises(InputError) as caught:
        loads(text, tmp_path).check()
    shown = "\n".join(d.render() for d in caught.value.diagnostics) + "\n"
    assert shown.replace(f"{tmp_path}{os.sep}", "") == expected


def test_there_are_many() -> None:
    assert len(CASES) >= 90
    assert len(set(CASES)) == len(CASES)
