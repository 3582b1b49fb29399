"""What an answer of the cloud is taken for."""

import msgspec
import pytest

from broker.apply.outcomes import CANCELLING, NOT_SHOWN, PARTLY, after_error, after_yes
from broker.model.intent import IntentStatus
from broker.model.reservation import ReservationState
from providers.base import Ambiguous, Conflict
from tests.apply.cloud import give_back, resize
from tests.state.worlds import T0, held


@pytest.mark.parametrize("wanted", [1, 3])
def test_a_new_count_is_done_when_it_is_shown(wanted: int) -> None:
    request = resize("k2", held(), wanted).request
    assert after_yes(request, msgspec.structs.replace(held(), count=wanted), T0).status is IntentStatus.DONE
    pending = after_yes(request, held(), T0)
    assert (pending.status, pending.code) == (IntentStatus.UNKNOWN, NOT_SHOWN)


def test_what_the_cloud_says_is_not_there_is_not_called_whole() -> None:
    whole = msgspec.structs.replace(held(), count=3)
    growth = resize("k2", msgspec.structs.replace(held(), count=1), 3).request
    assert after_yes(growth, whole, T0).code == ""
    lacking = after_yes(growth, msgspec.structs.replace(whole, assured=2), T0)
    assert (lacking.status, lacking.code) == (IntentStatus.DONE, PARTLY)
    assert "2 of 3 instances" in lacking.message
    shrunk = resize("k3", whole, 1).request
    assert after_yes(shrunk, msgspec.structs.replace(whole, count=1, assured=0), T0).code == ""


def test_a_release_is_done_when_it_is_gone() -> None:
    request = give_back("k2", held()).request
    waiting = msgspec.structs.replace(held(), state=ReservationState.CANCELLING)
    assert after_yes(request, waiting, T0).code == CANCELLING
    assert after_yes(request, held(), T0).status is IntentStatus.UNKNOWN
    assert after_yes(request, msgspec.structs.replace(held(), state=ReservationState.RELEASED), T0).reservation_id


def test_only_an_error_that_rules_an_effect_out_is_final() -> None:
    assert after_error(Ambiguous("reserve", code="ReadTimeout"), T0).status is IntentStatus.UNKNOWN
    assert after_error(KeyError("surprise"), T0).status is IntentStatus.UNKNOWN
    assert after_error(Conflict("reserve", code="InUse"), T0).status is IntentStatus.REFUSED
