"""Slurm's words for resources: TRES (`cpu=4,gres/gpu:a100=8`) and GRES (`gpu:a100:8(S:0-1)`)."""

import re
from functools import lru_cache

import msgspec

from broker.model.gpu import normalise
from broker.queues.gpu_names import piece
from broker.queues.parsed import Unfit

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_BRACKETS = re.compile(r"\([^()]*\)")
_COUNT = re.compile(r"(\d{1,12})([kmg]?)", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"[-+.]?\d+(?:[.,]\d*)?(?:e[-+]?\d+)?[kmgtp]?$")
"""Beside a count it may be a model (`gpu:4090:8`); alone it is a count, and none that can be."""
_SHARED = re.compile(r"\b(?:shard|mps)(?::[^:=,]*)?[:=](\d{1,9})")


class Gpus(msgspec.Struct, frozen=True):
    """`count` whole GPUs of the model named `kind` (None: not named). `fractions` counts pieces of GPUs (MIG)."""

    count: int = 0
    kind: str | None = None
    fractions: int = 0


@lru_cache(maxsize=4096)  # the same few requests come again and again
def gpus(text: str | None) -> Gpus:
    """The GPUs in one TRES or GRES text. Where a total stands beside types, the total counts and the types name it.

    Raises Unfit for a GPU entry that cannot be understood: it must not be taken for none.
    """
    lowered = text.lower() if text else ""
    if "gpu" not in lowered:
        return Gpus(fractions=_shared(lowered))
    total, typed = 0, dict[str, int]()
    for item in _BRACKETS.sub("", lowered).split(","):
        name, count = _item(item.strip())
        if name is None:
            total += count
        elif name:
            typed[name] = typed.get(name, 0) + count
    found = _summed(total, typed)
    return found if found.count or found.fractions else Gpus(fractions=_shared(lowered))


def _shared(text: str) -> int:
    """Shards and MPS: parts of GPUs that are asked for without whole ones."""
    return sum(int(count) for count in _SHARED.findall(text))


def _item(item: str) -> tuple[str | None, int]:
    """(type, count); type None for an untyped GPU, "" for anything that is not a GPU (gpumem, gpuutil, shard)."""
    kind, *rest = re.split("[:=]", re.sub("^gres[:/]", "", item.lower()))
    if kind != "gpu":
        return "", 0
    counted = _COUNT.fullmatch(rest[-1]) if rest else None
    names = rest[:-1] if counted else rest
    if len(names) > 1 or "" in rest or (names and not counted and _NUMBER.match(names[0])):
        raise Unfit("has a GPU request that cannot be understood", item)
    count = int(counted[1]) * _UNITS[counted[2]] if counted else 1
    return (names[0] if names else None), count


def _summed(total: int, typed: dict[str, int]) -> Gpus:
    whole = {name: count for name, count in typed.items() if not piece(name) and count}
    fractions = sum(typed.values()) - sum(whole.values())
    models = {normalise(name) or name for name in whole}
    count = max(total - fractions, sum(whole.values())) if total else sum(whole.values())
    return Gpus(count, "+".join(sorted(models)) or None, fractions)


@lru_cache(maxsize=4096)
def kind_in(features: str | None) -> str | None:
    """The one GPU model that a constraint such as `a100-80gb&infiniband` names, else None."""
    words = re.split(r"[&|,*()\[\]\s]+", features or "")
    models = {model for word in words if (model := normalise(word))}
    return models.pop() if len(models) == 1 else None
