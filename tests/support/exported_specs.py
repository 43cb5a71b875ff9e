"""Specs whose programs are written, by what is particular about them."""

from __future__ import annotations

from support.paths import ROOT

EXAMPLES = ROOT / "examples"

_GRAPH = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms},  memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms, host: 35 ms}, memory = 3 GiB, output = 8 MiB }
    node e { time = {accelerator: 3 ms, host: 20 ms}, memory = 1 GiB, output = 1 MiB }
    a -> b -> e
    a -> c -> e
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GB/s }
"""
_TRAINING = """
graph {
    node f1 { time = {accelerator: 2 ms, host: 9 ms}, memory = 2 GiB, output = 80 MiB, layer = 1 }
    node f2 { time = {accelerator: 3 ms, host: 9 ms}, memory = 1 GiB, output = 40 MiB, layer = 2 }
    node f3 { time = {accelerator: 2 ms, host: 7 ms}, memory = 1 GiB, output = 10 MiB, layer = 3 }
    node b3 { time = {accelerator: 4 ms, host: 9 ms}, memory = 1 GiB, output = 40 MiB, layer = 3, backward = true }
    node b2 { time = {accelerator: 5 ms, host: 9 ms}, memory = 1 GiB, output = 80 MiB, layer = 2, backward = true }
    node b1 { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, layer = 1, backward = true }
    f1 -> f2 -> f3 -> b3 -> b2 -> b1
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GB/s }
"""


def _with(rules: str, objective: str = "time_per_sample", graph: str = _GRAPH) -> str:
    return f"{graph}minimize {objective}\n" + (f"subject to\n    {rules}\n" if rules else "")


#: Real and whole variables with and without units, of no, one and two indices; of some no row and no objective speaks.
OWN = """
var slack[d in gpu]: time in 0 ms..20 ms
var room[d in gpu]: data in 0 GiB..6 GiB
var seat[v in nodes, d in gpu where v.memory > 1 GiB]: binary
var step[i in 1..3]: integer in 1..4
var over: time
var idle[d in gpu]: binary
var apart: time in 2 ms..5 ms
var below in -3..-1
var nobody[v in nodes where v.memory > 9 GiB]: integer in 0..4
"""
_OWN_RULES = """memory
    even: forall d in gpu: load(d) + slack[d] >= 11 ms
    free: forall d in gpu: memory(d) + room[d] == 6 GiB
    seats: forall v in nodes, d in gpu where v.memory > 1 GiB: (v on d) <=> seat[v, d] == 1
    steps: forall i in 1..2: step[i] + 1 <= step[i + 1]
    late: time_per_sample - over <= 8 ms
"""

#: One of the two nodes that must share a device runs on the host only, and the other is pinned to the accelerator.
NEVER = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, layer = 1 }
    node b { time = {host: 6 ms}, layer = 1 }
}
device gpu: accelerator
device cpu: host
interconnect { bandwidth = 1 GiB/s }
minimize devices_used
subject to
    colocated by layer
    false: a on gpu
"""

PLAN = """
graph {
    node a { time = {accelerator: 4 ms, host: 90 ms}, memory = 2 GiB, output = 8 MiB, stash = 1 GiB }
    node b { time = {accelerator: 6 ms, host: 90 ms}, memory = 1 GiB, output = 8 MiB, parameters = 64 MiB }
    a -> b
}
device gpu[3]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
option split(v in nodes, t in {2}, d in gpu) {
    tensor = t
    time = v.time[d] / t + 1 ms
    memory = v.memory / t
    gather = 4 MiB
}
parallelism { data = 1..2, tensor = {1, 2}, microbatches = 4 }
minimize time_per_sample then devices_used
subject to
    memory
    second: stage(b) >= 2
"""

SPECS = {
    "plan": PLAN,
    "inline": (EXAMPLES / "inline.place").read_text(encoding="utf-8"),
    "no rules": _with(""),
    "training": _with("memory\n    contiguous\n    colocated by layer", graph=_TRAINING),
    "training in parts": _with("memory\n    convex", graph=_TRAINING),
    "gpipe": _with("memory\n    contiguous", graph=_TRAINING + "schedule gpipe\n"),
    "exact maximum": _with("memory\n    two: max(load(gpu[1]), load(gpu[2])) >= 10 ms"),
    "exact minimum": _with("memory\n    two: min(load(gpu[1]), load(gpu[2])) <= 4 ms\n    one: not (a on cpu)"),
    "maximum for each": _with("memory\n    rest: forall d in gpu: max(load(d), 8 ms) + load(cpu) >= 15 ms"),
    "implication": _with("memory\n    if_so: forall d in gpu: (a on d) => load(d) <= 6 ms\n    host: not (a on cpu)"),
    "nested conditions": _with("both: forall d in gpu: (a on d and b on d) or (c on d => load(d) >= 12 ms)"),
    "counting": _with("few: count(d in devices: count(v in nodes: v on d) >= 2) <= 1"),
    "product": _with("memory\n    times: (a on gpu[1]) * load(gpu[2]) + (a on gpu[2]) * load(gpu[1]) >= 8 ms"),
    "traffic": _with("memory\n    little: forall d in gpu: traffic(d, cpu) <= 8 MiB\n"
                     "    some: traffic(cpu, gpu[1]) >= 8 MiB"),
    "constant": _with("memory\n    contiguous", "time_per_sample + 5 ms"),
    "turned round": _with("memory", "-count(v in nodes: v on gpu[1])"),
    "bytes": _with("memory", "peak_memory"),
    "in turn": _with("memory", "devices_used then time_per_sample"),
    "three in turn": _with("", "time_per_sample then communication then max(d in gpu: memory(d))"),
    "constant in turn": _with("memory\n    contiguous", "time_per_sample + 1 ms then 2 * devices_used + 3"),
    "infeasible": _with("memory\n    much: forall d in gpu: memory(d) >= 5 GiB"),
    "impossible": _with("memory\n    none: count(v in nodes: v on cpu) + 1 <= 0"),
    "never": NEVER,
    "two calls": _with("memory\n", "latency", _GRAPH + "schedule calls { pieces = 2 }\n"),
    "dataflow": _with("memory\n    sequential\n    congestion\n", "latency", _GRAPH),
    "intervals": _with("lock: no_overlap(v in {b, c}: start(v)..finish(v))\n", "latency then devices_used", _GRAPH),
    "own variables": _with(_OWN_RULES, "time_per_sample + over + sum(d in gpu: slack[d]) / 1000", _GRAPH + OWN),
    "own variables in turn": _with(_OWN_RULES, "over then sum(d in gpu: room[d]) then step[3]", _GRAPH + OWN),
    "nobody can": _with("small: forall v in nodes, d in gpu where v.memory >= 2 GiB: not (v on d)\n"
                        "    host: forall v in nodes: not (v on cpu)"),
}  # fmt: skip
