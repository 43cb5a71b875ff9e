"""PipeDream's profiles (``graph.txt``): one line a layer with its forward and backward time, then its edges.

Times are milliseconds, sizes bytes.  The profile is that of a training step, and so is the graph that is
read: every layer but the inputs becomes a forward and a backward node (attribute ``layer`` is the same for
both), and the backward edges run against the forward ones, carrying gradients as large as the activations.
The time of an input is that of loading data, which PipeDream drops.  Nothing is known of hosts.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, Source, Span
from placedsl.graph.build import Place, build
from placedsl.graph.graph import Graph

_NODE = re.compile(r"(\w+) -- (.*) -- (forward_compute_time=.*)$")
_EDGE = re.compile(r"\t(\w+) -- (\w+)\s*$")
_FIELD = re.compile(r"(\w+)=(\[[^\]]*\]|[^,\s]*)")
_FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")


def looks_like(text: str) -> bool:
    """Whether a text is of this format."""
    return re.match(r"\s*\w+ -- .* -- forward_compute_time=", text) is not None


def _value(text: str) -> float | None:
    """A number, or the sum of a list ``[a; b; c]``."""
    try:
        return sum(float(part) for part in text.strip("[]").split(";"))
    except ValueError:
        return None


def read(source: Source) -> Graph:
    """Read a profile; raises InputError with every defect."""
    found: list[Diagnostic] = []
    layers: list[tuple[str, str, dict[str, float], Span]] = []
    edges: list[tuple[str, str]] = []
    edge_spans: list[Span] = []
    for line, span in source.lines():
        if edge := _EDGE.match(line):
            edges.append((edge[1], edge[2]))
            edge_spans.append(span)
        elif node := _NODE.match(line):
            values: dict[str, float] = {}
            texts = dict(_FIELD.findall(node[3]))
            for name in _FIELDS:
                value = _value(texts.get(name, ""))
                if value is None:
                    found.append(Diagnostic(f"'{name}' is missing or not a number", span))
                values[name] = value if value is not None else 0.0
            layers.append((node[1], node[2], values, span))
        else:
            expected = "'name -- layer -- forward_compute_time=…' or a tab and 'name -- name' is expected"
            found.append(Diagnostic("this is neither a layer nor an edge", span, expected))
    names = [name for name, *_ in layers]
    times = Counter(names)
    for name, *_, span in layers:
        if times[name] > 1:
            found.append(Diagnostic(f"node '{name}' is there twice", span, "every id is needed once"))
    if found:
        raise InputError(found)
    inputs = {name for name, description, *_ in layers if description.startswith("Input")}
    with_backward = [layer for layer in layers if layer[0] not in inputs]
    known = set(names)
    activation = {name: values["activation_size"] for name, _, values, _ in layers}
    ids = names + [f"{name}.backward" for name, *_ in with_backward]
    time = [0.0 if name in inputs else v["forward_compute_time"] for name, _, v, _ in layers]
    time += [v["backward_compute_time"] for _, _, v, _ in with_backward]
    host = [0.0 if name in inputs else np.inf for name in names] + [np.inf] * len(with_backward)
    spans = [span for *_, span in layers] + [span for *_, span in with_backward]
    memory = [v["activation_size"] + v["parameter_size"] for _, _, v, _ in [*layers, *with_backward]]
    # Sent once a sample, when the gradients are known.
    parameters = np.array([0.0] * len(names) + [values["parameter_size"] for _, _, values, _ in with_backward])
    pairs, sizes, places = list(edges), [activation.get(u, 0.0) for u, _ in edges], list(edge_spans)
    readers = {u for u, _ in edges}
    for (u, v), span in zip(edges, edge_spans, strict=True):
        if u in known and v in known and u not in inputs:
            pairs.append((f"{v}.backward", f"{u}.backward"))
            sizes.append(activation[u])
            places.append(span)
    for name, _, values, span in with_backward:
        if name not in readers:
            pairs.append((name, f"{name}.backward"))
            sizes.append(values["activation_size"])
            places.append(span)

    def locate(place: Place) -> Span:
        if place.index is None:
            return source.whole()
        return spans[place.index] if place.kind == "node" else places[place.index]

    layer = np.array(names + [name for name, *_ in with_backward], dtype=object)
    texts_of = [d for _, d, *_ in layers] + [d for _, d, *_ in with_backward]
    backward = np.arange(len(ids)) >= len(names)
    return build(
        source=source, ids=ids, names=ids, time={"accelerator": np.array(time) * 1e-3, "host": np.array(host)},
        memory=np.array(memory), backward=backward,
        attributes={"layer": layer, "operator": np.array(texts_of, dtype=object), "parameters": parameters},
        edges=pairs, edge_time=None, edge_bytes=np.array(sizes, dtype=float), time_in_seconds=True, locate=locate,
    )  # fmt: skip
