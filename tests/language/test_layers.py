"""The words of layers: the set ``layers``, ``sections`` and ``boundaries by``."""

from __future__ import annotations

import random

import pytest
from support.brute_force import best_by_evaluation

import placedsl
from placedsl.diagnostics import InputError

GRAPH = """graph {
    node embed { time = 1 ms, output = 1 MiB }
    node a0 { time = 5 ms, output = 1 MiB, layer = "m.0" }
    node b0 { time = 5 ms, output = 1 MiB, layer = "m.0" }
    node a1 { time = 2 ms, output = 1 MiB, layer = "m.10" }
    node head { time = 2 ms }
    embed -> a0 -> b0 -> a1 -> head
}
device gpu[2]: accelerator
interconnect { bandwidth = 1 GiB/s }
minimize time_per_sample
subject to
    contiguous
"""


def values(rules: str, more: str = "") -> placedsl.Spec:
    return placedsl.loads(more + GRAPH + "".join(f"    {rule}\n" for rule in rules.splitlines()))


def wrong(rules: str, more: str = "") -> list[str]:
    with pytest.raises(InputError) as caught:
        values(rules, more)
    return [f"{d.message}; {d.hint}" for d in caught.value.diagnostics]


def test_layers_are_the_groups_of_nodes_that_have_one() -> None:
    spec = values(
        "two: count(layers) == 2\nall: count(partition(nodes, layer)) == 4\nwhole: count(sections(nodes, layer)) == 2"
    )
    assert spec.solve().proven()
    for rule in ("two: count(layers) == 3", "whole: count(sections(nodes, layer)) == 4"):
        with pytest.raises(InputError, match="is false whatever the placement"):
            values(rule).check()


def test_layers_are_sets_of_nodes() -> None:
    rules = 'one: forall l in layers, v in l where l.first.layer == "m.0": v on gpu[1]\n'
    placement = values(rules + "most: forall l in layers: count(l) <= 2").solve().device_of()
    assert (placement["a0"], placement["b0"]) == ("gpu[1]", "gpu[1]")


def test_together_holds_for_each_of_a_set_of_groups() -> None:
    """Known to dynamic programming as colocation is; a group of a partition has no second element by number."""
    together = values("each: forall l in layers: together(l)").solve()
    assert together.method == "dp"
    assert together.value == values("colocated by layer").solve().value
    assert together.value > values("memory").solve().value
    some = values('some: forall l in layers where l.first.layer == "m.10": together(l)').solve()
    assert some.value == values("memory").solve().value
    second = "constraint second(s: nodes) = s[2] on gpu[1]\n"
    assert "has no numbers" in wrong("all: forall l in layers: second(l)", second)[0]


def test_a_spec_may_have_layers_of_its_own() -> None:
    spec = values("one: count(layers) == 1", 'set layers = nodes where id == "a0"\n')
    assert spec.solve().proven()


def test_without_layers() -> None:
    assert "there is no set 'layer'; did you mean 'layers'" in wrong("x: count(layer) == 1")[0]
    plain = GRAPH.replace("layer =", "stratum =")
    with pytest.raises(InputError) as caught:
        placedsl.loads(plain + "    x: count(layers) == 1\n    boundaries by layer\n    boundaries\n")
    assert [d.message for d in caught.value.diagnostics] == [
        "there is no set 'layers'", "nodes have no 'layer'", "'boundaries' needs an attribute"
    ]  # fmt: skip
    assert placedsl.loads(plain + "    boundaries by stratum\n").solve().proven()


def test_boundaries_is_a_built_in_name() -> None:
    assert "constraint 'boundaries' is built in" in wrong(
        "memory", "constraint boundaries by key = forall v in nodes: v on gpu\n"
    )[0]  # fmt: skip


def test_a_split_section_is_told_with_its_devices() -> None:
    spec = values("boundaries by layer")
    found = spec.evaluate({"embed": "gpu[1]", "a0": "gpu[2]", "b0": "gpu[2]", "a1": "gpu[2]", "head": "gpu[2]"})
    (violation,) = found.violations
    assert violation.rule == "boundaries by layer"
    assert "gpu[1]: embed; gpu[2]: a0, b0" in violation.message


def training(seed: int) -> str:
    """A random training step of three layers in a chain, with glue and weights of no layer; the spec's constraints."""
    chosen = random.Random(seed)
    names = ["embed", "f0", "glue", "f1", "f2", "head"]
    layer = {"f0": 0, "f1": 1, "f2": 2}
    lines = []
    for back in (False, True):
        for name in reversed(names) if back else names:
            if back and name == "glue":
                continue
            own = f", layer = {layer[name]}" if name in layer else ""
            costs = f"time = {chosen.randint(1, 9)} ms, memory = {chosen.randint(1, 4)} MiB"
            more = f"output = {chosen.randint(0, 3)} MiB{own}{', backward = true' * back}"
            lines.append(f"    node {name}{'_b' * back} {{ {costs}, {more} }}")
    forward, backward = " -> ".join(names), " -> ".join(f"{n}_b" for n in reversed(names) if n != "glue")
    lines += [f"    {forward} -> {backward}", f"    {chosen.choice(names[:3])} -> {chosen.choice(('f1_b', 'f0_b'))}"]
    return "graph {\n" + "\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("seed", range(4))
def test_training_by_sections_is_the_best_there_is(seed: int) -> None:
    """Eleven nodes on two devices: every placement, by the evaluator."""
    spec = placedsl.loads(
        training(seed) + "device gpu[2]: accelerator { memory = 24 MiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n    boundaries by layer\n"
    )
    graph = spec.problem.graph
    labels = spec.problem.groups["section by layer"]
    of = {str(name): int(label) for name, label in zip(graph.names, labels, strict=True)}
    assert of["embed"] == of["f0"] == of["f0_b"] == of["embed_b"]
    assert of["glue"] == of["f1"] == of["f1_b"]
    assert of["f2"] == of["head"] == of["head_b"] == of["f2_b"]
    least, answer = best_by_evaluation(spec.problem), spec.solve()
    assert answer.proven()
    assert (answer.termination == "infeasible") == (least is None)
    if least is not None:
        assert answer.value == pytest.approx(least[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_programs_say_the_same(seed: int) -> None:
    text = (
        training(10 + seed) + "device gpu[3]: accelerator { memory = 20 MiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
    )
    spec = placedsl.loads(
        text + "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n    boundaries by layer\n"
    )
    found = [spec.solve(method=method, solver=solver) for method, solver in (("dp", None), ("program", "cp-sat"))]
    assert all(answer.proven() for answer in found)
    assert found[0].value == pytest.approx(found[1].value, rel=1e-6)


def test_inline_nodes_have_what_layers_of_models_have() -> None:
    text = (
        "graph {\n    node a { time = 1 ms, kv_cache = 2 KiB, activations = 3 KiB }\n    node b { time = 1 ms }\n"
        "    a -> b\n}\n"
        "device gpu[2]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize sum(v in nodes: v.kv_cache + v.activations)\n"
    )
    spec = placedsl.loads(text)
    assert spec.problem.graph.attributes["kv_cache"].tolist()[0] == 2048
    with pytest.raises(placedsl.InputError, match="'kv_cache' is data, this is a plain number"):
        placedsl.loads(text.replace("2 KiB", "5"))
