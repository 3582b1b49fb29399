"""What could be bought, as text and JSON."""

from broker.commands.shop import Shelf
from broker.model.offer import Offer, Price
from broker.view.document import document
from broker.view.text import money, table

_HEADER = ["type", "where", "account", "GPUs", "per hour", "per GPU", "price from", "left by quota", "excluded"]
_RIGHT = frozenset({3, 4, 5, 7})


def offers_text(shelf: Shelf) -> str:
    full = dict(shelf.cooling)
    rows = [_row(offer, full.get(offer.id, "")) for offer in shelf.offers]
    blocks = [table(_HEADER, rows, right=_RIGHT) if rows else "No offer."]
    blocks.append("\n".join(f"! {problem}" for problem in shelf.problems))
    return "\n\n".join(block for block in blocks if block)


def _row(offer: Offer, full: str) -> list[str]:
    price = offer.price
    return [
        offer.shape.machine_type,
        str(offer.place),
        offer.place.scope.account,
        f"{offer.shape.gpus} {offer.shape.gpu_model.upper()}",
        money(price.usd_per_hour) if price else "unknown",
        money(price.usd_per_hour / offer.shape.gpus) if price and offer.shape.gpus else "-",
        _source(price) if price else "-",
        "-" if offer.quota_left is None else str(offer.quota_left),
        "; ".join(why for why in (offer.excluded, full, "" if price else "no price: not bought") if why),
    ]


def _source(price: Price) -> str:
    """Where it is from, and what it is the sum of."""
    parts = " + ".join(f"{name} {money(usd)}" for name, usd in price.parts)
    return f"{price.source} {price.as_of:%Y-%m-%d}" + (f": {parts}" if parts else "")


def offers_json(shelf: Shelf) -> str:
    return document("offers", {"shelf": shelf})
