"""First plans of stages that hold several chunks: plans of their problems, with bounds that are bounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chunked_plans import drawn_with_chunks, optimum_with_chunks, spec_with_chunks

import placedsl
from placedsl.algorithms.pipelines.parallel_plans import in_turn


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes no ideals at all."""
    monkeypatch.setattr(in_turn, "_MOST_IDEALS", {})
    monkeypatch.setattr(in_turn, "_FEWEST", 1)


@pytest.mark.sampled(10)
@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("first", range(40000, 40400, 20))
def test_first_plans_and_bounds_against_enumeration(first: int, tmp_path: Path) -> None:
    found = possible = 0
    for seed in range(first, first + 20):
        asked, chunks = drawn_with_chunks(seed, 5)
        (tmp_path / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        spec = placedsl.loads(spec_with_chunks(asked, chunks, "w.json"), tmp_path)
        answer, best = spec.solve(method="dp", workers=1), optimum_with_chunks(asked, chunks)
        if best is None:
            assert answer.evaluation is None, seed
            continue
        possible += 1
        assert answer.termination != "infeasible", seed
        assert answer.bound <= float(best) * (1.0 + 1e-9), seed
        if answer.evaluation is not None:
            found += 1
            assert answer.evaluation.feasible, seed
            assert answer.value >= float(best) * (1.0 - 1e-9), seed
    assert found > possible // 2


@pytest.mark.usefixtures("no_room")
def test_a_long_model_has_a_plan_near_its_bound() -> None:
    layers = range(47)
    nodes = "\n".join(f"    node n{k} {{ time = {4 + k % 3} ms, stash = 64 MiB, output = 1 MiB }}" for k in layers)
    text = f"""graph {{
{nodes}
    {" -> ".join(f"n{k}" for k in layers)}
}}
device gpu[16]: accelerator {{ memory = 8 GiB }}
interconnect {{ bandwidth = 25 GiB/s }}
parallelism {{ microbatches = 64, data = divisors(microbatches), exchange = batch, chunks = 2 }}
minimize time_per_sample
subject to
    memory
    contiguous
"""
    answer = placedsl.loads(text).solve(method="dp", workers=1)
    assert answer.termination in ("ended", "optimal")  # it may be proven by another bound
    assert answer.evaluation is not None
    assert answer.evaluation.feasible
    assert answer.bound <= answer.value <= 1.25 * answer.bound


CHUNKED = """graph {
    node a { time = 4 ms }
    node b { time = 6 ms }
    node c { time = 5 ms }
    node e { time = 4 ms }
    a -> b -> c -> e
}
device gpu[2]: accelerator
parallelism { microbatches = 4, data = {1}, chunks = 2 }
minimize time_per_sample
subject to
    contiguous
"""


def test_a_search_that_is_broken_off_leaves_its_plan_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after the first plan, while the search is being prepared."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(in_turn, "PlanTable", interrupted)
    answer = placedsl.loads(CHUNKED).solve(workers=1)
    assert answer.termination == "interrupted"
    assert answer.value == pytest.approx(0.01)
    assert answer.bound == pytest.approx(19e-3 / 2)
