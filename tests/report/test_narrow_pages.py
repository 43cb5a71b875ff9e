"""At 80 columns `explain` and the table of a sweep keep within them, and cut neither numbers nor places."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console
from support.paths import ROOT

import placedsl
from placedsl.report.explanation.elaborated_spec import elaborated
from placedsl.report.explanation.explanation_text import explained
from placedsl.report.text import tables
from placedsl.sweeps.runs import Run
from placedsl.sweeps.table import Row, Table, shown

#: Values of parameters that the examples do not hold themselves, and those that read a published workload.
DATA = {
    "experts-by-traffic": "data/routing.toml", "fleet": "data/fleet-small.json", "measured-energy": "data/energy.json",
}  # fmt: skip
WITH_WORKLOADS = {"bert3", "bert3-training", "custom"}
WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
EXAMPLES = sorted((ROOT / "examples").glob("*.place"))
WIDTH = 80


def unbreakable(line: str) -> bool:
    """The exception: one word (a path, say) and no more, or a formula of the user, which stays as it was written."""
    words = line.lstrip("# ").split()
    return len(words) == 1 or words[0] == "minimize"


def numbers(text: str) -> list[str]:
    """The whole numbers of the table of parts, and the places beside them."""
    table = text[text.index("# what each part adds") : text.index("# numbers")]
    return sorted(re.findall(r"\w+\.place:\d+|(?<= )\d[\d,]*(?=\s)", table.split("# lowerings")[0]))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_explain_keeps_within_eighty_columns(path: Path) -> None:
    if path.stem in WITH_WORKLOADS:
        text = path.read_text(encoding="utf-8")
        files = list(WORKLOADS.rglob(re.findall('graph from "(.*?)"', text)[0]))
        if not files:
            pytest.skip("the published workloads are not here")
        spec = placedsl.loads(text, files[0].parent)
    else:
        data = DATA.get(path.stem)
        spec = placedsl.load(path, data=None if data is None else path.parent / data)
    found = spec.explanation()
    page = explained(elaborated(spec.elaborated, WIDTH), found, WIDTH)
    long = [line for line in page.splitlines() if len(line) > WIDTH and not unbreakable(line)]
    assert long == []
    assert numbers(page) == numbers(explained(elaborated(spec.elaborated), found))


def test_a_narrow_page_is_a_spec_still() -> None:
    path = ROOT / "examples" / "own-formulation.place"
    page = elaborated(placedsl.load(path).elaborated, WIDTH)
    again = placedsl.loads(page, path.parent)
    assert elaborated(again.elaborated, WIDTH) == page


def test_the_table_of_a_sweep_keeps_within_eighty_columns() -> None:
    rows = tuple(
        Row(
            Run(spec="long.place", parameters={"gpus": str(k), "room": f"{k} GiB"}),
            termination="time_limit", value=1.23456789e-3 * k, bound=1.1e-3 * k, gap=0.1234, unit="s",
            method="dynamic programming over ideals", solver="cp-sat", seconds=1234.56, exit_code=0,
        )
        for k in range(1, 4)
    )  # fmt: skip
    paper = io.StringIO()
    tables.print_table(shown(Table(rows)), Console(width=120, file=paper))
    text = paper.getvalue()
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    assert "…" not in text
    assert text.count("1234.56") == 3
    assert text.count("12.34%") == 3
    assert [text.count(value) for value in ("1.23457 ms", "2.46914 ms", "3.7037 ms")] == [1, 1, 1]
