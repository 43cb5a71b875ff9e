"""Members of the portfolio on a Dask cluster: what they find counts, and a worker that is lost costs its work."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import cluster_members, portfolio_members
from support.commands import run
from support.sweep_specs import NO_DASK, hard_spec

import placedsl
from placedsl import loads
from placedsl.algorithms.partitions.instance import partition_units
from placedsl.planner.portfolio import cluster as clusters
from placedsl.planner.portfolio.cluster import Cluster
from placedsl.planner.portfolio.portfolio import Known, Member, Message, Portfolio
from placedsl.processes import dask_cluster
from placedsl.solvers.interface import Outcome

pytestmark = [pytest.mark.xdist_group("dask"), pytest.mark.rotates(3)]

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="signals")

WIDE = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms, host: 35 ms}, memory = 3 GiB, output = 8 MiB }
    node d { time = {accelerator: 3 ms, host: 25 ms}, memory = 1 GiB, output = 8 MiB }
    a -> b -> d
    a -> c -> d
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
    memory
"""


def local_cluster(folder: Path, workers: int) -> Any:
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=str(folder)
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two workers that nobody harms."""
    with local_cluster(tmp_path_factory.mktemp("dask"), 2) as made:
        yield made.scheduler_address


def heard(portfolio: Portfolio, enough: Callable[[list[Message]], bool], seconds: float = 30.0) -> list[Message]:
    """What is said until it is enough."""
    out: list[Message] = []
    until = time.monotonic() + seconds
    while not enough(out):
        assert time.monotonic() < until, [(message.member, message.bound, message.failed) for message in out]
        out += portfolio.messages()
        time.sleep(0.02)
    return out


def bounds_of(messages: list[Message]) -> list[float]:
    return [message.bound for message in messages if not message.failed]


def numbered() -> Iterator[Member]:
    for number in itertools.count():
        yield Member(f"member {number}", cluster_members.tells_its_number, (number,), kind="member")


def test_each_thread_has_a_member_and_is_told_what_is_known(address: str) -> None:
    cluster = Cluster(address)
    members = iter([Member(name, cluster_members.repeats_what_is_known) for name in ("one", "two")])
    with Portfolio((), further=cluster.host(members)) as portfolio:
        portfolio.announce(7.0, 1.0)
        first = heard(portfolio, lambda said: len(said) >= 2)
        portfolio.announce(9.0, 2.0)
        second = heard(portfolio, lambda said: len(said) >= 2)
        assert not portfolio.active  # which says something of this machine alone
    cluster.close()
    assert {message.member for message in first} == {"one", "two"}
    assert (bounds_of(first), bounds_of(second)) == ([8.0, 8.0], [9.0, 9.0])
    assert cluster.notes() == [f"the cluster at {address} ran beside this machine, on 2 workers: one (1), two (1)"]


def test_members_hear_one_another(address: str) -> None:
    """Two on the cluster, one of this machine from the beginning and one from later on."""
    cluster = Cluster(address)

    def member(number: int, delay: float = 0.0) -> Member:
        return Member(str(number), cluster_members.tells_and_repeats, (number, number), delay)

    there, here = iter([member(1), member(10)]), (member(100), member(1000, 2.0))
    wanted = {"1": 1110.0, "10": 1101.0, "100": 1011.0, "1000": 111.0}
    with Portfolio(here, further=cluster.host(there)) as portfolio:
        heard(portfolio, lambda said: {m.member: m.bound for m in said} == wanted)
    cluster.close()


def test_a_search_of_so_many_steps_is_the_same_wherever_it_runs(address: str) -> None:
    units = partition_units(loads(WIDE).problem)
    cluster = Cluster(address)
    members = [Member(str(seed), cluster_members.searches_for_steps, (units, seed, 3)) for seed in (0, 7919)]
    with Portfolio((), further=cluster.host(iter(members))) as portfolio:
        said = heard(portfolio, lambda said: len(said) >= 2)
    cluster.close()
    for seed in (0, 7919):
        ear = cluster_members.Ear()
        cluster_members.searches_for_steps(ear, units, seed, 3)
        (there,) = (message.placement for message in said if message.member == str(seed))
        assert there is not None
        assert np.array_equal(there, ear.placements[-1])


def test_members_that_fail_say_so_and_are_not_begun_for_ever(address: str) -> None:
    cluster = Cluster(address)
    members = (Member("poor", portfolio_members.fails) for _ in itertools.count())
    with Portfolio((), further=cluster.host(members)) as portfolio:
        said = heard(portfolio, lambda said: len(said) >= 5)
    cluster.close()
    assert {message.failed for message in said} == {"ValueError: nothing comes of this (on the cluster)"}
    assert sum(cluster.begun.values()) <= 6


def test_the_same_answer_as_on_one_machine(address: str) -> None:
    for text in (WIDE, WIDE + "    contiguous\n"):
        here, there = loads(text).solve(), loads(text).solve(dask=address)
        assert (there.termination, there.value, there.bound) == (here.termination, here.value, here.bound)
        assert any(note.startswith(f"the cluster at {address} ") for note in there.notes)


def test_bounds_from_the_cluster_end_a_run_that_this_machine_would_not(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without members of this machine, and with a solver that proves nothing."""

    def proves_nothing(name: str, program: Any, budget: Any, progress: Callable[..., bool]) -> Outcome:
        until = time.monotonic() + 60
        while time.monotonic() < until and not progress(None, np.inf, -np.inf):
            time.sleep(0.05)
        return Outcome("interrupted", None, np.inf, -np.inf, "")

    monkeypatch.setattr("placedsl.planner.strategies.program.run_isolated", proves_nothing)
    monkeypatch.setattr("placedsl.planner.strategies.searches.members_for", lambda *_: [])
    answer = loads(WIDE).solve(method="program", dask=address)
    assert (answer.termination, answer.message) == ("optimal", "proven by the partition bound")
    assert answer.value == loads(WIDE).solve(method="program", solver="cp-sat").value


def _kill_once_it_works(pid: int) -> None:
    """Kill a worker as soon as it has a member."""
    import psutil

    until = time.monotonic() + 30
    while not any("portfolio.worker" in _command(child) for child in psutil.Process(pid).children()):
        if time.monotonic() > until:
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)


@on_linux
def test_a_worker_that_is_killed_costs_its_work(tmp_path: Path) -> None:
    """A solve with a worker killed meanwhile: an answer, and a note."""
    (tmp_path / "hard.place").write_text(hard_spec(), encoding="utf-8")
    with local_cluster(tmp_path, 2) as made:
        pid = next(iter(made.workers.values())).pid
        killing = threading.Thread(target=_kill_once_it_works, args=(pid,))
        killing.start()
        answer = placedsl.load(tmp_path / "hard.place").solve(
            time_limit=10, method="program", dask=made.scheduler_address
        )
        killing.join()
    assert answer.placement is not None
    lost = "1 worker of the cluster was lost: what ran there was begun anew where there was room, and nothing else"
    assert any(note.startswith(lost) for note in answer.notes), answer.notes


@on_linux
def test_members_of_a_lost_worker_are_begun_anew_and_late_workers_take_members(tmp_path: Path) -> None:
    with local_cluster(tmp_path, 1) as made:
        cluster = Cluster(made.scheduler_address)
        with Portfolio((), further=cluster.host(numbered())) as portfolio:
            assert bounds_of(heard(portfolio, lambda said: len(said) >= 1)) == [0.0]
            made.scale(2)
            assert bounds_of(heard(portfolio, lambda said: len(said) >= 1)) == [1.0]
            os.kill(made.workers[0].pid, signal.SIGKILL)
            # Its nanny begins a worker in its place, which is given the member that was lost.
            assert bounds_of(heard(portfolio, lambda said: len(said) >= 1)) == [0.0]
        notes = cluster.notes()
        cluster.close()
    assert len(cluster.lost) == 1
    assert "2 workers joined later and took members as well" in notes
    assert any(note.startswith("1 worker of the cluster was lost") for note in notes)


def test_a_scheduler_that_goes_leaves_this_machine_alone(tmp_path: Path) -> None:
    made = local_cluster(tmp_path, 1)
    cluster = Cluster(made.scheduler_address)
    with Portfolio((), further=cluster.host(numbered())) as portfolio:
        heard(portfolio, lambda said: len(said) >= 1)
        made.close()
        until = time.monotonic() + 30
        while not cluster.unreachable:
            assert time.monotonic() < until
            list(portfolio.messages())
            time.sleep(0.05)
    cluster.close()
    lost = f"the cluster at {cluster.address} was lost, and this machine went on alone: "
    assert any(note.startswith(lost) for note in cluster.notes())


def test_a_worker_with_another_placedsl_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = dask_cluster.other_version("tcp://there:1", "0.0.1")
    assert reason is not None
    assert reason.startswith("the worker tcp://there:1 has placedsl 0.0.1, here it is ")
    assert reason.endswith(": both must be the same")
    cluster = Cluster(address)
    monkeypatch.setattr(clusters, "other_version", dask_cluster.other_version)
    monkeypatch.setattr(dask_cluster, "package_version", lambda: "9.9")  # which late workers are held against
    with Portfolio((), further=cluster.host(numbered())) as portfolio:
        until = time.monotonic() + 20
        while len(cluster.refused) < 2 and time.monotonic() < until:
            list(portfolio.messages())
            time.sleep(0.05)
    cluster.close()
    assert not cluster.begun
    assert all("both must be the same" in note for note in cluster.notes()[1:])
    monkeypatch.setattr(dask_cluster, "other_version", lambda worker, version: "both must be the same")
    with pytest.raises(placedsl.UsageError, match="both must be the same"):
        dask_cluster.connected(address)


def test_no_scheduler_at_that_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason=NO_DASK)
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.5)
    with pytest.raises(placedsl.UsageError, match="no Dask scheduler answers at"):
        loads(WIDE).solve(dask="tcp://127.0.0.1:9")
    (tmp_path / "wide.place").write_text(WIDE, encoding="utf-8")
    ended = run("solve", "wide.place", "--dask", "nonsense://x", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "no Dask scheduler answers at 'nonsense://x'" in ended.stderr


def test_an_address_is_a_text() -> None:
    with pytest.raises(placedsl.UsageError, match="an address is expected, as in dask='tcp://host:8786'"):
        loads(WIDE).solve(dask=8786)  # type: ignore[arg-type]


def test_without_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "find_spec", lambda name: None)
    with pytest.raises(placedsl.UsageError, match=r"pip install 'placedsl\[dask\]'"):
        loads(WIDE).solve(dask="tcp://127.0.0.1:8786")


@on_linux
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_on_the_cluster(address: str, tmp_path: Path, end: signal.Signals) -> None:
    """Neither after the planner was killed nor after Ctrl-C."""
    psutil = pytest.importorskip("psutil")
    (tmp_path / "hard.place").write_text(hard_spec(), encoding="utf-8")

    def members() -> int:
        found = 0
        for process in psutil.Process().children(recursive=True):
            if process.pid != planner.pid and planner.pid not in [parent.pid for parent in _parents(process)]:
                found += "placedsl.planner.portfolio.worker" in _command(process)
        return found

    command = [sys.executable, "-m", "placedsl", "solve", "hard.place", "--method", "program", "--dask", address]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as planner:
        until = time.monotonic() + 40
        while members() < 2:
            assert planner.poll() is None
            assert time.monotonic() < until, "the cluster was given no members"
            time.sleep(0.1)
        planner.send_signal(end)
        planner.wait(20)
    until = time.monotonic() + 20
    while members():
        assert time.monotonic() < until, "members go on though the planner has gone"
        time.sleep(0.1)


def _parents(process: Any) -> list[Any]:
    import psutil

    try:
        return list(process.parents())
    except psutil.Error:
        return []


def _command(process: Any) -> str:
    import psutil

    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_what_is_known_only_gets_better() -> None:
    assert Known().joined(Known(5.0, 1.0)).joined(Known(6.0, 0.0)) == Known(5.0, 1.0)
