"""python run_of_wheel.py vllm|sglang|megatron WHEEL FILE LAYERS: what the client's own code makes of a file.

The function or class is compiled out of the wheel; nothing of the client is imported or installed.
"""

from __future__ import annotations

import ast
import enum
import os
import re
import shlex
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

_FILES = {"vllm": "vllm/distributed/utils.py", "sglang": "sglang/srt/distributed/utils.py",
          "megatron": "megatron/core/transformer/pipeline_parallel_layer_layout.py"}  # fmt: skip
_VARIABLES = {"vllm": "VLLM_PP_LAYER_PARTITION", "sglang": "SGLANG_PP_LAYER_PARTITION"}


def source(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()


def pp_indices(client: str, wheel: Path, text: str, layers: int) -> list[tuple[int, int]]:
    tree = ast.parse(source(wheel, _FILES[client]))
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_pp_indices")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines)
    os.environ |= variables
    value = variables[_VARIABLES[client]]
    scope: dict[str, Any] = {
        "os": os, "Tuple": tuple, "logger": None, "envs": types.SimpleNamespace(VLLM_PP_LAYER_PARTITION=value)
    }  # fmt: skip
    exec(compile(ast.Module([function], []), _FILES[client], "exec"), scope)
    size = int(re.search(r"--(?:pipeline-parallel-size|pp-size) (\d+)", text)[1])  # type: ignore[index]
    return [scope["get_pp_indices"](layers, rank, size) for rank in range(size)]


def megatron(wheel: Path, text: str, layers: int) -> list[list[list[str]]]:
    enums = ast.parse(source(wheel, "megatron/core/transformer/enums.py"))
    layer_type = next(n for n in enums.body if isinstance(n, ast.ClassDef) and n.name == "LayerType")
    scope: dict[str, Any] = {"enum": enum, "Enum": enum.Enum}
    exec(compile(ast.Module([layer_type], []), "enums.py", "exec"), scope)
    tree = ast.parse(source(wheel, _FILES["megatron"]))
    body = [n for n in tree.body if not (isinstance(n, ast.ImportFrom) and (n.module or "").startswith("megatron"))]
    exec(compile(ast.Module(body, []), _FILES["megatron"], "exec"), scope)
    words = shlex.split("\n".join(line for line in text.splitlines() if not line.startswith("#")))
    given = dict(zip(words[::2], words[1::2], strict=True))
    size = int(given["--pipeline-model-parallel-size"])
    layout = scope["PipelineParallelLayerLayout"](given["--pipeline-model-parallel-layout"], size)
    assert int(given["--num-layers"]) == layers
    layout.validate_layer_layout(layers, None)
    return [[[kind.name for kind in stage] for stage in rank] for rank in layout.layout]


if __name__ == "__main__":
    client, wheel, file, number = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    given_text = file.read_text(encoding="utf-8")
    print(
        megatron(wheel, given_text, number) if client == "megatron" else pp_indices(client, wheel, given_text, number)
    )
