"""Canonical GPU model names: `a100-80gb`, `h100`, `rtx-pro-6000`.

A name is the model, with its memory size only where that model is sold in several (A100, V100): there the sizes are
different things to ask for and to pay for. Queue readers, adapters and the price table all speak these names.
"""

import re

_SIZES_GB = {"a100": (40, 80), "v100": (16, 32)}
"""Models that are sold in several memory sizes; for all others the size says nothing and is dropped."""

_NAMES = frozenset((
    "a100", "a800", "h100", "h800", "h200", "h20", "gh200", "b200", "b300", "gb200", "gb300", "v100", "p100", "p40",
    "p4", "k80", "m60", "t4", "t4g", "l4", "l40", "l40s", "l20", "a2", "a10", "a10g", "a16", "a30", "a40", "a4000",
    "a4500", "a5000", "a5500", "a6000", "mi100", "mi210", "mi250", "mi250x", "mi300a", "mi300x", "mi325x", "mi355x",
))  # fmt: skip
_SERIES = re.compile(r"(?P<series>rtx|gtx)?(?P<number>\d{4})(?P<form>ti|super)?")
_CONSUMER = re.compile(r"1080|1660|20[678]0|30[6789]0|40[6789]0|50[789]0")
_WORKSTATION = re.compile(r"4000|4500|5000|6000|8000")
_MEMORY = re.compile(r"(\d{2,3})g(?:b|ib)?")
_FRACTION = re.compile(r"[1-7]g|mig|shards?|mps|vgpu|shared")
_MACHINE_TYPE_WORDS = frozenset({"standard", "highgpu", "megagpu", "ultragpu", "edgegpu", "xlarge", "metal"})
_SIZE_TOLERANCE = 0.1


def normalise(text: str) -> str | None:
    """The canonical name of the one whole-GPU model that `text` names, in any of the spellings in use; else None.

    None means "not a model that we know": several models, a fraction (MIG, MPS, shard), a machine type, or a name
    that is new to us. It does not mean "any": a caller that holds a non-empty text must not treat it as such.
    """
    words = _words(text)
    if any(_FRACTION.fullmatch(word) or word in _MACHINE_TYPE_WORDS for word in words):
        return None
    models = _NAMES.intersection(words) or _series_models(words)
    if len(models) != 1:
        return None
    (model,) = models
    if model == "h100" and "nvl" in words:
        return "h100-nvl"
    return _with_size(model, words)


def known() -> tuple[str, ...]:
    """The names of the models that are known without a series, sorted: for suggestions, not a complete list."""
    return tuple(sorted(_NAMES))


def satisfies(wanted: str, offered: str) -> bool:
    """Whether a GPU `offered` is what a job that wants `wanted` may run on; both are canonical names.

    A size not asked for does not matter; a size not stated does not satisfy one that is asked for.
    """
    return wanted == offered or (wanted in _SIZES_GB and offered.startswith(f"{wanted}-"))


def _words(text: str) -> list[str]:
    """Lower-case words; a count behind a name (`h100x8`) falls away."""
    return [re.sub(r"(?<=\d)x\d+$", "", word) for word in re.split(r"[^a-z0-9]+", text.lower()) if word]


def _with_size(model: str, words: list[str]) -> str:
    sizes = [int(match[1]) for word in words if (match := _MEMORY.fullmatch(word))]
    if model not in _SIZES_GB or len(sizes) != 1:
        return model
    stated = sizes[0]
    known = min(_SIZES_GB[model], key=lambda size: abs(size - stated))
    return f"{model}-{known if abs(known - stated) <= known * _SIZE_TOLERANCE else stated}gb"


def _series_models(words: list[str]) -> set[str]:
    """GeForce and workstation names, whose number means a model only together with its series."""
    return {model for index, word in enumerate(words) if (model := _series_model(word, words, index))}


def _series_model(word: str, words: list[str], index: int) -> str | None:
    match = _SERIES.fullmatch(word)
    if not match:
        return None
    number, form = match["number"], match["form"] or _form_after(words, index)
    if _CONSUMER.fullmatch(number):
        series = "gtx" if number.startswith("1") else "rtx"
        return f"{series}-{number}{f'-{form}' if form else ''}"
    if _WORKSTATION.fullmatch(number) and (match["series"] or "rtx" in words):
        return _workstation(number, words)
    return None


def _form_after(words: list[str], index: int) -> str | None:
    following = words[index + 1] if index + 1 < len(words) else ""
    return following if following in ("ti", "super") else None


def _workstation(number: str, words: list[str]) -> str:
    if "pro" in words:
        return f"rtx-pro-{number}"
    return f"rtx-{number}-ada" if "ada" in words else f"rtx-{number}"
