"""Devices that stream the parameters which do not fit: what a device of a machine does with them for each sample.

Xie et al. 2023 (MTPP), section 3: ``overflow(S) = max(0, param(S) + peak(S) - M) / B``, a part of the load of the stage
S.  A device that holds nothing streams nothing.
"""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Booleans, Floats
from placedsl.machine.machine import Machine
from placedsl.problem.execution import Streams
from placedsl.records import dataclass

#: The attributes of a device that say it, and the value of the second that is no number.
STREAMS, RESERVE, PEAK = "streams", "reserve", "peak"


@dataclass(frozen=True, eq=False)
class Streaming:
    """How D devices stream.

    ``per_byte``  D seconds for a byte that does not fit; 0: the device streams nothing
    ``room``      D bytes that nodes may occupy before anything is streamed (less than 0: something always is, once
                  there is a node; inf where nothing is streamed)
    ``peaks``     D whether the peak of the activations is set aside besides
    """

    per_byte: Floats
    room: Floats
    peaks: Booleans

    @property
    def kind(self) -> Streams:
        """What is set aside."""
        return "peak" if self.peaks.any() else "reserve" if self.any else "none"

    @property
    def any(self) -> bool:
        """Whether some device streams."""
        return bool((self.per_byte > 0.0).any())


def streaming_of(machine: Machine) -> Streaming:
    """How the devices of a machine stream."""
    rate = np.array([device.attributes.get(STREAMS, 0.0) for device in machine.devices])
    reserve = np.array([device.attributes.get(RESERVE, 0.0) for device in machine.devices])
    memory = np.array([device.memory for device in machine.devices])
    streams = rate > 0.0
    return Streaming(
        per_byte=np.where(streams, 1.0 / np.where(streams, rate, 1.0), 0.0),
        room=np.where(streams, memory - reserve, np.inf),
        peaks=streams & np.array([device.reserves_peak for device in machine.devices], dtype=bool),
    )
