"""The quantities of the vocabulary on a finished placement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from placedsl.cost import calls, dataflow
from placedsl.cost.facts import Facts
from placedsl.cost.times import Times
from placedsl.cost.tolerance import total

#: What an answer says beside the placement, by name and positions.
Told = Mapping[str, Mapping[tuple[int, ...], float]]

PASSES = 2
FORWARD, BACKWARD = range(PASSES)


class Quantities:
    """Loads, memory and traffic; ``placement`` has a device per node, -1 for none.

    ``copies`` says how many devices share the samples of what is on each device (one, where nothing is said).
    ``told`` is what an answer says of one sample's run: ``piece``, or ``start`` and ``sent``, by positions;
    ``not_before``: these starts are kept, not only their order.
    """

    def __init__(
        self,
        facts: Facts,
        placement: Sequence[int],
        copies: Sequence[float] | None = None,
        told: Told | None = None,
        *,
        not_before: bool = False,
    ) -> None:
        self.facts = facts
        self.placement = list(placement)
        self.told = told or {}
        self.not_before = not_before
        self.copies = list(copies) if copies is not None else [float(bool(nodes)) for nodes in self.nodes]

    @cached_property
    def nodes(self) -> list[list[int]]:
        """The nodes of each device."""
        out: list[list[int]] = [[] for _ in range(self.facts.devices)]
        for node, device in enumerate(self.placement):
            if device >= 0:
                out[device].append(node)
        return out

    @cached_property
    def crossings(self) -> list[list[float]]:
        """Per device the transfer times of the tensors it cuts (nothing on hosts)."""
        facts, placement = self.facts, self.placement
        out: list[list[float]] = [[] for _ in range(facts.devices)]
        for tensor, producer in enumerate(facts.producer):
            touched = {placement[reader] for reader in facts.readers[tensor]}
            touched.add(placement[producer])
            if len(touched) > 1:
                for device in touched:
                    if device >= 0 and facts.accelerator[device]:
                        out[device].append(facts.transfer[tensor][device])
                        out[device] += self.outward(tensor, device, placement[producer], touched)
        return out

    def outward(self, tensor: int, device: int, home: int, touched: set[int]) -> list[float]:
        """What a device pays besides for a tensor that comes from outside of its clusters or goes there."""
        facts, members = self.facts, self.facts.members["cluster"]
        others = touched if device == home else {home}
        return [facts.leaving[tensor][c] for c in facts.clusters_of[device] if not others.issubset(members[c])]

    def pass_loads(self) -> list[list[float]]:
        """Busy time of each device in the forward and in the backward pass, transfers counted in each.

        A tensor read into a device counts in every pass that reads it there; one written out of it
        counts once, in the pass of its producer.
        """
        facts, placement = self.facts, self.placement
        terms: list[list[list[float]]] = [[[] for _ in range(PASSES)] for _ in range(facts.devices)]
        for node, device in enumerate(placement):
            if device >= 0:
                terms[device][facts.backward[node]].append(facts.time[node][device])
        for tensor, producer in enumerate(facts.producer):
            home = placement[producer]
            reading = {(placement[r], facts.backward[r]) for r in facts.readers[tensor] if placement[r] != home}
            moved = list(reading)
            if reading:
                moved.append((home, facts.backward[producer]))
            for device, when in moved:
                if device >= 0 and facts.accelerator[device]:
                    terms[device][when].append(facts.transfer[tensor][device])
        return [[total(part) for part in parts] for parts in terms]

    @cached_property
    def loads(self) -> list[float]:
        """Busy time of each device; where several share the samples (Appendix C.2), that of each."""
        if self.facts.problem.replication is None:
            return self.whole_loads()
        synchronisation = self.facts.attributes["node", "synchronisation"]
        out = []
        for device, (whole, copies) in enumerate(zip(self.whole_loads(), self.copies, strict=True)):
            others = (copies - 1) / copies if copies >= 1 else 0.0
            weights = total(synchronisation[v][device] for v in self.nodes[device]) * others
            share = whole / max(1.0, copies)
            out.append(share + weights if self.facts.problem.schedule == "pipedream" else max(share, weights))
        return out

    @cached_property
    def piece(self) -> list[int]:
        """Which call of its device each node is in (schedule ``calls``; 1 where nothing is said)."""
        told = self.told.get("piece", {})
        return [round(told.get((v,), 1)) for v in range(self.facts.nodes)]

    @cached_property
    def times(self) -> Times:
        """When everything happens for one sample."""
        if self.facts.problem.schedule == "calls":
            return calls.run(self.facts, self.placement, self.piece)
        given = (self.told["start"], self.told.get("sent", {})) if "start" in self.told else None
        return dataflow.run(self.facts, self.placement, given, not_before=self.not_before)

    def whole_loads(self) -> list[float]:
        """Busy time of each device if it had all samples to itself."""
        schedule, time = self.facts.problem.schedule, self.facts.time
        if schedule == "calls":
            return self._call_loads()
        if schedule == "gpipe":
            return [total(parts) for parts in self.pass_loads()]
        computing = [[time[v][d] for v in nodes] for d, nodes in enumerate(self.nodes)]
        if schedule == "dataflow":
            return [total(work) for work in computing]
        if schedule == "overlapped":
            return [max(total(work), total(moves)) for work, moves in zip(computing, self.crossings, strict=True)]
        if schedule == "duplex":
            ways = zip(computing, *self.directions(), strict=True)
            return [max(total(work), total(read), total(written)) for work, read, written in ways]
        return [total([*work, *moves]) for work, moves in zip(computing, self.crossings, strict=True)]

    def _call_loads(self) -> list[float]:
        """Computation, and what every call transfers in and out."""
        terms = [[self.facts.time[v][d] for v in nodes] for d, nodes in enumerate(self.nodes)]
        for device, time in self._call_transfers():
            terms[device].append(time)
        return [total(part) for part in terms]

    def _call_transfers(self) -> Iterator[tuple[int, float]]:
        """The accelerator and the time of each transfer into a call and out of it."""
        facts = self.facts
        unit = [
            (d, p if d >= 0 and facts.accelerator[d] else -v)
            for v, (d, p) in enumerate(zip(self.placement, self.piece, strict=True))
        ]
        for tensor, producer in enumerate(facts.producer):
            reading = {unit[reader] for reader in facts.readers[tensor]} - {unit[producer]}
            for device, _ in (*reading, *([unit[producer]] if reading else ())):
                if device >= 0 and facts.accelerator[device]:
                    yield device, facts.transfer[tensor][device]

    def directions(self) -> tuple[list[list[float]], list[list[float]]]:
        """Per device the transfer times of the tensors that it reads, and of those that it makes for others."""
        facts, placement = self.facts, self.placement
        read: list[list[float]] = [[] for _ in range(facts.devices)]
        written: list[list[float]] = [[] for _ in range(facts.devices)]
        for tensor, producer in enumerate(facts.producer):
            home = placement[producer]
            away = {placement[reader] for reader in facts.readers[tensor]} - {home}
            for way, devices in ((read, away), (written, {home} if away else set())):
                for device in devices:
                    if device >= 0 and facts.accelerator[device]:
                        way[device].append(facts.transfer[tensor][device])
                        way[device] += self.outward(tensor, device, home, away | {home})
        return read, written

    @cached_property
    def memory(self) -> list[float]:
        """Memory that the nodes of each device occupy."""
        return [total(self.facts.memory[v] for v in nodes) for nodes in self.nodes]

    @cached_property
    def traffic(self) -> dict[tuple[int, int], float]:
        """Sizes of the tensors made on one device and read on another; absent pairs exchange none."""
        terms: dict[tuple[int, int], list[float]] = {}
        for tensor, producer in enumerate(self.facts.producer):
            home = self.placement[producer]
            for device in {self.placement[r] for r in self.facts.readers[tensor]} - {home}:
                terms.setdefault((home, device), []).append(self.facts.size[tensor])
        return {pair: total(sizes) for pair, sizes in terms.items()}

    def _transfers(self) -> Iterator[float]:
        """How long each transfer takes, by what the schedule counts as one."""
        facts, moves = self.facts, self.facts.problem.moves
        if facts.problem.schedule == "calls":
            yield from (time for _, time in self._call_transfers())
        elif moves is not None:
            for tensor, device in self.times.sent:
                yield float(moves.time(tensor, self.placement[facts.producer[tensor]], device))
        else:
            yield from (time for device in self.crossings for time in device)

    def of_element(self, name: str, at: tuple[int, ...]) -> float:
        """A quantity of a node, or of a tensor and devices; KeyError when there is none of that name.

        A tensor that does not go to a device leaves for it, and arrives, when it is made.
        """
        if name == "piece":
            (v,) = at
            return float(self.piece[v]) if self.facts.accelerator[self.placement[v]] else 1.0
        if name in ("start", "finish"):
            column = self.times.start if name == "start" else self.times.finish
            return column[at[0]]
        if name in ("sent", "arrived"):
            known = self.times.sent if name == "sent" else self.times.arrived
            found = known.get((at[0], at[1]))
            return self.times.finish[self.facts.producer[at[0]]] if found is None else found
        if name == "moved":
            tensor, source, target = at
            home = self.placement[self.facts.producer[tensor]]
            return float(home == source != target and (tensor, target) in self.times.sent)
        raise KeyError(name)

    def scalar(self, name: str) -> float:
        """A quantity without arguments; KeyError when there is none of that name."""
        facts = self.facts
        if name == "time_per_sample":
            if facts.problem.schedule == "gpipe":
                return total(max(part, default=0.0) for part in zip(*self.pass_loads(), strict=True))
            return max(self.loads, default=0.0)
        if name == "devices_used":
            return float(sum(self.copies))
        if name == "communication":
            return total(self._transfers())
        if name == "latency" and facts.problem.told:
            return self.times.latency
        if name == "peak_memory":
            return max((self.memory[d] for d in facts.sets["accelerators"]), default=0.0)
        raise KeyError(name)


#: Quantities of one sample's run, of nodes and of tensors.
RUN_QUANTITIES = ("piece", "start", "finish", "sent", "arrived", "moved")
#: Quantities of one device, as a list with an entry a device.
DEVICE_QUANTITIES: dict[str, Callable[[Quantities], list[float]]] = {
    "load": lambda q: q.loads,
    "memory": lambda q: q.memory,
    "used": lambda q: [float(bool(nodes)) for nodes in q.nodes],
    "forward_load": lambda q: [parts[FORWARD] for parts in q.pass_loads()],
    "backward_load": lambda q: [parts[BACKWARD] for parts in q.pass_loads()],
}
