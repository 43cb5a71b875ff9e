"""A spec built in Python is the same spec, and its errors are told in both places."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import networkx
import pytest
from support.paths import ROOT

import placedsl
from placedsl import InputError, Model, UsageError, load, loads
from placedsl.expr import Family, count, forall, nodes, time_per_sample
from placedsl.expr import load as load_of


def plain(explained: str) -> str:
    """What grounding took, and in which line the spec says something, apart."""
    spec, _, told = explained.partition("# what each part adds")
    return spec + re.sub(r"(?<= )(?:\d+\.\d{4}|\d+ )", "", told)


def inline() -> tuple[Model, Family, Family]:
    """examples/inline.place, statement by statement."""
    model = Model("inline")
    embed = model.node("embed", time={"accelerator": "4 ms", "host": "9 ms"}, memory="2 GiB", output="8 MiB")
    left = model.node("left", time={"accelerator": 0.006, "host": 0.04}, memory=3 * 2**30, output=8 * 2**20)
    model.node("right", time={"accelerator": "5 ms", "host": "35 ms"}, memory="3 GiB", output="8 MiB")
    model.node("head", time={"accelerator": "3 ms", "host": "20 ms"}, memory="1 GiB", output="1 MiB")
    model.edge(embed, left, "head")
    model.edge("embed", "right", "head")
    gpu = model.device("gpu", "accelerator", 2, memory="6 GiB")
    cpu = model.device("cpu", "host")
    model.link(gpu, cpu, bandwidth=16e9)
    model.minimize(time_per_sample)
    model.subject_to("memory")
    model.subject_to("contiguous")
    return model, gpu, cpu


def test_it_is_the_spec_that_the_text_is() -> None:
    model, _, _ = inline()
    written = load(ROOT / "examples" / "inline.place")
    built, read = (plain(spec.explain()) for spec in (model.spec(), written))
    assert built == read
    assert model.solve().value == written.solve().value
    assert loads(model.text()).problem.objectives[0].name == "time_per_sample"
    assert str(model) == model.text()


def test_fusion() -> None:
    model = Model()
    for name, kind in zip("abc", ("Conv", "max", "relu"), strict=True):
        model.node(name, time="1 ms", type=f'"{kind}"', output="1 MiB", layer=1)
    model.edge("a", "b", "c")
    model.device("cpu", "host")
    model.fuse("conv", "max")
    model.minimize("time_per_sample")
    assert model.spec().problem.graph.ids == ("a+b", "c")
    model.fuse(by="layer")
    assert model.spec().problem.graph.ids == ("layer=1",)
    with pytest.raises(UsageError, match="fuse takes types"):
        model.fuse("conv", by="layer")


def test_clusters_and_parallelism() -> None:
    model = Model()
    model.node("a", time="4 ms", output="8 MiB", parameters="1 MiB")
    model.node("b", time="4 ms", output="8 MiB")
    model.edge("a", "b")
    with model.cluster("rack", 2) as rack:
        with model.cluster("pod", 2):
            gpu = model.device("gpu", "accelerator", 2)
            model.interconnect(bandwidth="160 GB/s")
        model.interconnect(bandwidth=40e9)
    model.interconnect("network", bandwidth=16e9)
    model.parallelism(range(1, 3))
    model.minimize(time_per_sample)
    model.subject_to("first", "a on rack[2].pod[1].gpu[1]")
    model.subject_to("apart", forall(count(v.on(d) for v in nodes) <= 1 for d in gpu))
    assert model.text().startswith("graph {\n")
    assert "cluster rack[2] {\n    cluster pod[2] {\n        device gpu[2]: accelerator\n" in model.text()
    assert str(rack) == "rack"
    answer = model.solve()
    assert answer.termination == "optimal"
    assert answer.device_of()["a"] == "rack[2].pod[1].gpu[1]"
    wrong = Model()
    wrong.add("graph { node a { time = 1 ms } }\ndevice gpu: accelerator\nminimize time_per_sample")
    wrong.parallelism((2, 3), "0")
    with pytest.raises(InputError, match="1 must be among the numbers of devices"):
        wrong.check()


def test_every_statement() -> None:
    model, gpu, cpu = inline()
    most = model.param("most", 2, "int")
    slack = model.param("slack", "30%")
    heavy = model.set("heavy", nodes.where(lambda v: v.memory > "2 GiB"))
    model.set("ends", "{embed, head}")
    model.interconnect(bandwidth="8 GB/s", latency=1e-6)
    model.schedule("pipedream")
    model.settings(time_limit=60, gap="1%", solver="highs", seed=3)
    model.constraint("few", forall(count(v.on(d) for v in nodes) <= most for d in gpu))
    model.constraint("apart", "forall g in partition(nodes, key), d in devices: count(v in g: v on d) <= 1", by="key")
    model.subject_to("few")
    model.subject_to("apart", by="name")
    model.subject_to("balanced", forall(load_of(d) <= (1 + slack) * load_of(e) + "9 ms" for d in gpu for e in gpu))
    model.subject_to("pair", heavy[1].on(gpu[1]) | ~heavy[2].on(cpu))
    model.add("param unused = 3\nparam other = 4")
    assert (
        model.text().split("device cpu: host\n")[1]
        == inspect.cleandoc("""
        link gpu <-> cpu { bandwidth = 16 GB/s }
        minimize time_per_sample
        param most: int = 2
        param slack = 30%
        set heavy = nodes where memory > 2 GiB
        set ends = {embed, head}
        interconnect { bandwidth = 8 GB/s, latency = 1 us }
        schedule pipedream
        solve { time_limit = 60 s, gap = 1%, solver = highs, seed = 3 }
        constraint few = forall d in gpu: count(v in nodes: v on d) <= most
        constraint apart by key = forall g in partition(nodes, key), d in devices: count(v in g: v on d) <= 1
        param unused = 3
        param other = 4
        subject to
            memory
            contiguous
            few
            apart by name
            balanced: forall d in gpu, e in gpu: load(d) <= (1 + slack) * load(e) + 9 ms
            pair: heavy[1] on gpu[1] or not heavy[2] on cpu
        """)
        + "\n"
    )
    assert model.solve().termination in ("optimal", "gap_reached")
    assert model.spec({"most": "1"}).elaborated.parameters["most"][0] == 1


def test_names_that_are_no_plain_words() -> None:
    model = Model()
    first = model.node("conv 1", time="1 ms", **{"kind of": '"x"'})
    model.node("node", time="1 ms")
    model.edge(first, "node")
    model.device("a gpu", "host", 2)
    model.minimize("time_per_sample")
    model.subject_to("here", first.on("cpu"))
    model.device("cpu", "host")
    assert '"conv 1" -> "node"' in model.text()
    assert model.solve().device_of()["conv 1"] == "cpu"


def test_errors_are_told_in_the_text_and_in_python() -> None:
    model, gpu, _ = inline()
    model.subject_to("wrong", forall(load_of(d) <= "3 GiB" for d in gpu))
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    model.subject_to("worse", "forall d in gpus: load(d) <= 3 ms")
    with pytest.raises(InputError) as caught:
        model.solve()
    first, second = (d.render() for d in caught.value.diagnostics)
    assert first.startswith("<inline>:16:29: error: a number (time) cannot be compared with a number (data)")
    assert "forall d in gpu: load(d) <= 3 GiB" in first
    assert f'built at {__file__}:{line}: model.subject_to("wrong", forall(' in first
    assert "there is no set 'gpus'" in second
    assert f"built at {__file__}:{line + 2}: model.subject_to" in second


def test_a_formula_is_told_where_it_was_built_and_not_where_it_is_used() -> None:
    model, gpu, _ = inline()
    product = forall(load_of(d) * time_per_sample <= 1 for d in gpu)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    model.subject_to("product", product)
    with pytest.raises(InputError) as caught:
        model.check()
    assert f"built at {__file__}:{line}: product = " in str(caught.value)


def test_syntax_errors_and_statements_too_many() -> None:
    model, _, _ = inline()
    model.subject_to("open", "forall d in gpu: load(d <= 3")
    model.minimize("devices_used")
    with pytest.raises(InputError, match=r"'\(' is never closed[\s\S]*built at .*model.subject_to\(\"open\""):
        model.spec()
    model, _, _ = inline()
    model.minimize("devices_used")
    with pytest.raises(InputError, match=r"a second 'minimize'[\s\S]*built at .*model.minimize\(\"devices_used\"\)"):
        model.spec()


def test_a_parameter_cannot_hide_an_attribute_that_a_set_asks_for() -> None:
    """In the text the parameter would be meant; in Python the attribute was."""
    model, _, _ = inline()
    model.set("heavy", nodes.where(lambda v: v.memory > "2 GiB"))
    with pytest.raises(UsageError, match="'memory' is a parameter, and an attribute that a set asks for"):
        model.param("memory", "6 GiB")


def chain() -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_node("a", time={"accelerator": 4, "host": "9 ms"}, memory="2 GiB", output=2**23, layer=1, kind="x")
    graph.add_node("b", time={"accelerator": 6, "host": 30}, memory=3 * 2**30, output="8 MiB", layer=2)
    graph.add_node(3, time={"accelerator": 5, "host": 25.0}, memory="3 GiB", name="the third")
    graph.add_edge("a", "b")
    graph.add_edge("b", 3, output="4 MiB")
    return graph


def on_machine(graph: object, **options: object) -> Model:
    model = Model("chain")
    model.graph(graph, **options)
    gpu = model.device("gpu", "accelerator", 2, memory="6 GiB")
    model.device("cpu", "host")
    model.interconnect(bandwidth="16 GiB/s")
    model.minimize(time_per_sample)
    model.subject_to("memory")
    model.subject_to("apart", forall(count(v.on(d) for v in nodes.where(lambda v: v.layer == 1)) <= 1 for d in gpu))
    return model


def test_graph_of_networkx(tmp_path: Path) -> None:
    model = on_machine(chain(), time_unit="ms")
    answer = model.solve()
    graph = answer.problem.graph
    assert graph.ids == ("a", "b", 3)
    assert graph.names[2] == "the third"
    assert graph.time["host"].tolist() == pytest.approx([0.009, 0.03, 0.025])
    assert graph.tensor_bytes.tolist() == [2**23, 2**22]
    assert answer.value == pytest.approx(0.009)
    model.write(tmp_path / "chain.place")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chain.graph.json", "chain.place"]
    assert load(tmp_path / "chain.place").solve().value == answer.value


def test_times_of_networkx() -> None:
    """Plain numbers have no unit unless one is said; texts have their own; both together need one."""
    graph = networkx.DiGraph([("a", "b")])
    networkx.set_node_attributes(graph, 4, "time")
    assert on_machine(graph, attributes=()).spec is not None
    with pytest.raises(InputError, match="a node has no 'layer'"):
        on_machine(graph).spec()
    graph.nodes["a"].update(layer=1)
    assert not on_machine(graph).spec().problem.graph.time_in_seconds
    assert on_machine(graph, time_unit="us").spec().problem.graph.time["host"].tolist() == pytest.approx([4e-6, 4e-6])
    graph.nodes["a"]["time"] = "4 ms"
    with pytest.raises(InputError, match='say what the numbers are in: time_unit="ms"'):
        on_machine(graph)
    graph.nodes["b"]["time"] = "1 s"
    assert on_machine(graph).spec().problem.graph.time["host"].tolist() == [0.004, 1.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": None}, "node 'a', 'time', is a number, or a time like '4 ms', 0 or more; this is None"),
        ({"time": "4 GiB"}, "'4 GiB' is data"),
        ({"time": {"host": -1}}, "time on 'host', is a number"),
        ({"memory": "2 Gib"}, "did you mean 'GiB'"),
        ({"memory": float("nan")}, "this is nan"),
        ({"shape": (3, 4)}, r"'shape', is a number or a text; this is \(3, 4\)"),
    ],
)
def test_attributes_of_networkx_that_cannot_be_used(change: dict[str, object], words: str) -> None:
    graph = chain()
    graph.nodes["a"].update(change)
    with pytest.raises(InputError, match=words):
        on_machine(graph, time_unit="ms")


def test_graphs_of_networkx_that_cannot_be_used() -> None:
    for graph in (networkx.Graph(chain()), networkx.MultiDiGraph(chain()), {"a": "b"}):
        with pytest.raises(InputError, match=r"a networkx.DiGraph is expected"):
            on_machine(graph)
    unnamed = networkx.relabel_nodes(chain(), {3: (1, 2)})
    with pytest.raises(InputError, match="neither a text nor a whole number"):
        on_machine(unnamed, time_unit="ms")
    weighted = chain()
    weighted.edges["a", "b"]["weight"] = 3
    with pytest.raises(InputError, match="'weight', means nothing"):
        on_machine(weighted, time_unit="ms")
    assert on_machine(weighted, time_unit="ms", attributes=["layer"]).check() is None
    with pytest.raises(InputError, match="'GiB' is data"):
        on_machine(chain(), time_unit="GiB")
    loop = chain()
    loop.add_edge(3, "a")
    with pytest.raises(InputError, match="the graph has a cycle"):
        on_machine(loop, time_unit="ms").spec()


def test_graph_from_a_file_beside_the_model(tmp_path: Path) -> None:
    on_machine(chain(), time_unit="ms").write(tmp_path / "chain.place")
    model = Model(folder=tmp_path)
    model.graph(Path("chain.graph.json"), format="native")
    model.device("cpu", "host")
    model.minimize(time_per_sample)
    assert model.solve().value == pytest.approx(0.064)
    with pytest.raises(UsageError, match="'format' says how a file is written"):
        Model().graph(chain(), format="native")


def test_a_large_graph_is_not_read_as_text() -> None:
    """The records of fifty thousand nodes go to the reader of the native format; the text only names them."""
    graph = networkx.path_graph(50_000, create_using=networkx.DiGraph)
    networkx.set_node_attributes(graph, 1, "time")
    model = Model()
    model.graph(graph, time_unit="ms")
    model.device("cpu", "host")
    model.minimize(time_per_sample)
    assert model.spec().evaluate([0] * 50_000).objectives == (pytest.approx(50.0),)
    assert model.text().count("\n") == 3


def test_importing_placedsl_imports_nothing_else() -> None:
    """What takes time is imported when it is used; all of it is there."""
    program = "import sys, placedsl; print(*sorted(m for m in sys.modules if m.startswith(('placedsl', 'numpy'))))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "placedsl\n"
    assert all(getattr(placedsl, name) is not None for name in placedsl.__all__)
    assert set(placedsl.__all__) <= set(dir(placedsl))
    with pytest.raises(AttributeError, match="no attribute 'Modell'"):
        placedsl.Modell  # noqa: B018


def test_models_and_profiles() -> None:
    docs = ROOT / "docs"
    model = Model(folder=docs)
    samples = model.param("samples", 2)
    model.graph("picture.onnx", sizes={"batch": samples}, profile="picture-times.csv")
    model.device("gpu", "accelerator", compute=1e13, memory_bandwidth=3e11)
    model.interconnect(bandwidth="16 GB/s")
    model.minimize("time_per_sample")
    assert 'graph from "picture.onnx" { batch = samples, profile = "picture-times.csv" }' in model.text()
    problem = model.spec().problem
    assert problem.measured.sum() == 6
    sizes = Model(folder=docs)
    sizes.graph("encoder.pt2", sizes={"tokens[0]": 4, "tokens[1]": 16})
    assert '"tokens[0]" = 4' in sizes.text()
