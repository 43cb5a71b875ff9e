"""What happens with plug-ins that are broken, that clash, or that say what is not so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from placedsl import loads, plugins
from placedsl.cli import main as cli
from placedsl.diagnostics import InputError, UsageError
from placedsl.graph.readers import READERS, read
from placedsl.planner.answer import Answer
from placedsl.solvers.registry import get, installed

GRAPH = """
graph {
    node a { time = 4 ms, output = 8 MiB }
    node b { time = 6 ms, output = 8 MiB }
    a -> b
}
device gpu[2]: accelerator
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the search path, for packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("plugin_under_test")]:
        del sys.modules[name]


def distribution(site: Path, name: str, kind: str, entry: str, module: str, thing: str = "") -> None:
    """Put a package with one entry point there, as pip would have."""
    module_name = f"plugin_under_test_{name}"
    (site / f"{module_name}.py").write_text(module, encoding="utf-8")
    home = site / f"{name}-1.0.dist-info"
    home.mkdir()
    (home / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    value = f"{module_name}:{thing}" if thing else module_name
    (home / "entry_points.txt").write_text(f"[placedsl.{kind}]\n{entry} = {value}\n", encoding="utf-8")


def test_nothing_is_imported_before_it_is_used(site: Path) -> None:
    distribution(site, "bomb", "algorithms", "bomb", "raise SystemError('imported')\n")
    assert plugins.names("algorithms") == ("bomb",)
    assert plugins.find("algorithms", "bomb") is not None
    assert plugins.find("algorithms", "other") is None
    assert loads(GRAPH + "subject to\n    contiguous\n").solve().termination == "optimal"
    assert "plugin_under_test_bomb" not in sys.modules


@pytest.mark.parametrize("kind", plugins.KINDS)
def test_a_broken_plug_in_names_its_distribution_and_the_reason(kind: str, site: Path) -> None:
    distribution(site, "broken", kind, "thing", "import a_module_that_is_nowhere\n", "made")
    with pytest.raises(plugins.PluginError, match=r"'thing' of broken 1\.0 cannot be loaded: ModuleNotFound"):
        plugins.get(kind, "thing").load()


def test_a_broken_plug_in_harms_only_what_uses_it(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in plugins.KINDS:
        distribution(site, f"broken_{kind}", kind, f"bad-{kind}", "raise ValueError('no licence')\n", "made")
    answer = loads(GRAPH).solve()
    assert answer.termination == "optimal"
    assert any("bad-algorithms" in note and "no licence" in note for note in answer.notes)
    for wanted in ({"solver": "bad-solvers"}, {"method": "bad-algorithms"}):
        with pytest.raises(UsageError, match="no licence"):
            loads(GRAPH).solve(**wanted)
    with pytest.raises(UsageError, match="no licence"):
        plugins.export(loads(GRAPH), "bad-exporters")
    assert cli.main(["solvers"]) == 0
    assert "bad-solvers" in capsys.readouterr().out
    assert cli.main(["plugins"]) == 0
    assert capsys.readouterr().out.count("no licence") == len(plugins.KINDS)


def test_two_packages_with_one_name(site: Path) -> None:
    for name in ("first", "second"):
        distribution(site, name, "algorithms", "best", "def fits(p): return []\n")
    with pytest.raises(UsageError, match=r"first 1\.0 and second 1\.0 both offer the algorithm 'best'"):
        loads(GRAPH).solve(method="best")
    problems = [problem for _, problem in plugins.listing({})]
    assert problems == ["not used: another package offers this name too"] * 2


def test_what_is_built_in_keeps_its_name(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, name in (("solvers", "highs"), ("readers", "native"), ("algorithms", "dp"), ("constraints", "memory")):
        distribution(site, name, kind, name, "made = None\n", "made")
    assert get("highs").features.package == "highspy"
    assert sum(features.name == "highs" for features, _ in installed()) == 1
    assert loads(GRAPH + "subject to\n    memory\n    contiguous\n").solve(method="dp").method == "dp"
    assert cli.main(["plugins"]) == 0
    assert capsys.readouterr().out.count("this name is built in") == 4


def test_names_that_do_not_exist(site: Path) -> None:
    distribution(site, "some", "solvers", "quick", "made = None\n", "made")
    with pytest.raises(UsageError, match=r"no solver 'quik'; did you mean 'quick'\?"):
        get("quik")
    with pytest.raises(UsageError, match="there is no exporter 'dot'; no plug-in offers one"):
        plugins.get("exporters", "dot")
    distribution(site, "other", "readers", "tflite", "made = None\n", "made")
    (site / "graph.tflite").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="no graph format 'tflit'"):
        read(site / "graph.tflite", "tflit")
    with pytest.raises(InputError, match='by name only, with format = "…": tflite'):
        read(site / "graph.tflite")
    assert "tflite" not in READERS


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("def read(source):\n    return source.text\n", "a Graph is expected from it, this is str"),
        (
            "def read(source):\n    return source.txt\n",
            r"AttributeError: .* no attribute 'txt' \(.*:2\)",
        ),
    ],
)
def test_readers_that_do_not_read(module: str, words: str, site: Path) -> None:
    distribution(site, "odd", "readers", "odd", module, "read")
    (site / "graph.odd").write_text("x", encoding="utf-8")
    with pytest.raises(plugins.PluginError, match=f"reader 'odd' of odd 1.0 failed: {words}"):
        read(site / "graph.odd", "odd")


SOLVER = """
from placedsl.solvers.interface import Features
class Made:
    features = Features("{name}", "numpy")
    def available(self):
        {available}
    def run(self, program, budget, progress):
        raise ArithmeticError("no solution in this universe")
"""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (SOLVER.format(name="other", available="return '1'"), "calls itself 'other'"),
        (SOLVER.format(name="odd", available="return 1 / 0"), "failed: ZeroDivisionError"),
        ("class Made:\n    features = None\n", "has no 'available'"),
        ("class Made:\n    def __init__(self):\n        self.x = y\n", "failed: NameError"),
    ],
)
def test_solvers_that_are_none(module: str, words: str, site: Path) -> None:
    distribution(site, "odd", "solvers", "odd", module, "Made")
    with pytest.raises(plugins.PluginError, match=words):
        loads(GRAPH).solve(solver="odd")


def test_a_solver_that_fails_in_its_process(site: Path) -> None:
    """The child finds the plug-in on the search path of this process, and says what went wrong in it."""
    distribution(site, "odd", "solvers", "odd", SOLVER.format(name="odd", available="return '1'"), "Made")
    answer = loads(GRAPH.replace("time_per_sample", "communication")).solve(solver="odd")
    assert answer.termination == "error"
    assert "odd failed: ArithmeticError: no solution in this universe" in answer.message


def by(site: Path, body: str, reasons: str = "[]", text: str = GRAPH, **wanted: object) -> Answer:
    """Solve with an algorithm whose ``solve`` has this body."""
    module = (
        f"import math\ndef fits(problem):\n    return {reasons}\ndef solve(problem, budget, progress):\n    {body}\n"
    )
    distribution(site, "made", "algorithms", "made", module)
    return loads(text).solve(method="made", **wanted)


def test_an_algorithm_that_proves(site: Path) -> None:
    answer = by(site, "return [0, 0], 0.010", text=GRAPH.replace("gpu[2]", "gpu[0]"))
    assert (answer.method, answer.termination, answer.message) == ("made", "optimal", "proven by made")


def test_an_algorithm_without_a_proof(site: Path) -> None:
    answer = by(site, "return [0, 0], -math.inf")
    assert (answer.termination, answer.exit_code) == ("ended", 4)
    assert answer.value == pytest.approx(0.010)


def test_an_algorithm_within_the_gap(site: Path) -> None:
    answer = by(site, "return [0, 0], 0.008", gap=0.3)
    assert (answer.termination, answer.exit_code) == ("gap_reached", 0)


def test_an_algorithm_that_finds_nothing(site: Path) -> None:
    answer = by(site, "return None, -math.inf")
    assert (answer.termination, answer.exit_code) == ("ended", 5)


def test_an_algorithm_that_proves_infeasibility(site: Path) -> None:
    nowhere = "subject to\n    nowhere: forall v in nodes, d in devices: not (v on d)\n"
    answer = by(site, "return None, math.inf", text=GRAPH + nowhere)
    assert (answer.termination, answer.exit_code) == ("infeasible", 3)


def test_a_placement_that_violates_a_constraint_is_refused(site: Path) -> None:
    apart = "subject to\n    apart: forall d in devices: not (a on d and b on d)\n"
    answer = by(site, "return [0, 0], 0", text=GRAPH + apart)
    assert answer.termination == "error"
    assert "the evaluator refuses the placement that made gave" in answer.message
    assert answer.placement is None


def test_progress_says_when_to_stop(site: Path) -> None:
    """Of what it is told nothing is lost, and the time limit ends it."""
    answer = by(site, "while not progress([0, 1], 0.001): pass\n    return None, -math.inf", time_limit=0.5)
    assert answer.termination == "time_limit"
    assert answer.placement == (0, 1)
    assert answer.bound >= 0.001


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return [0], 0", "it placed 1 of 2 nodes"),
        ("return [0, 0]", "has no len"),  # a placement 0 with a bound of 0
        ("return 3", "gives no pair of a placement and a bound"),
        ("return [0, 0], 1.0", "a verified placement refutes the bound that it claims"),
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
        ("return ['gpu[1]', 'cpu'], 0", "ValueError"),
    ],
)
def test_algorithms_that_say_what_cannot_be(body: str, words: str, site: Path) -> None:
    with pytest.raises(plugins.PluginError, match=words):
        by(site, body)


def test_an_algorithm_that_does_not_fit(site: Path) -> None:
    with pytest.raises(UsageError, match="method made does not fit: it is for chains"):
        by(site, "return None, 0", reasons="['it is for chains']")
    assert loads(GRAPH).solve().termination == "optimal"  # the planner passes over it


def test_what_an_algorithm_finds_is_a_start(site: Path) -> None:
    """Under a rule that no built-in start satisfies, a placement from a plug-in is where the solver begins."""
    text = GRAPH + "subject to\n    no: forall v in nodes: not (v on gpu[1])\n"
    module = "def fits(problem): return []\ndef solve(problem, budget, progress): return [2, 2], 0.0\n"
    distribution(site, "made", "algorithms", "made", module)
    answer = loads(text).solve()
    assert (answer.termination, answer.method) == ("optimal", "program")
    assert any(note.startswith("made found a placement") for note in answer.notes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("constraint other = 1 <= 2", r"does not hold 'constraint odd = …' alone"),
        ("constraint odd = 1 <= 2\\nset x = nodes", r"does not hold 'constraint odd = …' alone"),
        ("constraint odd = forall v nodes: true", r"<constraint 'odd' of odd 1\.0>:1:27: error"),
        (
            "constraint odd = forall v in nods: true",
            r"of odd 1\.0>:1:30: error: there is no set 'nods'",
        ),
    ],
)
def test_constraints_that_cannot_be_read(text: str, words: str, site: Path) -> None:
    distribution(site, "odd", "constraints", "odd", f'text = "{text}"\n', "text")
    with pytest.raises((UsageError, InputError), match=words):
        loads(GRAPH + "subject to\n    odd\n")


def test_a_constraint_of_the_spec_counts_more_than_one_of_a_plug_in(site: Path) -> None:
    distribution(site, "odd", "constraints", "odd", "text = 'constraint odd = 1 >= 2'\n", "text")
    own = loads(GRAPH + "constraint odd = 1 <= 2\nsubject to\n    odd\n")
    assert own.solve().termination == "optimal"
    with pytest.raises(InputError, match="'odd' is false whatever the placement"):
        loads(GRAPH + "subject to\n    odd\n").solve()


def test_an_exporter_gives_a_text(site: Path) -> None:
    module = "def names(answer): return ' '.join(answer.device_of())\ndef odd(answer): return 3\n"
    for name in ("names", "odd"):
        distribution(site, name, "exporters", name, module, name)
    answer = loads(GRAPH).solve()
    assert plugins.export(answer, "names") == loads(GRAPH).emit("names") == "a b"
    with pytest.raises(plugins.PluginError, match="a text is expected from it, this is int"):
        plugins.export(answer, "odd")
