"""Pipelines under rules of a spec: paths through the ideals, with rules as filters of stages and rows over them."""
