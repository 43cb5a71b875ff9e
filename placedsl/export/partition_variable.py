"""Layers per stage in an environment variable: the form that vLLM and SGLang share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from placedsl.diagnostics import Source, nearest
from placedsl.export.layout import Layout
from placedsl.export.model import Model, Split, counts_of, setting, wrong
from placedsl.export.servers import visible

_SIZES = re.compile(r"--(?:tensor-parallel-size|tp-size|tensor-parallel|tp)[ =](\d{1,9})|-tp[ =](\d{1,9})")


def text(layout: Layout, launch: Sequence[str], variable: str, each: Sequence[str] = ()) -> str:
    """A file of environment variables: what it was made of, how it is launched, layers per stage, devices;
    ``each``: the command of each node."""
    where = [f"{stage.devices[0]}" if len(stage.devices) == 1 else "+".join(stage.devices) for stage in layout.stages]
    lines = [
        f"# {layout.plan.spec}: {sum(layout.counts)} layers (by {layout.units.source}) on {', '.join(where)}",
        *launch,
        f"{variable}={','.join(map(str, layout.counts))}",
        *visible(layout, each),
    ]
    return "\n".join([*lines, ""])


def read(source: Source, model: Model, variable: str) -> Split:
    """The split of such a file, or of a text that is the value alone."""
    bare = source.text.strip()
    if "=" not in bare and "#" not in bare:
        value, place = bare, source.whole()
    else:
        found = setting(source.text, variable)
        if found is None:
            names = [line.partition("=")[0].strip() for line in source.text.splitlines() if "=" in line]
            raise wrong(f"this file does not set {variable}", source.whole(), nearest(variable, names))
        value, place = found[0], source.span(found[1], found[2])
    counts = counts_of(model, value, source, place)
    sizes = _SIZES.search(source.text)
    each = int(sizes[1] or sizes[2]) if sizes else 1
    return model.layers_in_stages(counts, model.ranks(len(counts), source.text, source, each))
