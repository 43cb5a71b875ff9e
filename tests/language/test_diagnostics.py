"""Malformed specs: each gives exactly these diagnostics, at these places, and never a traceback."""

from __future__ import annotations

import pytest

from placedsl import InputError, loads
from placedsl.formulation import choose
from placedsl.program.build import build

GRAPH = """\
graph {
    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node b { time = 2 ms, memory = 1 GiB, output = 1 MiB }
    a -> b
}
"""
DEVICES = """\
device gpu[2]: accelerator { memory = 4 GiB }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
"""
MINIMIZE = "minimize time_per_sample\n"
START = GRAPH + DEVICES + MINIMIZE
RULE = START + "subject to\n    "

# Text, then (line, column, message, hint) of each diagnostic; a hint is compared by its beginning.
CASES: list[tuple[str, list[tuple[int, int, str, str]]]] = [
    (
        GRAPH + DEVICES + "minimise time_per_sample\n",
        [
            (9, 10, "unexpected 'time_per_sample'", "did you mean 'minimize'?"),
        ],
    ),
    (
        GRAPH + DEVICES + "minimize time_per_smaple\n",
        [
            (9, 10, "there is no 'time_per_smaple' here", "did you mean 'time_per_sample'?"),
        ],
    ),
    (
        GRAPH + DEVICES + "",
        [
            (8, 40, "the spec has no 'minimize'", "as in minimize time_per_sample"),
        ],
    ),
    (
        "" + DEVICES + MINIMIZE,
        [
            (4, 24, "the spec has no 'graph'", 'as in graph from "model.json"'),
        ],
    ),
    (
        GRAPH + "" + MINIMIZE,
        [
            (6, 24, "the spec has no 'device'", "as in device gpu[2]: accelerator { memory = 16 GiB }"),
        ],
    ),
    (
        RULE + "memry\n",
        [
            (11, 5, "there is no constraint 'memry'", "did you mean 'memory'?"),
        ],
    ),
    (
        RULE + "memory\n    memory\n",
        [
            (12, 5, "constraint 'memory' stands twice", ""),
        ],
    ),
    (
        RULE + "colocated\n",
        [
            (11, 5, "'colocated' needs an attribute", "as in colocated by colorClass"),
        ],
    ),
    (
        RULE + "colocated by colour\n",
        [
            (11, 18, "nodes have no 'colour'", "known here"),
        ],
    ),
    (
        RULE + "memory by name\n",
        [
            (11, 15, "'memory' takes no 'by'", ""),
        ],
    ),
    (
        RULE + "x: load(gpu[1]) <= 3 GiB\n",
        [
            (11, 8, "a number (time) cannot be compared with a number (data)", "both sides need one dimension"),
        ],
    ),
    (
        RULE + "x: load(gpu[3]) <= 3 ms\n",
        [
            (11, 17, "3 is out of range", "'gpu' takes 1..2"),
        ],
    ),
    (
        RULE + "x: load(gpo[1]) <= 3 ms\n",
        [
            (11, 13, "there is no 'gpo' to index", "did you mean 'gpu'?"),
        ],
    ),
    (
        RULE + "x: lod(gpu[1]) <= 3 ms\n",
        [
            (11, 8, "there is no 'lod(…)'", "did you mean 'load'?"),
        ],
    ),
    (
        RULE + "x: memory(gpu[1]) + load(gpu[1]) <= 3 ms\n",
        [
            (11, 8, "a number (data) cannot be added to a number (time)", "both sides of + and - need one dimension"),
        ],
    ),
    (
        RULE + "x: forall d in gpus: load(d) <= 3 ms\n",
        [
            (11, 20, "there is no set 'gpus'", "did you mean 'gpu'?"),
        ],
    ),
    (
        RULE + "x: forall v in nodes: v.mem <= 3 GiB\n",
        [
            (11, 27, "a node has no 'mem'", "did you mean 'memory'?"),
        ],
    ),
    (
        RULE + "x: forall v in nodes where time[gpu] > 2: v on cpu\n",
        [
            (11, 32, "a number (time) cannot be compared with a plain number", "both sides need one dimension"),
        ],
    ),
    (
        RULE + "x: forall v in nodes where name > 2: v on cpu\n",
        [
            (11, 32, "a text cannot be compared with a plain number", ""),
        ],
    ),
    (
        RULE + "x: a on b\n",
        [
            (11, 13, "a device is expected after 'on', this is a node", "known here"),
        ],
    ),
    (
        RULE + "x: gpu[1] on a\n",
        [
            (11, 8, "a node is expected before 'on', this is a device", ""),
        ],
    ),
    (
        RULE + "x: count(v in nodes) \n",
        [
            (11, 8, "'count' needs a condition here", "as in count(v in nodes: v on cpu), or count(nodes)"),
        ],
    ),
    (
        RULE + "x: load(gpu[1]) * load(cpu) <= 3 ms\n",
        [
            (11, 8, "a number (time^2) cannot be compared with a number (time)", "both sides need one dimension"),
        ],
    ),
    (
        RULE + "x: load(gpu[1]) / load(cpu) <= 3\n",
        [
            (11, 23, "division by what depends on the placement is not linear", ""),
        ],
    ),
    (
        RULE + "x: load(gpu[1]) < 3 ms\n",
        [
            (11, 8, "'<' between numbers that depend on the placement cannot be stated", "use <=, >= or =="),
        ],
    ),
    (
        RULE + "x: 3 / 0 <= 4\n",
        [
            (11, 12, "division by zero", ""),
        ],
    ),
    (
        RULE + "x: sum(v in nodes) <= 4\n",
        [
            (11, 8, "'sum' needs something to range over", "as in sum(v in nodes: …)"),
        ],
    ),
    (
        RULE + "x: max(v in nodes where memory > 8 GiB: v.memory) <= 4 GiB\n",
        [
            (11, 8, "the max of nothing has no value", ""),
        ],
    ),
    (
        RULE + "x: forall v in nodes where v on cpu: v on gpu\n",
        [
            (11, 32, "a condition may not depend on the placement", ""),
        ],
    ),
    (
        RULE + "x: load <= 3 ms\n",
        [
            (11, 8, "'load' needs what it is about: load(device)", "busy time of the device for one sample"),
        ],
    ),
    (
        RULE + "x: load(gpu[1], cpu) <= 3 ms\n",
        [
            (11, 8, "'load' is written load(device)", "busy time of the device for one sample"),
        ],
    ),
    (
        RULE + "x: forall (u, v, w) in edges: u on cpu\n",
        [
            (11, 15, "a pair of names like (u, v) is expected before 'in' here", ""),
        ],
    ),
    (
        RULE + "x: forall u in edges: u on cpu\n",
        [
            (11, 15, "a pair of names like (u, v) is expected before 'in' here", ""),
        ],
    ),
    (
        START + "set heavy = nodes where time[gpu] > 2 GB\n",
        [
            (10, 25, "a number (time) cannot be compared with a number (data)", "both sides need one dimension"),
        ],
    ),
    (
        START + "set heavy = heavy where memory > 2 GB\n",
        [
            (10, 5, "set 'heavy' is defined by itself", ""),
        ],
    ),
    (
        START + "set gpu = nodes\n",
        [
            (10, 5, "'gpu' is the name of another set already", ""),
        ],
    ),
    (
        START + "param p\n",
        [
            (10, 7, "parameter 'p' has no value", "give one with --set p=…"),
        ],
    ),
    (
        START + "param p: int = 2.5\n",
        [
            (10, 16, "parameter 'p' is declared int, its value is 2.5", ""),
        ],
    ),
    (
        START + "param p = q + 1\nparam q = p\n",
        [
            (10, 7, "parameter 'p' is defined by itself", ""),
        ],
    ),
    (
        START + "param p = 1\nparam p = 2\n",
        [
            (11, 7, "parameter 'p' is declared twice", ""),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerator { memory = 4 GB/s }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 39, "'memory' is data, this is a number (bandwidth)", "as in memory = 16 GiB"),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerator { memory = 4 Gb }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 41, "'Gb' is not a unit (did you mean 'Gbit'?)", ""),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerator { memory = 4 GIB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 41, "'GIB' is not a unit (did you mean 'GB' or 'GiB'?)", ""),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerator { memori = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 30, "a device has no 'memori'", "did you mean 'memory'?"),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerater { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 16, "'accelerater' is no kind of device", "did you mean 'accelerator'?"),
        ],
    ),
    (
        GRAPH
        + "device gpu[2] { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 8, "is 'gpu' an accelerator or a host?", "write device gpu: accelerator or device gpu: host"),
        ],
    ),
    (
        GRAPH
        + "device gpu[two]: accelerator { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 12, "there is no 'two' here", ""),
        ],
    ),
    (
        GRAPH
        + "device gpu[2.5]: accelerator { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 12, "2.5 is out of range", "the number of devices takes 0..10000"),
        ],
    ),
    (
        GRAPH
        + "device gpu[-1]: accelerator { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 12, "-1 is out of range", "the number of devices takes 0..10000"),
        ],
    ),
    (
        GRAPH + DEVICES + "device gpu: host\nminimize time_per_sample\n",
        [
            (9, 8, "device 'gpu' is declared twice", "first in line 6"),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerator { memory = 4 GiB }\ndevice cpu: host\nlink tpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (8, 6, "there is no device 'tpu'", "did you mean 'gpu' or 'cpu'?"),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerator { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { latency = 1 us }\n"
        + MINIMIZE,
        [
            (8, 6, "this link has no bandwidth", "as in { bandwidth = 25 GB/s }"),
        ],
    ),
    (
        GRAPH + "device gpu[2]: accelerator { memory = 4 GiB }\ndevice cpu: host\n\n" + MINIMIZE,
        [
            (
                6,
                1,
                "nothing says how fast 'gpu' exchanges data with a host, and the graph gives bytes",
                "as in link gpu <-> cpu { bandwidth = 16 GB/s }, or interconnect { bandwidth = 16 GB/s }",
            ),
        ],
    ),
    (
        GRAPH
        + "device gpu[2]: accelerator { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 0 GB/s }\n"
        + MINIMIZE,
        [
            (8, 32, "a bandwidth of zero carries nothing", ""),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { time = 2 ms, memory = 1 GiB, output = 1 MiB }\n    a -> c\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (4, 10, "there is no node 'c'", "edges join nodes of the graph"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { time = 2 ms, memory = 1 GiB, output = 1 MiB }\n    a -> b -> a\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (4, 5, "the graph has a cycle: 'a' -> 'b' -> 'a'", "a computation graph has none"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { time = 2 ms, memory = 1 GiB, output = 1 MiB }\n    a -> a\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (4, 10, "node 'a' has an edge to itself", "a computation graph has no cycles"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node a { time = 2 ms, memory = 1 GiB, output = 1 MiB }\n    a -> b\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (3, 10, "node 'a' is there twice", "every id is needed once"),
            (4, 10, "there is no node 'b'", "edges join nodes of the graph"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { time = 2 GiB, memory = 1 GiB, output = 1 MiB }\n    a -> b\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (3, 21, "'time' is time, this is data", "as in time = 4 ms"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { memory = 1 GiB, output = 1 MiB }\n    a -> b\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (3, 10, "node 'b' has no time", "as in { time = 4 ms }"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { time = {acelerator: 2 ms}, memory = 1 GiB, output = 1 MiB }\n    a -> b\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (3, 22, "there is no device or kind 'acelerator'", "did you mean 'accelerator'?"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { time = -2 ms, memory = 1 GiB, output = 1 MiB }\n    a -> b\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (3, 21, "'time' cannot be negative", "as in time = 4 ms"),
        ],
    ),
    (
        "graph {\n    node a { time = 1 ms, memory = 1 GiB, outptu = 1 MiB }\n    node b { time = 2 ms, memory = 1 GiB, outptu = 1 MiB }\n    a -> b\n}\n"
        + DEVICES
        + MINIMIZE,
        [
            (2, 43, "a node has no 'outptu' that is a number (data)", "did you mean 'output'?"),
            (3, 43, "a node has no 'outptu' that is a number (data)", "did you mean 'output'?"),
        ],
    ),
    (
        GRAPH
        + "graph {\n    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }\n    node b { time = 2 ms, memory = 1 GiB, output = 1 MiB }\n    a -> b\n}\ndevice gpu[2]: accelerator { memory = 4 GiB }\ndevice cpu: host\nlink gpu <-> cpu { bandwidth = 16 GB/s }\n"
        + MINIMIZE,
        [
            (6, 1, "there is a second graph", "the first is in line 1"),
        ],
    ),
    (
        START + "minimize time_per_sample\n",
        [
            (10, 1, "there is a second 'minimize'", "the first is in line 9"),
        ],
    ),
    (
        START + "schedule 1f1b\n",
        [
            (10, 10, "unexpected '1f'", "expected: a name or a quoted text"),
        ],
    ),
    (
        START + "solve { time_limit = 10 }\n",
        [
            (10, 22, "'time_limit' is time, this is a plain number", "as in time_limit = 10 s"),
        ],
    ),
    (
        START + "solve { time_limt = 10 s }\n",
        [
            (10, 9, "'solve' has no 'time_limt'", "did you mean 'time_limit'?"),
        ],
    ),
    (
        START + "solve { gap = 1 s }\n",
        [
            (10, 15, "'gap' is a plain number, this is a number (time)", "as in gap = 1%"),
        ],
    ),
    (
        RULE + "x: load(gpu[1]) <= \n",
        [
            (11, 22, "the text ends in the middle of a statement", "expected: an expression"),
        ],
    ),
    (
        RULE + "x: (load(gpu[1]) <= 3 ms\n",
        [
            (11, 8, "'(' is never closed", ""),
        ],
    ),
    (
        RULE + "x: load(gpu[1] <= 3 ms\n",
        [
            (11, 12, "'(' is never closed", ""),
        ],
    ),
    (
        RULE + "x load(gpu[1]) <= 3 ms\n",
        [
            (11, 7, "unexpected 'load'", "expected: the end of the text or 'by' or ':' or '(' or the end of the line"),
        ],
    ),
    (
        RULE + "memory contiguous\n",
        [
            (
                11,
                12,
                "unexpected 'contiguous'",
                "expected: the end of the text or 'by' or ':' or '(' or the end of the line",
            ),
        ],
    ),
    (
        START + "@\n",
        [
            (10, 1, "'@' cannot stand here", ""),
        ],
    ),
    (
        START + 'graph from "missing.json"\n',
        [
            (10, 1, "there is a second graph", "the first is in line 1"),
        ],
    ),
    (
        'graph from "missing.json"\n' + DEVICES + MINIMIZE,
        [
            (1, 12, "'missing.json': no such file or directory", "known here"),
        ],
    ),
    (
        "graph from missing.json\n" + DEVICES + MINIMIZE,
        [
            (1, 12, "unexpected 'missing'", "expected: a quoted text"),
        ],
    ),
    (
        RULE + 'x: node("zz") on cpu\n',
        [
            (11, 8, "unexpected 'node'", "expected: an expression"),
        ],
    ),
    (
        RULE + "memory: load(cpu) <= 3 ms\n",
        [
            (11, 5, "'memory' is the name of a built-in constraint", "choose another name"),
        ],
    ),
    (
        START + "constraint memory = load(cpu) <= 3 ms\n",
        [
            (10, 12, "constraint 'memory' is built in", "choose another name"),
        ],
    ),
    (
        RULE + "x: heavy[1] on cpu\n",
        [
            (11, 8, "there is no 'heavy' to index", "known here"),
        ],
    ),
    (
        START + "set heavy = nodes where memory > 8 GiB\nsubject to\n    x: heavy[1] on cpu\n",
        [
            (12, 8, "'heavy' has 0 elements, there is no number 1", ""),
        ],
    ),
    (
        GRAPH + DEVICES + "minimize load(gpu[1]) + memory(cpu)\n",
        [
            (9, 10, "a number (time) cannot be added to a number (data)", "both sides of + and - need one dimension"),
        ],
    ),
    (
        GRAPH + DEVICES + "minimize nodes\n",
        [
            (9, 10, "a number is expected here, this is a set of nodes", ""),
        ],
    ),
    (
        RULE + "x: if a on cpu then 1 else 2 <= 3\n",
        [
            (11, 8, "a condition is expected here, this is a plain number", ""),
        ],
    ),
    (
        RULE + "x: forall d in {gpu[1], a}: load(d) <= 1 s\n",
        [
            (11, 20, "the elements of a list must be of one kind", ""),
        ],
    ),
    (
        RULE + "x: a.time <= 1 s\n",
        [
            (11, 8, "'time' depends on the device", "write it as time[d]"),
        ],
    ),
    (
        RULE + "x: a.memory[cpu] <= 1 GiB\n",
        [
            (11, 8, "'memory' does not depend on a device", "write it as memory"),
        ],
    ),
    (
        "",
        [
            (1, 1, "the spec has no 'device'", "as in device gpu[2]: accelerator { memory = 16 GiB }"),
            (1, 1, "the spec has no 'minimize'", "as in minimize time_per_sample"),
            (1, 1, "the spec has no 'graph'", 'as in graph from "model.json"'),
        ],
    ),
    (
        "# nothing\n",
        [
            (1, 9, "the spec has no 'device'", "as in device gpu[2]: accelerator { memory = 16 GiB }"),
            (1, 9, "the spec has no 'minimize'", "as in minimize time_per_sample"),
            (1, 9, "the spec has no 'graph'", 'as in graph from "model.json"'),
        ],
    ),
    (
        GRAPH + "device gpu[0]: accelerator\n" + MINIMIZE,
        [
            (6, 1, "there is no device: every count is zero", ""),
        ],
    ),
    (
        RULE + "x: forall v in partition(nodes, colour), d in devices: v.first on d\n",
        [
            (11, 20, "nodes have no 'colour' to be partitioned by", "known here"),
        ],
    ),
    (
        RULE + "x: convex(nodes)\n",
        [
            (11, 8, "'convex' takes a set of nodes by a condition", "as in convex({v in nodes: v on d})"),
        ],
    ),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_diagnostics(case: int) -> None:
    text, expected = CASES[case]
    with pytest.raises(InputError) as caught:
        spec = loads(text)
        build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations()))
    found = [
        (d.span.line if d.span else 0, d.span.column if d.span else 0, d.message) for d in caught.value.diagnostics
    ]
    assert found == [(line, column, message) for line, column, message, _ in expected]
    for diagnostic, (_, _, _, hint) in zip(caught.value.diagnostics, expected, strict=True):
        assert diagnostic.hint.startswith(hint)
        assert bool(diagnostic.hint) == bool(hint)
        shown = diagnostic.render()
        assert "^" in shown
        assert str(diagnostic.span) in shown


def test_the_corpus_is_large_enough() -> None:
    assert len(CASES) >= 60
