"""``placedsl profile``: times of operators and links, measured here or read from the profiles of others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from placedsl.cli.options import settings, write
from placedsl.diagnostics import Diagnostic, InputError, UsageError
from placedsl.system import interruption, paths

if TYPE_CHECKING:
    from placedsl.graph.readers.sizes import Sizes
    from placedsl.measurement.runs import Measured, Runnable

#: A link is told to be off by more than this share of a median.
_FAR = 0.25
_OF_LINKS = ("backend", "rank", "address")


# More than ten arguments: one an option.
@click.command()
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("--device", metavar="DEVICE", help="Where to run: cpu, cuda, cuda:1.")
@click.option("--as", "name", metavar="NAME", help="Device, family or kind of the spec (default: host, accelerator).")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Output file (default: stdout).")
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", callback=settings, help="Size of a dimension.")
@click.option("--repeats", type=click.IntRange(min=1), default=20, show_default=True, help="Passes that are timed.")
@click.option("--warm-up", type=click.IntRange(min=0), default=3, show_default=True, help="Passes before them.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Threads of the CPU for one operator.")
@click.option("--beside", type=click.IntRange(min=0), default=0, metavar="N", help="So many processes run MODEL, too.")
@click.option("--interpreted", is_flag=True, help="Call operators as the stages of torch.distributed.pipelining do.")
@click.option("--training", is_flag=True, help="Layers, forward and backward; writes their graph beside the output.")
@click.option("--cpu-time", is_flag=True, help="Count the time of the processor: for a machine that others use, too.")
@click.option("--scale", is_flag=True, help="Scale the times such that they add up to that of the whole model.")
@click.option("--restart", is_flag=True, help="Do not go on with an interrupted measurement.")
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="FILE",
    help="Read times from a trace of torch.profiler or ONNX Runtime; with MODEL, those of its nodes.",
)  # fmt: skip
@click.option("--links", is_flag=True, help="Measure what two processes send each other, in place of a model.")
@click.option("--backend", type=click.Choice(["gloo", "nccl"]), help="--links: process group (default: gloo).")
@click.option("--rank", type=click.Choice(["0", "1"]), help="--links between two machines: which this is.")
@click.option("--address", metavar="HOST:PORT", help="--links between two machines: where rank 0 listens.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def profile(
    model: Path | None,
    device: str | None,
    name: str | None,
    output: Path | None,
    sizes: dict[str, str],
    repeats: int,
    warm_up: int,
    threads: int | None,
    beside: int,
    interpreted: bool,
    training: bool,
    cpu_time: bool,
    scale: bool,
    restart: bool,
    trace: Path | None,
    links: bool,
    quiet: bool,
    **of_links: str | None,
) -> int:
    """Measure MODEL one operator or layer at a time, as a table that a spec reads: profile = "times.csv".

    MODEL is a program of torch.export (.pt2), an ONNX model, model.py:NAME, a function that returns a module of PyTorch
    and its arguments, or the config.json of a Hugging Face model.
    """
    _check_output(output)
    if links:
        of_models = {"--threads": threads, "--beside": beside, "--interpreted": interpreted, "--scale": scale,
                     "--training": training, "--cpu-time": cpu_time}  # fmt: skip
        asked = {"MODEL": model, "--device": device, "--trace": trace, "--size": sizes, "--restart": restart}
        _refuse("--links", {**asked, **of_models})
        return _links(name or "", output, repeats, warm_up, quiet, of_links)
    if given := [key for key in _OF_LINKS if of_links[key] is not None]:
        raise UsageError(f"--{given[0]} is for --links")
    if trace is not None:
        _refuse("--trace", {
            "--device": device, "--restart": restart, "--threads": threads, "--beside": beside, "--scale": scale,
            "--interpreted": interpreted, "--training": training, "--cpu-time": cpu_time,
        })  # fmt: skip
        return _trace(trace, model, name, output, _sizes(sizes))
    if model is None:
        kinds = "model.pt2, model.onnx, model.py:NAME or a config.json"
        raise UsageError(f"a model is expected, {kinds}; or --links, or --trace FILE")
    if device is None:
        raise UsageError("--device is expected: cpu, cuda, cuda:1")
    if cpu_time and device != "cpu":
        raise UsageError("--cpu-time is for --device cpu")
    from placedsl.measurement import runners
    from placedsl.measurement.beside import others
    from placedsl.measurement.runs import Request
    from placedsl.measurement.table import table
    from placedsl.report.text.heartbeat import Heartbeat

    with Heartbeat(f"loading {model}", quiet=quiet) as beat:
        ran = _exported(model, output, sizes, training=training)
        request = Request(ran, device, _sizes(sizes), threads, interpreted, training, cpu_time)
        ready = runners.prepare(request)
        if beside:
            ready.settings["beside"] = f"{beside} others"
        beat.doing("beginning the processes beside")
        with others(beside, request):
            beat.doing("")
            found = _passes(ready, ran, output, (repeats, warm_up), restart, quiet)
    if found is None:
        return interruption.EXIT_NOTHING
    remarks = _remarks(model, ready, found, warm_up, scaled=scale)
    shown = found.scaled() if scale else found
    name = name or ("host" if device == "cpu" else "accelerator")
    write(output, table(shown, name, remarks))
    graph = None if ran == model else ran
    if output is not None:
        if ready.graph is not None:
            graph = output.with_suffix(".json")
            write(graph, ready.graph(shown.seconds, name))
        _kept(output).unlink(missing_ok=True)
    _tell(remarks, graph, output, quiet)
    return 0


def _remarks(model: Path, ready: Runnable, found: Measured, warm_up: int, *, scaled: bool) -> list[str]:
    """What was measured, how, and what was not."""
    remarks = [
        f"measured by placedsl profile {model.name}: {', '.join(f'{k} {v}' for k, v in ready.settings.items())}; "
        f"medians of {found.passes} passes after {warm_up}",
        f"the operators take {found.share:.2f} of the whole model's {found.whole * 1e3:.4g} ms"
        + (", and are scaled to it" if scaled else ""),
    ]
    if ready.missing:
        few = ", ".join(ready.missing[:3]) + (", ..." if len(ready.missing) > 3 else "")
        remarks.append(f"{len(ready.missing)} nodes are not measured: {few}")
    return remarks


def _tell(remarks: list[str], graph: Path | None, output: Path | None, quiet: bool) -> None:
    """What was measured, and how a spec reads a graph that was written beside the table."""
    if graph is not None and output is not None:
        remarks = [*remarks, f'for the spec: graph from "{graph.name}" {{ profile = "{output.name}" }}']
    for remark in () if quiet else remarks:
        click.echo(remark, err=True)


def _exported(model: Path, output: Path | None, sizes: Mapping[str, str], *, training: bool) -> Path:
    """The model itself; of ``model.py:NAME`` the program that is exported beside the output."""
    from placedsl.measurement import python_models, runners

    found = python_models.named(model)
    if output is None and (training or found is not None):
        raise UsageError("-o FILE is expected: the graph of the spec is written beside it")
    if output is not None and output.suffix in (".json", ".pt2"):
        raise UsageError(f"-o {output}: the table is CSV, and the graph is written beside it: as in -o times.csv")
    if found is None or training:
        return model
    assert output is not None
    if sizes:
        raise UsageError(f"--size has no meaning with {model}: sizes are those of the arguments in the file")
    runners.needed(("torch",))
    python_models.export(model, output.with_suffix(".pt2"))
    return output.with_suffix(".pt2")


def _kept(output: Path) -> Path:
    from placedsl.measurement.passes import file_beside

    return file_beside(output)


def _check_output(output: Path | None) -> None:
    """UsageError before anything is measured that could not be written."""
    if output is not None and (paths.is_folder(output) or not paths.is_folder(output.parent)):
        what = "this is a folder" if paths.is_folder(output) else f"there is no folder '{output.parent}'"
        raise UsageError(f"-o {output}: {what}")


def _refuse(option: str, given: Mapping[str, object]) -> None:
    if wrong := [name for name, value in given.items() if value]:
        raise UsageError(f"{wrong[0]} has no meaning with {option}")


def _sizes(given: Mapping[str, str]) -> Sizes:
    from placedsl.graph.readers.sizes import Size

    out = {}
    for name, text in given.items():
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:10]) < 2**31 and len(text) <= 10):
            raise UsageError(f"--size {name}={text}: a whole number, 1 or more, is expected")
        out[name] = Size(int(text))
    return out


def _passes(
    ready: Runnable, model: Path, output: Path | None, counts: tuple[int, int], restart: bool, quiet: bool
) -> Measured | None:
    """What the passes give; None where a signal has stopped them, which is told."""
    from placedsl.measurement import passes
    from placedsl.measurement.runs import measured
    from placedsl.report.text.passes_line import PassesLine

    repeats, warm_up = counts
    kept = None if output is None else _kept(output)
    if restart and kept is not None:
        kept.unlink(missing_ok=True)
    done = 0

    def tell(now: int, total: int) -> None:
        nonlocal done
        done = now
        line.update(now, total)

    try:
        with interruption.stoppable(), PassesLine(f"passes of {model.name}", quiet=quiet) as line:
            return measured(ready, passes.measure(ready, repeats, warm_up, kept, tell))
    except KeyboardInterrupt:
        interruption.caught()
    where = "" if kept is None else f"; {done} of {repeats} passes are in {kept}, the same command goes on with them"
    click.echo(f"stopped{where}", err=True)
    return None


def _trace(trace: Path, model: Path | None, name: str | None, output: Path | None, sizes: Sizes) -> int:
    from placedsl.graph.readers import load, read
    from placedsl.measurement import traces
    from placedsl.measurement.table import table_of_times

    if name is None:
        raise UsageError("--as is expected: a trace does not say what the spec calls the device")
    times = traces.medians(load(trace))
    remarks = [f"medians of the trace {trace.name}"]
    if model is not None:
        graph = read(model, None, sizes)
        kinds = graph.attributes.get("type")
        known = {("node", str(own)) for own in (*graph.ids, *graph.names)}
        known |= set() if kinds is None else {("type", str(kind)) for kind in kinds if kind is not None}
        kept = {key: seconds for key, seconds in times.items() if key in known}
        if not kept:
            some = ", ".join(key for _, key in list(times)[:3])
            message = f"nothing in this trace is called as a node or a type of '{model}'; it has {some}, ..."
            hint = "name regions after nodes: with torch.profiler.record_function(node.name)"
            raise InputError([Diagnostic(message, None, hint)])
        remarks.append(f"{len(times) - len(kept)} of its {len(times)} names are of no node or type of {model.name}")
        times = kept
    write(output, table_of_times(times, name, remarks))
    return 0


def _links(
    name: str, output: Path | None, repeats: int, warm_up: int, quiet: bool, given: Mapping[str, str | None]
) -> int:
    from placedsl.measurement import links
    from placedsl.report.text.passes_line import PassesLine

    rank, address = given["rank"], given["address"]
    if (rank is None) != (address is None):
        raise UsageError("--rank and --address go together: one command for each machine, with the same address")
    ranks = (0, 1) if rank is None else (int(rank),)
    backend = given["backend"] or "gloo"
    request = links.LinkRequest(backend, repeats=repeats, warm_up=warm_up, ranks=ranks, address=address or "")
    try:
        with interruption.stoppable(), PassesLine(f"sizes over {backend}", quiet=quiet) as line:
            found = links.measure(request, line.update)
    except KeyboardInterrupt:
        interruption.caught()
        click.echo("stopped", err=True)
        return interruption.EXIT_NOTHING
    if found is not None:
        write(output, links.text(found, name))
        if found.largest_error > _FAR and not quiet:
            told = f"the line is off by {found.largest_error:.0%}: was the machine busy? measure again when it is not"
            click.echo(f"note: {told}", err=True)
    return 0
