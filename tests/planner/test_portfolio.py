"""Members of a portfolio run beside a solver, are heard, and leave nothing behind."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support import portfolio_members

from placedsl import loads
from placedsl.planner.portfolio.portfolio import Member, Message, Portfolio
from placedsl.planner.portfolio.throughput_members import further_members, members_for, searchers
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.solvers.interface import Outcome

pytestmark = pytest.mark.rotates(2)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")

FREE = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms, host: 35 ms}, memory = 3 GiB, output = 8 MiB }
    a -> b -> c
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
    memory
"""


def heard(portfolio: Portfolio, enough: int, seconds: float = 30.0) -> list[Message]:
    """What is said until there is enough of it."""
    out: list[Message] = []
    until = time.monotonic() + seconds
    while len(out) < enough and time.monotonic() < until:
        out += portfolio.messages()
        time.sleep(0.02)
    return out


def test_members_are_heard_in_their_own_order() -> None:
    with Portfolio(
        [Member("one", portfolio_members.counts, (5,)), Member("two", portfolio_members.counts, (3,))]
    ) as both:
        said = heard(both, 8)
    assert [message.bound for message in said if message.member == "one"] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [message.bound for message in said if message.member == "two"] == [1.0, 2.0, 3.0]


def test_a_member_that_fails_says_so() -> None:
    with Portfolio([Member("poor", portfolio_members.fails)]) as portfolio:
        (message,) = heard(portfolio, 1)
    assert message.member == "poor"
    assert message.failed == "ValueError: nothing comes of this"


def test_a_member_that_goes_says_so() -> None:
    with Portfolio([Member("gone", portfolio_members.places, ([0], 600.0))]) as portfolio:
        heard(portfolio, 1)
        portfolio.running[0].child.process.kill()
        (message,) = heard(portfolio, 1)
    assert message.failed == "its process has gone"


def test_nothing_starts_before_it_is_due() -> None:
    with Portfolio([Member("late", portfolio_members.counts, (1,))], delay=600.0) as portfolio:
        assert list(portfolio.messages()) == []
        assert portfolio.running == []


@on_linux
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Neither a member nor what it has started."""
    note = tmp_path / "number"
    with Portfolio([Member("parent", portfolio_members.starts_another, (str(note),))]) as portfolio:
        heard(portfolio, 1)
        (member,) = portfolio.running
        grandchild = Path(f"/proc/{int(note.read_text(encoding='utf-8'))}/stat")
        assert grandchild.exists()
    assert not member.child.alive
    until = time.monotonic() + 10
    while grandchild.exists() and grandchild.read_text().split()[2] != "Z" and time.monotonic() < until:
        time.sleep(0.02)
    assert not grandchild.exists() or grandchild.read_text().split()[2] == "Z"
    assert [message for message in portfolio.messages() if message.failed] == []


def test_what_members_find_counts_once_it_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator's word on a placement; a bound that a verified placement refutes ends the run with an error."""
    spec = loads(FREE)
    poor = [Member("poor", portfolio_members.places, ([0, 0, 0], 0.0))]
    assert _answer(monkeypatch, spec, poor).termination == "optimal"
    wrong = [Member("wrong", portfolio_members.counts, (1000,))]
    found = _answer(monkeypatch, spec, wrong)
    assert found.termination == "error"
    assert "refutes" in found.message
    failing = _answer(monkeypatch, spec, [Member("failing", portfolio_members.fails)])
    assert "failing ended early: ValueError: nothing comes of this" in failing.notes


def _answer(monkeypatch: pytest.MonkeyPatch, spec, members, proves=True):
    from placedsl.solvers.isolated import run_isolated

    def patient(name, program, budget, progress):
        """The solver is as slow as the members need."""
        until = time.monotonic() + (5 if proves else 60)
        while time.monotonic() < until:
            if progress(None, np.inf, -np.inf):
                return Outcome("interrupted", None, np.inf, -np.inf, "")
            time.sleep(0.05)
        return run_isolated(name, program, budget, progress)

    monkeypatch.setattr("placedsl.planner.strategies.program.run_isolated", patient)
    monkeypatch.setattr("placedsl.planner.strategies.searches.members_for", lambda *_: members)
    return solve(spec.problem, spec.elaborated.checked_formulations, Request(method="program"))


def names(text: str, workers: int = 2) -> list[str]:
    return [member.name for member in members_for(loads(text).problem, None, workers, 0)]


def test_searches_run_where_they_know_all_rules_and_bounds_where_they_hold() -> None:
    assert names(FREE) == ["search 1", "the partition bound"]
    pipelines = ["annealing of stages", "the search for pipelines", "the partition bound"]
    assert names(FREE + "    contiguous\n") == pipelines
    alike = (FREE + "    contiguous\n").replace("device cpu: host\n", "")
    assert names(alike)[2:] == ["the bound by superblocks", "the partition bound"]
    few = "    few: forall d in gpu: count(v in nodes: v on d) <= 3\n"
    for further in (few, "    convex\n", few + "    contiguous\n"):
        assert names(FREE + further) == ["the partition bound"]
    assert names("schedule duplex\n" + FREE + "    contiguous\n") == ["the search for pipelines"]
    assert names(FREE.replace("minimize time_per_sample", "minimize devices_used")) == []
    assert names("schedule duplex\n" + FREE) == []


def test_a_member_may_start_later_than_the_others() -> None:
    members = [Member("soon", portfolio_members.repeats), Member("late", portfolio_members.repeats, delay=0.3)]
    with Portfolio(members) as portfolio:
        began = time.monotonic()
        assert list(portfolio.messages()) == []
        assert [process.name for process in portfolio.running] == ["soon"]
        assert portfolio.names == {"soon", "late"}
        while len(portfolio.running) < 2:
            assert portfolio.active
            list(portfolio.messages())
            time.sleep(0.01)
        assert time.monotonic() - began >= 0.3


def test_further_members_have_seeds_of_their_own_and_thresholds_lie_apart() -> None:
    """In the same order each time: what the i-th one does depends on the problem and the seed."""
    problem = loads(FREE).problem
    first, again = (list(itertools.islice(further_members(problem, lambda: None, 5), 40)) for _ in range(2))
    assert [one.name for one in first] == [one.name for one in again]
    searches = [one for one in first if one.kind == "search for splits"]
    seeds = [one.arguments[2] for one in searches]
    here = [member.arguments[-1] for member in members_for(problem, None, 8, 5)[:4]]
    assert len(set(seeds + here)) == len(seeds) + 4
    assert seeds == [one.arguments[2] for one in again if one.kind == "search for splits"]
    shares = [one.arguments[1] for one in first if one.kind == "the partition bound from a threshold"]
    assert shares[:6] == [0.5, 0.25, 0.75, 0.125, 0.625, 0.375]
    assert len(shares) == 16


def test_parts_of_bounds_are_shared_out_where_they_hold() -> None:
    alike = (FREE + "    contiguous\n").replace("device cpu: host\n", "")
    first = list(itertools.islice(further_members(loads(alike).problem, lambda: None, 0), 20))
    parts = [one.arguments[1] for one in first if "superblocks" in one.name or "boundaries" in one.name]
    assert parts == ["boundaries", "four", "two"]
    none = FREE.replace("minimize time_per_sample", "minimize devices_used")
    assert list(further_members(loads(none).problem, lambda: None, 0)) == []


def test_members_are_told_of_the_best_value() -> None:
    with Portfolio([Member("ears", portfolio_members.repeats)]) as portfolio:
        portfolio.announce(5.0)
        first = heard(portfolio, 1)
        portfolio.announce(7.0)
        portfolio.announce(3.0)
        said = [message.bound for message in (*first, *heard(portfolio, 1))]
    assert said == [5.0, 3.0]


def test_bounds_end_a_run_that_the_solver_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that proves nothing; the member's bounds meet the value of the placement that it is told of."""
    spec = loads(FREE)
    found = _answer(monkeypatch, spec, members_for(spec.problem, None, 2, 0), proves=False)
    assert found.termination == "optimal"
    assert found.bound == pytest.approx(found.value, rel=1e-6)
    assert found.message == "proven by the partition bound"


def test_cores_are_shared_out() -> None:
    assert [searchers(cores) for cores in (1, 2, 3, 4, 8)] == [1, 1, 1, 2, 4]
    assert len({m.arguments[-1] for m in members_for(loads(FREE).problem, None, 8, 0)[:4]}) == 4, "seeds differ"
