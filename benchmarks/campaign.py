"""Random small problems of every family, solved and compared with an enumeration that shares nothing with placedsl.

    python benchmarks/campaign.py --seconds 1800 [--seed 1] [--family NAME ...]     new seeds every run unless given
    python benchmarks/campaign.py --problems 200
    python benchmarks/campaign.py --seconds 1800 --in-process      ten times as many problems

A problem is generated as data, written as a spec, and solved by ``auto`` or by a solver that is drawn.  The enumeration
works on the data, in fractions, by the formulas of ``docs/language``; it imports nothing of the package.  What counts
as found: a proven answer with another value, a bound above the optimum or a value below it, "infeasible" where there is
a placement (or the reverse), and anything raised.  Data are awkward on purpose: times of 0, leaves that nobody reads,
nodes without edges, nodes that one kind of device does not support, magnitudes that are up to 10^10 apart, memory that
is full to the last byte.

Each problem is printed with its seed, so that ``--seed N --problems 1`` repeats it.  A solve starts processes of its
solver, whose start is most of its time; ``--in-process`` keeps one process a solver for all problems instead.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from multiprocessing import TimeoutError as NoAnswer
from multiprocessing import get_context
from multiprocessing.pool import Pool
from typing import TYPE_CHECKING

from campaign_quantities import INFINITE, Device, Node, Problem, Quantities, Rule, number, time_on

if TYPE_CHECKING:
    from placedsl.planner.answer import Answer

#: Relative difference between a proven value and the optimum that rounding explains.
NEAR = 2e-6
#: Most placements that are enumerated, and seconds of one solve.
MOST, LIMIT = 20_000, 20.0
SOLVERS = ("highs", "cp-sat", "pyomo", "mip", "cvxpy")


# Longer than 80 lines: each family is a few lines of draws.
def generated(seed: int, families: Sequence[str]) -> Problem:
    """A random problem of a random family."""
    rng = random.Random(seed)
    family = rng.choice(list(families))
    training = family in ("gpipe", "training", "plain", "direct") and rng.random() < {"plain": 0.3, "direct": 0.3}.get(
        family, 1.0
    )
    host = rng.random() < 0.5
    clusters = family == "clusters"
    gpus = rng.choice([2, 3, 4] if clusters else [1, 2, 2, 3])
    second = not clusters and family not in ("parallelism",) and rng.random() < 0.25
    unit = rng.choice(["ms", "ms", "us", "s", "ns"])
    seconds = {"ns": 10**9, "us": 10**6, "ms": 1000, "s": 1}[unit]
    total = gpus + host + second
    most = {2: 7, 3: 6, 4: 5, 5: 5, 6: 4}.get(total, 8)
    if family in ("sequential",):
        most = min(most, 5)
    count = rng.randint(1, max(1, most // 2 if training else most))
    wide = rng.choice([1, 1, 1, 1, 100, 100, 10**6, 10**6, 10**8, 10**10])
    nodes: list[Node] = []
    backward = []
    for v in range(count):
        for back in (False, True)[: 1 + (training and rng.random() < 0.85)]:
            times = {}
            if rng.random() < 0.92 or not host:
                times["accelerator"] = Fraction(rng.choice([0, 1, 2, 3, 5, 7, wide])) / rng.choice([1, 1, 2, 4])
            if host and (rng.random() < 0.8 or not times):
                times["host"] = Fraction(rng.choice([1, 2, 9, 20, wide]))
            if second and rng.random() < 0.6:
                times["tpu"] = Fraction(rng.choice([1, 2, 4]))
            grouped = (rng.random() < 0.7 or training) and (training or rng.random() < 0.2)
            if back:
                backward.append((v, len(nodes)))
            nodes.append(
                Node(
                    f"{'b' if back else 'n'}{v}", times, rng.choice([0, 1, 2, 3, 2**20, 2**30 + 1]),
                    rng.choice([0, 0, 1, 4, 9, 64]), rng.choice([0, 1, 8]), v if grouped else None, back,
                )
            )  # fmt: skip
    position = {node.name: k for k, node in enumerate(nodes)}
    edges = set()
    for u in range(count):
        for v in range(u + 1, count):
            if rng.random() < 0.45:
                edges.add((position[f"n{u}"], position[f"n{v}"]))
                if f"b{u}" in position and f"b{v}" in position:
                    edges.add((position[f"b{v}"], position[f"b{u}"]))
    edges |= {(position[f"n{v}"], k) for v, k in backward if rng.random() < 0.7}
    limit = rng.choice([None, 5, 2**20 + 2, 2**30 + 1, 2**30 + 2, 2**31])
    inner = rng.choice([1, 2, 8, 100]) * seconds
    outer = max(1, inner // rng.choice([1, 2, 5, 10])) if clusters else inner
    has = f" {{ memory = {limit} B }}" if limit is not None else ""
    machine, devices = [], []
    if clusters:
        per = 1 if gpus < 4 else 2
        count_of = gpus // per if per == 2 else gpus
        machine += [
            f"cluster server[{count_of}] {{", f"    device gpu[{per}]: accelerator{has}",
            f"    interconnect {{ bandwidth = {inner} MiB/s }}", "}", f"interconnect {{ bandwidth = {outer} MiB/s }}",
        ]  # fmt: skip
        for c in range(count_of):
            devices += [Device(f"server[{c + 1}].gpu[{g + 1}]", "accelerator", limit, c) for g in range(per)]
    else:
        machine.append(f"device gpu[{gpus}]: accelerator{has}")
        devices += [Device(f"gpu[{g + 1}]", "accelerator", limit) for g in range(gpus)]
        if second:
            machine.append(f"device tpu[1]: accelerator{has}")
            devices.append(Device("tpu[1]", "tpu", limit))
        machine.append(f"interconnect {{ bandwidth = {inner} MiB/s }}")
    if host:
        machine.append("device cpu: host")
        devices.append(Device("cpu", "host", None))
    problem = Problem(family, unit, nodes, sorted(edges), devices, machine, inner, outer)
    if family == "direct":
        connect(rng, problem, seconds)
    problem.built_in = {"memory"} if rng.random() < 0.7 else set()
    if any(node.group is not None for node in nodes) and (training or rng.random() < 0.5):
        problem.built_in.add("colocated")
    if family in ("contiguous", "parallelism", "clusters", "gpipe", "training") and rng.random() < 0.8:
        problem.built_in.add("contiguous")
    if family == "convex":
        problem.built_in.add("convex")
    if family in ("contiguous", "clusters", "plain", "convex", "training"):
        problem.schedule = rng.choice(["pipedream", "pipedream", "overlapped", "duplex"])
    if family == "direct":
        problem.schedule = rng.choice(["pipedream", "pipedream", "overlapped", "duplex", *["gpipe"] * training])
        problem.built_in |= {"contiguous"} if rng.random() < 0.5 else set()
        even = len({problem.ways[pair] for pair in problem.ways}) == 1
        problem.degrees = (1, 2) if even and not second and rng.random() < 0.3 else (1,)
    if family == "parallelism":
        problem.schedule = rng.choice(["pipedream", "overlapped", "duplex", "gpipe"])
        problem.degrees = rng.choice([(1, 2), (1, 2, 3)])
    if family == "gpipe":
        problem.schedule = "gpipe"
    if family == "calls":
        problem.schedule = "calls"
    if family in ("dataflow", "sequential"):
        problem.schedule = "dataflow"
        if family == "sequential":
            problem.built_in.add("sequential")
    if problem.schedule in ("calls", "dataflow"):
        problem.goals = ["latency"]
    else:
        then = [["time_per_sample", "devices_used"], ["peak_memory", "time_per_sample"]]
        # Where times are further apart than earlier objectives give way, later ones have no one value.
        problem.goals = rng.choice([["time_per_sample"]] * 5 + then[wide > 10**6 :])
        if problem.schedule != "gpipe" and problem.degrees == (1,) and rng.random() < 0.1:
            problem.goals = ["communication", "time_per_sample"]
        if rng.random() < 0.35 and problem.degrees == (1,):
            problem.rules = [rule(rng, problem) for _ in range(rng.choice([1, 1, 2]))]
    return problem


def connect(rng: random.Random, problem: Problem, seconds: int) -> None:
    """Links from device to device in place of the interconnect: all alike, by family, or each of its own."""
    pairs = [(a, b) for a in range(len(problem.devices)) for b in range(len(problem.devices)) if a != b]
    speeds, latencies = [1, 2, 8, 100, 10**4], [0, 0, 0, 1, 3]
    style = rng.choice(["even", "even", "host", "own", "own"])
    even = rng.choice(speeds), rng.choice(latencies)
    slow = rng.choice(speeds), rng.choice(latencies)
    problem.machine = [line for line in problem.machine if not line.startswith("interconnect")]
    for a, b in pairs:
        kinds = {problem.devices[a].kind, problem.devices[b].kind}
        speed, latency = even if style == "even" else (rng.choice(speeds), rng.choice(latencies))
        if style == "host":
            speed, latency = slow if "host" in kinds else even
        each = Fraction(1, speed * seconds)
        problem.ways[a, b] = (latency * problem.second, each)
        problem.machine.append(
            f"link {problem.devices[a].name} -> {problem.devices[b].name} "
            f"{{ bandwidth = {speed * seconds} MiB/s, latency = {latency} {problem.unit} }}"
        )
    accelerators = sum(device.kind != "host" for device in problem.devices)
    problem.transfers = rng.choice(["direct", "broadcast", *["unsaid"] * (accelerators > 1)])


def rule(rng: random.Random, problem: Problem) -> Rule:
    """A constraint of a user's own."""
    a, b = (rng.randrange(len(problem.devices)) for _ in range(2))
    v, w = (rng.randrange(len(problem.nodes)) for _ in range(2))
    da, db = problem.devices[a].name, problem.devices[b].name
    nv, nw = problem.nodes[v].name, problem.nodes[w].name
    k, t = rng.choice([1, 2, 3]), Fraction(rng.choice([1, 3, 6, 12]))
    seconds, unit = t * problem.second, problem.unit
    return rng.choice(
        [
            Rule(f"count(v in nodes: v on {da}) <= {k}", lambda q: len(q.on[a]) <= k),
            Rule(f"load({da}) <= {number(t)} {unit}", lambda q: q.loads[a] <= seconds),
            Rule(
                f"load({da}) <= 2 * load({db}) + {number(t)} {unit}", lambda q: q.loads[a] <= 2 * q.loads[b] + seconds
            ),
            Rule(f"({nv} on {da}) => ({nw} on {db})", lambda q: q.device[v] != a or q.device[w] == b),
            Rule(f"({nv} on {da}) or ({nw} on {db})", lambda q: q.device[v] == a or q.device[w] == b),
            Rule(f"not ({nv} on {da} and {nw} on {db})", lambda q: not (q.device[v] == a and q.device[w] == b)),
            Rule(f"memory({da}) <= {2**20 + 2} B", lambda q: q.memory[a] <= 2**20 + 2),
            Rule(f"devices_used <= {k}", lambda q: sum(q.copies) <= k),
            Rule(
                f"({nv} on {da}) => load({da}) <= {number(t)} {unit}",
                lambda q: q.device[v] != a or q.loads[a] <= seconds,
            ),
            Rule(
                f"min(load({da}), load({db})) <= {number(t)} {unit}", lambda q: min(q.loads[a], q.loads[b]) <= seconds
            ),
            Rule(
                f"load({da}) >= {number(t)} {unit} or load({db}) <= {number(t)} {unit}",
                lambda q: q.loads[a] >= seconds or q.loads[b] <= seconds,
            ),
            Rule(f"({nv} on {da}) == ({nw} on {da})", lambda q: (q.device[v] == a) == (q.device[w] == a)),
        ]
    )


def placements(problem: Problem) -> Iterator[Quantities]:
    """All placements on devices that support the nodes, with all numbers of devices that share a stage."""
    devices = range(len(problem.devices))
    able = [[k for k in devices if time_on(problem, v, k) is not None] for v in range(len(problem.nodes))]
    for device in itertools.product(*able):
        used = sorted({*device})
        if problem.degrees == (1,):
            yield Quantities(problem, device, [int(k in used) for k in range(len(problem.devices))])
            continue
        for degrees in itertools.product(problem.degrees, repeat=len(used)):
            if shares(problem, used, degrees):
                copies = [0] * len(problem.devices)
                for k, r in zip(used, degrees, strict=True):
                    copies[k] = r
                yield Quantities(problem, device, copies)


def shares(problem: Problem, used: Sequence[int], degrees: Sequence[int]) -> bool:
    """Whether there are enough like devices: of one family, alike, and in one cluster."""
    taken: dict[tuple[str, int | None], int] = {}
    for k, r in zip(used, degrees, strict=True):
        place = problem.devices[k].kind, problem.devices[k].cluster
        taken[place] = taken.get(place, 0) + r
    for (kind, cluster), number_taken in taken.items():
        if number_taken > sum(1 for d in problem.devices if (d.kind, d.cluster) == (kind, cluster)):
            return False
    return True


def optimum(problem: Problem) -> list[Fraction] | None:
    """The least objectives in order; None where nothing is allowed."""
    best: list[Fraction] | None = None
    for q in placements(problem):
        if not q.allowed():
            continue
        values = [q.value(goal) for goal in problem.goals]
        if values[0] < INFINITE and (best is None or values < best):
            best = values
    return best


FAMILIES = (
    "plain", "contiguous", "convex", "training", "gpipe", "clusters", "parallelism", "calls", "dataflow", "sequential",
    "direct",
)  # fmt: skip


def alike(goal: str, found: float, exact: float) -> bool:
    """Whether a value is the optimum; sizes and numbers of devices to the last unit."""
    whole = goal in ("peak_memory", "devices_used")
    return found == exact if whole else abs(found - exact) <= NEAR * abs(exact) + 1e-15


def solved(text: str, solver: str | None, isolated: bool) -> Answer:
    """The answer; ``isolated``: as the command gives it, the solver in a process of its own."""
    import placedsl
    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    spec = placedsl.loads(text)
    request = Request(solver, time_limit=LIMIT, workers=2 if isolated else 1)
    return solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=isolated)


def compare(seed: int, families: Sequence[str], solver: str | None, isolated: bool = True) -> str:
    """What is wrong with the answer; empty where nothing is."""
    import placedsl

    problem = generated(seed, families)
    text = problem.text()
    least = optimum(problem)
    try:
        answer = solved(text, solver, isolated)
    except placedsl.LimitError:
        return ""
    except Exception as error:  # noqa: BLE001 - whatever is raised is a finding
        if least is None and "is false whatever the placement" in str(error):
            return ""
        return f"{type(error).__name__}: {error}\n{text}"
    said = f"{answer.termination} {answer.value!r} (bound {answer.bound!r}) {answer.message}, {answer.method}"
    if least is None:
        none = answer.termination == "time_limit" or (bool(solver) and "too many powers of ten apart" in answer.message)
        right = answer.termination == "infeasible" or (none and answer.placement is None)
        return "" if right else f"nothing is allowed: {said}\n{text}"
    exact = [float(value) for value in least]
    near = NEAR * abs(exact[0])
    if answer.termination == "optimal":
        found = list(answer.evaluation.objectives) if answer.evaluation is not None else []
        right = len(found) == len(exact) and all(map(alike, problem.goals, found, exact))
    else:
        # On a machine with much else to do, the limit may come before there is a placement.
        possible = answer.placement is None or answer.value >= exact[0] - near
        within = answer.termination == "gap_reached" and answer.value <= exact[0] + near
        # A solver that was asked for says of data that its integers, or its tolerances, cannot tell apart that it is
        # not for them.
        coarse = answer.termination == "error" and "too many powers of ten apart" in answer.message and bool(solver)
        ended = within or coarse or answer.termination == "time_limit"
        right = ended and possible and answer.bound <= exact[0] + near
    return "" if right else f"optimum {exact}: {said}\n{text}"


class Apart:
    """One process a solver (two of their libraries do not load beside one another), for problem after problem."""

    def __init__(self) -> None:
        self.pools: dict[str, Pool] = {}

    def compare(self, seed: int, families: Sequence[str], solver: str) -> str:
        """The same comparison in the process of the solver; a process that dies or hangs is a finding."""
        if solver not in self.pools:
            self.pools[solver] = get_context("spawn").Pool(1)
        try:
            return self.pools[solver].apply_async(compare, (seed, families, solver, False)).get(3 * LIMIT)
        except NoAnswer:
            self.pools.pop(solver).terminate()
            return f"the process of the solver died or hangs\n{generated(seed, families).text()}"


def main(arguments: Sequence[str]) -> int:
    """Compare problem after problem, print what is wrong and the counts."""
    parser = argparse.ArgumentParser(description="Random small problems against an independent enumeration.")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--problems", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--family", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    asked = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    began, done, wrong, apart = time.monotonic(), 0, 0, Apart()
    while (asked.problems is None or done < asked.problems) and time.monotonic() - began < asked.seconds:
        solver = random.Random(f"solver {seed}").choice([None, None, None, *SOLVERS])
        here = asked.in_process and solver is not None
        finding = apart.compare(seed, asked.family, solver) if here else compare(seed, asked.family, solver)
        if finding:
            wrong += 1
            print(f"seed {seed}, {solver or 'auto'}: {finding}")
        done += 1
        seed += 1
        if sys.stderr.isatty() or done % 50 == 0:
            print(f"{done} problems, {wrong} wrong, {time.monotonic() - began:.0f} s", file=sys.stderr)
    for pool in apart.pools.values():
        pool.close()
        pool.join()
    print(f"{done} problems, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
