"""The constraint IR, and grounding of formulations over a problem."""
