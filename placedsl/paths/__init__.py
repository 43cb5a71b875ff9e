"""The paths from a problem to a placement; :mod:`placedsl.planner` chooses."""
