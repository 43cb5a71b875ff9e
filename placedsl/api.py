"""The Python face: load a spec, solve it, look at it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from placedsl.diagnostics import Source
from placedsl.language.elaborate import Elaborated, elaborate
from placedsl.language.parsing import parse, read_source
from placedsl.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from placedsl.incumbent import Progress
    from placedsl.results import Answer, Evaluation


class Spec:
    """A checked spec with its data: what :func:`load` gives."""

    def __init__(self, elaborated: Elaborated, read_seconds: float = 0.0) -> None:
        self.elaborated = elaborated
        self.read_seconds = read_seconds

    @property
    def problem(self) -> Problem:
        """The problem: graph, machine, objectives and rules as arrays and expressions."""
        return self.elaborated.problem

    def solve(
        self,
        *,
        solver: str | None = None,
        method: str | None = None,
        time_limit: float | None = None,
        gap: float | None = None,
        workers: int | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Find a placement; what is None is as the spec's ``solve`` block says, else the default.

        ``solver`` auto, cp-sat, highs, pyomo (or pyomo:NAME), mip, cvxpy; ``method`` auto, dp, program; of either also
        what plug-ins bring;
        ``time_limit`` seconds; ``gap`` relative; ``progress`` hears (value, bound, seconds).
        """
        from placedsl.planner import solve
        from placedsl.request import Request
        from placedsl.results import shown_answer

        request = Request(solver, method, time_limit, gap, workers, seed)
        found = solve(self.problem, self.elaborated.checked_formulations, request, progress, self.read_seconds)
        return shown_answer(found)

    def evaluate(self, placement: Mapping[str, str] | Sequence[int]) -> Evaluation:
        """What a placement costs and violates: node id to device name, or one device position a node."""
        from placedsl.cost.evaluate import evaluate
        from placedsl.placement import positions
        from placedsl.results import shown_evaluation

        given = positions(self.problem, placement) if isinstance(placement, Mapping) else list(placement)
        return shown_evaluation(self.problem, evaluate(self.problem, given))

    def check(self) -> None:
        """Ground the problem as solving would; InputError for what cannot be stated, as a product of two loads."""
        from placedsl.formulation import choose
        from placedsl.program.build import build
        from placedsl.request import Request, settled

        settled(self.problem, Request())
        build(self.problem, choose(self.problem, self.elaborated.checked_formulations()))

    def explain(self, *, solver: str | None = None, method: str | None = None) -> str:
        """The elaborated spec, and which path will be taken and why."""
        from placedsl.report.elaborated import elaborated
        from placedsl.report.explain import explain
        from placedsl.request import Request

        analysis = explain(self.problem, self.elaborated.checked_formulations, Request(solver, method))
        comment = "\n".join(f"# {line}".rstrip() for line in analysis.rstrip().split("\n"))
        return elaborated(self.elaborated) + "\n" + comment + "\n"

    def __repr__(self) -> str:
        problem = self.problem
        counts = f"{problem.graph.nodes} nodes, {len(problem.machine.devices)} devices"
        goals = " then ".join(o.name for o in problem.objectives)
        return f"<Spec {problem.name.strip('<>')}: {counts}, {len(problem.rules)} constraints; minimize {goals}>"

    def __rich__(self) -> str:
        from rich.markup import escape

        return escape(repr(self))

    def _repr_html_(self) -> str:
        from placedsl.report.notebook import spec_html

        return spec_html(self.problem)


def load(path: str | Path, parameters: Mapping[str, str] | None = None) -> Spec:
    """Read and check a ``.place`` file; InputError with every diagnostic when it cannot be used.

    ``parameters`` gives values (as texts, ``"16 GiB"``) to parameters of the spec.
    """
    began = time.monotonic()
    path = Path(path)
    return spec_of(read_source(path), path.parent, parameters, began=began)


def loads(text: str, folder: str | Path = ".", parameters: Mapping[str, str] | None = None) -> Spec:
    """Read and check a spec from a text; ``folder`` is where its file names start from."""
    return spec_of(Source("<text>", text), Path(folder), parameters)


def spec_of(
    source: Source,
    folder: Path,
    parameters: Mapping[str, str] | None = None,
    held: Mapping[str, Source] | None = None,
    began: float | None = None,
) -> Spec:
    """The checked spec of a source; ``held``: texts of graph files by name, ``began``: when reading began."""
    began = time.monotonic() if began is None else began
    elaborated = elaborate(parse(source), folder, parameters, held)
    return Spec(elaborated, time.monotonic() - began)
