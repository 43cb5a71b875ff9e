"""Expressions built in Python print as what they mean, and nothing that Python would drop goes unnoticed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placedsl import loads
from placedsl.expr import (
    Family,
    Set,
    Term,
    accelerators,
    convex,
    count,
    devices,
    edges,
    forall,
    if_then_else,
    largest,
    listed,
    load,
    memory,
    nodes,
    partition,
    quantity,
    readers,
    reads,
    smallest,
    tensors,
    text,
    time_per_sample,
    total,
    traffic,
)  # fmt: skip
from placedsl.expr.terms import term

GPU, CPU = Family("gpu"), Family("cpu")
A, B = nodes["a"], nodes["b"]


def others(one: Term) -> Term:
    """The load of all other devices: a helper whose variable has the name that its caller uses too."""
    return total(load(d) for d in GPU.where(lambda d: d != one))


@pytest.mark.parametrize(
    ("built", "printed"),
    [
        (forall(load(d) <= 1.1 * load(e) for d in GPU for e in GPU),
         "forall d in gpu, e in gpu: load(d) <= 1.1 * load(e)"),
        (forall(count(v.on(d) for v in nodes) <= 60 for d in GPU),
         "forall d in gpu: count(v in nodes: v on d) <= 60"),
        (total(v.memory * v.on(CPU) for v in nodes.where(lambda v: v.memory > "1 GiB")),
         "sum(v in nodes where v.memory > 1 GiB: v.memory * (v on cpu))"),
        (forall(u.on(d) == v.on(d) for u, v in edges for d in devices),
         "forall (u, v) in edges, d in devices: (u on d) == (v on d)"),
        (total(t.transfer[d] * t.producer.on(d) for t in tensors.where(lambda t: t.size >= "8 MiB") for d in GPU),
         "sum(t in tensors where t.size >= 8 MiB, d in gpu: t.transfer[d] * (t.producer on d))"),
        (forall(count(v.on(d) for v in group) <= 1 for group in partition("layer") for d in accelerators),
         "forall group in partition(nodes, layer), d in accelerators: count(v in group: v on d) <= 1"),
        (forall(v.on(GPU) for t, v in reads for w in readers(t)), "forall (t, v) in reads, w in readers(t): v on gpu"),
        (forall(others(d) >= load(d) for d in GPU),
         "forall d in gpu: sum(d1 in gpu where d1 != d: load(d1)) >= load(d)"),
        (forall(load(node) <= 1 for node in GPU), "forall node1 in gpu: load(node1) <= 1"),
        (forall(load(gpu) <= load(GPU[1]) for gpu in GPU), "forall gpu1 in gpu: load(gpu1) <= load(gpu[1])"),
        (A.on(GPU[1]).implies(~B.on(GPU[2]) | (load(CPU) <= "9 ms")),
         'nodes["a"] on gpu[1] => not nodes["b"] on gpu[2] or load(cpu) <= 9 ms'),
        ((A.on(GPU) & B.on(CPU)) | ~(A.on(CPU) & B.on(GPU)),
         'nodes["a"] on gpu and nodes["b"] on cpu or not (nodes["a"] on cpu and nodes["b"] on gpu)'),
        (2 - (load(CPU) - "1 ms") / 4 * -memory(CPU), "2 - (load(cpu) - 1 ms) / 4 * -memory(cpu)"),
        (largest(load(d) for d in GPU) - smallest(load(GPU[1]), "2 * load(cpu)", 3),
         "max(d in gpu: load(d)) - min(load(gpu[1]), 2 * load(cpu), 3)"),
        ("load(cpu) + 1 ms" * load(CPU), "(load(cpu) + 1 ms) * load(cpu)"),
        (count(nodes), "count(nodes)"),
        (count(nodes.where(lambda v: v.layer == 3)), "count(v in nodes where v.layer == 3: true)"),
        (nodes.where(lambda v: (v.memory > "2 GiB") & (v.time[GPU] < "5 ms")),
         "nodes where memory > 2 GiB and time[gpu] < 5 ms"),
        (nodes.where(lambda v: v.layer > 1).where(lambda v: v.name.like("att*") & (v.kind_of != text('a "b"'))),
         'nodes where layer > 1 and (name ~ "att*" and kind_of != "a \\"b\\"")'),
        (A.isin(Set("heavy")) & (traffic(GPU[1], CPU) == 0).implies(time_per_sample <= "9 ms"),
         'nodes["a"] in heavy and (traffic(gpu[1], cpu) == 0 => time_per_sample <= 9 ms)'),
        (forall(convex(v.on(d) for v in listed(A, B)) for d in devices),
         'forall d in devices: convex({v in {nodes["a"], nodes["b"]}: v on d})'),
        (if_then_else("1 < 2", 3, 4) * 2, "(if 1 < 2 then 3 else 4) * 2"),
        (np.float64(1.5) * load(CPU) + np.int64(3), "1.5 * load(cpu) + 3"),
        (quantity("slack", GPU[1]) + True, "slack(gpu[1]) + true"),
        (Set("heavy")[1].on(GPU["k"]), "heavy[1] on gpu[k]"),
    ],
)  # fmt: skip
def test_text(built: Term, printed: str) -> None:
    assert str(built) == printed
    assert repr(built) == f"<{printed}>"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: 1 <= load(GPU[1]) <= 3, r"\(a <= b\) & \(b <= c\)"),
        (lambda: load(CPU) <= 3 and load(CPU) >= 1, "no truth value"),
        (lambda: not A.on(CPU), "no truth value"),
        (lambda: A.on(CPU) if load(CPU) >= 1 else B.on(CPU), "no truth value"),
        (lambda: forall(load(d) <= 3 for d in GPU if d.memory > 3), r"write set.where\(lambda v: …\)"),
        (lambda: all(load(d) <= 3 for d in GPU), "range over it in a generator within forall"),
        (lambda: [load(d) for d in GPU], "range over it in a generator within forall"),
        (lambda: forall([load(d) <= 3 for d in GPU]), "range over it in a generator within forall"),
        (lambda: forall(sum(load(d) for d in GPU) <= load(e) for e in GPU), "Python's own sum, max and min"),
        (lambda: forall(max(load(d) for d in GPU) <= load(e) for e in GPU), "Python's own sum, max and min"),
        (lambda: forall(load(d) <= k for d in GPU for k in (1, 2)), "sets of the language and nothing else"),
        (lambda: forall(k <= 1 for k in (1, 2)), "sets of the language and nothing else"),
        (lambda: forall(load(d) <= 1 for d in []), "ranges over nothing"),
        (lambda: forall(load(GPU[1]) <= 1), r"takes a generator, as in forall\(… for v in nodes\)"),
        (lambda: forall(load(d) for d in [*"ab"]), "sets of the language and nothing else"),
        (lambda: load(CPU) <= (1 & load(CPU)), "'&' takes conditions, <1> is none"),
        (lambda: A.on(CPU) | time_per_sample + 1, r"'\|' takes conditions"),
        (lambda: load(CPU).implies(A.on(CPU)), r"'implies' takes conditions"),
        (lambda: A in Set("heavy"), r"write element.isin\(heavy\)"),
        (lambda: list(A.time), "nothing to range over"),
        (lambda: str(Set("heavy").where(lambda v: v.on(CPU))), "can ask for attributes of its elements"),
        (lambda: A.isin(nodes.where(lambda v: v.memory > 1)), "has no name: declare it with model.set"),
        (lambda: nodes.where(load(CPU) <= 1), "where takes a function of the element"),
        (lambda: load(CPU) <= float("inf"), "inf cannot stand in an expression"),
        (lambda: load(CPU) + None, "None is no expression"),
        (lambda: load(CPU) + (x for x in ()), "a generator is ranged over by"),
        (lambda: load(CPU) <= "", "an empty text is no expression"),
    ],
)
def test_what_python_would_silently_change_is_refused(build: Callable[[], object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        build()


def test_a_variable_does_not_outlive_its_generator() -> None:
    kept = []
    forall((kept.append(d), load(d) <= 1)[1] for d in GPU)
    with pytest.raises(TypeError, match="a variable is used outside"):
        str(load(kept[0]) <= 1)


def test_elements_are_counted_from_one() -> None:
    for index in (0, -1):
        with pytest.raises(IndexError, match="counted from 1"):
            GPU[index]


def test_where_it_was_built() -> None:
    first = load(CPU) <= 3
    second = forall(load(d) <= 3 for d in GPU)
    assert first.built_at[0] == second.built_at[0] == __file__
    assert second.built_at[1] == first.built_at[1] + 1


TEXT = "graph {\n    node a { time = 1 ms }\n}\ndevice cpu: host\nminimize time_per_sample\n"
#: A number as a term with its value, grown by operators of Python on both.
NUMBERS = st.recursive(
    st.builds(lambda n, written: (term(str(n) if written else n), Fraction(n)), st.integers(0, 9), st.booleans()),
    lambda parts: st.builds(
        lambda of, x, y: (of(x[0], y[0]), of(x[1], y[1])),
        st.sampled_from([operator.add, operator.sub, operator.mul, lambda x, y: -x + y, lambda x, y: x / 4 - y]),
        parts,
        parts,
    ),
    max_leaves=12,
)


@given(NUMBERS)
@settings(max_examples=100, deadline=None)
def test_arithmetic_means_what_it_means_in_python(pair: tuple[Term, Fraction]) -> None:
    built, value = pair
    spec = loads(f"{TEXT}param x = {built}\n")
    assert spec.elaborated.parameters["x"][0] == float(value)


CONDITIONS = st.recursive(
    st.booleans().map(lambda b: (term(1) <= (2 if b else 0), b)),
    lambda parts: st.one_of(
        st.builds(lambda x, y: (x[0] & y[0], x[1] and y[1]), parts, parts),
        st.builds(lambda x, y: (x[0] | y[0], x[1] or y[1]), parts, parts),
        st.builds(lambda x, y: (x[0].implies(y[0]), not x[1] or y[1]), parts, parts),
        st.builds(lambda x, y: (x[0] == y[0], x[1] == y[1]), parts, parts),
        parts.map(lambda x: (~x[0], not x[1])),
        parts.map(lambda x: (forall(x[0] for d in devices), x[1])),
    ),
    max_leaves=10,
)


@given(CONDITIONS)
@settings(max_examples=100, deadline=None)
def test_logic_means_what_it_means_in_python(pair: tuple[Term, bool]) -> None:
    built, truth = pair
    evaluation = loads(f"{TEXT}subject to\n    rule: {built}\n").evaluate({"a": "cpu"})
    assert evaluation.feasible is truth
