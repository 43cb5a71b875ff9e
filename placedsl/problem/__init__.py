"""The problem: graph, machine, objectives, constraints, and the expressions they are written in."""
