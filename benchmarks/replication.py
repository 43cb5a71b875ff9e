"""PipeDream's profiles on 4, 8 and 16 devices, with stages that several devices share and without.

    python benchmarks/replication.py                                   # every profile, both links
    python benchmarks/replication.py --only gnmt vgg16 --devices 16 --links "25 Gbit/s" --clusters

A profile is a training step of one minibatch; a layer and its backward part share a device, the devices are alike,
there is no limit on memory, and every tensor crosses one link of the bandwidth that is named while the device waits
(schedule ``pipedream``).  "one each": the best pipeline with a device a stage; "shared": any number of devices may
share a stage, and exchange its weights over the same link; "sizes": how many each stage has.  Values are milliseconds a
minibatch.  With ``--clusters``, devices are in servers of four, in which links are ten times as fast.  Seconds are
those of the search.  Prints a Markdown table, a row as soon as it is known.  Workloads: $PLACEDSL_WORKLOADS, else
../shared/workloads.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import placedsl
from placedsl.algorithms.pipelines.bottleneck_search import BottleneckResult
from placedsl.algorithms.pipelines.clusters import in_clusters
from placedsl.algorithms.pipelines.hierarchical import best_hierarchical
from placedsl.algorithms.pipelines.replicated import Replication, best_replicated
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.solve import pipeline_of
from placedsl.algorithms.pipelines.state_dp import best_pipeline
from placedsl.algorithms.stages.stage_costs import after_computation

WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", Path(__file__).resolve().parents[2] / "shared" / "workloads"))
#: Ethernet between servers as in PipeDream's clusters, and a PCIe slot within one.
LINKS = ("10 Gbit/s", "12 GB/s")
DEVICES = (4, 8, 16)
SERVER = 4
#: How much slower than within a server links between servers are.
SLOWER = 10.0


def spec_of(graph: Path, devices: int, link: str) -> placedsl.Spec:
    """A profile on so many devices alike, any number of which may share a stage."""
    return placedsl.loads(
        f"graph from {json.dumps(str(graph))}\n"
        f"device gpu[{devices}]: accelerator\n"
        f"interconnect {{ bandwidth = {link} }}\n"
        f"parallelism {{ data = 1..{devices} }}\n"
        "minimize time_per_sample\nsubject to\n    contiguous\n    colocated by layer\n"
    )


def shown(found: BottleneckResult, seconds: float) -> str:
    """Value, bound, group sizes, seconds."""
    sizes = " ".join(str(len(group)) for group in found.groups.values())
    return f"{found.value * 1e3:.3f} | {found.bound * 1e3:.3f} | {sizes} | {seconds:.2f}"


def row(graph: Path, devices: int, link: str, seconds: float, clusters: bool) -> None:
    """Solve one problem in both ways."""
    problem = spec_of(graph, devices, link).problem
    assert problem.execution.data_parallelism is not None
    quotient, classes = pipeline_of(problem)
    sync = np.zeros((1, quotient.units))
    np.add.at(sync[0], quotient.unit_of_node, problem.execution.data_parallelism.synchronisation[:, 0])
    sharing = Replication((problem.execution.data_parallelism.degrees,), sync, True)
    surcharge = quotient.transfer * (1.0 - 1.0 / SLOWER)
    if clusters:
        quotient.transfer[:] /= SLOWER
        sync /= SLOWER
    stages, among = in_clusters(
        after_computation, quotient, classes, np.arange(devices)[None] // SERVER, surcharge[None]
    )
    began = time.monotonic()
    limits = SearchLimits(began + seconds)
    if clusters:
        alone = Replication(((1,),), sync, True)
        value = best_hierarchical(stages, among, alone, limits, fewest=False).value
    else:
        value = best_pipeline(stages, limits, fewest=False).value
    first = time.monotonic() - began
    began = time.monotonic()
    limits = SearchLimits(began + seconds)
    if clusters:
        found = best_hierarchical(stages, among, sharing, limits)
    else:
        found = best_replicated(stages, sharing, limits)
    print(
        f"| {graph.stem} | {quotient.units} | {link} | {devices} | {value * 1e3:.3f} | {first:.2f} "
        f"| {shown(found, time.monotonic() - began)} | {value / found.value:.2f} |",
        flush=True,
    )


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="PROFILE")
    parser.add_argument("--devices", nargs="*", type=int, default=list(DEVICES))
    parser.add_argument("--links", nargs="*", default=list(LINKS))
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each run")
    parser.add_argument("--clusters", action="store_true")
    given = parser.parse_args()
    folder = WORKLOADS / "pipedream"
    files = [f for f in folder.glob("*.txt") if "LICENSE" not in f.name and (not given.only or f.stem in given.only)]
    if not files:
        print(f"no profiles: '{folder}' is not there, or has none of that name", file=sys.stderr)
        return 1
    print("| profile | units | link | devices | one each | s | shared | bound | sizes | s | one each / shared |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    for file in sorted(files):
        for link in given.links:
            for devices in given.devices:
                row(file, devices, link, given.seconds, given.clusters)
    return 0


if __name__ == "__main__":
    sys.exit(main())
