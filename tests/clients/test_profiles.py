"""``placedsl profile`` with the runtimes themselves, on the CPU; needs the extra ``clients``."""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT

import placedsl

DOCS = ROOT / "docs"
LIMIT_S = 300

EXPORT = """
import sys, torch, models
torch.manual_seed(0)
model = models.decoder(3).float().eval()
class Guarded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model
    def forward(self, tokens):
        with torch.no_grad():
            shifted = (tokens + 1) % models.WORDS
            flipped = shifted.flip(1)
        return self.inner(shifted) + self.inner(flipped).tanh()
torch.export.save(torch.export.export(Guarded(), (torch.arange(10).reshape(2, 5),)), sys.argv[1])
"""


def needs(*modules: str) -> pytest.MarkDecorator:
    absent = [name for name in modules if find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "placedsl", *map(str, words)]


def run(*words: object, code: int = 0, folder: Path | None = None) -> str:
    """What a command writes to both streams."""
    done = subprocess.run(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    return done.stdout


def rows(file: Path) -> list[dict[str, str]]:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def spec_with(graph: str, profile: str, folder: Path) -> placedsl.Spec:
    text = f'graph from "{graph}" {{ profile = "{profile}" }}\n'
    return placedsl.loads(text + "device cpu: host\nminimize time_per_sample\n", folder)


@needs("torch")
def test_every_operator_of_a_program_is_measured(tmp_path: Path) -> None:
    """Also those under ``torch.no_grad()``; what is estimated is said, and here nothing is."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    model, times = tmp_path / "m.pt2", tmp_path / "times.csv"
    subprocess.run([sys.executable, "-c", EXPORT, model], check=True, env=environment, timeout=LIMIT_S)
    said = run("profile", model, "--device", "cpu", "--threads", 1, "--repeats", 5, "-o", times)
    assert "medians of 5 passes after 3" in said
    assert "not measured" not in said
    assert not list(tmp_path.glob("*.passes"))
    spec = spec_with("m.pt2", "times.csv", tmp_path)
    problem = spec.problem
    assert problem.measured.all()
    graph = problem.graph
    assert len(rows(times)) == graph.nodes
    assert problem.time.sum() == pytest.approx(spec.solve().value)
    assert any("of the whole model's" in note for note in graph.notes)
    assert f"all {graph.nodes} times are measured" in problem.notes
    linear = graph.attributes["type"] == "linear"
    made = np.zeros(graph.nodes)
    np.maximum.at(made, graph.tensor_producer, graph.tensor_bytes)
    inner = linear & (made > 0)
    assert inner.any()
    assert (graph.attributes["allocated"][inner] >= made[inner]).all(), "a product has at least its result allocated"


@needs("torch")
def test_an_archive_without_weights_is_measured(tmp_path: Path) -> None:
    """docs/encoder.pt2 holds none; sizes of its dimensions are given."""
    times = tmp_path / "times.csv"
    sizes = ("--size", "tokens[0]=1", "--size", "tokens[1]=16")
    run("profile", DOCS / "encoder.pt2", "--device", "cpu", "--repeats", 2, "--as", "gpu", "-o", times, *sizes)
    assert {row["device"] for row in rows(times)} == {"gpu"}
    assert "inputs 1x16" in times.read_text(encoding="utf-8")


@needs("onnxruntime")
def test_every_node_of_an_onnx_model_is_measured(tmp_path: Path) -> None:
    """docs/picture.onnx comes without its weights."""
    times = tmp_path / "times.csv"
    run("profile", DOCS / "picture.onnx", "--device", "cpu", "--size", "batch=2", "--repeats", 7, "-o", times)
    found = {row["node"]: float(row["time"].removesuffix(" us")) for row in rows(times)}
    text = f'graph from "picture.onnx" {{ batch = 2, profile = "{times.as_posix()}" }}\n'
    graph = placedsl.loads(text + "device cpu: host\nminimize time_per_sample\n", DOCS).problem.graph
    assert found.keys() == {str(own) for own in graph.ids}
    assert found["conv1"] > found["flatten"]


@needs("torch")
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_measurement_that_is_stopped_goes_on(tmp_path: Path) -> None:
    times, kept = tmp_path / "times.csv", tmp_path / "times.csv.passes"
    words = ("profile", DOCS / "encoder.pt2", "--device", "cpu", "--threads", 1, "-o", times, "--size", "tokens[1]=16")
    child = subprocess.Popen(command(*words, "--repeats", 100_000), stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + LIMIT_S
    while not (kept.exists() and kept.read_bytes().count(b"\n") >= 4) and time.monotonic() < end:
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 5, said
    assert "the same command goes on" in said
    assert not times.exists()
    done = kept.read_bytes().count(b"\n") - 1
    assert "holds passes with threads 1, and this is 2" in run(*words, "--threads", 2, code=1)
    run(*words, "--repeats", done + 1)
    assert f"medians of {done + 1} passes" in times.read_text(encoding="utf-8")
    assert not kept.exists()


@needs("torch")
def test_processes_beside_run_while_one_is_measured(tmp_path: Path) -> None:
    times = tmp_path / "times.csv"
    words = ("profile", DOCS / "encoder.pt2", "--device", "cpu", "--threads", 1, "--size", "tokens[1]=16")
    run(*words, "--beside", 1, "--interpreted", "--repeats", 2, "-o", times)
    text = times.read_text(encoding="utf-8")
    assert "beside 1 others" in text
    assert "calls by an interpreter" in text
    run("profile", DOCS / "picture.onnx", "--device", "cpu", "--size", "batch=1", "--interpreted", code=2)


@needs("torch")
def test_operators_that_depend_on_no_input_count_with_their_first_reader() -> None:
    import torch

    from placedsl.measurement.torch_calls import first_readers, steps_of

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            table = torch.arange(4).cos()
            return ((x * 2 + table) * table).relu()

    module = torch.export.export(Model(), (torch.zeros(4),)).module()
    steps = list(steps_of(module, {}, {}))
    nodes = {"mul": 0, "add": 1, "mul_1": 2, "relu": 3}
    found = {key.name: at for key, at in first_readers(steps, nodes).items()}
    assert {name: found[name] for name in ("arange", "cos")} == {"arange": 1, "cos": 1}
    assert {name: found[name] for name in nodes} == nodes


@needs("torch")
def test_a_link_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "links.place"
    run("profile", "--links", "--repeats", 5, "--as", "gpu", "-o", file)
    *remarks, statement = file.read_text(encoding="utf-8").splitlines()
    assert "gloo of torch" in remarks[0]
    medians = {int(line.split()[1]): float(line.split()[2]) for line in remarks[3:]}
    assert len(medians) == 9
    assert medians[4**13] > medians[4**8] > 0
    assert statement.startswith("link gpu <-> gpu { bandwidth = ")


@needs("torch")
def test_what_cannot_be_run_is_told(tmp_path: Path) -> None:
    assert "'x'" in run("profile", DOCS / "encoder.pt2", "--device", "cpu", "--size", "x=3", code=1)
    assert "--device nowhere" in run("profile", DOCS / "encoder.pt2", "--device", "nowhere", code=1)
    broken = tmp_path / "m.pt2"
    broken.write_bytes((DOCS / "encoder.pt2").read_bytes()[:5000])
    assert "cannot be read" in run("profile", broken, "--device", "cpu", code=1)


@needs("torch")
def test_commands_of_the_page_run(tmp_path: Path) -> None:
    """Those of docs/measured-costs.md write the files that are shown there, but for the numbers."""
    text = (DOCS / "measured-costs.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ placedsl (.+)$", text, re.MULTILINE)
    assert len(commands) >= 2
    shutil.copy(DOCS / "encoder.pt2", tmp_path)
    for words in commands:
        run(*shlex.split(words), "--repeats", 2, folder=tmp_path)
    found, shown = rows(tmp_path / "encoder-times.csv"), rows(DOCS / "encoder-times.csv")
    assert [row["node"] for row in found] == [row["node"] for row in shown]
    made, kept = ((folder / "worker-links.place").read_text(encoding="utf-8") for folder in (tmp_path, DOCS))
    assert [line.split()[:2] for line in made.splitlines()] == [line.split()[:2] for line in kept.splitlines()]


MADE = """
import models, torch

def decoder():
    return models.decoder(3).float(), torch.arange(10).reshape(2, 5)

class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
    def forward(self, x):
        return self.one(self.one(x))

def twice():
    return Twice(), (torch.zeros(2, 4),)

def nothing():
    return 3

def failing():
    return models.decoder("three")
"""
CONFIG = (
    '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64,'
    ' "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50,'
    ' "max_position_embeddings": 64, "torch_dtype": "float32"}'
)
ON_CPU = ("--device", "cpu", "--threads", 1, "--repeats", 3, "--warm-up", 1)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "made.py").write_text(MADE, encoding="utf-8")
    shutil.copy(Path(__file__).parent / "models.py", tmp_path)  # what stands beside the file can be imported
    return tmp_path


@needs("torch")
def test_a_model_of_a_python_file_is_exported_and_measured(made: Path) -> None:
    said = run("profile", "made.py:decoder", *ON_CPU, "-o", "times.csv", folder=made)
    assert 'graph from "times.pt2" { profile = "times.csv" }' in said
    problem = spec_with("times.pt2", "times.csv", made).problem
    assert problem.measured.all()
    assert len(rows(made / "times.csv")) == problem.graph.nodes
    assert "model.layers.2.attention" in set(problem.graph.attributes["module"].tolist())


@needs("torch")
def test_layers_are_measured_forward_and_backward(made: Path) -> None:
    """The graph that is written beside the table has all times, and the weights of the model."""
    import models

    said = run("profile", "made.py:decoder", "--training", "--cpu-time", *ON_CPU, "-o", "times.csv", folder=made)
    assert "clock of the processor" in said
    assert 'graph from "times.json" { profile = "times.csv" }' in said
    problem = spec_with("times.json", "times.csv", made).problem
    units = ["model.embed_tokens", *(f"model.layers.{k}" for k in range(3)), "model.norm", "lm_head"]
    assert list(map(str, problem.graph.ids)) == [*units, *(f"{unit}.backward" for unit in units)]
    assert problem.measured.all()
    assert (problem.time > 0).all()
    weights = sum(one.numel() * 4 for one in models.decoder(3).parameters())
    assert problem.graph.attributes["parameters"].sum() == pytest.approx(weights)
    layer = problem.graph.attributes["activations"][1]
    assert layer > 2 * 5 * models.WIDTH * 4, "a layer keeps more than its input"


@needs("torch")
def test_what_an_interpreter_adds_to_layers(made: Path) -> None:
    """Layers that are alike make as many calls; a table says that calls are by an interpreter."""
    import torch

    import models
    from placedsl.measurement.interpreter import exported, shares
    from placedsl.measurement.python_models import Called

    layers = [f"model.layers.{k}" for k in range(3)]
    units = ["model.embed_tokens", *layers, "model.norm", "lm_head"]
    nested = exported(Called(models.decoder(3).eval(), (torch.arange(10).reshape(2, 5),)))
    found = shares(nested, [*units, "model.absent"])
    assert found.sum() == pytest.approx(1.0)
    assert found[1] == found[2] == found[3] > found[0] > found[6] == 0.0
    said = run("profile", "made.py:decoder", "--training", "--interpreted", *ON_CPU, "-o", "t.csv", folder=made)
    assert "calls by an interpreter" in said
    assert len(rows(made / "t.csv")) == 12


@needs("torch", "transformers")
@pytest.mark.parametrize("sizes", [("batch=2", "length=6"), ("batch=1", "length=9", "tokens=1", "logits=1")])
def test_layers_of_a_configuration_are_measured(sizes: tuple[str, ...], tmp_path: Path) -> None:
    """Also one position behind the keys and values of others."""
    (tmp_path / "config.json").write_text(CONFIG, encoding="utf-8")
    words = [word for size in sizes for word in ("--size", size)]
    run("profile", "config.json", *ON_CPU, *words, "-o", "times.csv", folder=tmp_path)
    text = f'graph from "config.json" {{ {", ".join(sizes)}, profile = "times.csv" }}\n'
    problem = placedsl.loads(text + "device cpu: host\nminimize time_per_sample\n", tmp_path).problem
    assert problem.measured.all()
    assert len(rows(tmp_path / "times.csv")) == problem.graph.nodes == 6


@needs("torch", "transformers")
def test_a_configuration_is_measured_for_training(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(CONFIG, encoding="utf-8")
    run("profile", "config.json", "--training", *ON_CPU, "--size", "batch=2", "--size", "length=6", "-o", "t.csv",
        folder=tmp_path)  # fmt: skip
    problem = spec_with("t.json", "t.csv", tmp_path).problem
    assert problem.graph.nodes == 12
    assert problem.measured.all()


@needs("torch")
def test_what_python_files_do_wrongly_is_told(made: Path) -> None:
    for name, training, told in (
        ("decodr", False, "did you mean 'decoder'?"),
        ("nothing", False, "nothing() of 'made.py' returns int"),
        ("failing", False, "failing() of 'made.py' fails in line"),
        ("twice", True, "module 'one' is run 2 times in a pass"),
    ):
        options = ["--training"] if training else []
        assert told in run("profile", f"made.py:{name}", *ON_CPU, *options, "-o", "t.csv", code=1, folder=made)
    assert "there is no file 'absent.py'" in run("profile", "absent.py:x", *ON_CPU, "-o", "t.csv", code=1, folder=made)
