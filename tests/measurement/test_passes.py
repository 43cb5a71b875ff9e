"""Passes are kept as they end: an interrupted measurement goes on where it was, and nothing else is taken for it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from placedsl import InputError
from placedsl.measurement import passes
from placedsl.measurement.runs import Measured, Pass, Runnable, measured
from placedsl.measurement.table import table


class Interrupted(Exception):
    """What stops a measurement here."""


class Model:
    """Operators whose times are random; it stops after so many passes."""

    def __init__(self, seed: int = 0, stops_after: int = 10**9, most: int = 1, **settings: str) -> None:
        self.draw, self.ran, self.stops_after = random.Random(seed), 0, stops_after
        self.made: list[Pass] = []
        self.runnable = Runnable(
            ("a", "b", "c"),
            {"device": "cpu", **settings},
            "digest",
            (),
            self.run,
            most,
            lambda: np.array([1.0, np.nan, 3.0]),
        )

    def run(self, count: int) -> list[Pass]:
        out = []
        for _ in range(count):
            if self.ran >= self.stops_after:
                raise Interrupted
            self.ran += 1
            out.append(Pass(np.array([self.draw.random() for _ in range(3)]), self.draw.random()))
        self.made += out
        return out


def ignore(_done: int, _total: int) -> None:
    """No progress."""


def same(a: list[Pass], b: list[Pass]) -> bool:
    return [(p.seconds.tolist(), p.whole) for p in a] == [(p.seconds.tolist(), p.whole) for p in b]


@pytest.mark.parametrize("stops_after", [0, 1, 4, 9])
@pytest.mark.parametrize("most", [1, 3])
def test_an_interrupted_measurement_goes_on(stops_after: int, most: int, tmp_path: Path) -> None:
    kept = passes.file_beside(tmp_path / "times.csv")
    first = Model(1, stops_after, most)
    with pytest.raises(Interrupted):
        passes.measure(first.runnable, 10, 0, kept, ignore)
    done = len(first.made)
    heard: list[tuple[int, int]] = []
    second = Model(2, most=most)
    found = passes.measure(second.runnable, 10, 0, kept, lambda *now: heard.append(now))
    assert second.ran == 10 - done
    assert same(found, [*first.made, *second.made])
    assert heard[0] == (done, 10)
    assert heard[-1] == (10, 10)
    again = Model(3)
    assert same(passes.measure(again.runnable, 10, 5, kept, ignore), found)
    assert again.ran == 0, "all passes are there: not even a warm-up"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_is_cut_off_is_left_out(cut: int, tmp_path: Path) -> None:
    kept = tmp_path / "times.csv.passes"
    first = Model(1)
    passes.measure(first.runnable, 4, 0, kept, ignore)
    kept.write_bytes(kept.read_bytes()[:-cut])
    second = Model(2)
    found = passes.measure(second.runnable, 4, 0, kept, ignore)
    assert same(found[:3], first.made[:3])
    assert second.ran == 1
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 5


def test_warm_up_is_not_counted(tmp_path: Path) -> None:
    model = Model(1)
    found = passes.measure(model.runnable, 4, 3, None, ignore)
    assert model.ran == 7
    assert same(found, model.made[3:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "holds passes with threads 1, and this is not given"),
        ("time,node\n1 ms,a\n", "holds no passes of an interrupted measurement"),
        (
            '{"format": "placedsl-passes", "version": 1, "model": "x", "settings": {}, "operators": []}\n',
            "another model",
        ),
    ],
)
def test_passes_of_something_else_are_refused(text: str | None, message: str, tmp_path: Path) -> None:
    kept = tmp_path / "times.csv.passes"
    if text is None:
        passes.measure(Model(threads="1").runnable, 1, 0, kept, ignore)
    else:
        kept.write_text(text, encoding="utf-8")
    before = kept.read_bytes()
    with pytest.raises(InputError, match=message):
        passes.measure(Model().runnable, 4, 0, kept, ignore)
    assert kept.read_bytes() == before


def test_medians_and_scaling() -> None:
    times = [[3.0, 1.0, 10.0], [1.0, 2.0, 30.0], [2.0, 9.0, 20.0]]
    found = measured(Model().runnable, [Pass(np.array(t), w) for t, w in zip(times, (10.0, 48.0, 12.0), strict=True)])
    assert found.seconds.tolist() == [2.0, 2.0, 20.0]
    assert found.low.tolist() == [1.5, 1.5, 15.0]
    assert found.share == 2.0
    scaled = found.scaled()
    assert scaled.seconds.sum() == pytest.approx(12.0)
    assert scaled.share == pytest.approx(1.0)
    assert (scaled.seconds / found.seconds).tolist() == pytest.approx([0.5] * 3)


def test_the_table() -> None:
    found = Measured(
        ('a, "b"', "c"), np.array([1e-3, 2.5e-7]), np.array([1e-3, 2e-7]), np.array([2e-3, 3e-7]), 1.0,
        np.array([4096.0, np.nan]), 5,
    )  # fmt: skip
    assert table(found, "gpu", ["made here"]).splitlines() == [
        "# made here", "node,device,time,low,high,allocated", '"a, ""b""",gpu,1000 us,1000 us,2000 us,4096 B',
        "c,gpu,0.25 us,0.2 us,0.3 us,",
    ]  # fmt: skip
