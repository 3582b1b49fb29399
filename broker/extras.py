"""Libraries of the optional extras: whether they are there, and how to get them."""

from importlib import import_module

from broker.errors import UsageError

FORECASTS = ("numpy", "lightgbm")
REPLAYS = ("numpy", "numba")


def missing(libraries: tuple[str, ...]) -> str:
    """The first of them that cannot be imported; "" if all can."""
    for name in libraries:
        try:
            import_module(name)
        except ImportError:
            return name
    return ""


def require(who: str, libraries: tuple[str, ...], extra: str, *, instead: str = "") -> None:
    """Raises UsageError that names what is missing, the extra that brings it, and what would do without."""
    if name := missing(libraries):
        next_step = f"Install it: pip install 'gpu-capacity-broker[{extra}]'{instead and f', or {instead}'}"
        raise UsageError(f"{who} {name}", next_step=next_step)
