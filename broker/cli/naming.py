"""What the help calls the value of an option that names none: a word in capitals, never a type of Python's."""

import inspect
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

_BY_NAME = {
    "state": "FILE", "pool": "NAME", "pools": "NAME", "tenant": "NAME", "cluster": "NAME", "provider": "CLOUD",
    "gpu": "MODEL", "timezone": "ZONE", "how": "FORMAT", "format": "FORMAT", "source_format": "FORMAT",
    "form": "FORMAT", "since": "WHEN", "lineage": "LINEAGE", "trace": "TRACE", "entitlement": "TENANT=GPUS",
    "reclaim_of": "CLASS=SECONDS", "folder": "DIR", "seed": "SEED", "synthetic": "SEED", "reclaim_s": "S",
    "restore_s": "S", "lead_s": "S", "term_s": "S",
}  # fmt: skip
_BY_TYPE = {Path: "FILE", int: "N", float: "X", str: "WORD"}


def name_values(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter; its option or argument, where it has a value without a name, is given one."""
    annotation, *about = get_args(parameter.annotation) or (parameter.annotation,)
    for info in about:
        if getattr(info, "metavar", "") is None and not getattr(info, "count", False):
            info.metavar = _named(parameter.name, _value(annotation))
    return parameter


def _value(annotation: Any) -> Any:
    """Of `list[Path] | None`, Path."""
    while get_origin(annotation) in (Union, UnionType, list):
        annotation = next(each for each in get_args(annotation) if each is not NoneType)
    return annotation


def _named(name: str, kind: Any) -> str | None:
    """None for a flag, and for one of a few words, which are shown."""
    if kind is bool or (isinstance(kind, type) and issubclass(kind, Enum)):
        return None
    return _BY_NAME.get(name) or _BY_TYPE.get(kind)
