"""Short texts that ask for much: refused at their place before memory or time is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from placedsl import InputError, load, loads
from placedsl.grounding.build import build
from placedsl.problem.formulation import choose

pytestmark = pytest.mark.rotates(3)

GRAPH = """
graph {
    node a { time = 4 ms, memory = 2 GiB, output = 8 MiB }
    node b { time = 6 ms, memory = 3 GiB }
    a -> b
}
"""
MACHINE = """
device gpu[2]: accelerator
interconnect { bandwidth = 16 GB/s }
"""
BASE = GRAPH + MACHINE


def refused(text: str, words: str) -> None:
    """Exactly one error, at a place of the text."""
    with pytest.raises(InputError) as caught:
        loads(text).check()
    (found,) = caught.value.diagnostics
    assert words in found.message
    assert found.span is not None


def checked(statements: str, rule: str) -> None:
    loads(f"{BASE}{statements}\nminimize time_per_sample\nsubject to\n    r: {rule}\n").check()


def chain(first: str, step: str, count: int) -> str:
    """``f0``, and each further definition of the one before it."""
    lines = [f"define f0{first}", *(f"define f{i}{step.replace('PREVIOUS', f'f{i - 1}')}" for i in range(1, count))]
    return BASE + "\n".join(lines) + "\nminimize time_per_sample\n"


@pytest.mark.parametrize("count", [19, 100])
def test_definitions_that_double_with_each_step(count: int) -> None:
    with pytest.raises(InputError, match="more than 30,000 parts"):
        loads(chain(" = load(gpu[1])", " = PREVIOUS + PREVIOUS", count)).check()
    with pytest.raises(InputError, match="more than 30,000 parts"):
        loads(chain("(x: number) = x + 1", "(x: number) = PREVIOUS(x + 1) + PREVIOUS(x + 2)", count)).check()


def test_one_definition_applied_to_itself() -> None:
    nested = "d(" * 40 + "load(gpu[1])" + ")" * 40
    refused(f"{BASE}define d(x: time) = x + x\nminimize {nested}\n", "more than 30,000 parts")


def test_long_chains_of_definitions() -> None:
    loads(chain(" = load(gpu[1])", " = PREVIOUS + load(gpu[2])", 60)).check()
    refused(chain(" = load(gpu[1])", " = PREVIOUS + load(gpu[2])", 400), "nested more than 150 deep")


def columns(rule: str) -> int:
    """Of the program of a small spec with this constraint."""
    read = loads(f"{BASE}minimize time_per_sample\nsubject to\n    r: {rule}\n")
    return build(read.problem, choose(read.problem, read.elaborated.checked_formulations())).program.columns


def test_absolute_values_of_one_another() -> None:
    """Each adds one maximum: nothing doubles."""
    first, second, third = (columns("abs(" * k + "load(gpu[1])" + ")" * k + " <= 5 s") for k in (2, 42, 82))
    assert third - second == second - first


@pytest.mark.parametrize("inner", ["(b on gpu[1])", "load(gpu[1]) <= 5 ms"])
@pytest.mark.parametrize("outer", ["%s", "not (%s)", "count(v in nodes: %s) <= 1"])
def test_equivalences_of_equivalences(inner: str, outer: str) -> None:
    """Each adds as many columns as the one before it: nothing doubles."""

    def nested(depth: int) -> str:
        text = "(a on gpu[1])"
        for _ in range(depth):
            text = f"({text} <=> {inner})"
        return outer % text

    first, second, third = (columns(nested(depth)) for depth in (3, 6, 9))
    assert third - second == second - first


def test_long_chains_of_sets() -> None:
    sets = "\n".join(["set s0 = nodes", *(f"set s{i} = s{i - 1} union nodes" for i in range(1, 1000))])
    checked(sets, "count(v in s999: v on gpu[1]) <= 2")


def test_a_thousand_constraints() -> None:
    rules = "\n".join(f"    r{i}: load(gpu[1]) <= {i + 1} s" for i in range(1000))
    spec = loads(f"{BASE}minimize time_per_sample\nsubject to\n{rules}\n")
    assert spec.solve().termination == "optimal"


@pytest.mark.parametrize(
    "binders",
    [
        ", ".join(f"i{k} in 1..2" for k in range(30)),
        ", ".join(f"i{k} in 1..1024" for k in range(3)),
        "i in 1..1000, j in i..i + 100000",
        "i in 1..100000, j in {i, 2, 3}, k in 1..1000",
    ],
)
def test_combinations_are_counted_before_they_are_made(binders: str) -> None:
    with pytest.raises(InputError, match=r"this (ranges over|range has) [\d,]+") as caught:
        checked("", f"forall {binders}: load(gpu[1]) >= 0 s")
    assert caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize("end", ["1e400", "-1e400", "1e300"])
def test_ranges_end_in_whole_numbers(end: str) -> None:
    for rule in (f"count(i in 1..{end}: true) >= 0", f"count(i in {{1, {end}}}: true) >= 0"):
        with pytest.raises(InputError) as caught:
            checked("", rule)
        assert caught.value.diagnostics[0].span is not None
    with pytest.raises(InputError):
        checked(f"param gpus: int = {end}\nvariable x in 0..1", "load(gpu[gpus]) >= 0 s")


@pytest.mark.parametrize("inside", ["device x[10000]: accelerator", "cluster b[10000] { device x[1]: accelerator\n }"])
def test_devices_and_clusters_are_counted_before_they_are_made(inside: str) -> None:
    machine = f"cluster a[10000] {{\n    {inside}\n    interconnect {{ bandwidth = 1 GB/s }}\n}}\n"
    refused(f"{GRAPH}{machine}interconnect {{ bandwidth = 1 GB/s }}\nminimize time_per_sample\n", "more than 10,000")


@pytest.mark.parametrize(
    ("old", "new"),
    [("16 GB/s", "1e-96 B/s"), ("4 ms", "1e308 s"), ("2 GiB", "1e308 B"), ("8 MiB", "1e300 B")],
)
def test_costs_that_cannot_be_added_up(old: str, new: str) -> None:
    with pytest.raises(InputError) as caught:
        loads(f"{BASE.replace(old, new)}minimize time_per_sample\n")
    assert "node 'a'" in caught.value.diagnostics[0].message
    assert "more than 1e+100" in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("old", "new"),
    [("16 GB/s", "1e-300 B/s"), ("16 GB/s", "1e-101 B/s"), ("accelerator", "accelerator { compute = 1e-320 FLOP/s }")],
)
def test_rates_that_nothing_can_be_divided_by(old: str, new: str) -> None:
    """The quotient of a larger tensor was infinite, and an error without a place in the spec."""
    text = BASE.replace(old, new, 1)
    refused(f"{text}minimize time_per_sample\n", "is below 1e-100 a second")


def test_instances_are_counted_before_anything_is_solved() -> None:
    """What was evaluated, and stated, with 15 GB and more than a minute, is refused at once."""
    for rule in ("forall i in 1..1000000, j in 1..40: load(gpu[1]) >= 0 s",
                 "forall v in nodes, i in 1..3000000: load(gpu[1]) >= 0 s"):  # fmt: skip
        spec = loads(f"{BASE}minimize time_per_sample\nsubject to\n    r: {rule}\n")
        for asked in (spec.solve, spec.check):
            with pytest.raises(InputError, match="more than 4,000,000") as caught:
                asked()
            assert "PLACEDSL_LIMITS=stated=" in caught.value.diagnostics[0].hint
    filtered = loads(f"{BASE}minimize time_per_sample\nsubject to\n"
                     "    r: forall i in 1..5000000 where i <= 2: load(gpu[1]) >= 0 s\n")  # fmt: skip
    filtered.check()


@pytest.mark.parametrize("text", [BASE.replace("node a", r'node "\ud800"'), BASE.replace("node a", 'node "\ud800"')])
def test_half_of_a_surrogate_pair_is_no_name(text: str) -> None:
    refused(f"# \\ud800\n{text}minimize time_per_sample\n", "half of a surrogate pair")


def test_a_file_without_end() -> None:
    with pytest.raises(InputError, match="more than 67,108,864 bytes"):
        load("/dev/zero")


def test_a_spec_from_a_pipe_or_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.place"
    path.write_bytes(b"\xef\xbb\xbf" + f"{BASE}minimize time_per_sample\n".encode())
    assert load(path).problem.graph.nodes == 2


@pytest.mark.parametrize("size", ["1e30 B", "1e60 B", "1e95 B"])
def test_costs_far_apart(size: str) -> None:
    """A tensor that takes ages to move stays where it is."""
    text = BASE.replace("8 MiB", size) + "minimize time_per_sample\nsubject to\n    contiguous\n"
    answer = loads(text).solve(method="dp")
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(10e-3)
