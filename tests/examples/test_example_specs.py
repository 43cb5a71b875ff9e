"""Every spec of ``examples/``: its optimum, found in two ways that share no solver, or what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest
from support.paths import ROOT

from placedsl import InputError, UsageError, load, loads
from placedsl.api.spec import Spec
from placedsl.diagnostics import Source
from placedsl.language.syntax.parser import parse
from placedsl.report.explanation.elaborated_spec import elaborated

pytestmark = pytest.mark.rotates(2)

EXAMPLES = ROOT / "examples"
#: Those that need a published workload are solved in the tests of the language's samples.
WITH_WORKLOADS = {"bert3", "bert3-training", "custom"}


@dataclass(frozen=True)
class Case:
    """A command of a user, and the optimum of each objective in SI units (none: infeasible).

    ``second``: the solver that confirms what is found without asking for one.
    """

    spec: str
    optimum: tuple[float, ...] = ()
    given: dict[str, str] = field(default_factory=dict)
    data: str | None = None
    second: str = "cp-sat"

    @property
    def command(self) -> str:
        """As the table of examples/README.md has it."""
        data = f" --data {self.data}" if self.data else ""
        given = "".join(f' --set {k}="{v}"' if " " in v else f" --set {k}={v}" for k, v in self.given.items())
        return f"placedsl solve {self.spec}.place{data}{given}"

    def load(self) -> Spec:
        """The spec with its values."""
        return load(EXAMPLES / f"{self.spec}.place", self.given, EXAMPLES / self.data if self.data else None)


CASES = [
    Case("at-most-k", (0.008131072,)),
    Case("at-most-k", (0.028,), {"k": "1"}),
    Case("at-most-k", (0.006262144,), {"k": "6"}),
    Case("at-most-k", (0.006262144,), {"k": "7"}),
    Case("balanced-loads", (0.012185984, 0.00004)),
    Case("batch-size", (0.013944288,)),
    Case("cluster-imported", (0.0077274304,), second="highs"),
    Case("cluster-imported", (0.0087548608,), {"gpu_memory": "1.5GiB"}, second="highs"),
    Case("compare-contiguous", (0.0173145728,)),
    Case("compare-convex", (0.0172097152,), second="highs"),
    Case("compare-free", (0.0163145728,)),
    Case("conflicting-wishes"),
    Case("critical-path", (0.013670016,)),
    Case("draft-and-target", (0.0051, 0.000180224)),
    Case("edge-cluster", (0.012686327965,), second="highs"),
    Case("encoder-decoder", (0.00705536, 5), second="highs"),
    Case("experts-by-traffic", (0.003734, 0.000524288), data="data/routing.toml"),
    Case("experts-spread", (0.00392768,)),
    Case("experts-spread", (0.003529376,), {"per_gpu": "2"}),
    Case("extended-formulation", (0.004662144,)),
    Case("fleet", (3, 0.00979905067), data="data/fleet-small.json", second="highs"),
    Case("fleet", (3, 0.00979905067), {"gpus": "3"}, "data/fleet-small.json", second="highs"),
    Case("fleet", (4, 0.00824952533), data="data/fleet-large.json", second="highs"),
    # Its deviations have no upper bounds, which CP-SAT needs.
    Case("goal-programming", (5.25,), second="mip"),
    Case("implications", (0.011479648,)),
    Case("inline", (0.009048576,)),
    Case("kv-cache", (0.0131677722,)),
    Case("kv-cache", given={"batch": "24"}, second="highs"),
    Case("kv-cache", (0.00746777216,), {"batch": "24", "gpus": "4"}),
    Case("latency-calls", (0.015732421875,), second="highs"),
    Case("latency-calls", (0.02348828125,), {"calls": "1"}, second="highs"),
    Case("latency-training", (0.044708984375,), second="highs"),
    Case("latency-training", (0.22148828125,), {"calls": "1"}, second="highs"),
    Case("lexicographic", (0.003524288, 3, 0.0008388608, 0.0034)),
    Case("link-cap", (0.0151794304,)),
    Case("measured-energy", (5.38, 0.008786432), data="data/energy.json"),
    Case("minimax-memory", (0.625,), second="highs"),
    Case("own-formulation", (0.012748576,)),
    Case("pinned-embedding", (0.0105,)),
    Case("policy-imported", (0.0040514304,)),
    Case("policy-imported", (0.022,), {"most_per_hour": "7 USD/h"}),
    Case("price-budget", (0.0095194304,), second="highs"),
    Case("quantisation", (0.012, 0.6), second="highs"),
    Case("quickstart", (0.015876432,)),
    Case("recomputation", (0.015553125, 1), second="highs"),
    Case("replicas-apart", (0.0048388608,)),
    Case("shared-weights", (0.0101572864, 3)),
    Case("single-device", (0.02348,)),
    Case("soft-service-level", (7.69905067,)),
    Case("stage-numbers", (0.005524288,)),
    Case("step-price", (12.9048576,)),
    Case("tied-weights", (0.01019810133,)),
    Case("time-slots", (7, 0.011524288)),
    Case("too-small"),
    Case("training-gpipe", (0.0135296875, 3154116608), second="highs"),
    Case("training-pipedream", (0.01270625,)),
    Case("transformer-blocks", (0.0093,)),
    Case("two-kinds", (0.003824288,)),
    Case("two-servers", (0.0174557596, 5.0)),
]
WAYS = [(case, way) for case in CASES for way in ("auto", case.second)]


@pytest.mark.parametrize(
    ("case", "way"),
    [
        pytest.param(
            case,
            way,
            id=f"{case.command.removeprefix('placedsl solve ')} {way}",
            marks=[] if way == "auto" else pytest.mark.everything,
        )
        for case, way in WAYS
    ],
)
def test_optimum(case: Case, way: str) -> None:
    spec = case.load()
    answer = spec.solve() if way == "auto" else spec.solve(solver=way, method="program")
    assert (answer.solver == case.second) is (way != "auto")
    assert answer.termination == ("optimal" if case.optimum else "infeasible"), answer.message
    if case.optimum:
        assert answer.evaluation is not None
        assert answer.evaluation.objectives == pytest.approx(case.optimum, rel=2e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("case", "members", "repair"),
    [
        (Case("conflicting-wishes"), {"together(a, b)", "together(b, c)", "apart(a, c)"}, "drop apart(a, c)"),
        (Case("too-small"), {"memory"}, "128 MiB more on gpu[1]"),
        (Case("kv-cache", given={"batch": "24"}, second="highs"), {"room"}, "153.6 MiB more for d=gpu[1]"),
    ],
    ids=lambda value: value.spec if isinstance(value, Case) else "",
)
def test_conflict(case: Case, members: set[str], repair: str) -> None:
    """Why nothing is feasible, in the words of the spec."""
    conflict = case.load().conflict()
    assert conflict is not None
    assert {member.name for member in conflict.members} == members
    assert any(repair in line for line in conflict.repair), conflict.repair


def value(spec: Spec) -> float:
    answer = spec.solve()
    assert answer.termination == "optimal"
    return answer.value


def text(name: str) -> str:
    return (EXAMPLES / f"{name}.place").read_text(encoding="utf-8")


def test_a_formulation_of_ones_own_and_an_extension_keep_the_optimum() -> None:
    """Without the block the one that comes along is taken as it is."""
    for name in ("own-formulation", "extended-formulation"):
        plain = re.sub(r"^(formulation|extend) .*?^}$", "", text(name), flags=re.DOTALL | re.MULTILINE)
        assert len(plain) < len(text(name))
        assert value(loads(plain, EXAMPLES)) == pytest.approx(value(loads(text(name), EXAMPLES)), rel=2e-6)


def test_stage_numbers_mean_contiguous() -> None:
    plain = text("stage-numbers").partition("set stages")[0]
    contiguous = loads(plain + "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n")
    assert value(contiguous) == pytest.approx(value(Case("stage-numbers").load()), rel=2e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("balanced-loads", "even"), ("encoder-decoder", "apart"), ("implications", "ends"), ("link-cap", "riser"),
        ("pinned-embedding", "pinned"), ("price-budget", "paid"), ("replicas-apart", "apart"),
        ("shared-weights", "fits"), ("tied-weights", "fits"), ("time-slots", "network"), ("quantisation", "accurate"),
        ("batch-size", "room"), ("critical-path", "two"), ("draft-and-target", "polite"), ("minimax-memory", "fast"),
    ],
)  # fmt: skip
def test_what_an_example_is_about_binds(name: str, rule: str) -> None:
    """Without the constraint the optimum is another one."""
    lines = text(name).splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f"    {rule}:")]
    assert len(kept) == len(lines) - 1
    free = loads("".join(kept), EXAMPLES).solve().evaluation
    (own,) = [case.optimum for case in CASES if case.spec == name and not case.given]
    assert free is not None
    assert free.objectives < tuple(v - 1e-6 * abs(v) for v in own)


@pytest.mark.parametrize("case", [c for c in CASES if not c.given], ids=lambda c: f"{c.spec} {c.data or ''}".strip())
def test_what_explain_prints_is_a_spec(case: Case) -> None:
    """The same problem, with imports and data in their place."""
    first = case.load()
    second = loads(elaborated(first.elaborated), EXAMPLES)
    second.check()
    one, other = first.problem, second.problem
    assert len(one.objectives) == len(other.objectives)
    # An argument of a constraint is shown as it is written: 15% there, 0.15 here.
    assert [r.name.partition("(")[0] for r in one.constraints] == [r.name.partition("(")[0] for r in other.constraints]
    assert (one.graph.nodes, one.machine.devices) == (other.graph.nodes, other.machine.devices)


WRONG = {
    "misspelt": [
        (3, "there is no device or kind 'hots'"),
        (3, "'Gib' is not a unit (did you mean 'GiB'?)"),
        (5, "there is no node 'blok'"),
        (8, "'acelerator' is no kind of device"),
        (10, "a link has no 'bandwith'"),
        (12, "there is no 'time_per_smaple' here"),
        (14, "there is no constraint 'memry'"),
        (15, "nodes have no 'layr'"),
        (16, "there is no set 'gpus'"),
    ],
    "units": [
        (9, "parameter 'gpus' is declared int, its value is 1.5"),
        (11, "'memory' is data, this is a number (bandwidth)"),
        (13, "'bandwidth' is bandwidth, this is a number (data)"),
        (15, "a number (time) cannot be added to a number (data)"),
        (17, "a number (time) cannot be compared with a number (data)"),
    ],
    "not-linear": [(13, "this product of two decisions is not linear")],
    "in-formulas": [
        (11, "'binray' is no type of a variable"),
        (13, "3 is out of range"),
        (21, "'few' takes 1 argument, here are 0"),
        (22, "'limit' is a plain number, this is a number (time)"),
        (23, "a 'where' cannot depend on the placement"),
        (24, "a pair of names like (u, v) is expected before 'in' here"),
        (25, "a device is no set"),
        (25, "a device is expected here, this is a set of nodes"),
        (26, "the condition of an 'if' cannot depend on the placement"),
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_its_line(name: str) -> None:
    with pytest.raises(InputError) as caught:
        load(EXAMPLES / "wrong" / f"{name}.place").check()
    told = [(d.span.line if d.span else 0, d.message) for d in caught.value.diagnostics]
    assert told == WRONG[name]


def test_parameters_without_values_are_asked_for() -> None:
    with pytest.raises(InputError) as caught:
        Case("fleet").load()
    assert [d.message for d in caught.value.diagnostics] == [
        f"parameter '{name}' has no value" for name in ("gpus", "room", "slowest")
    ]
    for name, table in (("measured-energy", "energy"), ("experts-by-traffic", "called")):
        with pytest.raises(InputError, match=f"parameter '{table}' has no values"):
            Case(name).load()
    with pytest.raises(UsageError, match="this is a number"):
        Case("fleet", given={"room": "3 ms"}, data="data/fleet-small.json").load()


def test_the_table_of_the_readme() -> None:
    """It names every file, and its commands are those that are tested here."""
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = {str(p.relative_to(EXAMPLES)) for p in EXAMPLES.rglob("*") if p.is_file() and p.name != "README.md"}
    # Plug-ins are in docs/plugins.md, and folders have pages of their own.
    own = ("plugins/", *(f"{page.parent.name}/" for page in EXAMPLES.glob("*/README.md")))
    files = {name for name in files if not name.startswith(own)}
    linked = re.findall(r"\]\(([^)]+)\)", page)
    assert sorted(t for t in linked if not t.startswith(("..", *own))) == sorted(files)
    commands = {c for c in re.findall(r"`(placedsl solve [^`]+)`", page) if not c.startswith("placedsl solve bert3")}
    commands.discard("placedsl solve custom.place")
    assert commands == {case.command for case in CASES}


def test_every_example_says_what_it_shows() -> None:
    """At the top, and it is made of statements."""
    paths = sorted(EXAMPLES.rglob("*.place"))
    assert len(paths) >= 50
    assert {p.stem for p in EXAMPLES.glob("*.place")} == {case.spec for case in CASES} | WITH_WORKLOADS
    for path in paths:
        source = path.read_text(encoding="utf-8")
        assert source.startswith("# "), path
        assert parse(Source(path.name, source)).statements
