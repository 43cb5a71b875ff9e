"""What an algorithm supports, as data, and why it does not apply to a problem, in the user's words.

Whoever searches, bounds or simulates declares a :class:`Supports`; nobody tests a problem by hand for what is declared
here.  The planner, ``explain`` and the method itself ask :func:`reasons_against` and :func:`ignored`.
"""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.units import read_once
from placedsl.problem.execution import Communication, Execution
from placedsl.problem.expressions import Provided
from placedsl.problem.problem import BUILT_IN, SUPPORTED, Problem
from placedsl.records import dataclass

#: The constraints of every search for placements: memory limits, and nodes that share a device.
PLACING = frozenset(("memory", "colocated"))
#: What is left out by an algorithm that counts the least that each transfer can cost its two devices.
ROUTES = "the routes of transfers"
#: What is left out by an algorithm that adds up the memory of nodes.
PEAKS = "the peak of activations"


@dataclass(frozen=True)
class Supports:
    """What a problem may ask for; the defaults are those of an algorithm that only places nodes.

    ``objectives``        the quantities of which the first objective has to be one (empty: any objective); soft
                          constraints add their costs to it, so it is no quantity where there are some
    ``executions``        the execution models, slots and devices per stage aside (empty: all)
    ``communications``    communication models whose costs of stages are known (empty: stages are not asked for)
    ``requires``          built-in constraints that the problem has to have
    ``constraints``       built-in constraints that are satisfied by construction (None: every constraint may be there,
                          the evaluator decides)
    ``clusters``          machines with clusters
    ``data_parallelism``  several devices per stage
    ``options``           options of operators, copies of several devices, and samples in flight
    ``chunks``            stages of a plan that hold several parts of the model
    ``variables``         variables of the spec
    ``routes``            costs of transfers that depend on both devices
    ``peaks``             activations whose peak is set aside where devices stream what does not fit; a search may leave
                          them to the evaluator
    ``formulations``      formulations of the spec, whose rows may rule out placements
    ``relaxes``           constraints, variables and further objectives that are not supported are left out: the value
                          is then a bound of the problem.  Otherwise each is a reason against
    ``further``           further objectives: True if any may follow, else the quantities that may (in order)
    """

    objectives: tuple[str, ...] = ()
    executions: tuple[Execution, ...] = ()
    communications: tuple[Communication, ...] = ()
    requires: tuple[str, ...] = ()
    constraints: frozenset[str] | None = None
    clusters: bool = True
    data_parallelism: bool = False
    options: bool = False
    chunks: bool = False
    variables: bool = False
    routes: bool = False
    peaks: bool = False
    formulations: bool = False
    relaxes: bool = False
    further: tuple[str, ...] | bool = True

    def __post_init__(self) -> None:
        unknown = ({*self.requires} | (self.constraints or frozenset())) - {*BUILT_IN}
        if unknown:
            raise ValueError(f"no built-in constraints: {', '.join(sorted(unknown))}")


def reasons_against(problem: Problem, supports: Supports) -> list[str]:
    """Why an algorithm does not apply, a clause each; empty where it does."""
    left = () if supports.relaxes else _decided(problem, supports)
    against = [f"it gives no value to the variable {name}" for name in left]
    if problem.has_user_formulations and not supports.formulations:
        against.append("it does not look at formulations, and the spec has its own")
    goal = problem.objectives[0]
    if supports.objectives and not (isinstance(goal.body, Provided) and goal.body.name in supports.objectives):
        against.append(f"it minimises {' or '.join(supports.objectives)}, not {goal.name}")
    known = supports.executions
    if known and not any(map(problem.execution.like, known)):
        against.append(f"it knows schedule {' or '.join(one.name for one in known)}, not {problem.execution.name}")
    elif supports.communications and problem.execution.communication not in supports.communications:
        against.append(f"it knows no costs of stages under communication {problem.execution.communication}")
    if problem.execution.data_parallelism is not None and not supports.data_parallelism:
        against.append("it does not know devices that share a stage")
    elif problem.execution.options is not None and not supports.options:
        against.append("it does not know options of operators, nor samples in flight")
    elif problem.execution.chunks > 1 and not supports.chunks:
        against.append("it does not know stages of several chunks")
    missing = [name for name in supports.requires if problem.constraint(name) is None]
    against += [f"it requires the '{name}' constraint" + _REQUIRED.get(name, "") for name in missing]
    return against if supports.relaxes else against + _unsupported(problem, supports)


#: Why a constraint is required.
_REQUIRED = {"contiguous": ": non-contiguous stages do not form a chain of ideals"}


def ignored(problem: Problem, supports: Supports) -> list[str]:
    """What an algorithm that relaxes leaves out: names of constraints, variables and further objectives."""
    known = supports.constraints
    out = [c.name for c in problem.constraints if known is not None and c.equivalent not in {*known, SUPPORTED}]
    out += [f"variable {name}" for name in _decided(problem, supports)]
    if problem.machine.clusters and not supports.clusters:
        out.append("clusters")
    if not supports.routes and not costs_by_device(problem):
        out.append(ROUTES)
    if not supports.peaks and problem.execution.streams == "peak":
        out.append(PEAKS)
    return out + [f"then {name}" for name in _further(problem, supports)]


def costs_by_device(problem: Problem) -> bool:
    """Whether ``transfer`` and ``cluster_surcharge`` say all that devices pay for transfers.

    Where tensors go directly from device to device all routes must be alike, and a device that sends a tensor to each
    of its readers must not have two.
    """
    if problem.execution.transfers == "through_host":
        return True
    if not problem.own_shares_exact:
        return False
    return problem.execution.transfers == "broadcast" or read_once(problem)


def _decided(problem: Problem, supports: Supports) -> Sequence[str]:
    """The variables that are left open; ``copies`` belongs to data parallelism, which is asked about by itself."""
    if supports.variables:
        return []
    shared = problem.execution.data_parallelism is not None
    return [name for name in problem.variables if not (shared and name == "copies")]


def _further(problem: Problem, supports: Supports) -> list[str]:
    """The names of further objectives that are not supported."""
    if supports.further is True:
        return []
    allowed = supports.further or ()
    rest = problem.objectives[1:]
    fine = [isinstance(o.body, Provided) and o.body.name == name for o, name in zip(rest, allowed, strict=False)]
    return [o.name for k, o in enumerate(rest) if not (k < len(fine) and fine[k])]


def _unsupported(problem: Problem, supports: Supports) -> list[str]:
    against = []
    if problem.machine.clusters and not supports.clusters:
        against.append("it does not know clusters")
    if not supports.routes and not costs_by_device(problem):
        against.append("it knows what a transfer costs each device, not from which device to which")
    if not supports.peaks and problem.execution.streams == "peak":
        against.append("it adds up the memory of nodes, and knows no peak of activations")
    known = supports.constraints
    if known is not None:
        against += [f"it does not look at {one.name}" for one in problem.constraints
                    if one.equivalent not in {*known, SUPPORTED}]  # fmt: skip
    return against + [f"it does not look at 'then {name}'" for name in _further(problem, supports)]
