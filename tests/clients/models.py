"""A decoder whose modules have the paths of Hugging Face's models, small enough to train a step of in a moment."""

from __future__ import annotations

import torch
from torch import nn

WIDTH, WORDS = 16, 32


class Layer(nn.Module):
    """Attention and a perceptron, with residual connections."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + torch.tanh(self.attention(self.norm(x)))
        return x + self.mlp(x)


class Body(nn.Module):
    """What Hugging Face calls ``model``."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Decoder(nn.Module):
    """Body and head."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.model = Body(layers)
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.model(tokens))


def decoder(layers: int, tied: bool = False) -> Decoder:
    """Always the same weights; ``tied``: the head has those of the embedding."""
    torch.manual_seed(1)
    made = Decoder(layers).double()
    if tied:
        made.lm_head.weight = made.model.embed_tokens.weight
    return made


def batch(samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and the tokens that are to be predicted."""
    made = torch.Generator().manual_seed(2)
    return tuple(torch.randint(0, WORDS, (samples, 5), generator=made) for _ in range(2))  # type: ignore[return-value]


def loss(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy."""
    return nn.functional.cross_entropy(logits.reshape(-1, WORDS), wanted.reshape(-1))
