"""All costs of a graph on a machine, from one place: what the spec, its variations and tables of answers ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from placedsl.arrays import Booleans, Floats, for_each, repeated
from placedsl.cost_model import cluster_crossing, cluster_surcharge, option_costs, weight_exchange
from placedsl.cost_model.estimators import ESTIMATORS, Estimator
from placedsl.cost_model.own_shares import own_shares
from placedsl.cost_model.places import Places
from placedsl.cost_model.running_times import running_times
from placedsl.cost_model.transfer_times import (
    TERMS,
    Term,
    between_devices,
    sizes,
    unlike_profile,
    unreachable,
    with_memory,
)
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine
from placedsl.machine.routes import TransferTimes
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.problem.execution import OptionCosts
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Options:
    """What is asked beside running times and transfer times.

    ``device_to_device``  tensors go from device to device: only what they take between two of them must be known then
    ``own_shares``  what each device pays of that is asked for (pipelines)
    ``weights``     n bytes that devices exchange which share the samples of a stage (None: no such devices)
    ``places``      where diagnostics point
    ``planned``     what the options of operators cost is asked for, of those with these ``names`` (None: all)
    ``levels``      clusters that share samples, whose costs are asked for
    ``estimators``  ways to estimate running times, in order of precedence
    ``terms``       transfer costs that add up
    """

    device_to_device: bool = False
    own_shares: bool = False
    weights: Floats | None = None
    places: Places = field(default_factory=Places)
    planned: bool = False
    names: frozenset[str] | None = None
    levels: ClusterLevels | None = None
    estimators: Sequence[Estimator] = ESTIMATORS
    terms: Sequence[Term] = TERMS


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs in seconds (or in the graph's own unit of time).  n nodes, t tensors, D devices, C clusters.

    ``time``              n x D running times, of several options the least; inf: not supported
    ``measured``          n x D: given by the graph or a profile, not estimated
    ``transfer``          t x D between RAM and a device; 0 on hosts; where own shares are asked for, those
    ``size``              t bytes; where the graph gives no bytes, its transfer times
    ``cluster_surcharge`` C x t on top of ``transfer`` for a tensor exchanged with the outside of a cluster
    ``device_to_device``  times between devices, where the options ask for them
    ``own_shares_exact``  whether own shares are all that a device pays for a transfer
    ``weight_exchange``   n x D for the weights of a node over the link of a device; of shape (0, 0) where the options
                          have no weights
    ``diagnostics``       what must be known and is not; times that depend on it are nan
    ``notes``             what is worth knowing about the data, in sentences
    ``options``           of operators, where the options ask for them
    ``cluster_levels``    clusters that share samples, with what crosses them; no surcharge is paid then
    """

    time: Floats
    measured: Booleans
    transfer: Floats
    size: Floats
    cluster_surcharge: Floats
    device_to_device: TransferTimes | None
    weight_exchange: Floats
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...]
    own_shares_exact: bool = True
    options: OptionCosts | None = None
    cluster_levels: ClusterLevels | None = None


def build(graph: Graph, machine: Machine, options: Options | None = None) -> Costs:
    """Everything that ``options`` ask for, with all that is missing as diagnostics; raises nothing."""
    options = options or Options()
    places = options.places
    times = running_times(graph, machine, places, options.estimators)
    by_links, transfer, missing = with_memory(graph, machine, places, options.terms)
    surcharge, unknown = cluster_surcharge.seconds(graph, machine, places)
    between: TransferTimes | None = None
    if options.device_to_device:
        # Nothing goes through RAM: a device need not reach it.
        by_links, transfer = np.nan_to_num(by_links, posinf=np.inf), np.nan_to_num(transfer, posinf=np.inf)
        between, unknown = between_devices(graph, machine, by_links, transfer), []
        missing = unlike_profile(graph, machine, places) or unreachable(graph, machine, between, places)
    exact = True
    if between is not None and options.own_shares and not missing:
        shares = own_shares(graph, machine, between)
        transfer, surcharge, exact = shares.transfer, shares.cluster_surcharge, shares.exact
    exchange, unsent = np.zeros((0, 0)), list[Diagnostic]()
    if options.weights is not None:
        exchange, unsent = weight_exchange.seconds(graph, machine, options.weights, places, between)
    ways: OptionCosts | None = None
    if options.planned:
        ways, unpriced = option_costs.build(graph, machine, times.time, options.weights, places, options.names)
        unsent = [*unsent, *unpriced]
    levels = options.levels
    if levels is not None and not (missing or unknown):
        surcharge = np.zeros_like(surcharge)  # the link around a cluster is busy by itself
        levels, unknown = cluster_crossing.priced(levels, graph, machine, places)
    notes = times.notes
    if ways is not None:
        never = option_costs.needless(ways)
        notes += tuple(f"option '{name}' is never better than another option of its nodes" for name in never)
    time = times.time if ways is None or graph.options is None else _least(ways, graph.nodes)
    found = (*(missing or unknown), *unsent, *times.diagnostics)
    return Costs(
        time, times.measured, transfer, sizes(graph), surcharge, between, exchange, found, notes, exact,
        ways, levels,
    )  # fmt: skip


def _least(ways: OptionCosts, nodes: int) -> Floats:
    """n x D: the least time of each node over its options."""
    same = repeated(ways.time)
    columns = ways.time[:, :1] if same else ways.time
    out = np.full((nodes, columns.shape[1]), np.inf)
    np.minimum.at(out, ways.node, columns)
    return for_each(out, np.zeros(ways.time.shape[1], dtype=np.int64)) if same else out
