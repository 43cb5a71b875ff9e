"""Two constraints, each a formula of the language: ``even`` and ``apart by ATTRIBUTE``."""

#: No accelerator holds many more operators than another.
EVEN = """
constraint even =
    forall d in accelerators, e in accelerators:
        count(v in nodes: v on d) <= count(v in nodes: v on e) + 1
"""

#: No accelerator holds two operators that have the same value of an attribute.
APART = """
constraint apart by key =
    forall group in partition(nodes, key), d in accelerators: count(v in group: v on d) <= 1
"""
