"""Devices and links of a spec."""

from __future__ import annotations

from collections.abc import Iterable

from placedsl import expressions as core
from placedsl.diagnostics import nearest
from placedsl.language import syntax
from placedsl.language.checking import Checker
from placedsl.language.imports import first_at
from placedsl.language.vocabulary import DEVICE_ATTRIBUTES
from placedsl.machine.machine import Device, Kind, Link, Machine
from placedsl.units import BANDWIDTH, TIME, Dimension

_MOST_DEVICES = 10_000


def entry_values(
    checker: Checker, block: syntax.Block, known: dict[str, Dimension], what: str
) -> dict[str, tuple[float, syntax.Entry]]:
    """The entries of a block as numbers in SI; unknown, repeated and ill-dimensioned ones are reported."""
    out: dict[str, tuple[float, syntax.Entry]] = {}
    for entry in block:
        name = entry.name.text
        if name not in known:
            checker.error(entry.name, f"{what} has no '{name}'", nearest(name, known))
            continue
        if name in out:
            checker.error(entry.name, f"'{name}' is given twice")
            continue
        value, kind = checker.number(entry.value)
        if kind.kind == "error":
            continue
        if not isinstance(value, core.Constant):
            checker.error(entry.value, "a value known beforehand is expected here")
        elif kind.dimension != known[name]:
            example = {"memory": "16 GiB", "bandwidth": "25 GB/s", "latency": "2 us", "compute": "312 TFLOP/s",
                       "memory_bandwidth": "900 GB/s", "price": "2.5 USD/h", "gap": "1%", "workers": "4",
                       "seed": "1"}.get(name, "10 s")  # fmt: skip
            checker.error(entry.value, f"'{name}' is {known[name]}, this is {kind}", f"as in {name} = {example}")
        elif float(value.value) < 0:
            checker.error(entry.value, f"'{name}' cannot be negative")
        else:
            out[name] = (float(value.value), entry)
    return out


def devices(checker: Checker, statements: Iterable[syntax.DeviceFamily]) -> tuple[tuple[Device, ...], list[str]]:
    """All devices in order of declaration, and the family names (empty families included)."""
    out: list[Device] = []
    families: dict[str, syntax.DeviceFamily] = {}
    for statement in statements:
        name = statement.name.text
        if name in families:
            hint = first_at(statement.at, families[name].at)
            checker.error(statement.name, f"device '{name}' is declared twice", hint)
            continue
        families[name] = statement
        count = 1
        if statement.count is not None:
            given = checker.integer(statement.count, 0, _MOST_DEVICES, "the number of devices")
            if given is None:
                continue
            count = given
        values = {k: v for k, (v, _) in entry_values(checker, statement.block, DEVICE_ATTRIBUTES, "a device").items()}
        if statement.kind is None:
            checker.error(statement.name, f"is '{name}' an accelerator or a host?",
                          f"write device {name}: accelerator or device {name}: host")  # fmt: skip
            continue
        kind = statement.kind.text
        if kind not in ("accelerator", "host"):
            checker.error(statement.kind, f"'{kind}' is no kind of device", nearest(kind, ["accelerator", "host"]))
            continue
        memory = values.pop("memory", float("inf"))
        checked: Kind = "accelerator" if kind == "accelerator" else "host"
        for i in range(count):
            label = name if statement.count is None else f"{name}[{i + 1}]"
            out.append(Device(label, name, checked, memory, values))
    return tuple(out), list(families)


def machine(
    checker: Checker,
    all_devices: tuple[Device, ...],
    families: list[str],
    links: Iterable[syntax.LinkBetween],
    interconnects: list[syntax.Interconnect],
) -> Machine:
    """The machine with its links."""
    known: dict[str, Dimension] = {"bandwidth": BANDWIDTH, "latency": TIME}
    out: list[Link] = []
    counts = {f: sum(d.family == f for d in all_devices) for f in families}
    for statement in links:
        ends = []
        for end in (statement.source, statement.target):
            name = end.name.text
            if name not in counts:
                checker.error(end.name, f"there is no device '{name}'", nearest(name, counts))
                continue
            if end.index is not None:
                position = checker.integer(end.index, 1, counts[name], f"'{name}'")
                name = f"{name}[{position}]"
            ends.append(name)
        values = entry_values(checker, statement.block, known, "a link")
        if "bandwidth" not in values:
            # A wrong entry was told already, and may be it misspelt.
            if all(e.name.text in known and e.name.text != "bandwidth" for e in statement.block):
                checker.error(statement.source.name, "this link has no bandwidth", "as in { bandwidth = 25 GB/s }")
        elif not values["bandwidth"][0]:
            checker.error(values["bandwidth"][1].value, "a bandwidth of zero carries nothing")
        elif len(ends) == 2:
            latency = values["latency"][0] if "latency" in values else 0.0
            span = statement.source.name.at.span
            out.append(Link(ends[0], ends[1], statement.both, values["bandwidth"][0], latency, span))
    general = None
    for extra in interconnects[1:]:
        checker.error(extra.name or syntax.Word(extra.at, ""), "there is a second interconnect", "one is enough")
    for only in interconnects[:1]:
        values = entry_values(checker, only.block, known, "an interconnect")
        if values.get("bandwidth", (0.0,))[0] > 0:
            latency = values["latency"][0] if "latency" in values else 0.0
            place = only.at.span
            general = Link("", "", True, values["bandwidth"][0], latency, place)
        elif "bandwidth" in values:
            checker.error(values["bandwidth"][1].value, "a bandwidth of zero carries nothing")
        elif all(e.name.text in known and e.name.text != "bandwidth" for e in only.block):
            place_word = only.name or syntax.Word(only.at, "interconnect")
            checker.error(place_word, "this interconnect has no bandwidth", "as in { bandwidth = 25 GB/s }")
    return Machine(all_devices, tuple(out), general)
