"""One source for the compiled kernels and their plain-Python twins.

A function marked `@kernel` stays plain Python; `compiled(f)` gives the numba version of it, in which every `@kernel`
function that it calls is compiled too. Plain runs take lists, compiled runs take numpy arrays; kernels therefore use
scalar indexing only. numba is imported when something is first compiled, never before.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_KERNELS: list[Callable[..., Any]] = []


def kernel(function: F) -> F:
    """Mark a function as compilable; it is returned unchanged."""
    _KERNELS.append(function)
    return function


@cache
def compiled(function: F) -> F:
    """The numba version of a `@kernel` function. The machine code is kept on disk, keyed by all kernels' source."""
    import numba
    from numba.extending import register_jitable

    for known in _KERNELS:
        if known is not function and not getattr(known, "_jitable", False):
            register_jitable(known)
            known._jitable = True  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = str(_cache_folder())
    return numba.njit(cache=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def run(function: Callable[..., Any], *arguments: Any, plain: bool = False) -> Any:
    """Call a `@kernel` function on numpy columns: compiled, or plain on lists that are copied back."""
    if not plain:
        return compiled(function)(*arguments)
    lists = [_to_lists(argument) for argument in arguments]
    result = function(*lists)
    for argument, values in zip(arguments, lists, strict=True):
        _copy_back(argument, values)
    return result


def _to_lists(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_to_lists, value))
    return value.tolist() if hasattr(value, "tolist") else value


def _copy_back(value: Any, lists: Any) -> None:
    if isinstance(value, tuple):
        for column, values in zip(value, lists, strict=True):
            _copy_back(column, values)
    elif isinstance(lists, list) and value.flags.writeable:
        value[:] = lists


def _cache_folder() -> Path:
    """numba notices a change in the compiled function's own file only, so the folder's name covers the others."""
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    modules = sorted({function.__module__ for function in _KERNELS})
    digest = hashlib.sha256()
    for name in modules:
        digest.update(Path(str(sys.modules[name].__file__)).read_bytes())
    return base / "gpu-capacity-broker" / f"kernels-{digest.hexdigest()[:12]}"
