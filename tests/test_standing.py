"""Where we stand, by the ledger alone."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from broker.model.reservation import ReservationState
from broker.standing import Held, Known, Standing, standing
from tests.view.values import AWS, LINEAGE, NOW, reservation

HOUR = timedelta(hours=1)
FOUR = reservation(AWS, "p5.48xlarge", 4)


def stand(**changes: Any) -> Standing:
    known = Known(
        now=NOW,
        lineage=LINEAGE,
        serial=1,
        heartbeat=None,
        reservations=(msgspec.structs.replace(FOUR, **changes),),
        others=(),
        intents=(),
        idle=(),
    )
    return standing(known)


def one(**changes: Any) -> Held:
    (held,) = stand(**changes).held
    return held


def test_room_is_what_is_there_and_free() -> None:
    assert (one().room, one().no_room) == (4, "")
    assert one(used=3).room == 1
    assert one(assured=3, used=1).room == 2


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"used": 4}, "all of it is in use"),
        ({"used": 4, "over": 2}, "all of it is in use"),
        ({"used": 2, "assured": 2}, "all of it is in use"),
        ({"assured": 0}, "none of its instances is there"),
        ({"state": ReservationState.PENDING}, "it is pending, not active"),
        ({"state": ReservationState.SCHEDULED, "usable_from": NOW + HOUR}, "it is scheduled, not active"),
        ({"state": ReservationState.UNKNOWN}, "it is unknown, not active"),
        ({"usable_from": NOW + HOUR}, "it is not usable before 2026-03-04 15:00 UTC"),
        ({"usable_until": NOW}, "it is not usable since 2026-03-04 14:00 UTC"),
    ],
)
def test_nobody_is_sent_where_nothing_can_start(changes: dict[str, Any], why: str) -> None:
    assert (one(**changes).room, one(**changes).no_room) == (0, why)
