"""What a terminal shows of one sample's run."""

from __future__ import annotations

from math import fsum

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from placedsl.report.latency_names import because, name_of, place_of, rules_of
from placedsl.report.summary import amount
from placedsl.timeline.sample import SampleTimeline, Wait
from placedsl.units import NUMBER, TIME, Dimension

#: So many steps of the critical path are shown at its beginning, and at its end.
_SHOWN = 15


def print_sample(timeline: SampleTimeline, console: Console) -> None:
    """Latency, critical path, and what each device, port and link does and waits for."""
    for line in measures(timeline):
        console.print(escape(line), highlight=False)
    console.print(_path(timeline), highlight=False)
    console.print()
    console.print(_rows(timeline), highlight=False)


def measures(timeline: SampleTimeline) -> list[str]:
    """The latency, and what the critical path is made of."""
    time = _dimension(timeline)
    tasks = [timeline.tasks[k] for k in timeline.critical]
    moving = fsum(t.finish - t.start if t.kind == "transfer" else t.receive + t.send for t in tasks)
    computing = fsum(t.finish - t.start for t in tasks) - moving
    parts = [f"{amount(computing, time)} of computation", f"{amount(moving, time)} of transfers"]
    pauses = timeline.latency - computing - moving
    parts += [f"{amount(pauses, time)} of pauses"] if pauses > 1e-9 * timeline.latency else []
    return [
        f"{rules_of(timeline)}: one sample takes {amount(timeline.latency, time)}",
        f"  critical path: {len(tasks)} step{'' if len(tasks) == 1 else 's'}, {', '.join(parts)}",
    ]


def _dimension(timeline: SampleTimeline) -> Dimension:
    return TIME if timeline.problem.graph.time_in_seconds else NUMBER


def _path(timeline: SampleTimeline) -> Table:
    """The critical path, step by step."""
    table, time = Table(box=None, padding=(0, 2, 0, 2)), _dimension(timeline)
    for heading in ("start", "finish"):
        table.add_column(heading, justify="right")
    for heading in ("what", "where", "waits for"):
        table.add_column(heading, overflow="fold")
    path = timeline.critical
    for number, k in enumerate(path):
        if len(path) > 2 * _SHOWN + 1 and _SHOWN <= number < len(path) - _SHOWN:
            if number == _SHOWN:
                table.add_row("", "", f"… {len(path) - 2 * _SHOWN} more …")
            continue
        task = timeline.tasks[k]
        what = name_of(timeline, task)
        if task.kind == "call":
            what += f", {len(task.nodes)} node{'' if len(task.nodes) == 1 else 's'}"
        cells = [amount(task.start, time), amount(task.finish, time), what, place_of(timeline, task)]
        table.add_row(*map(escape, [*cells, because(timeline, timeline.wait(k))]))
    return table


def _rows(timeline: SampleTimeline) -> Table:
    """Devices, then ports or links: how long they are busy, and what they wait for longest."""
    table, time = Table(box=None, padding=(0, 2, 0, 2)), _dimension(timeline)
    for heading in ("", "tasks", "busy", "share", "waits", "longest for"):
        table.add_column(heading, justify="left" if heading in ("", "longest for") else "right", overflow="fold")
    for r, row in enumerate(timeline.rows):
        if not row.tasks:
            continue
        busy = timeline.busy(r)
        waits = [(begin, end, wait) for begin, end, wait in timeline.gaps(r) if wait is not None]
        share = f"{busy / timeline.latency:.1%}" if timeline.latency else "-"
        longest = max(waits, key=lambda gap: gap[1] - gap[0], default=None)
        reason = "" if longest is None else f"{amount(longest[1] - longest[0], time)}: {_last(timeline, longest[2])}"
        waiting = fsum(end - begin for begin, end, _ in waits)
        cells = [row.name, str(len(row.tasks)), amount(busy, time), share, amount(waiting, time), reason]
        table.add_row(*map(escape, cells))
    return table


def _last(timeline: SampleTimeline, wait: Wait) -> str:
    return because(timeline, wait) or "nothing"
