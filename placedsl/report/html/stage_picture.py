"""The stages of a plan as a picture: one card each in the order of the plan, and what they send to one another.

Positions only; ``templates/stages.svg`` draws them.  Everything comes from an answer's document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import hypot
from typing import Any

from placedsl.report.html.amounts import amount, several, size, time_unit
from placedsl.report.html.memory_bar import Part, memory_parts, memory_text, memory_width
from placedsl.report.text.plan_table import ranges

#: So many stages are drawn, and so many pairs of stages that do not follow one another are joined; tables have all.
MOST_STAGES, MOST_ARCS = 96, 60
#: A card, the gap beside it, the space for arcs above it; so many cards stand side by side.
_WIDTH, _HEIGHT, _GAP, _ABOVE = 200.0, 152.0, 62.0, 46.0
_ACROSS = 5
_MARGIN = 12.0
_BAR = _WIDTH - 2 * _MARGIN
#: Characters that fit into a line of a card.
_CHARACTERS = 30
_THINNEST, _THICKEST = 1.5, 6.0
_ARROW = 8.0


@dataclass(frozen=True)
class Card:
    """A stage at (x, y): what is written on it, as (shown, whole) lines; bars as (kind, left, width) parts; ``room``:
    how wide the limit of the memory is."""

    number: int
    x: float
    y: float
    title: str
    lines: tuple[tuple[str, str], ...]
    load: float
    load_text: str
    memory: tuple[Part, ...]
    memory_text: str
    room: float
    whole: str


@dataclass(frozen=True)
class Link:
    """Tensors from one stage to another: the line, its head (three corners), what is written at (x, y)."""

    path: str
    head: str
    width: float
    title: str
    label: str = ""
    x: float = 0.0
    y: float = 0.0
    back: bool = False


@dataclass(frozen=True)
class StagePicture:
    """Cards and links; ``left_out``: what is not drawn, in words."""

    width: float
    height: float
    card: tuple[float, float, float]
    cards: tuple[Card, ...]
    links: tuple[Link, ...]
    left_out: tuple[str, ...]


def stage_picture(document: Mapping[str, Any]) -> StagePicture | None:
    """The picture of an answer's plan; None without one."""
    if document["plan"] is None:
        return None
    stages = document["plan"]["stages"]
    drawn = stages[:MOST_STAGES]
    devices = {device["name"]: device for device in document["devices"]}
    most = max((d["load"] or 0.0 for d in document["devices"]), default=0.0)
    unit = time_unit(dict(document))
    places = {stage["stage"]: _place(k) for k, stage in enumerate(drawn)}
    cards = tuple(_card(stage, devices, places[stage["stage"]], most, unit) for stage in drawn)
    links, arcs_left = _links(traffic(stages), places)
    left = len(stages) - len(drawn)
    words = (
        (left, f"{several(left, 'further stage')} {_are(left)} in the table only"),
        (
            arcs_left,
            f"{several(arcs_left, 'further pair')} of stages that exchange tensors {_are(arcs_left)} not drawn",
        ),
    )
    rows = (len(drawn) + _ACROSS - 1) // _ACROSS
    width = min(len(drawn), _ACROSS) * (_WIDTH + _GAP) - _GAP + 2 * _MARGIN
    return StagePicture(
        width, rows * (_HEIGHT + _ABOVE) + _MARGIN, (_WIDTH, _HEIGHT, _BAR), cards, links,
        tuple(text for number, text in words if number),
    )  # fmt: skip


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def traffic(stages: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], tuple[int, float | None]]:
    """Number of tensors and bytes (None: not known of all) of each pair of stages that exchange some."""
    out: dict[tuple[int, int], tuple[int, float | None]] = {}
    for stage in stages:
        for sent in stage["sends"]:
            pair = stage["stage"], sent["to"]
            count, known = out.get(pair, (0, 0.0))
            out[pair] = count + 1, None if known is None or sent["bytes"] is None else known + sent["bytes"]
    return out


def layers(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The layers of nodes in order, numbers that follow one another as ``model.layers.0..7``."""
    named = [_layer(node) for node in nodes]
    return runs(dict.fromkeys(name for name in named if name is not None))


def runs(names: Iterable[str]) -> list[str]:
    """Names that end with numbers which follow one another, each run as one text."""
    out: list[tuple[str, int, int] | str] = []
    for name in names:
        digits = len(name) - len(name.rstrip("0123456789"))
        number = name[len(name) - digits :]
        prefix, known = name[: len(name) - digits], number.isascii() and 0 < digits < 10 and str(int(number)) == number
        last = out[-1] if out else ""
        if known and isinstance(last, tuple) and last[0] == prefix and last[2] + 1 == int(number):
            out[-1] = prefix, last[1], last[2] + 1
        else:
            out.append((prefix, int(number), int(number)) if known else name)
    return [run if isinstance(run, str) else _run(*run) for run in out]


def degrees(stage: Mapping[str, Any]) -> str:
    """The degrees of parallelism above 1, and the copies of clusters."""
    known = [f"{kind} {stage[kind]}" for kind in ("data", "tensor") if stage.get(kind, 1) > 1]
    known += [f"{number} {family}" for family, number in stage.get("across", {}).items() if number > 1]
    return " × ".join(known)


def _layer(node: Mapping[str, Any]) -> str | None:
    layer = node.get("attributes", {}).get("layer")
    return f"{layer:g}" if isinstance(layer, float | int) else layer


def _run(prefix: str, low: int, high: int) -> str:
    return f"{prefix}{low}" if low == high else f"{prefix}{low}..{high}"


def _place(k: int) -> tuple[float, float]:
    return _MARGIN + (k % _ACROSS) * (_WIDTH + _GAP), _ABOVE + (k // _ACROSS) * (_HEIGHT + _ABOVE)


def _card(
    stage: Mapping[str, Any], devices: Mapping[str, Any], place: tuple[float, float], most: float, unit: str
) -> Card:
    first = devices[stage["devices"][0]]
    load, memory = stage.get("load", first["load"]), stage.get("memory", first["memory"])
    held = layers(stage["nodes"])
    ids = [str(node["id"]) for node in stage["nodes"]]
    number = sum(node.get("count", 1) for node in stage["nodes"])
    named = ("layer " if held[0][:1].isdigit() else "") + ", ".join(held) if held else _ends(ids)
    title = f"Stage {stage['stage']}" + "".join(f", {key} {stage[key]}" for key in ("chunk", "slot") if key in stage)
    lines = [", ".join(ranges(stage["devices"])), degrees(stage) or several(len(stage["devices"]), "device"), named]
    load_text, told = amount(load, unit), memory_text(first, memory)
    whole = memory_width(first, memory)
    scale = _BAR / whole if whole > 0.0 else 0.0
    return Card(
        stage["stage"], *place, title, tuple((_short(line), line) for line in [*lines, several(number, "node")]),
        _BAR * (load or 0.0) / most if most > 0.0 else 0.0, load_text,
        tuple(memory_parts(first, memory, scale)), told, scale * (first.get("memory_limit") or memory),
        f"{title} on {lines[0]}, {named}, {several(number, 'node')}, load {load_text}, memory {told}",
    )  # fmt: skip


def _ends(ids: Sequence[str]) -> str:
    """The first and the last of several names."""
    return ids[0] if len(ids) == 1 else f"{ids[0]} … {ids[-1]}"


def _short(text: str) -> str:
    if len(text) <= _CHARACTERS:
        return text
    return f"{text[: _CHARACTERS // 2 - 1]}…{text[-_CHARACTERS // 2 :]}"


def _links(
    pairs: Mapping[tuple[int, int], tuple[int, float | None]], places: Mapping[int, tuple[float, float]]
) -> tuple[tuple[Link, ...], int]:
    """The links between the stages that are drawn, and how many are not."""
    drawn = {pair: moved for pair, moved in pairs.items() if pair[0] in places and pair[1] in places}
    most = max((moved or 0.0 for _, moved in drawn.values()), default=0.0)
    near = {pair for pair in drawn if abs(pair[0] - pair[1]) == 1 and places[pair[0]][1] == places[pair[1]][1]}
    far = sorted(drawn.keys() - near, key=lambda pair: -(drawn[pair][1] or 0.0))
    out = []
    for pair in [*sorted(near), *sorted(far[:MOST_ARCS])]:
        count, moved = drawn[pair]
        share = (moved or 0.0) / most if most > 0.0 else 0.0
        title = f"stage {pair[0]} to stage {pair[1]}: {several(count, 'tensor')}, {size(moved)} a sample"
        width = _THINNEST + (_THICKEST - _THINNEST) * share**0.5
        ends = places[pair[0]], places[pair[1]]
        out.append((_beside if pair in near else _arc)(ends, width, title, size(moved)))
    return tuple(out), max(0, len(far) - MOST_ARCS)


def _beside(ends: tuple[tuple[float, float], tuple[float, float]], width: float, title: str, label: str) -> Link:
    """From a card to its neighbour, with the bytes above; what goes back, below."""
    (x, y), (to, _) = ends
    back = to < x
    begin, end = (x, to + _WIDTH) if back else (x + _WIDTH, to)
    y += _HEIGHT * (0.72 if back else 0.4)
    tip = _ARROW if not back else -_ARROW
    return Link(
        f"M{begin:g} {y:g}H{end - tip:g}", _head((end - tip, y), (end, y)), width, title, label, (begin + end) / 2,
        y - 7, back,
    )  # fmt: skip


def _arc(ends: tuple[tuple[float, float], tuple[float, float]], width: float, title: str, _: str) -> Link:
    """Over the cards of a row, or from the foot of one row to the top of another; back, the other way round."""
    (x, y), (to, down) = ends
    back = (down, to) < (y, x)
    middle = _WIDTH / 2
    if y == down:
        rise = min(_ABOVE - 8, 14 + 0.03 * abs(to - x))
        sign = -1.0 if not back else 1.0
        edge = y if not back else y + _HEIGHT
        begin, end = x + middle + (14 if to > x else -14), to + middle + (-14 if to > x else 14)
        turn = (end, edge + sign * rise)
        path = f"M{begin:g} {edge:g}C{begin:g} {turn[1]:g} {turn[0]:g} {turn[1]:g} {end:g} {edge + sign * _ARROW:g}"
        return Link(path, _head((end, edge + sign * _ARROW), (end, edge)), width, title, back=back)
    begin, end = x + middle, to + middle
    leave, arrive, sign = (y + _HEIGHT, down, 1.0) if down > y else (y, down + _HEIGHT, -1.0)
    bend = _ABOVE * 0.8
    path = (
        f"M{begin:g} {leave:g}C{begin:g} {leave + sign * bend:g} {end:g} {arrive - sign * bend:g} "
        f"{end:g} {arrive - sign * _ARROW:g}"
    )
    return Link(path, _head((end, arrive - sign * _ARROW), (end, arrive)), width, title, back=back)


def _head(base: tuple[float, float], tip: tuple[float, float]) -> str:
    """The corners of an arrow's head."""
    dx, dy = tip[0] - base[0], tip[1] - base[1]
    length = hypot(dx, dy) or 1.0
    across = (-dy / length * _ARROW / 2, dx / length * _ARROW / 2)
    corners = (tip, (base[0] + across[0], base[1] + across[1]), (base[0] - across[0], base[1] - across[1]))
    return " ".join(f"{x:g},{y:g}" for x, y in corners)


def link_table(stages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each link carries for one sample: its name, number of tensors and bytes, and between which stages."""
    carried = sorted(
        ((name, stage["stage"], sent) for stage in stages for sent in stage["sends"] for name in sent["links"]),
        key=lambda one: one[0],
    )
    out = []
    for name, group in groupby(carried, key=lambda one: one[0]):
        known = list(group)
        sizes = [sent["bytes"] for _, _, sent in known]
        total = None if None in sizes else sum(sizes)
        pairs = dict.fromkeys(f"{source} → {sent['to']}" for _, source, sent in known)
        out.append({"name": name, "tensors": len(known), "bytes": size(total), "pairs": ", ".join([*pairs][:12])
                    + (f" and {len(pairs) - 12} more" if len(pairs) > 12 else ""), "amount": total or 0.0})  # fmt: skip
    return sorted(out, key=lambda row: -row["amount"])
