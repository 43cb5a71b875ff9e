"""What the parts of a transformer compute, hold and move: products, norms, attention, feed-forward, experts.

Operations are counted as those of single operators are (:mod:`placedsl.graph.readers.operations`).
"""

from __future__ import annotations

from dataclasses import dataclass

from placedsl.graph.readers.operations import PER_ELEMENT, Tensor
from placedsl.graph.readers.operations import attention as attention_operations


@dataclass(frozen=True)
class Part:
    """Numbers of one pass of a batch.

    ``flops``       operations
    ``parameters``  elements of its weights
    ``used``        elements of its weights that are read
    ``moved``       elements of activations, and of keys and values, that its operators read and write
    ``made``        elements of activations that its operators make, without the scores of attention
    """

    flops: float = 0.0
    parameters: float = 0.0
    used: float = 0.0
    moved: float = 0.0
    made: float = 0.0

    def __add__(self, other: Part) -> Part:
        return Part(
            self.flops + other.flops, self.parameters + other.parameters, self.used + other.used,
            self.moved + other.moved, self.made + other.made,
        )  # fmt: skip


@dataclass(frozen=True)
class Experts:
    """A mixture: how many experts there are, and how many each token goes through."""

    count: int
    per_token: int


def linear(tokens: float, read: float, made: float, bias: bool) -> Part:
    """A matrix product of ``tokens`` rows, ``read`` wide."""
    weights = read * made + bias * made
    flops = 2.0 * tokens * read * made + bias * tokens * made
    return Part(flops, weights, weights, tokens * (read + made), tokens * made)


def norm(tokens: float, width: float, kind: str) -> Part:
    """``rmsnorm``, or ``layernorm``, which has a bias."""
    weights = width * (2.0 if kind == "layernorm" else 1.0)
    return Part(PER_ELEMENT[kind] * tokens * width, weights, weights, 2.0 * tokens * width, tokens * width)


def elementwise(elements: float, operations: float, operands: int) -> Part:
    """Arithmetic on each element of ``operands`` tensors of one size."""
    return Part(operations * elements, 0.0, 0.0, (operands + 1.0) * elements, elements)


def embedding(rows: float, tokens: float, width: float) -> Part:
    """A look-up reads as much as it makes."""
    return Part(0.0, rows * width, tokens * width, tokens * width, tokens * width)


def attention(samples: int, tokens: int, context: int, heads: int, key_heads: int, width: int) -> Part:
    """``tokens`` new positions of each sample look at ``context`` positions, whose keys and values are read."""
    query = Tensor((samples, heads, tokens, width), 1.0)
    key = Tensor((samples, key_heads, context, width), 1.0)
    flops = attention_operations(query, key, key)
    return Part(flops, 0.0, 0.0, 2.0 * query.elements + 2.0 * key.elements, query.elements)


def feed_forward(tokens: float, width: float, inner: float, *, gated: bool, bias: bool) -> Part:
    """Two products with an activation between them, or three where one product gates another."""
    activation = elementwise(tokens * inner, PER_ELEMENT["silu"] if gated else PER_ELEMENT["gelu"], 1)
    out = linear(tokens, width, inner, bias) + activation + linear(tokens, inner, width, bias)
    return out + linear(tokens, width, inner, bias) + elementwise(tokens * inner, 1.0, 2) if gated else out


def mixture(tokens: float, width: float, inner: float, experts: Experts, *, gated: bool, bias: bool) -> Part:
    """A router, and the experts that tokens go through.

    The weights that are read are those of the experts that get a token, as many as are expected where each token
    chooses ``per_token`` of them at random: ``count * (1 - (1 - per_token / count) ** tokens)``.
    """
    routed = tokens * experts.per_token
    work = feed_forward(routed, width, inner, gated=gated, bias=bias)
    asked = experts.count * (1.0 - (1.0 - experts.per_token / experts.count) ** tokens)
    router = linear(tokens, width, experts.count, False)
    router += elementwise(tokens * experts.count, PER_ELEMENT["softmax"], 1)
    gathered = elementwise(routed * width, 2.0, 1)  # results are weighted and added up
    held = Part(work.flops, work.parameters * experts.count, work.used * asked, work.moved, work.made)
    return router + held + gathered
