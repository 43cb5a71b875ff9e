"""What every built-in exporter makes of a plan, for pages."""

from __future__ import annotations

from dataclasses import dataclass

from placedsl.diagnostics import InputError
from placedsl.export.registry import built_in, exporter, files, refused
from placedsl.problem.plan import Plan


@dataclass(frozen=True)
class Texts:
    """Exports of a plan.

    ``files``    (name, text) of each file that is a text
    ``refused``  (runtime, first reason) of each runtime that cannot run the plan
    ``of_model``  the runtimes that can, and whose files are parts of the model's own file
    """

    files: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    of_model: tuple[str, ...] = ()


def texts(plan: Plan) -> Texts:
    """The exports of a plan to every runtime."""
    made, against, of_model = list[tuple[str, str]](), list[tuple[str, str]](), list[str]()
    for runtime in built_in():
        if reasons := refused(plan, runtime):
            against.append((runtime, reasons[0]))
        elif getattr(exporter(runtime), "NEEDS_MODEL", False):
            of_model.append(runtime)
        else:
            try:
                found = files(plan, runtime)
            except InputError as problem:
                against.append((runtime, problem.diagnostics[0].message.removeprefix(f"not for {runtime}: ")))
                continue
            made += [(f"{runtime}: {file}", text) for file, text in found.items() if isinstance(text, str)]
    return Texts(tuple(made), tuple(against), tuple(of_model))
