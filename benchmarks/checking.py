"""How long `placedsl check` takes, from the start of the process, for a short spec and for one of 10,000 lines.

python benchmarks/checking.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "planner"))
from random_specs import long_spec  # noqa: E402

RUNS = 5


def seconds(spec: Path) -> list[float]:
    """Wall time of each run."""
    out = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "placedsl", "check", str(spec)], check=True, capture_output=True)
        out.append(time.perf_counter() - start)
    return out


def main() -> None:
    """Print the least and the most."""
    print("| spec | least s | most s |")
    print("| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        long = Path(folder) / "long.place"
        long.write_text(long_spec(10_000), encoding="utf-8")
        for name, path in (("examples/inline.place", ROOT / "examples" / "inline.place"), ("10,000 lines", long)):
            found = seconds(path)
            print(f"| {name} | {min(found):.2f} | {max(found):.2f} |")


if __name__ == "__main__":
    main()
