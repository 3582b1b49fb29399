"""One source for the compiled kernels and their plain-Python twins.

A function marked `@kernel` stays plain Python; `compiled(f)` gives the numba version of it, in which every `@kernel`
function that it calls is compiled too. Plain runs take lists, compiled runs take numpy arrays; kernels therefore use
scalar indexing only. numba is imported when something is first compiled, never before.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_KERNELS: list[Callable[..., Any]] = []
_ALLOCATING: set[Callable[..., Any]] = set()


def kernel(function: F) -> F:
    """Mark a function as compilable; it is returned unchanged."""
    _KERNELS.append(function)
    return function


def allocating(function: F) -> F:
    """Mark a kernel that makes lists of its own when it is compiled."""
    _ALLOCATING.add(function)
    return function


@cache
def compiled(function: F) -> F:
    """The numba version of a `@kernel` function. The machine code is kept on disk, keyed by its kernels' source.

    The arrays that it works on are its caller's, so numba need not count references to them. It would do so at every
    call of a kernel by another, for each array of the state: nine tenths of the time of a replay, measured. A kernel
    that allocates is refused by numba then, unless it is marked.
    """
    import numba
    from numba.extending import register_jitable

    for known in _KERNELS:
        if known is not function and not getattr(known, "_jitable", False):
            register_jitable(known)
            known._jitable = True  # type: ignore[attr-defined]  # our mark
    numba.config.CACHE_DIR = str(_cache_folder(function))
    options = {"cache": True, "error_model": "numpy", "_nrt": function in _ALLOCATING}
    return numba.njit(**options)(function)  # type: ignore[no-any-return]  # numba is untyped


def run(function: Callable[..., Any], *arguments: Any, plain: bool = False) -> Any:
    """Call a `@kernel` function on lists of numbers or records (or tuples of such): plain, or compiled on arrays.

    Arrays are passed as they are when compiled, and lists when plain; what was converted is copied back.
    """
    convert, back = (_to_lists, _into_array) if plain else (to_arrays, _into_list)
    converted = [convert(argument) for argument in arguments]
    result = (function if plain else compiled(function))(*converted)
    for argument, values in zip(arguments, converted, strict=True):
        _copy(argument, values, back)
    return result


def to_arrays(value: Any) -> Any:
    """Lists of numbers -> arrays; lists of dataclass instances -> record arrays; through named tuples."""
    import numpy as np

    if isinstance(value, tuple):
        return type(value)(*map(to_arrays, value))
    if not isinstance(value, list):
        return value
    if value and is_dataclass(value[0]):
        pick = attrgetter(*(field.name for field in fields(value[0])))
        return np.array([pick(record) for record in value], dtype=_record_type(value[0]))
    return np.array(value)


def filled(record: Any, length: int) -> Any:
    """A record array of `length` copies of a dataclass instance."""
    import numpy as np

    values = tuple(getattr(record, field.name) for field in fields(record))
    return np.full(length, np.array(values, dtype=_record_type(record)))


def _record_type(record: Any) -> list[tuple[str, str]]:
    """As the class declares its fields: by their values, 60 for 60.0 would be another type, and all compiled anew."""
    return [(field.name, "f8" if field.type is float else "i4") for field in fields(record)]


def _to_lists(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_to_lists, value))
    return value.tolist() if hasattr(value, "dtype") else value


def _copy(value: Any, converted: Any, back: Callable[[Any, Any], None]) -> None:
    if isinstance(value, tuple):
        for part, values in zip(value, converted, strict=True):
            _copy(part, values, back)
    elif value is not converted:
        back(value, converted)


def _into_array(array: Any, values: Any) -> None:
    array[:] = values


def _into_list(values: Any, array: Any) -> None:
    if array.dtype.names is None:
        values[:] = array.tolist()
        return
    for record, row in zip(values, array.tolist(), strict=True):
        for name, number in zip(array.dtype.names, row, strict=True):
            setattr(record, name, number)


def _cache_folder(function: Callable[..., Any]) -> Path:
    """numba notices a change in the compiled function's own file only, so the folder's name covers the others."""
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for name in _modules_of(function):
        digest.update(Path(str(sys.modules[name].__file__)).read_bytes())
    return base / "gpu-capacity-broker" / f"kernels-{digest.hexdigest()[:12]}"


def _modules_of(function: Callable[..., Any]) -> list[str]:
    """Its own and, of the modules with kernels, those that it takes names from, directly or not.

    Not all that are imported: those differ from command to command, and each set would be compiled anew.
    """
    known = {kernel.__module__ for kernel in _KERNELS}
    found, ahead = set[str](), {function.__module__}
    while ahead:
        found |= ahead
        named = {getattr(value, "__module__", "") for module in ahead for value in vars(sys.modules[module]).values()}
        ahead = (named & known) - found
    return sorted(found)
