"""What a terminal shows of a timeline."""

from __future__ import annotations

import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from placedsl.report.summary import amount
from placedsl.timeline.timeline import Timeline
from placedsl.units import DATA, NUMBER, TIME, Dimension, show


def print_timeline(timeline: Timeline, console: Console) -> None:
    """The measures of the whole pipeline, and a table of the devices that are used."""
    for line in measures(timeline):
        console.print(escape(line), highlight=False)
    problem = timeline.problem
    time = TIME if problem.graph.time_in_seconds else NUMBER
    table = Table(box=None, padding=(0, 2, 0, 2))
    sized = bool((timeline.bytes_in_flight > 0).any())
    headings = ["device", "load", "idle", "pieces", "samples in flight", "tensors in flight"]
    for heading in [*headings, *(["bytes in flight"] if sized else [])]:
        table.add_column(heading, justify="left" if heading == "device" else "right")
    for d, device in enumerate(problem.machine.devices):
        count = sum(piece.device == d for piece in timeline.pieces)
        if not count:
            continue
        size = float(timeline.bytes_in_flight[d])
        row = [escape(device.name), amount(float(timeline.loads[d]), time), f"{timeline.idle[d]:.1%}", str(count)]
        row += [str(timeline.device_samples_in_flight[d]), str(timeline.tensors_in_flight[d])]
        row += ["-" if math.isnan(size) else show(size, DATA)] if sized else []
        table.add_row(*row)
    console.print(table, highlight=False)


def measures(timeline: Timeline) -> list[str]:
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


def _steady(timeline: Timeline, time: Dimension) -> str:
    """The time per sample, and how far it is from the largest load."""
    largest = "the largest load" if timeline.schedule != "gpipe" else "the largest forward and backward load together"
    if not math.isfinite(timeline.time_per_sample):
        return f"too few samples for a steady state; {largest} is {amount(timeline.largest_load, time)}"
    where = "over whole batches" if timeline.microbatches else "in the steady state"
    out = f"time per sample = {amount(timeline.time_per_sample, time)} {where}"
    if abs(timeline.time_per_sample - timeline.largest_load) <= 5e-7 * timeline.largest_load:
        return f"{out}: {largest}"
    above = timeline.time_per_sample / timeline.largest_load - 1
    side = "above" if above > 0 else "below"
    return f"{out}, {abs(above):.2%} {side} {largest}, {amount(timeline.largest_load, time)}"
