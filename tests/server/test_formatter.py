"""The formatter changes blanks and nothing else, and has nothing to do twice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import commands
from support.spec_texts import ODD, ROOT, documented, files, respaced, specs

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.tokens import COMMENT, tokens

SPECS = specs()


def bare(node: object) -> object:
    """A piece of syntax without its positions."""
    if isinstance(node, tuple):
        return tuple(bare(part) for part in node)
    if hasattr(node, "__slots__"):
        return (type(node).__name__, *(bare(getattr(node, s)) for s in node.__slots__ if s not in ("at", "problem")))
    return node


def tree(text: str) -> object:
    return bare(parse(Source("<text>", text)).statements)


def comments(text: str) -> list[str]:
    return [t.text.rstrip() for t in tokens(text) if t.type == COMMENT]


def held(text: str) -> None:
    """Everything that is promised of one text."""
    new = placedsl.format(text)
    assert placedsl.format(new) == new
    assert tree(new) == tree(text)
    assert comments(new) == comments(text)
    assert "".join(new.split()) == "".join(text.split())
    assert not new or (new.endswith("\n") and not new.endswith("\n\n") and not new.startswith("\n"))
    assert "\n\n\n" not in new
    assert [line for line in new.split("\n") if line != line.rstrip()] == []
    assert "\t" not in "".join(line[: len(line) - len(line.lstrip())] for line in new.split("\n"))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("text", SPECS)
def test_every_spec_keeps_its_meaning(text: str) -> None:
    held(text)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(range(len(SPECS))), st.integers(0, 2**32))
@example(0, 0)
def test_other_blanks_mean_the_same_and_are_laid_out_so(position: int, seed: int) -> None:
    text = SPECS[position]
    other = respaced(text, seed)
    held(other)
    assert tree(other) == tree(text)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(range(len(SPECS))), st.integers(0, 2**32))
def test_blanks_within_lines_do_not_matter(position: int, seed: int) -> None:
    text = placedsl.format(SPECS[position])
    other = respaced(text, seed, within=True)
    assert placedsl.format(other) == text


@pytest.mark.parametrize("path", files(), ids=lambda p: p.name)
def test_the_files_of_the_repository_are_laid_out(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert placedsl.format(text) == text


def test_there_is_enough_to_try() -> None:
    assert len(files()) >= 8
    assert len(documented()) >= 60
    assert len(ODD) >= 10


@pytest.mark.parametrize(
    ("written", "laid_out"),
    [
        ("minimize   a+b*c-d/2", "minimize a + b * c - d / 2"),
        ("minimize - a - -b", "minimize -a - -b"),
        ("minimize max( - a,2* -b )", "minimize max(-a, 2 * -b)"),
        ("minimize 1e-7*load (gpu [1])", "minimize 1e-7 * load(gpu[1])"),
        ("param a=16GiB", "param a = 16 GiB"),
        ("param a=25GB/s", "param a = 25 GB/s"),
        ("param gap :  number=10   %", "param gap: number = 10%"),
        ("device gpu [ 3 ] :accelerator{memory=1 B , price=2USD/h}",
         "device gpu[3]: accelerator { memory = 1 B, price = 2 USD/h }"),
        ("device cpu : host{ }", "device cpu: host {}"),
        ("link gpu<->cpu{bandwidth=1 B/s}", "link gpu <-> cpu { bandwidth = 1 B/s }"),
        ("set a = { gpu [ 1 ] ,cpu }", "set a = {gpu[1], cpu}"),
        ("set a=nodes where not(backward)and name~\"x\"", "set a = nodes where not (backward) and name ~ \"x\""),
        ("subject to\na :v . time [d]<=2", "subject to\n    a: v.time[d] <= 2"),
        ("subject to\na(  15 ):(a on b)=>c", "subject to\n    a(15): (a on b) => c"),
        ("subject to\na by k (  15 ):sum (v in nodes:1)==1", "subject to\n    a by k(15): sum(v in nodes: 1) == 1"),
        ("minimize a   # why", "minimize a  # why"),
        ("minimize a\nthen b", "minimize a\n    then b"),
        ("subject to\n# of memory\nmemory\n  # of nothing\n# of what comes\nsolve {}",
         "subject to\n    # of memory\n    memory\n    # of nothing\n# of what comes\nsolve {}"),
    ],
)  # fmt: skip
def test_layout(written: str, laid_out: str) -> None:
    assert placedsl.format(written) == laid_out + "\n"


def test_line_ends_stay_of_their_kind() -> None:
    assert placedsl.format("param a=1\r\nparam b=2") == "param a = 1\r\nparam b = 2\r\n"


def test_a_text_with_errors_is_not_touched() -> None:
    with pytest.raises(InputError, match="unexpected '='"):
        placedsl.format("param = 3\n")


def run(*arguments: object, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    return commands.run("fmt", *arguments, given=given)


def test_command(tmp_path: Path) -> None:
    bad, good, wrong = (tmp_path / name for name in ("bad.place", "good.place", "wrong.place"))
    bad.write_bytes("param a=1 # ž\n".encode())
    good.write_bytes(b"param a = 1\n")
    wrong.write_bytes(b"param  = 1\n")

    done = run("--check", bad, good)
    assert (done.returncode, done.stdout.split()) == (1, [str(bad), "would", "change"])
    assert bad.read_bytes() == "param a=1 # ž\n".encode()
    assert run("--check", good).returncode == 0

    done = run("--diff", bad, good)
    assert done.returncode == 0
    assert "-param a=1 # ž\n+param a = 1  # ž\n" in done.stdout
    assert run("--diff", "--check", bad).returncode == 1
    assert bad.read_bytes() == "param a=1 # ž\n".encode()

    done = run(bad, wrong, good)
    assert done.returncode == 1
    assert f"{wrong}:1:8: error: unexpected '='" in done.stderr
    assert bad.read_bytes() == "param a = 1  # ž\n".encode()
    assert wrong.read_bytes() == b"param  = 1\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.place", "good.place", "wrong.place"]

    bad.write_bytes(b"\xef\xbb\xbfparam a=1\r\nparam b=2\r\n")
    assert run(bad).returncode == 0
    assert bad.read_bytes() == b"param a = 1\r\nparam b = 2\r\n"


def test_stdin_and_stdout() -> None:
    done = run("-", given=b"param a=1\n")
    assert (done.returncode, done.stdout) == (0, "param a = 1\n")
    done = run("-", given=b"param =1\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "<stdin>:1:7" in done.stderr
    assert run("-", given=b"\xff").returncode == 1
    assert run(ROOT / "docs").returncode == 1
    assert run().returncode == 2
