"""Devices and links of a spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from placedsl import limits
from placedsl.diagnostics import Span, misspelt, nearest
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.vocabulary import OF_EVERY_DEVICE, SETS, Type
from placedsl.language.elaboration import streamed_parameters
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.statement_entries import DEVICE_KINDS, STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Cluster, Device, Kind, Link, Machine
from placedsl.problem import expressions as core
from placedsl.problem.streaming import RESERVE
from placedsl.units import BANDWIDTH, COMPUTE

#: Less a second is no rate: what is divided by it could not be added up.
_SLOWEST = 1e-100


def entry_values(
    checker: Checker, block: syntax.Block, statement: str, further: list[syntax.Entry] | None = None
) -> dict[str, tuple[float, syntax.Entry]]:
    """The entries of a block that are numbers, in SI; unknown, repeated and ill-dimensioned ones are reported.

    ``further`` takes unknown ones, where the block may have some, unless they look like a known one.
    """
    out: dict[str, tuple[float, syntax.Entry]] = {}
    rows = STATEMENTS[statement]
    known = rows.dimensions
    for entry in block:
        name = entry.name.text
        if name not in known:
            meant = misspelt(name, known)
            if further is None:
                checker.error(entry.name, f"{rows.subject} has no '{name}'", nearest(name, known))
            elif meant is not None:
                hint = f"did you mean '{meant}'? An attribute of your own needs a name that is less like it"
                checker.error(entry.name, f"{rows.subject} has no '{name}'", hint)
            else:
                further.append(entry)
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
            hint = f"as in {name} = {rows.entries[name].example}"
            checker.error(entry.value, f"'{name}' is {known[name]}, this is {kind}", hint)
        elif float(value.value) < 0:
            checker.error(entry.value, f"'{name}' cannot be negative")
        elif known[name] in (BANDWIDTH, COMPUTE) and 0.0 < float(value.value) < _SLOWEST:
            hint = f"as in {name} = {rows.entries[name].example}"
            checker.error(entry.value, f"'{name}' is below {_SLOWEST:g} a second: times would be endless", hint)
        else:
            out[name] = (float(value.value), entry)
    return out


class DeviceDeclarations:
    """All devices in order of declaration, the names of families (empty ones included), and clusters."""

    def __init__(self, checker: Checker, statements: Iterable[syntax.DeviceFamily | syntax.Cluster]) -> None:
        self.checker = checker
        self.devices: list[Device] = []
        self.families: dict[str, syntax.DeviceFamily | syntax.Cluster] = {}
        self.clusters: list[Cluster] = []
        #: The types of the attributes that devices have of the spec's own.
        self.own: dict[str, Type] = {}
        #: By family, where it is said that devices stream what does not fit.
        self.streams: dict[str, streamed_parameters.StreamingEntries] = {}
        #: More devices or clusters than can be dealt with, which has been reported.
        self.too_many = False
        for statement in statements:
            self.add(statement, "", -1)
        self.clusters += list(self._alone())

    @property
    def cluster_families(self) -> list[str]:
        """The names of cluster families."""
        return [name for name, statement in self.families.items() if isinstance(statement, syntax.Cluster)]

    @property
    def device_families(self) -> list[str]:
        """The names of device families."""
        return [name for name, statement in self.families.items() if isinstance(statement, syntax.DeviceFamily)]

    @property
    def names(self) -> dict[str, Span]:
        """Where the name of each family of devices or clusters stands."""
        return {name: family.name.at.span for name, family in self.families.items()}

    @property
    def declarations(self) -> dict[str, Span]:
        """The head of each declaration: ``device gpu``."""
        heads = {n: syntax.At(f.at.start, f.name.at.end, f.at.source) for n, f in self.families.items()}
        return {name: at.span for name, at in heads.items()}

    def add(self, statement: syntax.DeviceFamily | syntax.Cluster, prefix: str, parent: int) -> None:
        """A statement of the spec, or of the cluster ``parent``."""
        name = statement.name.text
        if self.families.setdefault(name, statement) is not statement:
            hint = first_at(statement.at, self.families[name].at)
            what = "cluster" if isinstance(statement, syntax.Cluster) else "device"
            self.checker.error(statement.name, f"{what} '{name}' is declared twice", hint)
            return
        count = 1
        if statement.count is not None:
            what = "clusters" if isinstance(statement, syntax.Cluster) else "devices"
            given = self.checker.limited(statement.count, 0, what, f"the number of {what}")
            if given is None:
                return
            count = given
        labels = [f"{prefix}{name}" if statement.count is None else f"{prefix}{name}[{i + 1}]" for i in range(count)]
        if name in SETS:
            self.checker.error(statement.name, f"'{name}' is the name of a set already", "choose another name")
        if isinstance(statement, syntax.Cluster):
            if len(self.clusters) + len(labels) > limits.count("clusters"):
                message = f"these are more than {limits.count('clusters'):,} clusters"
                self.checker.error(statement.name, message, limits.raising("clusters"))
                self.too_many = True
                return
            for label in labels:
                if self.too_many:
                    return
                self._cluster(statement, label, parent)
            if not labels:
                self._names(statement)
        else:
            self._family(statement, labels)

    def _names(self, cluster: syntax.Cluster) -> None:
        """The families within clusters of which there are none."""
        for item in cluster.items:
            if not isinstance(item, syntax.Interconnect):
                self.families.setdefault(item.name.text, item)
            if isinstance(item, syntax.Cluster):
                self._names(item)

    def _cluster(self, statement: syntax.Cluster, label: str, parent: int) -> None:
        link = interconnect(self.checker, [item for item in statement.items if isinstance(item, syntax.Interconnect)])
        level = 1 if parent < 0 else self.clusters[parent].level + 1
        position, first = len(self.clusters), len(self.devices)
        self.clusters.append(Cluster(label, statement.name.text, level, (), link, parent))
        for item in statement.items:
            if not isinstance(item, syntax.Interconnect) and not self.too_many:
                self.add(item, f"{label}.", position)
        devices = tuple(range(first, len(self.devices)))
        self.clusters[position] = replace(self.clusters[position], devices=devices)

    def _family(self, statement: syntax.DeviceFamily, labels: list[str]) -> None:
        name = statement.name.text
        further: list[syntax.Entry] = []
        peak, numbers = streamed_parameters.reserve_in_words(self.checker, statement.block)
        given = entry_values(self.checker, numbers, "device", further)
        values = {k: v for k, (v, _) in given.items()}
        streams = streamed_parameters.entries_of_family(self.checker, given, peak, statement.block)
        if streams is not None:
            self.streams[name] = streams
            values.setdefault(RESERVE, 0.0)
        texts: dict[str, str] = {}
        for entry in further:
            value = None if entry.name.text in {**values, **texts} else self._own(entry)
            if entry.name.text in {**values, **texts}:
                self.checker.error(entry.name, f"'{entry.name.text}' is given twice")
            elif isinstance(value, str):
                texts[entry.name.text] = value
            elif value is not None:
                values[entry.name.text] = value
        if statement.kind is None:
            self.checker.error(statement.name, f"is '{name}' an accelerator or a host?",
                               f"write device {name}: accelerator or device {name}: host")  # fmt: skip
            return
        kind = statement.kind.text
        if kind not in DEVICE_KINDS:
            hint = nearest(kind, DEVICE_KINDS)
            self.checker.error(statement.kind, f"'{kind}' is no kind of device", hint)
            return
        if len(self.devices) + len(labels) > limits.count("devices"):
            if not self.too_many:
                message = f"these are more than {limits.count('devices'):,} devices"
                self.checker.error(statement.name, message, limits.raising("devices"))
            self.too_many = True
            return
        memory = values.pop("memory", float("inf"))
        checked: Kind = "accelerator" if kind == "accelerator" else "host"
        peaks = peak is not None
        self.devices += [Device(label, name, checked, memory, values, texts, peaks) for label in labels]

    def _own(self, entry: syntax.Entry) -> float | str | None:
        """An attribute of the spec's own, a number in SI or a text; None after reporting."""
        name = entry.name.text
        if name in OF_EVERY_DEVICE:
            self.checker.error(entry.name, f"every device has a '{name}' already", "choose another name")
            return None
        word = entry.value.name if isinstance(entry.value, syntax.Name) else "true"
        if word not in ("true", "false", *self.checker.parameters):
            self.checker.error(entry.value, f"there is no parameter '{word}'", f'a text stands in quotes: "{word}"')
            return None
        out, kind = self.checker.check(entry.value)
        if kind.kind == "error":
            return None
        if kind.kind not in ("number", "text"):
            hint = f"known here: {', '.join(STATEMENTS['device'].entries)}; others are numbers or texts"
            self.checker.error(entry.value, f"'{name}' is a number or a text, this is {kind}", hint)
            return None
        if not isinstance(out, core.Constant):
            self.checker.error(entry.value, "a value known beforehand is expected here")
            return None
        if self.own.setdefault(name, kind) != kind:
            self.checker.error(entry.value, f"'{name}' is {self.own[name]} on another device, this is {kind}")
            return None
        return out.value if isinstance(out.value, str) else float(out.value)

    def _alone(self) -> Iterator[Cluster]:
        """On each level the devices that are in no cluster of it."""
        for level in range(1, max((c.level for c in self.clusters), default=0) + 1):
            inside = {d for c in self.clusters if c.level == level for d in c.devices}
            for d, device in enumerate(self.devices):
                if d not in inside:
                    yield Cluster(device.name, "", level, (d,), None, alone=True)


def interconnect(checker: Checker, statements: list[syntax.Interconnect]) -> Link | None:
    """The one interconnect of a machine or a cluster."""
    for extra in statements[1:]:
        checker.error(extra.name or syntax.Word(extra.at, ""), "there is a second interconnect", "one is enough")
    for only in statements[:1]:
        values = entry_values(checker, only.block, "interconnect")
        if values.get("bandwidth", (0.0,))[0] > 0:
            latency = values["latency"][0] if "latency" in values else 0.0
            return Link("", "", True, values["bandwidth"][0], latency, only.at.span)
        if "bandwidth" in values:
            checker.error(values["bandwidth"][1].value, "a bandwidth of zero carries nothing")
        elif all(e.name.text in STATEMENTS["link"].entries and e.name.text != "bandwidth" for e in only.block):
            place_word = only.name or syntax.Word(only.at, "interconnect")
            checker.error(place_word, "this interconnect has no bandwidth", "as in { bandwidth = 25 GB/s }")
    return None


def machine(
    checker: Checker,
    declared: DeviceDeclarations,
    links: Iterable[syntax.LinkBetween],
    interconnects: list[syntax.Interconnect],
) -> Machine:
    """The machine with its links."""
    out: list[Link] = []
    counts = {f: sum(d.family == f for d in declared.devices) for f in declared.device_families}
    for statement in links:
        ends = []
        for end in (statement.source, statement.target):
            name = end.name.text
            if name not in counts:
                checker.error(end.name, f"there is no device '{name}'", nearest(name, counts))
                continue
            if end.index is not None:
                position = checker.integer(end.index, 1, counts[name], f"'{name}'")
                if position is not None:
                    name = [d.name for d in declared.devices if d.family == name][position - 1]
            ends.append(name)
        values = entry_values(checker, statement.block, "link")
        if "bandwidth" not in values:
            # A wrong entry was told already, and may be it misspelt.
            if all(e.name.text in STATEMENTS["link"].entries and e.name.text != "bandwidth" for e in statement.block):
                checker.error(statement.source.name, "this link has no bandwidth", "as in { bandwidth = 25 GB/s }")
        elif not values["bandwidth"][0]:
            checker.error(values["bandwidth"][1].value, "a bandwidth of zero carries nothing")
        elif len(ends) == 2:
            latency = values["latency"][0] if "latency" in values else 0.0
            span = statement.source.name.at.span
            out.append(Link(ends[0], ends[1], statement.both, values["bandwidth"][0], latency, span))
    return Machine(tuple(declared.devices), tuple(out), interconnect(checker, interconnects), tuple(declared.clusters))
