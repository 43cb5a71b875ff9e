"""The formulations of a spec: those that it writes or extends, and those of ``models/`` for its execution model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from placedsl.diagnostics import Diagnostic, InputError, nearest
from placedsl.language.checking.schedule_vocabulary import of_every_schedule
from placedsl.language.checking.vocabulary import Vocabulary, with_clusters
from placedsl.language.elaboration.composition import Composition, model_for, renamed, scopes, within
from placedsl.language.elaboration.formulation_clauses import Setting, check_formulation
from placedsl.language.elaboration.model_library import aliases, derived, models, parts
from placedsl.language.syntax import statements as syntax
from placedsl.problem.formulation import Formulation


def formulations_of_spec(statements: Sequence[syntax.Statement], setting: Setting) -> Callable[[], list[Formulation]]:
    """What gives every formulation: those that a spec writes or extends (checked now), then the others of ``models/``.

    Formulations speak of the contracted graph: they see the parameters of a spec, not its sets and variables.
    """
    written = [s for s in statements if isinstance(s, syntax.Formulation)]
    own_parts: dict[str, syntax.Part] = {}
    for statement in (s for s in statements if isinstance(s, syntax.Part)):
        name, found = statement.name, setting.found
        if name.text in own_parts:
            found.append(Diagnostic(f"part '{name.text}' is there twice", name.at.span))
        own_parts[name.text] = statement
    before = len(setting.found)
    composed: dict[str, syntax.Formulation] = {}
    if written:  # otherwise models/ is parsed when a program is asked for
        named = models() | {s.name.text: s for s in written if not s.extends}
        others = aliases() | {s.name.text: s for s in statements if isinstance(s, syntax.Alias)}
        composed = _composed(written, named, others, {**parts(), **own_parts}, setting)
    vocabulary = setting.words
    plain = set(vocabulary.sets) & {
        "nodes", "forward", "backward", "devices", "accelerators", "hosts", "tensors", "edges", "reads",
        *vocabulary.families,
    }  # fmt: skip
    decided = {"copies": vocabulary.variables["copies"]} if setting.chosen["parallelism"] != "none" else {}
    full = with_clusters(replace(vocabulary, sets={n: vocabulary.sets[n] for n in plain}))
    words = replace(of_every_schedule(full), variables=decided, tables={})
    inner = replace(setting, words=words)
    whole = composed if len(setting.found) == before else {}  # of what is incomplete more would be told wrong
    checked = [replace(check_formulation(s, inner, vocabulary), own=True) for s in whole.values()]
    return partial(_all, checked, composed, inner, vocabulary)  # which can be pickled


def _all(
    checked: list[Formulation], composed: Mapping[str, syntax.Formulation], inner: Setting, vocabulary: Vocabulary
) -> list[Formulation]:
    """The formulations of the spec, and those of the library that it does not change."""
    return checked + _others(composed, inner, vocabulary)


def _composed(
    written: Sequence[syntax.Formulation],
    named: Mapping[str, syntax.Formulation],
    others: Mapping[str, syntax.Alias],
    known: Mapping[str, syntax.Part],
    setting: Setting,
) -> dict[str, syntax.Formulation]:
    """The formulations that a spec writes and extends, by name, put together from their parts."""
    found = setting.found
    out: dict[str, syntax.Formulation] = {}
    compositions: dict[str, Composition] = {}
    follows = derived().keys() & setting.words.quantities.keys()

    def compose(statement: syntax.Formulation) -> None:
        name = statement.name.text
        compositions[name] = Composition(known, model_for(statement, setting.chosen), found, follows)
        out[name] = compositions[name].formulation(statement)

    for statement in written:
        if not statement.extends:
            if statement.name.text in out:
                found.append(Diagnostic(f"formulation '{statement.name.text}' is there twice", statement.name.at.span))
            compose(statement)
    for statement in written:
        name = statement.name.text
        if not statement.extends:
            continue
        if name not in out:
            alias = others.get(name) if name not in named else None
            if alias is not None and alias.of.text in named:
                compose(renamed(alias, named[alias.of.text]))
            elif name in named:
                compose(named[name])
            else:
                hint = nearest(name, [*named, *others])
                found.append(Diagnostic(f"there is no formulation '{name}' to extend", statement.name.at.span, hint))
                continue
        out[name] = compositions[name].extension(out[name], statement)
    return out


def _others(own: Mapping[str, syntax.Formulation], setting: Setting, vocabulary: Vocabulary) -> list[Formulation]:
    """The formulations of ``models/`` that are for the execution model of the spec."""
    out = []
    for name, statement in models().items():
        if name in own or not any(within(one, setting.chosen) for one in scopes(statement)):
            continue
        found: list[Diagnostic] = []
        composed = Composition(parts(), setting.chosen, found).formulation(statement)
        plain = replace(setting, parameters={}, definitions={}, found=found)
        out.append(check_formulation(composed, plain, vocabulary))
        if found:
            raise InputError(found)
    return out
