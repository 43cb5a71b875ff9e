"""The published workloads of Piper, longer ones made from them, and specs that plan them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import placedsl

os.environ.setdefault("PLACEDSL_LIMITS", "devices=20000")
ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
SPEC = """
graph from "{file}" {{ time_unit = 1 s }}
device gpu[{devices}]: accelerator {{ memory = {memory} B }}
interconnect {{ bandwidth = {bandwidth} B/s }}
parallelism {{ microbatches = {batch}, exchange = {exchange}, weights_traffic = 4, {more} }}
minimize time_per_sample
subject to
    memory
    contiguous
{rules}"""
GIB = 2**30
#: The layer of BERT-32 that longer networks repeat, and the layer before it.
_REPEATED, _BEFORE = 34, 33


def path(name: str, folder: Path) -> Path:
    """A workload by its name in the table of runs: a published file, or a longer one, written to ``folder``."""
    published = {"bert32a100": "bert32a100.json", "resnet": "resnet.json"}
    if name in published:
        return WORKLOADS / "piper" / published[name]
    file = folder / f"{name}.json"
    if not file.exists():
        whole = json.loads((WORKLOADS / "piper" / "bert32a100.json").read_text(encoding="utf-8"))
        file.write_text(json.dumps(longer(whole, int(name.removeprefix("bert")) - 32)), encoding="utf-8")
    return file


def longer(bert: dict[str, Any], more: int) -> dict[str, Any]:
    """BERT with one of its layers repeated, as the authors' program does it (no edge leads from the mask to copies)."""
    out = copy.deepcopy(bert)
    by_id = {node["id"]: node for node in out["nodes"]}
    leaving = next(edge for edge in out["edges"] if edge["sourceId"] == _REPEATED)
    inner = next(e["communicationCost"] for e in out["edges"] if (e["sourceId"], e["destId"]) == (_BEFORE, _REPEATED))
    after, chain = leaving["destId"], [_REPEATED, *(max(by_id) + 1 + k for k in range(more))]
    out["edges"].remove(leaving)
    at = out["nodes"].index(by_id[_REPEATED])
    for k, node in enumerate(chain[1:], 1):
        repeated = copy.deepcopy(by_id[_REPEATED]) | {"id": node}
        for option in _options(repeated):
            option["syncTimeFw"] = {str(chain[k - 1]): option["syncTimeFw"][str(_BEFORE)]}
        out["nodes"].insert(at + k, repeated)
    by_id = {node["id"]: node for node in out["nodes"]}
    for node, reader in zip(chain, [*chain[1:], after], strict=True):
        size = leaving["communicationCost"] if reader == after else inner
        out["edges"].append({"sourceId": node, "destId": reader, "communicationCost": size})
        for option in _options(by_id[node]):
            (back,) = option["syncTimeBw"].values()
            option["syncTimeBw"] = {str(reader): back}
    for option in _options(by_id[after]):
        forward = option["syncTimeFw"]
        option["syncTimeFw"] = {str(chain[-1]) if u == str(_REPEATED) else u: size for u, size in forward.items()}
    return out


def _options(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [option for options in node["TMPCs"].values() for option in options]


def answer(
    file: Path, devices: int, memory: float, batch: int, exchange: str, more: str, method: str | None = None,
    bandwidth: float = 25.0 * GIB, rules: Sequence[str] = (),
    time_limit: float | None = None,
) -> placedsl.Answer:  # fmt: skip
    """One solve."""
    return spec(file, devices, memory, batch, exchange, more, bandwidth, rules).solve(
        method=method, workers=1, time_limit=time_limit
    )


def spec(
    file: Path, devices: int, memory: float, batch: int, exchange: str, more: str, bandwidth: float = 25.0 * GIB,
    rules: Sequence[str] = (),
) -> placedsl.Spec:  # fmt: skip
    """A workload on like devices."""
    named = "".join(f"    rule{k}: {rule}\n" for k, rule in enumerate(rules))
    text = SPEC.format(
        file=file, devices=devices, memory=round(memory), bandwidth=bandwidth, batch=batch, exchange=exchange,
        more=more, rules=named,
    )  # fmt: skip
    return placedsl.loads(text)


def on_levels(
    file: Path, size: Sequence[int], bandwidths: Sequence[float], memory: float, batch: int
) -> placedsl.Answer:
    """One solve over servers of so many devices, so many servers, and so on; an exchange of weights per batch."""
    machine = f"device gpu[{size[0]}]: accelerator {{ memory = {round(memory)} B }}\n"
    machine += f"interconnect {{ bandwidth = {bandwidths[0]} GiB/s }}\n"
    for family, number, around in zip(("server", "rack"), size[1:], bandwidths[1:], strict=False):
        machine = f"cluster {family}[{number}] {{\n{machine}}}\ninterconnect {{ bandwidth = {around} GiB/s }}\n"
    across = ", across = server" if len(size) > 1 else ""
    return placedsl.loads(f"""
graph from "{file}" {{ time_unit = 1 s }}
{machine}
parallelism {{ microbatches = {batch}, exchange = batch, weights_traffic = 4, data = divisors(microbatches){across} }}
minimize time_per_sample
subject to
    memory
    contiguous
""").solve(workers=1)
