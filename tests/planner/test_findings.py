"""What members tell one another: the highest number of each key, however it comes about."""

from __future__ import annotations

import pickle
import random
import time

import pytest
from support import cluster_members

from placedsl.planner.portfolio import findings
from placedsl.planner.portfolio.cluster_worker import condensed
from placedsl.planner.portfolio.findings import Findings, Told
from placedsl.planner.portfolio.portfolio import Member, Portfolio, Report


@pytest.mark.parametrize("seed", range(20))
def test_neither_order_nor_repetition_counts(seed: int) -> None:
    rng = random.Random(seed)
    told = [{("a", rng.randrange(4)): float(rng.randrange(5)) for _ in range(rng.randrange(4))} for _ in range(12)]
    highest = {key: max(one[key] for one in told if key in one) for key in {key for one in told for key in one}}
    for _ in range(5):
        known, news = Findings(), dict[tuple[object, ...], float]()
        for one in rng.sample(told, len(told)) + rng.choices(told, k=5):
            new = known.raised(one)
            assert all(news.get(key, -1.0) < number for key, number in new.items())
            news |= new
        assert known.numbers == news == highest


def test_no_more_keys_of_a_kind_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MOST_KEYS", 2)
    known = Findings()
    told = {("a", 1): 1.0, ("a", 2): 1.0, ("a", 3): 1.0}
    assert known.raised(told) == {("a", 1): 1.0, ("a", 2): 1.0}
    assert known.raised({("a", 3): 9.0, ("a", 1): 2.0}) == {("a", 1): 2.0}
    # Those of another kind have room of their own.
    assert known.raised({("b", 1): 1.0, ("a", 4): 1.0, ("b", 2): 1.0, ("b", 3): 1.0}) == {("b", 1): 1.0, ("b", 2): 1.0}


def test_what_was_told_is_sent_as_one_message() -> None:
    messages = [Told({("a",): 1.0}), Report(None, 3.0), Told({("a",): 2.0, ("b",): 1.0}), Report(None, 4.0), "other"]
    told, report, other = condensed(messages)
    assert isinstance(told, Told)
    assert isinstance(report, Report)
    assert (told.numbers, report.bound, other) == ({("a",): 2.0, ("b",): 1.0}, 4.0, "other")
    assert pickle.loads(pickle.dumps(told)) == told


def test_members_of_one_machine_hear_one_another() -> None:
    """Also one that begins later, which hears what was told before."""
    members = [
        Member(str(number), cluster_members.tells_and_repeats, (number, number), delay)
        for number, delay in ((1, 0.0), (10, 0.0), (100, 1.0))
    ]
    last: dict[str, float] = {}
    until = time.monotonic() + 60.0
    with Portfolio(members) as portfolio:
        while last != {"1": 110.0, "10": 101.0, "100": 11.0}:
            assert time.monotonic() < until, last
            last |= {message.member: message.bound for message in portfolio.messages()}
            time.sleep(0.02)
