"""Exporters for runtimes: what is written, what is refused and why, from the JSON of an answer alone."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
from support.paths import ROOT

import placedsl
from placedsl.cli.main import main
from placedsl.diagnostics import InputError, UsageError
from placedsl.export import registry, runtimes
from placedsl.export.runtimes import vllm
from placedsl.problem.plan import Plan
from placedsl.problem.plan_document import plan_document, plan_from_document

LAYERS = 6


def model(layer: str = "layer = {}", *, devices: str = "device gpu[3]: accelerator", rules: str = "") -> str:
    """Embedding, six layers of two operators, norm and head; weights everywhere but in the rotary table."""
    lines = ["graph {", "    node embed { time = 1 ms, memory = 4 MiB, output = 1 MiB }"]
    lines += ["    node rotary { time = 0 ms, output = 1 KiB }"]
    previous = "embed"
    for k in range(LAYERS):
        said = layer.format(k)
        for part, kind in (("attention", 2), ("mlp", 3)):
            own = f", {said}" if said else ""
            lines.append(f"    node {part}_{k} {{ time = {kind} ms, memory = 8 MiB, output = 1 MiB{own} }}")
            lines += [f"    {previous} -> {part}_{k}"] + [f"    rotary -> {part}_{k}"] * (part == "attention")
            previous = f"{part}_{k}"
    lines += ["    node norm { time = 0.1 ms, memory = 1 KiB, output = 1 MiB }"]
    lines += ["    node head { time = 1 ms, memory = 4 MiB }", f"    {previous} -> norm -> head", "}"]
    lines += [devices, "device cpu: host", "interconnect { bandwidth = 16 GiB/s }", "minimize time_per_sample"]
    return "\n".join([*lines, *(["subject to", *rules.splitlines()] if rules else [])]) + "\n"


def placed(counts: dict[str, list[int]], *, embed: str = "", head: str = "") -> dict[str, str]:
    """Layers by device; the rest with the first and the last layer."""
    out = {f"{part}_{k}": device for device, own in counts.items() for k in own for part in ("attention", "mlp")}
    first, last = embed or out["attention_0"], head or out[f"mlp_{LAYERS - 1}"]
    return out | {"embed": first, "rotary": first, "norm": last, "head": last}


def solvable(layer: str = "layer = {}") -> str:
    """Without a host, so that dynamic programming solves it at once."""
    rules = "    contiguous\n" + ("    colocated by layer\n" if layer else "")
    return model(layer, rules=rules).replace("device cpu: host\n", "")


def plan_of(text: str, placement: dict[str, str]) -> Plan:
    spec = placedsl.loads(text)
    return plan_from_document(json.loads(json.dumps(plan_document(Plan.of(spec.problem, spec.evaluate(placement))))))


SPLIT = {"gpu[2]": [0, 1], "gpu[3]": [2, 3, 4], "gpu[1]": [5]}


@pytest.mark.parametrize("layer", ["layer = {}", 'layer = "model.layers.{}"', 'module = "model.layers.{}.mlp.up"'])
def test_vllm_is_told_layers_per_rank_in_the_order_of_the_pipeline(layer: str) -> None:
    plan = plan_of(model(layer), placed(SPLIT))
    assert vllm.reasons_against(plan) == []
    lines = vllm.write(plan)["vllm.env"].splitlines()
    assert "VLLM_PP_LAYER_PARTITION=2,3,1" in lines
    assert "CUDA_VISIBLE_DEVICES=1,2,0" in lines
    assert any("--pipeline-parallel-size 3" in line for line in lines)
    assert all(re.fullmatch(r"#.*|[A-Z_]+=[\d,]+", line) for line in lines), "as docker --env-file takes it"


def test_layers_named_by_their_names() -> None:
    """Attention and the rest are parts of layer1 by their names; another kind of name is another kind of layer."""
    text = model("").replace("attention_", "layer").replace("mlp_", "layer_")
    places = {k.replace("attention_", "layer").replace("mlp_", "layer_"): d for k, d in placed(SPLIT).items()}
    written = vllm.write(plan_of(text, places))["vllm.env"]
    assert "6 layers (by names)" in written
    assert "VLLM_PP_LAYER_PARTITION=2,3,1" in written
    two, of_two = text.replace("layer_", "block_"), {k.replace("layer_", "block_"): d for k, d in places.items()}
    (reason,) = vllm.reasons_against(plan_of(two, of_two))
    assert reason.startswith("there are layers of several kinds: 'block' and 'layer'")


def test_weights_outside_of_layers_belong_to_the_ends() -> None:
    text = model("").replace("attention_", "layer")
    places = {k.replace("attention_", "layer"): d for k, d in placed(SPLIT).items()}
    assert vllm.reasons_against(plan_of(text, places)) == [
        "stage 2 of 3 (gpu[3]) holds 'mlp_2', 'mlp_3' and 'mlp_4', which have weights and are part of no layer: only "
        "the first stage and the last hold more than layers"
    ]
    assert vllm.reasons_against(plan_of(text.replace("memory = 8 MiB", "memory = 0 MiB"), places)) == []


def test_random_cuts_give_the_counts_of_the_placement() -> None:
    """Every way to cut six layers into at most three runs: the counts are those of the runs."""
    text = model()
    cuts = [(a, b) for a in range(1, LAYERS) for b in range(a, LAYERS)]
    for a, b in cuts:
        runs = [list(range(a)), list(range(a, b)), list(range(b, LAYERS))]
        own = dict(zip(("gpu[3]", "gpu[1]", "gpu[2]"), runs, strict=True))
        plan = plan_of(text, placed({device: run for device, run in own.items() if run}))
        assert vllm.reasons_against(plan) == []
        expected = ",".join(str(len(run)) for run in runs if run)
        assert f"VLLM_PP_LAYER_PARTITION={expected}\n" in vllm.write(plan)["vllm.env"]


TRAINING = """graph {
    node f { time = 1 ms, output = 1 MiB, layer = 0 }
    node b { time = 1 ms, backward = true, layer = 0 }
    f -> b
}
device gpu: accelerator
minimize time_per_sample
"""
TRANSFERS = "interconnect { bandwidth = 16 GiB/s }\n"


@pytest.mark.parametrize(
    ("text", "placement", "told"),
    [
        (model(), placed(SPLIT) | {"mlp_1": "gpu[3]"},
         "layer 1 is on gpu[2] and gpu[3] ('attention_1' and 'mlp_1'): add 'boundaries by layer'"),
        (model(), placed({"gpu[1]": [0, 1, 4, 5], "gpu[2]": [2, 3]}),
         "gpu[1] holds stages 1 and 3, which are not one run of layers: add 'contiguous'"),
        (model(), placed({"gpu[1]": [0, 1, 2], "cpu": [3, 4, 5]}), "cpu is a host and holds 'attention_3', 'mlp_3'"),
        (model(), placed(SPLIT, head="cpu"), "cpu is a host and holds 'norm' and 'head'"),
        (model(), placed({"gpu[2]": list(range(LAYERS))}, embed="gpu[1]"), "stage 1 (gpu[1]: 'embed' and 'rotary'"),
        (model(""), placed(SPLIT), "no node says which layer it is part of"),
        (TRAINING + TRANSFERS, {"f": "gpu", "b": "gpu"}, "vLLM serves inference, and the graph has a backward part"),
        (model().replace("minimize time_per_sample", "minimize latency"), placed(SPLIT), "the plan is for one sample"),
        (model().replace("minimize", "parallelism { data = 1..2 }\nminimize").replace("gpu[3]", "gpu[4]"),
         placed(SPLIT), ""),
    ],
)  # fmt: skip
def test_what_vllm_cannot_run(text: str, placement: dict[str, str], told: str) -> None:
    reasons = vllm.reasons_against(plan_of(text, placement))
    assert any(told in reason for reason in reasons) if told else reasons == []


def test_stages_that_share_devices_are_refused() -> None:
    text = model().replace("minimize", "parallelism { data = 1..2 }\nminimize").replace("gpu[3]", "gpu[4]")
    spec = placedsl.loads(text)
    found = spec.evaluate(placed(SPLIT), {"copies": {"gpu[1]": 2, "gpu[2]": 1, "gpu[3]": 1, "gpu[4]": 0, "cpu": 0}})
    reasons = vllm.reasons_against(Plan.of(spec.problem, found))
    assert reasons == [
        "stage 1 has 1 copy and stage 3 has 2 copies: all have as many here; leave 'parallelism' out",
    ]


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    (tmp_path / "model.place").write_text(solvable(), encoding="utf-8")
    file = tmp_path / "answer.json"
    assert main(["solve", str(tmp_path / "model.place"), "--quiet", "--json", str(file)]) == 0
    return file


def test_the_command_writes_a_folder(answer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["export", str(answer), "--to", "vllm"]) == 0
    shown = capsys.readouterr().out
    folder = tmp_path / "out"
    for _ in range(2):
        assert main(["export", str(answer), "--to", "vllm", "-o", str(folder)]) == 0
        assert [file.name for file in folder.iterdir()] == ["vllm.env"]
        assert (folder / "vllm.env").read_text(encoding="utf-8") == shown
    counts = [len({n["attributes"]["layer"] for n in stage["nodes"] if "attributes" in n})
              for stage in json.loads(answer.read_text(encoding="utf-8"))["plan"]["stages"]]  # fmt: skip
    assert sum(counts) == LAYERS
    assert f"VLLM_PP_LAYER_PARTITION={','.join(map(str, counts))}\n" in shown


def test_nothing_is_written_that_is_not_whole(answer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    (folder / "vllm.env").mkdir(parents=True)
    assert main(["export", str(answer), "--to", "vllm", "-o", str(folder)]) == 2
    assert "this is a folder" in capsys.readouterr().err
    assert main(["export", str(answer), "--to", "vllm", "-o", str(tmp_path / "none" / "out")]) == 2
    assert main(["export", str(answer), "--to", "vllm", "-o", str(answer)]) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["answer.json", "model.place", "out"]


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        (lambda a: a.update(plan=None), 1, "this answer holds no placement, and so no plan"),
        (lambda a: a.pop("plan"), 1, "this is not an answer with a 'plan'"),
        (lambda a: a["plan"]["stages"][0]["nodes"].pop(), 0, ""),
        (
            lambda a: a["plan"]["execution"].update(run="operators"),
            1,
            "error: not for vllm: the plan is for one sample",
        ),
    ],
)
def test_answers_that_cannot_be_exported(
    change: object, code: int, told: str, answer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(answer.read_text(encoding="utf-8"))
    change(document)  # type: ignore[operator]
    answer.write_text(json.dumps(document), encoding="utf-8")
    assert main(["export", str(answer), "--to", "vllm"]) == code
    assert told in capsys.readouterr().err


def test_unknown_runtimes_and_texts(answer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(answer), "--to", "vlm"]) == 2
    assert "there is no exporter 'vlm'; did you mean 'vllm'?" in capsys.readouterr().err
    (tmp_path / "text.json").write_text("{", encoding="utf-8")
    assert main(["export", str(tmp_path / "text.json"), "--to", "vllm"]) == 1
    assert "the file ends in the middle of its JSON" in capsys.readouterr().err


def test_answers_export_themselves() -> None:
    found = placedsl.loads(solvable()).solve()
    assert found.export("vllm") == dict(vllm.write(found.plan))
    with pytest.raises(InputError, match="not for vllm: no node says"):
        placedsl.loads(solvable("")).solve().export("vllm")
    with pytest.raises(UsageError, match="there is no exporter"):
        found.export("vlm")


def test_an_exporter_is_one_file(answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of docs/adding-an-exporter.md, in a file by itself: the command finds, checks and runs it."""
    page = (ROOT / "docs" / "adding-an-exporter.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```\n", page, re.MULTILINE | re.DOTALL)
    folder = tmp_path / "added"
    folder.mkdir()
    (folder / "my_ranks.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(runtimes, "__path__", [*runtimes.__path__, str(folder)])
    importlib.invalidate_caches()
    assert {"vllm", "my-ranks"} <= set(registry.names())
    out = tmp_path / "out"
    assert main(shlex.split(f"export {answer} --to my-ranks -o {out}")) == 0
    stages = json.loads(answer.read_text(encoding="utf-8"))["plan"]["stages"]
    expected = [f"{k} {stage['devices'][0]} {len(stage['nodes'])}" for k, stage in enumerate(stages)]
    assert (out / "ranks.txt").read_text(encoding="utf-8").splitlines() == expected


def test_every_exporter_has_what_the_registry_asks_for() -> None:
    for name, module in registry.built_in().items():
        made = importlib.import_module(module)
        assert made.MEANING, name
        assert made.__doc__, name
        assert callable(made.write), name
        assert callable(made.reasons_against), name


def test_a_spec_alone_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "s.place"
    spec.write_text("", encoding="utf-8")
    assert main(["export", str(spec), "--to", "vllm"]) == 2
    told = capsys.readouterr().err
    assert f"an answer is expected: placedsl solve {spec} --json answer.json, then placedsl export answer.json" in told
    assert main(["export", str(spec), "--to", "vLLM"]) == 2
    assert "did you mean 'vllm'?" in capsys.readouterr().err
