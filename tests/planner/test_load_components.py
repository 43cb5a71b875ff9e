"""The components of a load: by hand, and as objectives of every schedule, where program and evaluator have to agree."""

from __future__ import annotations

import sys

import pytest
from support.paths import ROOT
from support.three_in_a_row import SPEC

from placedsl import InputError, loads
from placedsl.evaluation.evaluate import evaluate

sys.path.insert(0, str(ROOT / "benchmarks"))

COMPONENTS = ("compute_time", "transfer_time", "receive_time", "send_time", "synchronisation_time")
SCHEDULES = (
    "pipedream", "overlapped", "duplex", "gpipe", "gpipe { communication = overlapped }",
    "gpipe { communication = full_duplex }", "calls",
)  # fmt: skip
MOVE = 1 / 1024  # 1 MiB over 1 GiB/s


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("compute_time", (0.006, 0.003)), ("receive_time", (MOVE, MOVE)), ("send_time", (MOVE, MOVE)),
        ("transfer_time", (2 * MOVE, 2 * MOVE)), ("synchronisation_time", (0.0, 0.0)),
    ],
)  # fmt: skip
def test_by_hand(name: str, values: tuple[float, float]) -> None:
    """a and c on the first device, b on the second: each reads one tensor and makes one for the other."""
    for number, value in enumerate(values, 1):
        spec = loads(SPEC + f"minimize {name}(gpu[{number}])\n")
        assert evaluate(spec.problem, [0, 1, 0]).objectives[0] == pytest.approx(value)


def test_by_hand_where_a_stage_is_shared() -> None:
    """Each of two devices does half of 9 ms, and sends half of 1 GiB of weights over 1 GiB/s."""
    text = SPEC.replace("memory = 1 GiB,", "memory = 1 GiB, parameters = 1 GiB,") + "parallelism { data = 1..2 }\n"
    for name, value in (("compute_time", 0.0045), ("synchronisation_time", 1.5), ("transfer_time", 0.0)):
        spec = loads(text + f"minimize {name}(gpu[1])\n")
        found = evaluate(spec.problem, [0, 0, 0], {"copies": {(0,): 2.0, (1,): 0.0}})
        assert found.objectives[0] == pytest.approx(value)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sharing", [False, True])
@pytest.mark.parametrize("clusters", [False, True])
def test_least_and_largest_as_the_evaluator_has_them(schedule: str, sharing: bool, clusters: bool) -> None:
    """An answer is verified: a program that counts less, or lets a variable exceed its meaning, ends in an error."""
    from programs import small

    known = schedule == "pipedream" or not (sharing or clusters) or schedule in ("overlapped", "duplex")
    for name in COMPONENTS:
        for sign in ("", "-"):
            text = small(1, schedule, sharing, clusters, "communication then time_per_sample").partition("minimize")[0]
            text += f"minimize {sign}sum(d in devices: {name}(d))\nsubject to\n    memory\n"
            try:
                spec = loads(text)
            except InputError:
                assert not known or (schedule == "calls" and name == "synchronisation_time")
                continue
            answer = spec.solve(solver="highs", method="program", workers=1)
            assert answer.termination == "optimal", (name, sign, answer.message)
