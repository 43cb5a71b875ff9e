"""The first run of an installation: search kernels are compiled once, in the background; small problems do without.

Kernels are functions of plain Python that numba compiles.  Compiled, they are kept on disk by numba; that all of them
are is noted by a file in the cache folder.  Until then a small problem is solved by the functions as they stand, which
takes less time than compiling them; a larger one is tried so for some seconds, and then the command begins again and
compiles what it needs.  ``PLACEDSL_KERNELS=compiled`` in the environment turns this off.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from placedsl.system.installation import cache_folder, import_root

#: With more nodes than this, and unless an answer is wanted within so many seconds, a problem is solved by compiled
#: kernels from the first run on; with no more than that many it is tried without them before, for so many seconds.
MOST_NODES, SOON_S, MOST_TRIED, TRY_S = 100, 45.0, 1000, 2.0
#: When the command began that this one goes on with, by the clock that all processes share.
_BEGUN = "PLACEDSL_BEGUN"
_IMPORTED = time.monotonic()
BACKGROUND = (
    "first run: search kernels are being compiled in the background, once per installation; "
    "this problem is solved without compiling them"
)
TRIED = (
    f"first run: this problem is tried for {TRY_S:g} s without search kernels, which are compiled once per installation"
)
NOW = "first run: search kernels are compiled first, once per installation (up to half a minute)"


def kernels_are_compiled() -> bool:
    """Whether all kernels of this version are, for this Python and this numba."""
    mark = _mark()
    return mark is not None and mark.exists()


def note_kernels_are_compiled() -> None:
    """Note that all of them are."""
    mark = _mark()
    if mark is not None:
        with contextlib.suppress(OSError):
            mark.touch()


def choose_kernel_folder() -> None:
    """Before kernels are imported: where numba keeps them if it cannot do so beside their source.

    The cache folder, else a folder of the user's in that for temporary files; without either kernels are not compiled.
    """
    source = Path(import_root()) / "placedsl" / "algorithms"
    if "NUMBA_CACHE_DIR" in os.environ or os.access(source, os.W_OK):
        return
    folder = cache_folder()
    chosen = _temporary_folder() if folder is None else folder / "numba"
    if chosen is None:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    else:
        os.environ["NUMBA_CACHE_DIR"] = str(chosen)
    if "numba" in sys.modules:  # it has read its environment
        sys.modules["numba"].config.reload_config()


def _temporary_folder() -> Path | None:
    """A folder that only this user can write to; None where there can be none."""
    import tempfile

    try:
        path = Path(tempfile.gettempdir()) / f"placedsl-{os.getuid() if hasattr(os, 'getuid') else 0}"
        path.mkdir(mode=0o700, exist_ok=True)
        state = path.lstat()
        own = not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
        return path if own and path.is_dir() and not path.is_symlink() else Path(tempfile.mkdtemp(prefix="placedsl-"))
    except OSError:
        return None


def prepare(nodes: int, time_limit: float | None, say: Callable[[str], None], *, again: bool = False) -> float | None:
    """Before a problem of so many nodes is solved, and before kernels are imported; ``say`` hears what is going on.

    ``time_limit``: in seconds, as the user asks for it;  ``again``: whether the command can begin again.  The result is
    for how many seconds it is to be tried (None: it is to be solved).
    """
    if os.environ.get("PLACEDSL_KERNELS") == "compiled" or "numba" in sys.modules or not hasattr(os, "fork"):
        return None
    if kernels_are_compiled():
        return None
    large = nodes > MOST_NODES and (time_limit is None or time_limit > SOON_S)
    if large and (nodes > MOST_TRIED or not again):
        say(NOW)
        return None
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    if _mark() is not None:
        compile_in_background()
    if large:
        say(TRIED)
        return TRY_S
    if _mark() is not None:
        say(BACKGROUND)
    return None


def begin_again(say: Callable[[str], None]) -> None:
    """Run the command of this process once more, in its place and with compiled kernels; it returns where that cannot
    be."""
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_DISABLE_JIT"}
    environment |= {"PLACEDSL_KERNELS": "compiled", _BEGUN: str(_IMPORTED)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (import_root(), os.environ.get("PYTHONPATH"))))
    say(NOW)
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        os.execve(sys.executable, [sys.executable, "-P", "-m", "placedsl", *sys.argv[1:]], environment)


def spent() -> float:
    """Seconds since the command began that this one goes on with; 0 where it goes on with none."""
    try:
        return max(0.0, time.monotonic() - float(os.environ.pop(_BEGUN, "inf")))
    except ValueError:
        return 0.0


def compile_in_background() -> None:
    """Compile all kernels in a process that outlives this one."""
    import subprocess
    import tempfile

    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_DISABLE_JIT"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (import_root(), os.environ.get("PYTHONPATH"))))
    # Where no process can be started, the kernels are compiled when a larger problem is solved.
    with contextlib.suppress(OSError):
        nothing = subprocess.DEVNULL
        command = [sys.executable, "-P", "-m", "placedsl.planner.compile_kernels"]
        subprocess.Popen(
            command, env=environment, cwd=tempfile.gettempdir(), stdin=nothing, stdout=nothing, stderr=nothing,
            start_new_session=True,
        )  # fmt: skip


@contextlib.contextmanager
def compiling(*, wait: bool) -> Iterator[bool]:
    """Whether kernels are still to be compiled, by this process and by no other meanwhile."""
    mark = _mark()
    if mark is None:
        yield True
        return
    with mark.with_suffix(".lock").open("w", encoding="utf-8") as file:
        free = _locked(file.fileno(), wait=wait)
        yield free and not mark.exists()


def _locked(file: int, *, wait: bool) -> bool:
    """Whether this process has the lock now; it has it until it ends."""
    try:
        import fcntl
    except ImportError:  # not on this operating system: at worst kernels are compiled twice
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _mark() -> Path | None:
    """The file that says so; None where there is no folder for it."""
    folder = cache_folder()
    if folder is None:
        return None
    known = f"{sys.version} {_installed('numba')} {_installed('llvmlite')} {kernel_files()}"
    return folder / f"kernels-{hashlib.sha256(known.encode()).hexdigest()[:16]}"


def _installed(package: str) -> list[str]:
    """Names that tell the version of a package: of folders beside it, which are not read."""
    spec = find_spec(package)
    if spec is None or not spec.origin:
        return []
    return sorted(one.name for one in Path(spec.origin).parents[1].glob(f"{package}-*"))


def kernel_files() -> tuple[str, ...]:
    """The files that kernels are in, and their states: numba compiles a kernel anew where its file has changed."""
    files = sorted((Path(import_root()) / "placedsl" / "algorithms").rglob("*.py"))
    states = ((file, file.stat()) for file in files)
    return tuple(f"{file} {state.st_mtime_ns} {state.st_size}" for file, state in states)
