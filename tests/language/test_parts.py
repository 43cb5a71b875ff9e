"""``part``, ``use`` and ``under``: what formulations are composed of, and that nothing in ``models/`` stands twice."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from support.three_in_a_row import SPEC

from placedsl import InputError, loads
from placedsl.diagnostics import Source
from placedsl.grounding.build import build
from placedsl.language.elaboration import model_library
from placedsl.language.elaboration.composition import Composition, model_for, renamed
from placedsl.language.elaboration.model_library import aliases, models, parts
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.printer import statement
from placedsl.problem.execution import Execution
from placedsl.problem.formulation import choices, choose
from placedsl.system.installation import model_files

OLD = ("max_load", "overlapped", "duplex", "replicated", "replicated_overlapped", "replicated_duplex", "gpipe")
SINGLE = """part parted {
    var x[v in nodes, d in devices]: binary
    provides v on d = x[v, d]
    provides memory(d) = sum(v in nodes: v.memory * x[v, d])
    subject to
        once: forall v in nodes: sum(d in devices: x[v, d]) == 1
}
part busy {
    use parted
    provides load(d) = sum(v in nodes: v.time[d] * x[v, d])
}
"""


def composed(name: str) -> syntax.Formulation:
    alias = aliases().get(name)
    of = models()[name] if alias is None else renamed(alias, models()[alias.of.text])
    found: list = []
    out = Composition(parts(), model_for(of, choices(Execution())), found).formulation(of)
    assert not found
    return out


def messages(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loads(SPEC + text + "minimize time_per_sample\n").check()
    return [d.message for d in caught.value.diagnostics]


def test_no_statement_of_the_models_stands_twice() -> None:
    """Neither as it is, nor as a row of another name."""
    seen: Counter[str] = Counter()
    for path in model_files():
        for line in path.read_text(encoding="utf-8").splitlines():
            plain = " ".join(line.partition("#")[0].split())
            plain = re.sub(r"^\w+( ?\([^)]*\))?: (?=forall)", "", plain)
            if plain not in ("", "}", "subject to") and not re.match(r"(use|tight) [\w, ]+$", plain):
                seen[plain] += 1
    assert [line for line, count in seen.items() if count > 1] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [*OLD, "calls", "dataflow"])
def test_names_of_programs_can_be_extended_and_minimised(name: str) -> None:
    schedule = {"max_load": "pipedream", "replicated": "pipedream"}.get(name, name.removeprefix("replicated_"))
    sharing = "parallelism { data = 1..2, weights = 0 }\n" if name.startswith("replicated") else ""
    text = f"extend {name} {{\n    minimize sum(d in devices: load(d))\n}}\n"
    text += f"schedule {schedule}\n{sharing}minimize {name}\n"
    spec = loads(SPEC + text)
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())
    assert (formulation.name, formulation.own) == (name, True)
    assert spec.solve(solver="highs", method="program").termination == "optimal"


@pytest.mark.parametrize("name", OLD)
def test_each_program_has_each_variable_and_row_once(name: str) -> None:
    clauses = composed(name).clauses
    variables = [c.name.text for c in clauses if isinstance(c, syntax.Variable)]
    rows = [rule.name.text for c in clauses if isinstance(c, syntax.Subject | syntax.Tight) for rule in c.rules]
    assert {"x", "moved", "read", "written"} <= set(variables)
    assert max(Counter(variables).values()) == max(Counter(rows).values()) == 1
    assert ("crosses" in variables) == (name not in ("gpipe", "duplex", "replicated_duplex"))
    assert ("led" in variables) == name.startswith("replicated")


def test_a_part_is_there_once_however_often_it_is_used() -> None:
    text = SINGLE + "formulation mine {\n    use parted, busy\n    use busy\n}\nminimize time_per_sample\n"
    spec = loads(SPEC + text)
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())
    assert [rule.name for rule in formulation.rules] == ["once"]
    assert "peak_memory" in formulation.provides


def test_clauses_of_a_formulation_may_replace_those_of_parts() -> None:
    text = (
        SINGLE
        + """formulation mine {
    use busy
    replace provides load(d) = sum(v in nodes: 2 * v.time[d] * x[v, d])
    subject to
        replace once: forall v in nodes: sum(d in devices: x[v, d]) >= 1
}
minimize time_per_sample
"""
    )
    spec = loads(SPEC + text)
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())
    assert len(formulation.rules) == 1
    assert (
        "2 *" in formulation.provides["load"].span.source.text.splitlines()[formulation.provides["load"].span.line - 1]
    )


def test_clashes_and_unknown_names_are_told() -> None:
    clash = SINGLE + "part other {\n    var x[v in nodes]: binary\n}\nformulation mine {\n    use busy, other\n}\n"
    assert messages(clash) == ["'mine' has a variable 'x' already"]
    assert messages(SINGLE + "formulation mine {\n    use bussy\n}\n")[0] == "there is no part 'bussy'"
    assert messages(SINGLE + SINGLE) == ["part 'parted' is there twice", "part 'busy' is there twice"]
    unknown = SINGLE + "formulation mine {\n    use busy\n    under order fifo: use busy\n}\n"
    assert messages(unknown) == ["'order' is never 'fifo'"]
    assert messages("extend max_lood {\n    use busy\n}\n") == ["there is no formulation 'max_lood' to extend"]


def test_variables_that_only_other_communication_models_need_are_left_out() -> None:
    for schedule, there, absent in (
        ("pipedream", "crosses", ("read", "written")),
        ("duplex", "read", ("crosses",)),
        ("gpipe", "read", ("crosses",)),
    ):
        spec = loads(SPEC + f"schedule {schedule}\nminimize time_per_sample\n")
        program = build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations())).program
        assert there in program.variables
        assert not program.variables.keys() & {*absent, "used", "moved"}


def test_names_within_parts_are_free_for_a_spec() -> None:
    """A variable and a definition by names that parts define: those of the parts mean what they did."""
    text = """define computing(d in devices) = 100 * load(d)
extend max_load {
    var busy[d in devices]: binary
    subject to
        marked: forall v in nodes, d in devices: busy[d] >= x[v, d]
        few: sum(d in devices: busy[d]) <= 1
        long: forall d in devices: computing(d) <= 900 ms
}
minimize time_per_sample
"""
    answer = loads(SPEC + text).solve(solver="highs", method="program")
    assert answer.value == pytest.approx(0.009)


def test_soft_keywords_remain_names() -> None:
    text = SPEC + "param use = 2\nparam under = 1\nset part = nodes where memory > 0\nminimize use * time_per_sample\n"
    text += "subject to\n    a: forall use in part: under * count(d in devices: use on d) == 1\n"
    assert loads(text).solve().termination == "optimal"


def test_what_is_printed_is_read_the_same() -> None:
    for path in model_files():
        module = parse(Source(path.name, path.read_text(encoding="utf-8")))
        printed = "\n".join(map(statement, module.statements))
        assert "\n".join(map(statement, parse(Source("again", printed)).statements)) == printed


def test_formulations_are_parsed_when_a_program_is_asked_for() -> None:
    model_library._module.cache_clear()
    spec = loads(SPEC + "minimize time_per_sample")
    parsed = model_library._module.cache_info().currsize
    spec.check()
    assert parsed < model_library._module.cache_info().currsize < len(model_files())
