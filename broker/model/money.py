"""US dollars: `Decimal` in memory, integers of micro-dollars in the database."""

from decimal import ROUND_HALF_EVEN, Decimal

MICRO_PER_USD = 1_000_000
CENT = Decimal("0.01")


def to_micro(usd: Decimal) -> int:
    """Micro-dollars, half to even."""
    return int((usd * MICRO_PER_USD).to_integral_value(ROUND_HALF_EVEN))


def from_micro(micro_usd: int) -> Decimal:
    return Decimal(micro_usd) / MICRO_PER_USD


def cents(usd: Decimal) -> Decimal:
    """Rounded to the cent, half to even: for display and for comparison with a bill."""
    return usd.quantize(CENT, ROUND_HALF_EVEN)
