"""`offers`: what could be bought now, at what price, and what not and why."""

import msgspec

from broker.commands.workplace import Workplace
from broker.errors import Exit, UsageError
from broker.model.gpu import known, normalise, satisfies
from broker.model.offer import Offer
from broker.observe.observe import observe


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """Cheapest per GPU first; those without a price last. `unread` are the scopes whose offers are not known."""

    offers: tuple[Offer, ...]
    unread: tuple[str, ...]
    problems: tuple[str, ...]
    cooling: tuple[tuple[str, str], ...]

    @property
    def exit_code(self) -> Exit:
        if not self.unread:
            return Exit.OK
        return Exit.PARTLY_DONE if self.offers else Exit.ERROR


def offers(place: Workplace, gpu: str | None) -> Shelf:
    """Raises UsageError for a GPU model that nobody knows."""
    model = _model(gpu) if gpu else None
    snapshot = observe(place.config, place.store, place.providers, place.clock)
    found = [offer for view in snapshot.scopes for offer in view.offers if _wanted(offer, model)]
    return Shelf(
        offers=tuple(sorted(found, key=_per_gpu)),
        unread=tuple(str(view.scope) for view in snapshot.scopes if not view.offers_known),
        problems=tuple(line for view in snapshot.scopes for line in view.problems),
        cooling=tuple((each.offer_id, f"full until {each.until:%H:%M} UTC ({each.code})") for each in snapshot.cooling),
    )


def _model(gpu: str) -> str:
    model = normalise(gpu)
    if model is None:
        raise UsageError(f'there is no GPU model "{gpu}"', next_step=f"Known are {', '.join(known())}")
    return model


def _wanted(offer: Offer, model: str | None) -> bool:
    return model is None or satisfies(model, offer.shape.gpu_model)


def _per_gpu(offer: Offer) -> tuple[bool, float, str]:
    if offer.price is None or not offer.shape.gpus:
        return (True, 0.0, offer.id)
    return (False, float(offer.price.usd_per_hour / offer.shape.gpus), offer.id)
