"""Conflicts made by hand, in the words that a user reads."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console
from support.paths import ROOT

import placedsl
from placedsl.cli import main as cli
from placedsl.diagnosis.infeasibility import repair
from placedsl.diagnosis.infeasibility.conflict import Conflict
from placedsl.diagnosis.infeasibility.feasibility import Feasibility
from placedsl.diagnosis.infeasibility.solver_core import core
from placedsl.diagnostics import InputError, LimitError
from placedsl.evaluation.constraint_instances import instances
from placedsl.planner.request import Request, resolve
from placedsl.problem.formulation import choose
from placedsl.report.text.conflict_text import print_conflict

pytestmark = pytest.mark.rotates(3)

SCHEMA = json.loads((ROOT / "docs" / "answer.schema.json").read_text(encoding="utf-8"))
CHAIN = """graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB, layer = 1 }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB, layer = 2 }
    node c { time = {accelerator: 5 ms}, memory = 3 GiB, output = 8 MiB, layer = 1 }
    a -> b -> c
}
param gpus: int = 2
param room = 6 GiB
device gpu[gpus]: accelerator { memory = room }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
"""


def told(rules: str, by_instance: bool = True, solver: str = "highs", **parameters: str) -> list[str]:
    """What the terminal shows of the conflict of the chain under these rules; line 14 is the first of them."""
    text = CHAIN + "".join(f"    {line.strip()}\n" for line in rules.strip().splitlines())
    conflict = placedsl.loads(text, parameters=parameters).conflict(by_instance=by_instance, solver=solver)
    assert conflict is not None
    return shown_of(conflict)


def shown_of(conflict: Conflict) -> list[str]:
    """The lines of a conflict, with one space between words."""
    out = io.StringIO()
    print_conflict(conflict, Console(width=120, file=out))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_repairs_that_were_not_tried_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict that is found at once, with no time for what can be bought or set."""
    monkeypatch.setattr(repair, "_MOST_SECONDS", 0.0)
    lines = told("memory\ncontiguous", by_instance=False, room="1 GiB")
    assert lines[-1] == "There may be other repairs: the time was over before all were tried."
    assert not any("room = " in line for line in lines)


def test_memory_that_is_too_small() -> None:
    assert told("memory\ncontiguous", room="1 GiB") == [
        "these constraints cannot hold together",
        "<text>:14 memory 2 of its 2 instances: d=gpu[1], d=gpu[2]",
        "(always) supported",
        "Without it there is a placement.",
        "what would repair it, each by itself",
        "room = 3 GiB instead of 1 GiB (a smaller change may be enough)",
        "memory: 2 GiB more on gpu[1]",
    ]


def repairs_of(rules: str, machine: str) -> tuple[str, ...]:
    """The repairs of the chain on other devices, whose number and memory are no parameters."""
    graph = CHAIN[: CHAIN.index("param")]
    text = graph + machine + "minimize time_per_sample\nsubject to\n" + rules
    conflict = placedsl.loads(text).conflict(solver="highs")
    assert conflict is not None
    return conflict.repair


def test_what_can_be_bought_comes_before_amounts() -> None:
    machine = "device gpu[1]: accelerator { memory = 4 GiB }\ninterconnect { bandwidth = 16 GB/s }\n"
    assert repairs_of("memory\ncontiguous\n", machine) == (
        "memory of gpu: 8 GiB instead of 4 GiB", "2 more gpu", "memory: 4 GiB more on gpu[1]",
    )  # fmt: skip


def test_what_can_be_bought_is_tried_before_it_is_told() -> None:
    """Each node of the chain fits a device with as much memory; more devices with as little do not help."""
    machine = "device gpu[3]: accelerator { memory = 2 GiB }\ninterconnect { bandwidth = 16 GB/s }\n"
    assert repairs_of("memory\n", machine)[0] == "memory of gpu: 3 GiB instead of 2 GiB"
    less = machine.replace("2 GiB", f"{3 * 2**30 - 1} B")
    assert repairs_of("memory\n", less)[0] == "memory of gpu: 3 GiB instead of 3221225471 B"


def test_further_devices_of_clusters() -> None:
    machine = "cluster pod[2] { device gpu: accelerator { memory = 3 GiB } }\ninterconnect { bandwidth = 16 GB/s }\n"
    assert repairs_of("memory\n", machine)[:2] == ("memory of gpu: 5 GiB instead of 3 GiB", "one more gpu in each pod")


def test_another_value_of_a_parameter() -> None:
    """A batch stays a power of two, and other whole numbers are tried one by one."""
    machine = (
        "param batch = 128\nparam room = 4\ndevice gpu[1]: accelerator { memory = room * 1 GiB }\n"
        "interconnect { bandwidth = 16 GB/s }\n"
    )
    found = repairs_of("stored: sum(v in nodes: v.memory) * batch * (a on gpu[1]) <= 500 GiB\n", machine)
    assert found[0] == "batch = 32 instead of 128"
    found = repairs_of("memory\n", machine)
    assert found[0] == "room = 8 instead of 4"
    assert not any(repair.startswith(("batch", "memory of gpu")) for repair in found)


def test_pinned_and_forbidden() -> None:
    rules = "memory\npinned: forall v in {a, b}: v on gpu[1]\nnever_first: not (b on gpu[1])"
    assert told(rules) == [
        "these constraints cannot hold together",
        "<text>:15 pinned 1 of its 2 instances: v=b",
        "<text>:16 never_first",
        "Without any one of them there is a placement.",
        "what would repair it, each by itself",
        "drop pinned for v=b",
        "drop never_first",
    ]


def test_colocated_and_kept_apart() -> None:
    rules = "colocated by layer\napart: forall d in devices: not (a on d and c on d)"
    assert told(rules) == [
        "these constraints cannot hold together",
        "<text>:14 colocated by layer",
        "<text>:15 apart 2 of its 3 instances: d=gpu[1], d=gpu[2]",
        "(always) supported",
        "Without any one of them there is a placement.",
        "what would repair it, each by itself",
        "drop colocated by layer",
        "drop apart for d=gpu[1]",
    ]


def test_contiguous_and_pins_along_a_path() -> None:
    rules = "contiguous\npins: a on gpu[1] and b on gpu[2] and c on gpu[1]\nmemory"
    assert told(rules) == [
        "these constraints cannot hold together",
        "<text>:14 contiguous",
        "<text>:15 pins 3 of its 3 instances: a on gpu[1], b on gpu[2], c on",
        "gpu[1]",
        "Without any one of them there is a placement.",
        "what would repair it, each by itself",
        "drop contiguous",
        "drop pins for a on gpu[1]",
    ]


def test_a_node_without_a_device() -> None:
    with pytest.raises(InputError, match="node 'c' runs on none of these devices"):
        told("memory\ncontiguous", gpus="0")


@pytest.mark.parametrize("solver", ["highs", "cp-sat", "mip"])
def test_two_of_five(solver: str) -> None:
    rules = "memory\nquick: load(cpu) <= 3 ms\nspread: forall d in gpu: count(v in nodes: v on d) <= 2\n"
    rules += "alone: forall v in {b, c}: not (v on gpu[1])\nsome: count(v in nodes: v on gpu[1]) >= 2"
    assert told(rules, solver=solver) == [
        "these constraints cannot hold together",
        "<text>:17 alone 2 of its 2 instances: v=b, v=c",
        "<text>:18 some",
        "Without any one of them there is a placement.",
        "what would repair it, each by itself",
        "drop alone for v=b",
        "some: 1 less",
    ]


def test_what_the_data_alone_contradict() -> None:
    shown = told("contiguous\nroomy: forall d in gpu: d.memory >= 8 GiB")
    assert shown[:2] == ["this constraint cannot hold", "<text>:15 roomy 2 of its 2 instances: d=gpu[1], d=gpu[2]"]
    assert shown[2] == "<text>:15:5: error: roomy[d=gpu[1]], roomy[d=gpu[2]] is false whatever the placement"
    assert shown[3] == "15 | roomy: forall d in gpu: d.memory >= 8 GiB"
    assert len(shown) == 5


def test_two_conflicts() -> None:
    """Leaving out one member does not help where there is a further conflict, and that is said."""
    shown = told("here: a on gpu[1]\nthere: a on gpu[2]\nboth: b on gpu[1]\nneither: b on cpu", by_instance=False)
    assert shown[0] == "these constraints cannot hold together"
    assert shown[3].startswith("Without any one of them the others hold together.")
    assert shown[4].endswith("there is still no placement: another conflict remains.")
    assert len(shown) == 5


def test_what_was_wrongly_called_infeasible() -> None:
    """A solver that lied does not lead to a conflict: the placement that is found says otherwise."""
    spec = placedsl.loads(CHAIN + "    memory\n    here: a on gpu[1]\n")
    assert spec.conflict(infeasible=True, solver="highs") is None


def test_the_limit_is_told() -> None:
    text = CHAIN + "    memory\n    here: a on gpu[1]\n    there: a on gpu[2]\n"
    spec = placedsl.loads(text)
    conflict = spec.conflict(infeasible=True, time_limit=1e-6)
    assert conflict is not None
    assert not conflict.smallest
    assert [m.name for m in conflict.members] == ["memory", "here", "there"]
    told_so = "This is a set of conflicting constraints, possibly not the smallest (time limit)."
    assert told_so in shown_of(conflict)
    with pytest.raises(LimitError, match="before it was known"):
        spec.conflict(time_limit=1e-6)


@pytest.mark.parametrize("solver", ["cp-sat", "highs"])
def test_a_refutation_leaves_few_of_many_conditions(solver: str) -> None:
    """CP-SAT's, or the relaxation's, of two hundred conditions rests on few of them, and these conflict."""
    spec = placedsl.loads(
        "graph {\n" + "".join(f"    node n{i} {{ time = 1 ms }}\n" for i in range(100)) + "}\n"
        "device cpu[3]: host\nminimize time_per_sample\nsubject to\n"
        "    most: forall v in nodes: not (v on cpu[1])\n    some: count(v in nodes: v on cpu[1]) >= 1\n"
        "    last: forall v in nodes where v.name != \"n7\": v on cpu[2]\n    seven: n7 on cpu[1] or n7 on cpu[2]\n"
        "    other: not (n7 on cpu[2])\n"
    )  # fmt: skip
    problem = spec.problem
    formulation = choose(problem, spec.elaborated.checked_formulations())
    asked = Feasibility(problem, formulation, resolve(problem, Request(solver)), fixed_order=True)
    parts = [
        i.as_rule(f"{rule.name}#{k}") if i.label else rule
        for rule in problem.constraints for k, i in enumerate(instances(problem, rule))
    ]  # fmt: skip
    assert len(parts) == 202
    few = core(asked, parts)
    assert len(few) < 150
    assert asked.together(few) is False
    by_another = Feasibility(problem, formulation, resolve(problem, Request("mip")), fixed_order=True)
    assert len(core(by_another, parts)) == 202, "a solver without a core tells nothing"


def test_nothing_conflicts() -> None:
    assert placedsl.loads(CHAIN + "    memory\n").conflict() is None


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.place"
    path.write_text(CHAIN + "    memory\n    here: a on gpu[1]\n    there: a on gpu[2]\n", encoding="utf-8")
    assert cli.main(["solve", str(path), "--quiet"]) == 3
    shown = capsys.readouterr().out
    assert "these constraints cannot hold together" in shown
    assert f"{path}:15" in shown
    assert cli.main(["solve", str(path), "--json", "-", "--explain-conflict", "--quiet"]) == 3
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, SCHEMA)
    assert [(c["name"], c["line"]) for c in answer["conflict"]["constraints"]] == [("here", 15), ("there", 16)]
    assert answer["conflict"]["repair"] == ["drop here", "drop there"]
    assert cli.main(["conflict", str(path), "--json", "-"]) == 3
    assert json.loads(capsys.readouterr().out) == answer["conflict"]
    assert cli.main(["solve", str(path), "--json", "-", "--no-conflict", "--quiet"]) == 3
    assert json.loads(capsys.readouterr().out)["conflict"] is None
    path.write_text(CHAIN + "    memory\n", encoding="utf-8")
    assert cli.main(["conflict", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: there is a placement; nothing conflicts\n"
