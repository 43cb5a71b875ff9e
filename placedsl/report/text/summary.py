"""What a terminal shows of an answer or an evaluation."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from placedsl.evaluation.evaluate import Evaluation
from placedsl.planner.answer import Answer
from placedsl.problem.plan import sharing
from placedsl.problem.problem import Labels, Problem
from placedsl.report.text import tables
from placedsl.report.text.plan_table import print_stages
from placedsl.units import DATA, NUMBER, TIME, Dimension, show

#: So many values of one variable are shown.
_MOST_SHOWN = 12
#: Of graphs this small the nodes of each device are named.
_MOST_NAMED = 12
#: The length of the longest bar.
_BAR = 16
#: Terminations in words.
WORDS = {
    "optimal": "optimal", "gap_reached": "within the gap", "time_limit": "time limit", "interrupted": "interrupted",
    "ended": "ended without a proof",
    "infeasible": "infeasible", "unbounded": "unbounded", "error": "error",
}  # fmt: skip


def amount(value: float, dimension: Dimension) -> str:
    """A value with its unit, or a dash where there is none."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.6g}" if dimension == NUMBER else show(value, dimension)


def print_answer(answer: Answer, console: Console) -> None:
    """Termination, objectives with bounds, a table of devices."""
    problem = answer.problem
    path = f"{answer.method}" + (f", {answer.solver}" if answer.solver else "")
    by = f" ({path}, {answer.seconds['total']:.2f} s)" if answer.method != "none" else ""
    ended = "ended without a placement" if answer.termination == "ended" and not answer.evaluation else ""
    said = f": {escape(answer.message)}" if answer.message else ""
    console.print(f"[bold]{ended or WORDS[answer.termination]}[/bold]{by}{said}", highlight=False)
    if answer.evaluation is None:
        if math.isfinite(answer.bound) and answer.termination != "infeasible":
            goal = problem.objectives[0]
            console.print(f"  {escape(goal.name)} is at least {amount(answer.bound, goal.dimension)}")
        return
    for k, goal in enumerate(problem.objectives):
        value, bound = answer.evaluation.objectives[k], answer.bounds[k]
        distance = answer.gaps[k]
        known = f"bound {amount(bound, goal.dimension)}, gap {distance:.2%}"
        proven = "proven optimal" if answer.proven(k) else known
        shown = f"[bold]{amount(value, goal.dimension)}[/bold]"
        console.print(f"  {escape(goal.name)} = {shown}  ({proven})", highlight=False)
    print_own(problem, answer.evaluation, console)
    print_devices(problem, answer.evaluation, console)
    for note in answer.notes:
        console.print(f"  note: {escape(note)}", highlight=False)


def print_own(problem: Problem, evaluation: Evaluation, console: Console) -> None:
    """What soft constraints cost, and the values of the spec's own variables (those that are not zero)."""
    goal = problem.objectives[0]
    for one, cost in zip(problem.soft_constraints, evaluation.soft_costs, strict=False):
        said = "holds" if cost == 0.0 else f"costs {amount(cost, goal.dimension)}"
        console.print(f"  soft {escape(one.name)} {said}", highlight=False)
    for name, text in own_values(problem, evaluation):
        console.print(f"  {escape(name)} = {escape(text)}", highlight=False)


def own_values(problem: Problem, evaluation: Evaluation) -> list[tuple[str, str]]:
    """Names with their indices and values, zeros left out."""
    out = []
    labels = Labels(problem)
    for name, variable in problem.variables.items():
        if name == "copies" and problem.execution.options is not None:
            continue  # the table of stages says it
        shown = [(k, v) for k, v in evaluation.values.get(name, {}).items() if v != 0.0 or not k]
        for key, value in shown[:_MOST_SHOWN]:
            index = ", ".join(labels.of(sort, position) for sort, position in zip(variable.sorts, key, strict=True))
            out.append((f"{name}[{index}]" if index else name, amount(value, variable.dimension)))
        if len(shown) > _MOST_SHOWN:
            out.append((name, f"… {len(shown) - _MOST_SHOWN} more that are not zero"))
    return out


def print_devices(problem: Problem, evaluation: Evaluation, console: Console) -> None:
    """Load, memory and number of nodes of each device, of a plan each stage."""
    if problem.execution.options is not None:
        print_stages(problem, evaluation, console)
        return
    time = TIME if problem.graph.time_in_seconds else NUMBER
    table = tables.table()
    named = problem.graph.written.nodes <= _MOST_NAMED
    for heading in ("device", "load", "memory", "nodes", "", ""):
        left = heading in ("device", "")
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    rows = []
    most = max(evaluation.loads, default=0.0) or 1.0
    block = "#" if console.options.ascii_only else "█"
    leader = sharing(problem, evaluation)
    for i, device in enumerate(problem.machine.devices):
        first = leader.get(i, i)  # a copy does as much, and holds the same
        load, memory = evaluation.loads[first], evaluation.memory[first]
        limit = memory_limit(problem, evaluation, first, device.memory)
        held = problem.graph.members(evaluation.nodes[first])
        count = str(len(held))
        names = ", ".join(str(problem.graph.written.ids[v]) for v in held) if named else ""
        if first != i:
            names = f"with {problem.machine.devices[first].name}"
        rows.append((load, (device.name, amount(load, time), show(memory, DATA) + limit, count, names)))
    taken, named_beside = _width([cells for _, cells in rows]), True
    if taken > tables.WIDTH:  # the names of the nodes stand below
        taken, named_beside = _width([(*cells[:-1], "") for _, cells in rows]), False
    longest = next((length for length in (_BAR, _BAR // 2) if taken + 2 + length <= tables.WIDTH), 0)
    for load, (*cells, names) in rows:
        bar = block * round(longest * load / most)
        table.add_row(*map(escape, cells), bar, escape(names) if named_beside else "")
    tables.print_table(table, console)
    for _, (name, *_, names) in rows if not named_beside else ():
        if names:
            listed = textwrap.wrap(
                f"{name}: {names}", tables.WIDTH, initial_indent="  ", subsequent_indent="    ",
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
            console.print("\n".join(listed), highlight=False, markup=False, soft_wrap=True)


def memory_limit(problem: Problem, evaluation: Evaluation, device: int, memory: float) -> str:
    """What stands after the memory that a device's nodes occupy: how much there is, and how long the rest streams."""
    limit = "" if math.isinf(memory) else f" of {show(memory, DATA)}"
    streamed = evaluation.streamed[device] if evaluation.streamed else 0.0
    time = TIME if problem.graph.time_in_seconds else NUMBER
    return f"{limit}, streams {amount(streamed, time)}" if streamed else limit


def _width(rows: Sequence[tuple[str, ...]]) -> int:
    """The columns that the table takes without bars, where lists of names are broken at blanks."""
    *columns, names = zip(("", "", "", "nodes", ""), *rows, strict=True)
    taken = sum(2 + max(map(len, column)) for column in columns)
    return taken + 2 + max(len(word) for text in names for word in text.split(" "))


def print_evaluation(problem: Problem, evaluation: Evaluation, console: Console) -> None:
    """Objectives, devices and what is violated."""
    for goal, value in zip(problem.objectives, evaluation.objectives, strict=True):
        console.print(f"  {escape(goal.name)} = [bold]{amount(value, goal.dimension)}[/bold]", highlight=False)
    print_own(problem, evaluation, console)
    print_devices(problem, evaluation, console)
    if not evaluation.violations:
        console.print("  every constraint holds", highlight=False)
    for violation in evaluation.violations:
        place = f" ({violation.span})" if violation.span else ""
        console.print(
            f"  [bold]violated[/bold] {escape(f'{violation.rule}: {violation.message}{place}')}", highlight=False
        )


def printed(show_on: Callable[[Console], None]) -> Text:
    """What the command prints, for ``rich`` to print anywhere."""
    paper = io.StringIO()
    show_on(Console(file=paper, width=120, force_terminal=True, color_system="standard"))
    return Text.from_ansi(paper.getvalue().rstrip("\n"))
