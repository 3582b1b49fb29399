"""What people write for a GPU -> its model, memory, how many, and whether it is only a piece of one.

Models (`a100`, `NVIDIA-A100-SXM4-80GB`, `nvidia-h100-80gb`), requests (`gpu:h100_mega:4`), machine types of the clouds
and their managed services (`ml.p5.48xlarge`, `Standard_ND96isr_H100_v5`), and pieces: MIG profiles (`1g.10gb`,
`nvidia.com/mig-3g.40gb`), MPS, shards, time slices. A name that is new stays unknown: it is never "any" GPU.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

from broker.model.gpu import normalise
from broker.model.offer import Shape
from broker.queues.machines import known

_MEMORY_GB = {
    "t4": 16, "t4g": 16, "l4": 24, "a10": 24, "a10g": 24, "a30": 24, "a40": 48, "l40": 48, "l40s": 48, "p4": 8,
    "p40": 24, "p100": 16, "h100": 80, "h100-nvl": 94, "h200": 141, "h20": 96, "mi100": 32, "mi210": 64, "mi250": 128,
    "mi250x": 128, "mi300x": 192, "mi325x": 256, "mi355x": 288, "rtx-pro-6000": 96, "rtx-pro-4500": 32,
}  # fmt: skip
"""Of models that are sold in one size; makers' data sheets."""

_SIZE = re.compile(r"-(\d+)gb$")
_MIG = re.compile(r"(?:^|[^0-9a-z])(?:\d+c\.)?([1-7]g\.\d{1,3}gb)(?:\+?(?:me|gfx|\.all|-me)\b)?", re.IGNORECASE)
_PIECES = (
    (re.compile(r"\bshards?\b|\.shared\b|[-_]shared\b", re.IGNORECASE), "shared"),
    (re.compile(r"\bmps\b", re.IGNORECASE), "mps"),
    (re.compile(r"\bvgpu\b|\bgpu-?mem(?:ory)?\b|\bgpucores\b", re.IGNORECASE), "vgpu"),
    (re.compile(r"\bmig\b|mig-", re.IGNORECASE), "mig"),
)
_REQUEST = re.compile(r"(?:gres[:/])?gpus?[:=/](?P<kind>[^:=]*?)(?:[:=](?P<count>\d{1,6}))?")
_MOST_ALIASES = 8


class Named(msgspec.Struct, frozen=True):
    """`count` is per instance of a machine type, or what a request asks for; `piece` is "" for whole GPUs.

    `memory_gb` is of one whole GPU; None where the name leaves it open.
    """

    model: str | None
    memory_gb: int | None = None
    count: int = 1
    piece: str = ""

    @property
    def known(self) -> bool:
        return self.model is not None or bool(self.piece)


UNKNOWN = Named(None, count=0)


def named(text: str, aliases: Mapping[str, str] | None = None) -> Named:
    """`aliases` are the user's own names, lower-case; UNKNOWN for what is new to us."""
    written = _aliased(text.strip(), aliases or {})
    if shape := known(written):
        return _of_shape(shape)
    if part := piece(written):
        return Named(normalise(_without_piece(written)), count=0, piece=part)
    request = _REQUEST.fullmatch(written.lower())
    kind = request["kind"] if request else written
    model = normalise(kind)
    if model is None:
        return UNKNOWN
    return Named(model, memory_gb(model), int(request["count"] or 1) if request else 1)


def memory_gb(model: str) -> int | None:
    """Of a canonical model name."""
    size = _SIZE.search(model)
    return int(size[1]) if size else _MEMORY_GB.get(model)


def unknown_among(models: Iterable[str | None]) -> tuple[str, ...]:
    """Those that are no model we know, in order, each once; `a100+h100` is two models."""
    parts = dict.fromkeys(part for model in dict.fromkeys(models) if model for part in model.split("+"))
    return tuple(part for part in parts if normalise(part) is None)


def renamed(model: str | None, aliases: Mapping[str, str]) -> str | None:
    """A job's model by the user's own table: what stands there wins over what we know."""
    if model is None or not aliases:
        return model
    parts = {_canonical(aliases.get(part.lower(), part)) for part in model.split("+")}
    return "+".join(sorted(parts))


def _canonical(written: str) -> str:
    return normalise(written) or written.lower()


def _aliased(written: str, aliases: Mapping[str, str]) -> str:
    """An alias may stand for another one; a circle ends where it was entered."""
    for _ in range(_MOST_ALIASES):
        following = aliases.get(written.lower())
        if following is None or following.lower() == written.lower():
            return written
        written = following
    return written


def _of_shape(shape: Shape) -> Named:
    """A machine type with less than one GPU has count 0."""
    return Named(shape.gpu_model, memory_gb(shape.gpu_model), shape.gpus, "" if shape.gpus else "vgpu")


def piece(written: str) -> str:
    """Which part of a GPU a name means: a MIG profile, shared, mps, vgpu; "" for whole ones."""
    profile = _MIG.search(written)
    if profile:
        return f"mig-{profile[1].lower()}"
    return next((part for pattern, part in _PIECES if pattern.search(written)), "")


def _without_piece(written: str) -> str:
    rest = _MIG.sub(" ", written)
    for pattern, _ in _PIECES:
        rest = pattern.sub(" ", rest)
    return rest
