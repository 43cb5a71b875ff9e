"""A timeline as one JSON object: measures, devices and pieces; what each piece did when is in the trace."""

from __future__ import annotations

from typing import Any

from placedsl.report.document import SCHEMA, finite
from placedsl.timeline.timeline import Timeline


def timeline_document(timeline: Timeline) -> dict[str, Any]:
    """The timeline as plain data; what is not known (no steady state, no sizes) is null.

    Times are in ``unit``: seconds, or empty where the workload's times have no unit.
    """
    problem, costs = timeline.problem, timeline.costs
    ids, devices = problem.graph.written.ids, problem.machine.devices
    pieces = timeline.pieces
    used = sorted({piece.device for piece in pieces})
    return {
        "schema": SCHEMA,
        "schedule": timeline.schedule,
        "samples": timeline.samples,
        "microbatches": timeline.microbatches or None,
        "unit": "s" if problem.graph.time_in_seconds else "",
        "total": timeline.total,
        "time_per_sample": finite(timeline.time_per_sample),
        "largest_load": timeline.largest_load,
        "ramp_up": timeline.ramp_up,
        "bubble": timeline.bubble,
        "samples_in_flight": timeline.samples_in_flight,
        "devices": [
            {
                "name": devices[d].name, "load": float(timeline.loads[d]), "idle": float(timeline.idle[d]),
                "samples_in_flight": int(timeline.device_samples_in_flight[d]),
                "tensors_in_flight": int(timeline.tensors_in_flight[d]),
                "bytes_in_flight": finite(float(timeline.bytes_in_flight[d])),
            }
            for d in used
        ],
        "pieces": [
            {
                "name": piece.name, "device": devices[piece.device].name, "backward": piece.backward,
                "nodes": [ids[v] for v in problem.graph.members(piece.nodes)],
                "reads": [pieces[q].name for q, reader in sorted(timeline.arcs) if reader == p],
                "receive": costs.receive[p], "compute": costs.compute[p], "send": costs.send[p],
            }
            for p, piece in enumerate(pieces)
        ],
    }  # fmt: skip
