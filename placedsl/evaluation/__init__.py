"""The evaluator: cost and violations of a placement, independent of every solver and algorithm."""
