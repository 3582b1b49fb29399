"""A listing that lags behind our own calls, made whole from the ledger. Pure.

A cloud may show a purchase, a new count or a release only some time after it said yes. Whoever decides from such a
listing would buy again what was bought a minute ago; so within the visibility window the ledger's word counts.
"""

from collections.abc import Mapping

import msgspec

from broker.model.reservation import Reservation
from broker.model.snapshot import ScopeView
from state.entries import Holding
from state.witness import Look


def made_whole(view: ScopeView, known: Mapping[str, Holding], look: Look | None) -> ScopeView:
    """The view with our own fresh changes in it; use and everything else as listed."""
    if look is None:
        return view
    lagging = {which: holding for which, holding in known.items() if look.lags(holding)}
    listed = tuple(_as_known(r, lagging[r.id]) if r.id in lagging else r for r in view.reservations)
    shown = {reservation.id for reservation in listed}
    unseen = tuple(h.reservation for which, h in lagging.items() if which not in shown and not h.reservation.state.gone)
    return msgspec.structs.replace(view, reservations=(*listed, *unseen))


def _as_known(listed: Reservation, holding: Holding) -> Reservation:
    known = holding.reservation
    if known.state.gone:
        return known
    if listed.state.gone:
        return listed
    return msgspec.structs.replace(listed, count=known.count, ends=known.ends)
