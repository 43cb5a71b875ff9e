"""What a terminal shows of a timeline."""

from __future__ import annotations

import math
from math import fsum

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from placedsl.report.task_names import because, name_of, place_of, rules_of
from placedsl.report.text import tables
from placedsl.report.text.plan_table import ranges
from placedsl.report.text.summary import amount
from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.sample import SampleTimeline, Wait
from placedsl.units import DATA, NUMBER, TIME, Dimension, show

#: So many steps of the critical path are shown at its beginning, and at its end.
_SHOWN = 15


def print_timeline(timeline: PipelineTimeline | SampleTimeline, console: Console) -> None:
    """The measures, then of a pipeline its devices; of one sample its critical path and what each row waits for."""
    for line in measures(timeline):
        console.print(escape(line), highlight=False)
    if isinstance(timeline, PipelineTimeline):
        tables.print_table(_devices(timeline) if timeline.memory is None else _stages(timeline), console)
    else:
        tables.print_table(_path(timeline), console)
        console.print()
        tables.print_table(_rows(timeline), console)


def measures(timeline: PipelineTimeline | SampleTimeline) -> list[str]:
    """What is measured on the whole run, in words."""
    return _of_sample(timeline) if isinstance(timeline, SampleTimeline) else _of_pipeline(timeline)


def _devices(timeline: PipelineTimeline) -> Table:
    """The devices that are used: load, idle time, and what is in flight."""
    problem = timeline.problem
    time = TIME if problem.graph.time_in_seconds else NUMBER
    table = tables.table()
    sized = bool((timeline.bytes_in_flight > 0).any())
    headings = ["device", "load", "idle", "pieces", "samples in flight", "tensors in flight"]
    for heading in [*headings, *(["bytes in flight"] if sized else [])]:
        table.add_column(heading, justify="left" if heading == "device" else "right")
    for d, device in enumerate(problem.machine.devices):
        count = timeline.pieces(d)
        if not count:
            continue
        size = float(timeline.bytes_in_flight[d])
        row = [escape(device.name), amount(float(timeline.loads[d]), time), f"{timeline.idle[d]:.1%}", str(count)]
        row += [str(timeline.device_samples_in_flight[d]), str(timeline.tensors_in_flight[d])]
        row += ["-" if math.isnan(size) else show(size, DATA)] if sized else []
        table.add_row(*row)
    return table


def _stages(timeline: PipelineTimeline) -> Table:
    """The stages of a plan, whose devices all do alike: load, idle time, and what is held at once."""
    problem = timeline.problem
    assert timeline.memory is not None
    time = TIME if problem.graph.time_in_seconds else NUMBER
    table = tables.table()
    for heading in ("devices", "load", "idle", "samples in flight", "memory"):
        table.add_column(heading, justify="left" if heading == "devices" else "right", overflow="fold")
    for leader in timeline.work.groups:
        devices = list(timeline.sharing(leader))
        names = ", ".join(ranges([problem.machine.devices[d].name for d in devices]))
        idle, flight = timeline.idle[devices].mean(), timeline.device_samples_in_flight[devices].max()
        cells = (names, amount(float(timeline.loads[leader]), time), f"{idle:.1%}", str(flight))
        table.add_row(*map(escape, [*cells, show(float(timeline.memory[devices].max()), DATA)]))
    return table


def _of_pipeline(timeline: PipelineTimeline) -> list[str]:
    """What is measured on the pipeline as a whole, in words."""
    time = TIME if timeline.problem.graph.time_in_seconds else NUMBER
    batches = f" in batches of {timeline.microbatches}" if timeline.microbatches else ""
    count = f"{timeline.samples} sample" + ("" if timeline.samples == 1 else "s")
    flight = f"{timeline.samples_in_flight} sample" + ("" if timeline.samples_in_flight == 1 else "s")
    return [
        f"{timeline.schedule}: {count}{batches} take {amount(timeline.total, time)}",
        f"  {_steady(timeline, time)}",
        f"  ramp-up {amount(timeline.ramp_up, time)}, bubble {timeline.bubble:.1%}, at most {flight} in flight",
    ]


def _steady(timeline: PipelineTimeline, time: Dimension) -> str:
    """The time per sample, and how far it is from the largest load."""
    largest = "the largest forward and backward load together" if timeline.by_pass else "the largest load"
    if not math.isfinite(timeline.time_per_sample):
        return f"too few samples for a steady state; {largest} is {amount(timeline.largest_load, time)}"
    where = "over whole batches" if timeline.microbatches else "in the steady state"
    out = f"time per sample = {amount(timeline.time_per_sample, time)} {where}"
    if abs(timeline.time_per_sample - timeline.largest_load) <= 5e-7 * timeline.largest_load:
        return f"{out}: {largest}"
    above = timeline.time_per_sample / timeline.largest_load - 1
    side = "above" if above > 0 else "below"
    return f"{out}, {abs(above):.2%} {side} {largest}, {amount(timeline.largest_load, time)}"


def _of_sample(timeline: SampleTimeline) -> list[str]:
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
    table, time = tables.table(), _dimension(timeline)
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
    table, time = tables.table(), _dimension(timeline)
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
