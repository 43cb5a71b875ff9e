"""Models whose pipelines are measured: a small Llama and a residual network, with the module paths of the real ones;
and for training passes a GPT-2 and an MLP-Mixer.  ``placedsl profile measured_models.py:gpt`` takes them by name."""

# ruff: noqa: D102 - what forward of a module does, its class says

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, WORDS, POSITIONS = 256, 8, 8, 2000, 128
CHANNELS, BLOCKS, SIDE, CLASSES = 32, 8, 64, 100


class RMSNorm(nn.Module):
    """Norm by the root of the mean square."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6))


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of positions 0, 1, …; x is batch x heads x positions x half the width of a head, twice."""
    half = x.shape[-1] // 2
    rates = torch.pow(10000.0, -torch.arange(half) / half)
    angles = torch.arange(x.shape[-2])[:, None] * rates
    cosine, sine = angles.cos(), angles.sin()
    a, b = x.split(half, dim=-1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


class Attention(nn.Module):
    """Causal, with half as many heads of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.head = WIDTH // HEADS
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(WIDTH, WIDTH // 2, bias=False) for _ in range(2))
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = [p(x).unflatten(-1, (-1, self.head)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)]
        queries, keys = rotated(split[0]), rotated(split[1]).repeat_interleave(2, dim=1)
        mixed = functional.scaled_dot_product_attention(
            queries, keys, split[2].repeat_interleave(2, dim=1), is_causal=True
        )
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Perceptron(nn.Module):
    """Gated by SiLU."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Attention and perceptron, each after a norm and beside a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(), RMSNorm()
        self.self_attn, self.mlp = Attention(), Perceptron()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    """What transformers calls ``model``."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RMSNorm()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    """Body and head."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Body()
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.model(tokens))


class Block(nn.Module):
    """Two convolutions beside a residual connection; ``stride`` 2 halves the side and doubles the channels."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        out = channels * stride
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.shortcut = nn.Conv2d(channels, out, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inner + self.shortcut(x))


class Residual(nn.Module):
    """A residual network for pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, CHANNELS, 3, 1, 1)
        strides = [2 if k in (2, 5) else 1 for k in range(BLOCKS)]
        channels = [CHANNELS]
        for stride in strides:
            channels.append(channels[-1] * stride)
        self.blocks = nn.ModuleList(Block(own, stride) for own, stride in zip(channels, strides, strict=False))
        self.head = nn.Linear(channels[-1], CLASSES)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(pictures))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


class GptLayer(nn.Module):
    """Attention and perceptron with biases, each after a LayerNorm and beside a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.c_attn(self.ln_1(x)).chunk(3, dim=-1)
        queries, keys, values = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.c_proj(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Six layers of width 192 over 96 positions."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(3000, 192), nn.Embedding(96, 192)
        self.h = nn.ModuleList(GptLayer(192, 6) for _ in range(6))
        self.ln_f, self.lm_head = nn.LayerNorm(192), nn.Linear(192, 3000, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(96))
        for layer in self.h:
            x = layer(x)
        return self.lm_head(self.ln_f(x))


class MixerBlock(nn.Module):
    """A perceptron over patches and one over channels, each after a norm and beside a residual connection."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches))
        self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    """Ten blocks over 64 patches of 8 x 8 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 8, 8)
        self.blocks = nn.ModuleList(MixerBlock(64, 192) for _ in range(10))
        self.norm, self.head = nn.LayerNorm(192), nn.Linear(192, CLASSES)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        x = self.patches(pictures).flatten(2).transpose(1, 2).contiguous()  # as gloo sends it
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def gpt() -> tuple[nn.Module, torch.Tensor]:
    """A GPT-2 and two samples."""
    return Gpt(), torch.randint(0, 3000, (2, 96))


def mixer() -> tuple[nn.Module, torch.Tensor]:
    """An MLP-Mixer and two pictures."""
    return Mixer(), torch.randn(2, 3, 64, 64)


def _llama() -> tuple[nn.Module, torch.Tensor]:
    return Llama(), torch.randint(0, WORDS, (2, POSITIONS))


def _residual() -> tuple[nn.Module, torch.Tensor]:
    return Residual(), torch.randn(2, 3, SIDE, SIDE)


#: By name: a model with random weights, and the input of one microbatch.
MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {"llama": _llama, "residual": _residual}
#: Those whose training is measured; nothing was tuned on them.
TRAINED: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {"gpt": gpt, "mixer": mixer}


def made(name: str) -> tuple[nn.Module, torch.Tensor]:
    """Always the same weights and input."""
    torch.manual_seed(1)
    model, one = (MODELS | TRAINED)[name]()
    return model.eval(), one
