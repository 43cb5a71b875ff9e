"""Running times, transfer times and weight exchange as arrays by device: what an operator, a tensor or weights cost."""

from placedsl.cost_model.costs import Costs, Options, build
from placedsl.cost_model.option_costs import plain_times
from placedsl.cost_model.places import Places

__all__ = ["Costs", "Options", "Places", "build", "plain_times"]
