"""python run_llama_cpp.py FILE: what llama.cpp's own parser of arguments makes of a file.

The parser (``common/arg.cpp: common_params_parse``) is that of the package xllamacpp, which has no function for it: it
is called in its library, and fills the parameters that an object of the package holds.
"""

from __future__ import annotations

import ctypes
import shlex
import sys
from pathlib import Path

import xllamacpp
from xllamacpp import xllamacpp as library

_PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
#: Where an object of the package has its parameters: behind a reference count and a type.
_HEADER = 2 * ctypes.sizeof(ctypes.c_void_p)
_COMMON_PROGRAM = 2  # LLAMA_EXAMPLE_COMMON


def parsed(words: list[str]) -> xllamacpp.CommonParams:
    """The parameters of a program with these arguments; AssertionError where it would not start."""
    parameters = xllamacpp.CommonParams()
    marked = ctypes.c_int32.from_address(id(parameters) + _HEADER)
    parameters.n_predict = 987_654_321
    assert marked.value == 987_654_321, "the package lays its objects out in another way"
    parse = getattr(ctypes.CDLL(library.__file__), _PARSE)
    parse.restype = ctypes.c_bool
    parse.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    given = [word.encode() for word in ("llama-server", "-m", "model.gguf", *words)]
    arguments = (ctypes.c_char_p * (len(given) + 1))(*given, None)
    assert parse(len(given), arguments, id(parameters) + _HEADER, _COMMON_PROGRAM, None), "refused by llama.cpp"
    return parameters


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line and not line.startswith("#")]
    found = parsed(shlex.split(line))
    shares = list(found.tensor_split)
    used = max((k + 1 for k, share in enumerate(shares) if share), default=0)
    mode = xllamacpp.llama_split_mode(found.split_mode).name.removeprefix("LLAMA_SPLIT_MODE_").lower()
    print(f"{found.n_gpu_layers} by {mode}, shares {[round(share) for share in shares[:used]]}")
