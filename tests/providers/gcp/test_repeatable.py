"""What is safe to do twice is tried again; what two do at once happens once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.model.reservation import ReservationState
from providers.base import Unsupported
from providers.gcp.adapter import Gcp
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.record import EffectKind
from tests.providers.gcp.conftest import (
    END,
    SCOPE,
    adapter,
    end_request,
    release_request,
    reserve_request,
    resize_request,
)

PASSING = [
    FaultKind.THROTTLE,
    FaultKind.ERROR,
    FaultKind.ERROR_AFTER,
    FaultKind.RESET_BEFORE,
    FaultKind.RESET_AFTER,
    FaultKind.REPLY_LOST,
    FaultKind.MALFORMED,
]


@pytest.mark.parametrize("kind", PASSING)
def test_a_release_gets_through_and_happens_once(gcp: Gcp, sandbox: Sandbox, kind: FaultKind) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(kind, "reservations.delete", times=2)

    assert gcp.release(release_request(bought.id)).state is ReservationState.RELEASED
    assert effects(sandbox, EffectKind.RELEASE) == 1
    assert gcp.reservations(SCOPE) == ()


@pytest.mark.parametrize("kind", PASSING)
def test_a_shrinking_gets_through(gcp: Gcp, sandbox: Sandbox, kind: FaultKind) -> None:
    bought = gcp.reserve(reserve_request(count=4))
    sandbox.fault(kind, "reservations.resize", times=2)

    assert gcp.resize(resize_request(bought.id, 4, 1)).count == 1
    assert gcp.reservations(SCOPE)[0].count == 1
    assert len(sandbox.record.purchases()) == 1


@pytest.mark.parametrize("kind", PASSING)
def test_an_end_is_moved_through_passing_faults(gcp: Gcp, sandbox: Sandbox, kind: FaultKind) -> None:
    bought = gcp.reserve(reserve_request(end=END))
    sandbox.fault(kind, "reservations.update", times=2)

    assert gcp.set_end(end_request(bought.id, END.replace(hour=20))).ends == END.replace(hour=20)


def test_a_project_whose_ends_cannot_be_set_after_all_says_so(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request(end=END))
    sandbox.fault(FaultKind.ERROR, "reservations.update", status=400, code="invalid", message="not for this project")

    with pytest.raises(Unsupported) as refusal:
        gcp.set_end(end_request(bought.id, END.replace(hour=20)))

    assert refusal.value.message.endswith("not for this project")
    assert gcp.reservations(SCOPE)[0].ends == END


def test_a_release_that_fails_later_is_not_called_released(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.FAILS_LATER, "reservations.delete", code="RESOURCE_NOT_READY", delay_s=60)

    assert gcp.release(release_request(bought.id)).state is ReservationState.CANCELLING
    assert gcp.reservations(SCOPE)[0].id == bought.id
    assert gcp.release(release_request(bought.id)).state is ReservationState.RELEASED


def test_two_that_buy_the_same_at_once_buy_it_once(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(8) as threads:
        bought = list(threads.map(lambda _: adapter(sandbox).reserve(reserve_request()), range(8)))

    assert len({reservation.id for reservation in bought}) == 1
    assert effects(sandbox, EffectKind.RESERVE) == 1


def test_one_adapter_serves_many_threads(gcp: Gcp, sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(8) as threads:
        bought = list(threads.map(lambda n: gcp.reserve(reserve_request(f"k{n}", 1)), range(16)))

    assert len(bought) == effects(sandbox, EffectKind.RESERVE) == 16
    assert {reservation.id for reservation in gcp.reservations(SCOPE)} == {reservation.id for reservation in bought}


def effects(sandbox: Sandbox, kind: EffectKind) -> int:
    return sum(effect.kind is kind for effect in sandbox.record.effects)
