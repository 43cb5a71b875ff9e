"""Names of a spec that mean something else already."""

from __future__ import annotations

from placedsl.language.checking.vocabulary import SETS, Vocabulary
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.spec_statements import SpecStatements
from placedsl.language.syntax import statements as syntax
from placedsl.problem.problem import BUILT_IN


def report_clashes(spec: SpecStatements, words: Vocabulary) -> None:
    """Report each name that is taken, by the vocabulary or by an earlier statement."""
    named: list[tuple[str, syntax.Word]] = [("parameter", s.name) for s in spec.all(syntax.Param)]
    named += [("set", s.name) for s in spec.all(syntax.SetOf)]
    named += [("variable", s.name) for s in spec.all(syntax.Variable)]
    named += [("definition", s.name) for s in spec.all(syntax.Define)]
    named += [("constraint", s.name) for s in spec.all(syntax.ConstraintDefinition) if s.name.text not in BUILT_IN]
    nodes = spec.nodes
    known: dict[str, tuple[str, syntax.Word]] = {}
    for kind, word in named:
        name = word.text
        first = known.setdefault(name, (kind, word))
        if name in SETS or (name in ("links", "hops") and name in words.sets):
            spec.error(word.at, f"'{name}' is the name of a set already", "choose another name")
        elif words.sets.get(name) == ("cluster",):
            spec.error(word.at, f"'{name}' is the name of a cluster already", "choose another name")
        elif name in words.variables:
            spec.error(word.at, f"'{name}' is how many devices hold a stage", "choose another name")
        elif name in words.families:
            spec.error(word.at, f"'{name}' is the name of a device already", "choose another name")
        elif name in words.quantities or name == "abs":
            spec.error(word.at, f"'{name}' is a quantity already", "choose another name")
        elif name in nodes:
            spec.error(word.at, f"'{name}' is a node of the graph already", "choose another name")
        elif first[1] is not word and first[0] != kind and {first[0], kind} != {"definition", "constraint"}:
            hint = first_at(word.at, first[1].at)
            spec.error(word.at, f"'{name}' is the name of a {first[0]} already", hint)
