"""Where jobs may be granted slots: what is active, usable now, and really there."""

from typing import Any

import pytest

from broker.model.reservation import ReservationState
from broker.schedule.promises import slots_of
from tests.purchase.worlds import H100, HOUR, NOW, held, policy


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        ({}, [16]),
        ({"assured": 1}, [8]),
        ({"assured": 0}, [0]),
        ({"state": ReservationState.PENDING}, []),
        ({"state": ReservationState.CANCELLING}, []),
        ({"usable_from": NOW + HOUR}, []),
        ({"usable_until": NOW}, []),
    ],
)
def test_no_job_is_sent_to_what_is_not_there(changes: dict[str, Any], gpus: list[int]) -> None:
    slots = slots_of(H100, policy(), (held(count=2, **changes),), NOW)
    assert [each.gpus for each in slots] == gpus
