"""python run_onnx_split.py FOLDER MODEL: the parts one after another in ONNX Runtime, against the whole model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime


def inputs_of(session: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    made = np.random.default_rng(3)
    out = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 2 for size in value.shape]
        whole = "int" in value.type
        out[value.name] = made.integers(0, 30, shape) if whole else made.standard_normal(shape).astype(np.float32)
    return out


def session_of(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def main(folder: Path, whole: Path) -> None:
    session = session_of(whole)
    given = inputs_of(session)
    expected = dict(zip([value.name for value in session.get_outputs()], session.run(None, given), strict=True))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    known = dict(given)
    for part in manifest["parts"]:
        onnx.checker.check_model(onnx.load(folder / part["file"]))
        own = session_of(folder / part["file"])
        assert [value.name for value in own.get_inputs()] == part["inputs"], part["file"]
        assert [value.name for value in own.get_outputs()] == part["outputs"], part["file"]
        made = own.run(None, {name: known[name] for name in part["inputs"]})
        known |= dict(zip(part["outputs"], made, strict=True))
    passed = set(manifest["not_made_by_a_part"])
    apart = max(float(np.abs(known[name] - expected[name]).max()) for name in expected if name not in passed)
    assert apart == 0.0, apart
    print(f"accepted: {len(manifest['parts'])} parts; outputs agree to 0")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
