"""The samples that the language was designed by: those that it can say are solved, the others told clearly.

They stand in a folder ``language`` beside the workloads.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.paths import ROOT

from placedsl import Diagnostic, InputError, Spec, load, loads

OPERATORS = Path("dnn-partitioning") / "throughput-inputs" / "OperatorGraphs"
pytestmark = [pytest.mark.workloads, pytest.mark.rotates(2)]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def samples(workloads: Path, tmp_path: Path) -> Path:
    """Copies of the samples, with the graph that two of them name beside them."""
    folder = workloads.parent / "language"
    if not folder.is_dir():
        pytest.skip("the published workloads are not there: no folder 'language' with the samples beside them")
    for path in folder.glob("*.place"):
        shutil.copy(path, tmp_path)
    for name in ("bert_l-3_inference.json", "bert_l-3_training.json"):
        shutil.copy(workloads / OPERATORS / name, tmp_path)
    return tmp_path


def told(path: Path) -> list[tuple[int, str]]:
    """Line and message of each error of a spec, all of them in the spec itself."""
    with pytest.raises(InputError) as caught:
        load(path).check()
    diagnostics: tuple[Diagnostic, ...] = caught.value.diagnostics
    assert all(d.span is not None and d.span.source.name == str(path) for d in diagnostics)
    return [(d.span.line, d.message) for d in diagnostics if d.span is not None]


def optimum(spec: Spec) -> float:
    answer = spec.solve()
    assert answer.termination == "optimal", answer.message
    return answer.value


# what can be said


def test_bert3(samples: Path) -> None:
    """The published optimum of the contiguous split."""
    spec = load(samples / "bert3.place")
    assert spec.problem.graph.nodes == 235
    assert optimum(spec) == pytest.approx(27.918584, rel=1e-6)


def test_inline(samples: Path) -> None:
    assert optimum(load(samples / "inline.place")) == pytest.approx(0.009048576)


def test_custom(samples: Path) -> None:
    """The workload gives times of transfers and no sizes, so that 40 MB of traffic cannot be asked of it."""
    path = samples / "custom.place"
    assert told(path) == [(21, "a plain number cannot be compared with a number (data)")]
    path.write_text(path.read_text(encoding="utf-8").replace("40 MB", "40"), encoding="utf-8")
    answer = load(path).solve(time_limit=120, gap=0.3)
    assert answer.termination in ("optimal", "gap_reached")
    # Proven by CP-SAT in half a minute.
    assert answer.bound <= 37.64820 * (1 + 1e-5)
    assert answer.value >= 37.64820 * (1 - 1e-5)


def test_the_examples_that_need_a_workload(samples: Path) -> None:
    """bert3.place is the sample; the two others differ in their numbers."""
    for name in ("bert3", "bert3-training", "custom"):
        shutil.copy(EXAMPLES / f"{name}.place", samples)
        load(samples / f"{name}.place").check()


# the formulation


def formulation(samples: Path) -> tuple[str, str]:
    """A small spec's graph and machine, and the sample as it stands."""
    spec = (samples / "inline.place").read_text(encoding="utf-8").partition("minimize")[0]
    return spec, (samples / "max_load.place").read_text(encoding="utf-8")


def errors(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loads(text).check()
    return [d.message for d in caught.value.diagnostics]


def test_what_of_the_formulation_is_not_accepted(samples: Path) -> None:
    """An attribute is given by 'by key', not in brackets; the three constraints are built in; tensors, not nodes,
    have a time of transfer, by device."""
    spec, sample = formulation(samples)
    goal = "minimize max_load\n"
    assert errors(spec + sample + goal) == ["unexpected 'by'"]
    sample = sample.replace("colocated(by)", "colocated by key").replace("(nodes, by)", "(nodes, key)")
    assert errors(spec + sample + goal) == [
        "a node has no 'transfer'",
        *(f"constraint '{name}' is built in" for name in ("memory", "contiguous", "colocated")),
    ]


def test_the_formulation_with_its_transfers_by_tensor(samples: Path) -> None:
    """It has the optimum of the one in ``models/``, and time_per_sample follows from its loads."""
    spec, sample = formulation(samples)
    own = sample.partition("# Each is switched on")[0].replace(
        "sum(u in nodes: u.transfer * (recv[u, d] + send[u, d]))",
        "sum(t in tensors: t.transfer[d] * (recv[t.producer, d] + send[t.producer, d]))",
    )
    fits = "fits: forall d in accelerators: sum(v in nodes: v.memory * (v on d)) <= d.memory\n"
    stated = loads(f"{spec}{own}\nminimize max_load\nsubject to\n    {fits}")
    plain = loads(f"{spec}minimize time_per_sample\nsubject to\n    memory\n")
    assert optimum(stated) == pytest.approx(optimum(plain), rel=2e-6)
    derived = loads(f"{spec}{own}\nminimize time_per_sample\nsubject to\n    {fits}")
    assert optimum(derived) == pytest.approx(optimum(plain), rel=2e-6)


@pytest.mark.parametrize(
    ("name", "instead"), [("memory", "memory"), ("contiguous", "convex"), ("colocated", "colocated by rank")]
)
def test_its_constraints_under_names_of_their_own(samples: Path, name: str, instead: str) -> None:
    """Each means what the built-in one means."""
    spec, sample = formulation(samples)
    spec = spec.replace("memory = 3 GiB,  ", "memory = 3 GiB, rank = 1,")
    assert "rank = 1" in spec
    text = re.sub(r"colocated\(by\)(.*)\bby\b", r"colocated by key\1key", sample)
    (line,) = [line for line in text.splitlines() if line.startswith(f"constraint {name}")]
    own = line.replace(f"constraint {name}", "constraint own")
    asked = "own by rank" if "by key" in own else "own"
    goal = "minimize time_per_sample\nsubject to\n    "
    first, second = loads(f"{spec}{own}\n{goal}{asked}\n"), loads(f"{spec}{goal}{instead}\n")
    assert optimum(first) == pytest.approx(optimum(second), rel=2e-6)


# what cannot be said


def test_edge_cluster(samples: Path) -> None:
    """Its model is not there; a small graph in its place, with estimates by what the devices do a second, is solved."""
    path = samples / "edge-cluster.place"
    assert told(path) == [(2, f"'{path.parent / 'GoogLeNet.onnx'}': no such file or directory")]
    graph = """graph {
    node a { type = "conv", flops = 4 GFLOP, bytes = 20 MB, output = 6 MB, memory = 1 GB }
    node b { type = "bn", flops = 0.02 GFLOP, bytes = 12 MB, output = 6 MB, memory = 1 MB }
    node c { type = "conv", flops = 9 GFLOP, bytes = 30 MB, output = 6 MB, memory = 1 GB }
    node d { type = "concat", flops = 0.001 GFLOP, bytes = 12 MB, memory = 1 MB }
    a -> b -> d
    a -> c -> d
}"""
    text = path.read_text(encoding="utf-8").replace('graph from "GoogLeNet.onnx"', graph)
    path.write_text(text, encoding="utf-8")
    assert optimum(load(path)) == pytest.approx(8.56041e-4, rel=1e-5)


def test_dgx_pod(samples: Path) -> None:
    assert told(samples / "dgx-pod.place") == [
        (12, "unexpected 'within'"),
        (15, "no statement begins with 'batch'"),
    ]


def test_tpu_pipeline(samples: Path) -> None:
    path = samples / "tpu-pipeline.place"
    overflow, acyclic = (4, "there is no parameter 'stream'"), (9, "there is no constraint 'acyclic'")
    certify = (11, "'solve' has no 'certify'")
    assert told(path) == [
        (2, f"'{path.parent / 'encoder.onnx'}': no such file or directory"),
        overflow,
        acyclic,
        certify,
    ]
    text = path.read_text(encoding="utf-8").replace("encoder.onnx", "bert_l-3_inference.json")
    path.write_text(text, encoding="utf-8")
    assert told(path) == [overflow, (7, "there is no 'bottleneck' here"), acyclic, certify]


def test_gnmt_training(samples: Path) -> None:
    """Its input was not published; with another training graph in its place it is solved."""
    path = samples / "gnmt-training.place"
    assert told(path) == [(2, f"'{path.parent / 'gnmt_training.json'}': no such file or directory")]
    text = path.read_text(encoding="utf-8").replace("gnmt_training.json", "bert_l-3_training.json")
    path.write_text(text, encoding="utf-8")
    answer = load(path).solve(time_limit=30, gap=0.5)
    assert answer.placement is not None
    assert answer.bound <= answer.value
