"""An exporter: the graph for Graphviz, each operator in the colour of the device that an answer places it on."""

import json

from placedsl import Answer

COLOURS = ("#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6", "#fb9a99", "#ffff99", "#1f78b4", "#33a02c")


def export(answer: Answer) -> str:
    """The text of a ``.dot`` file; operators are white where there is no placement."""
    devices = [device.name for device in answer.problem.machine.devices]
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(devices)}
    lines = ["digraph placement {", "    node [style=filled, shape=box, fillcolor=white]"]
    for node, known in answer.graph().nodes(data=True):
        device = known["device"]
        label = json.dumps(f"{known['name']}\n{device or ''}".strip(), ensure_ascii=False)
        filled = f", fillcolor={json.dumps(colour[device])}" if device else ""
        lines.append(f"    {json.dumps(str(node), ensure_ascii=False)} [label={label}{filled}]")
    for producer, reader in answer.graph().edges:
        lines.append(f"    {json.dumps(str(producer))} -> {json.dumps(str(reader))}")
    return "\n".join([*lines, "}", ""])
