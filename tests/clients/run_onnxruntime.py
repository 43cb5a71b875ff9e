"""python run_onnxruntime.py FOLDER MODEL: a session of the annotated model, against the whole model."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from run_onnx_split import inputs_of, session_of


def main(folder: Path, whole: Path) -> None:
    session = session_of(whole)
    given = inputs_of(session)
    expected = session.run(None, given)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    setting = (folder / "setting.txt").read_text(encoding="utf-8").strip()
    options.add_session_config_entry("session.layer_assignment_settings", setting)
    own = onnxruntime.InferenceSession(str(folder / "annotated.onnx"), options, providers=["CPUExecutionProvider"])
    found = own.run(None, given)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    nodes = onnx.load(folder / "annotated.onnx").graph.node
    texts = [entry.value for node in nodes for entry in node.metadata_props if entry.key == "layer_ann"]
    print(
        f"accepted by ONNX Runtime {onnxruntime.__version__}: {len(texts)} of {len(nodes)} operators annotated; "
        "outputs agree"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
