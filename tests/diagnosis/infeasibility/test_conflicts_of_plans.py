"""Conflicts of problems that ask for a plan, against enumeration of plans from the workload: there is one where no
plan satisfies the constraints, those that it names have none together, and have one as soon as any is left out."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from support.paths import child_environment
from support.piper_workloads import Asked, drawn
from support.plan_rules import Rule, drawn_rules, further_rules, plans

import placedsl
from placedsl.diagnosis.infeasibility.conflict import find
from placedsl.planner.request import Request

NO_LIMIT = 10**6


@pytest.mark.sampled(12)
@pytest.mark.parametrize("first", range(0, 1200, 25))
def test_enumeration_confirms_the_conflict(first: int) -> None:
    command = [sys.executable, __file__, str(first), str(first + 25)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    conflicts = int(done.stdout.splitlines()[-1].removeprefix("confirmed: "))
    assert conflicts >= 1


def confirm(first: int, last: int) -> int:
    """How many conflicts were confirmed."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            asked, rng = replace(drawn(seed, 3), together=False), random.Random(seed)
            rules = rng.choice((drawn_rules, further_rules))(asked, rng) + further_rules(asked, rng)
            count += _confirmed(asked, rules, Path(folder), seed)
    return count


def _confirmed(asked: Asked, rules: list[Rule], folder: Path, seed: int) -> bool:
    (folder / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
    named = {f"c{k}": rule for k, rule in enumerate(rules)}
    text = asked.spec("w.json") + "".join(f"    {name}: {rule.text}\n" for name, rule in named.items())
    spec = placedsl.loads(text, folder)
    conflict = find(spec.problem, spec.elaborated.checked_formulations, Request("highs", workers=1), isolated=False)

    def planned(names: Collection[str]) -> bool:
        free = asked if "memory" in names else replace(asked, memory=NO_LIMIT)
        own = [rule for name, rule in named.items() if name in names]
        return any(all(rule.holds(plan) for rule in own) for plan in plans(free))

    told = f"seed {seed}: {conflict}\n{text}"
    if planned({"memory", *named}):
        assert conflict is None, told
        return False
    assert conflict is not None, told
    members = {member.name for member in conflict.members}
    if members == {"supported"}:
        assert not planned(()), told
        return True
    assert not planned(members), told
    if conflict.smallest:
        assert all(planned(members - {name}) for name in members if name in {"memory", *named}), told
    return True


if __name__ == "__main__":
    sys.stdout.write(f"confirmed: {confirm(int(sys.argv[1]), int(sys.argv[2]))}\n")
