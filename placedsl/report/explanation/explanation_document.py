"""An explanation as one JSON object: docs/explain.md says what it holds."""

from __future__ import annotations

from typing import Any

from placedsl.diagnostics import Span
from placedsl.report.explanation.explain import Explanation

SCHEMA = 1


def explanation_document(found: Explanation, elaborated: str) -> dict[str, Any]:
    """All that ``explain`` prints, as plain data; ``elaborated`` is the elaborated spec."""
    fit = found.fit
    facts: dict[str, str] = {}
    for word, text in found.facts:  # there may be several notes
        facts[word] = f"{facts[word]}; {text}" if word in facts else text
    return {
        "schema": SCHEMA,
        "elaborated": elaborated,
        "facts": facts,
        "path": found.path,
        "decision": {
            "steps": [step.strategy.name for step in found.decision.steps],
            "beside": list(found.decision.beside),
            "not_taken": [{"name": one.name, "reasons": list(one.reasons)} for one in found.decision.not_taken],
        },
        "dynamic_programming": {
            "fits": not fit.against,
            "exact": fit.exact,
            "against": list(fit.against),
            "beyond": list(fit.beyond),
            "ideals": fit.ideals,
            "presolve": fit.presolve,
            "budget": found.budget,
        },
        "plugins": [{"name": one.name, "plugin": one.plugin, "against": list(one.against)} for one in found.candidates],
        "program": _program(found),
        "parts": [
            {
                "kind": one.kind,
                "name": one.name,
                **_place(one.span),
                "rows": one.rows,
                "columns": one.columns,
                "entries": one.entries,
                "native": one.native,
                "smallest": one.smallest or None,
                "largest": one.largest or None,
                "seconds": round(one.seconds, 6),
                "bytes": one.bytes,
            }
            for one in found.contributions
        ],
        "lowerings": [
            {
                "name": note.constraint,
                **_place(note.span),
                "rewrite": note.rewrite,
                "instances": note.instances,
                "big_m": note.big_m or None,
                "because": note.because or None,
            }
            for note in found.lowerings
        ],
        "warnings": [
            {"name": w.name, **_place(w.span), "ratio": w.ratio, "message": w.message, "hint": w.hint}
            for w in found.warnings
        ],
    }


def _program(found: Explanation) -> dict[str, Any] | None:
    """Null where it is too large to be stated."""
    linear, formulation = found.program, found.formulation
    if linear is None or formulation is None:
        return None
    return {
        "needed": found.needed,
        "formulation": formulation.name,
        "solver": found.solver,
        "native": {name: list(kinds) for name, kinds in found.native},
        "columns": linear.columns,
        "integer_columns": int(linear.integer.sum()),
        "rows": linear.rows,
        "entries": len(linear.column),
        "units": found.units,
        "nodes": found.nodes,
    }


def _place(span: Span | None) -> dict[str, Any]:
    return {"file": None if span is None else span.source.name, "line": None if span is None else span.line}
