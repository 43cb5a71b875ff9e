"""Activations of samples in flight are not part of ``memory``: where that matters, a note says so once."""

from __future__ import annotations

import pytest

from placedsl import loads

TEXT = """
graph {
    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node b { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node b_back { time = 2 ms, output = 1 MiB@backward }
    node a_back { time = 2 ms@backward }
    a -> b -> b_back -> a_back
}
device gpu[2]: accelerator@memory
interconnect { bandwidth = 1 GiB/s }
schedule @schedule
minimize @goal
subject to
    @rule
"""
NOTE = "memory leaves out activations of the samples in flight, which 'placedsl timeline' shows"
LIMIT, BACKWARD = " { memory = 4 GiB }", ", backward = true"


@pytest.mark.parametrize(
    ("schedule", "goal", "backward", "memory", "rule", "noted"),
    [
        ("1f1b", "time_per_sample", BACKWARD, LIMIT, "memory", True),
        ("gpipe", "time_per_sample", BACKWARD, LIMIT, "memory", True),
        ("1f1b", "time_per_sample", BACKWARD, "", "own: forall d in gpu: memory(d) <= 3 GiB", True),
        ("1f1b", "time_per_sample", BACKWARD, "", "memory", False),
        ("1f1b", "time_per_sample", BACKWARD, LIMIT, "few: devices_used <= 2", False),
        ("1f1b", "time_per_sample", "", LIMIT, "memory", False),
        ("calls", "latency", BACKWARD, LIMIT, "memory", False),
    ],
)
def test_note(schedule: str, goal: str, backward: str, memory: str, rule: str, noted: bool) -> None:
    text = TEXT.replace("@schedule", schedule).replace("@goal", goal).replace("@backward", backward)
    spec = loads(text.replace("@memory", memory).replace("@rule", rule))
    assert spec.solve().notes.count(NOTE) == noted
    assert " ".join(spec.explain().replace("#", "").split()).count(NOTE) == noted
