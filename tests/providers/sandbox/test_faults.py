"""Faults strike the calls that they are set on, and what they do to the effect is what they say."""

import http.client
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.place import ProviderName
from providers.sandbox.faults import FaultKind, Faults, Rule
from providers.sandbox.local import Sandbox

CREATE = {
    "Action": "CreateCapacityReservation",
    "Version": "2016-11-15",
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-east-1a",
    "InstanceCount": "2",
}
HAPPENS = {
    FaultKind.ERROR: 0,
    FaultKind.THROTTLE: 0,
    FaultKind.RESET_BEFORE: 0,
    FaultKind.ERROR_AFTER: 1,
    FaultKind.RESET_AFTER: 1,
    FaultKind.REPLY_LOST: 1,
    FaultKind.MALFORMED: 1,
    FaultKind.UNKNOWN_FIELD: 1,
    FaultKind.UNKNOWN_ENUM: 1,
    FaultKind.MISSING_FIELD: 1,
    FaultKind.DELAY: 1,
    FaultKind.DELAY_BEFORE: 1,
    FaultKind.HIDDEN: 1,
    FaultKind.FAILS_LATER: 1,
    FaultKind.PARTLY: 1,
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def post(sandbox: Sandbox, form: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(sandbox.endpoint.removeprefix("http://"), timeout=5)
    try:
        connection.request("POST", "/", urlencode(form), {"Content-Type": "application/x-www-form-urlencoded"})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_every_kind_is_tried() -> None:
    assert set(HAPPENS) == set(FaultKind)


@pytest.mark.parametrize("kind", list(FaultKind))
def test_what_happens_happens_once_or_not_at_all(sandbox: Sandbox, kind: FaultKind) -> None:
    sandbox.fault(kind, CREATE["Action"], field="state", delay_s=0.01, code="x", count=1)
    broken = kind in (FaultKind.RESET_BEFORE, FaultKind.RESET_AFTER, FaultKind.REPLY_LOST)

    if broken:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            post(sandbox, CREATE)
    else:
        post(sandbox, CREATE)

    assert len(sandbox.record.purchases()) == HAPPENS[kind]
    (call,) = sandbox.record.calls
    assert (call.operation, call.fault) == (CREATE["Action"], (kind.value,))
    assert (call.status == 0) is broken


def test_the_reply_is_bent_as_asked(sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.UNKNOWN_FIELD, "Create*")
    assert b"<brandNewField><x>1</x></brandNewField>" in post(sandbox, CREATE)[2]
    sandbox.fault(FaultKind.UNKNOWN_ENUM, "Create*", field="state", value="odd")
    assert b"<state>odd</state>" in post(sandbox, CREATE)[2]
    sandbox.fault(FaultKind.MISSING_FIELD, "Create*", field="state")
    assert b"<state>" not in post(sandbox, CREATE)[2]
    sandbox.fault(FaultKind.MALFORMED, "Create*")
    assert not post(sandbox, CREATE)[2].rstrip().endswith(b"Response>")
    sandbox.fault(FaultKind.THROTTLE, "Create*", retry_after_s=9)
    status, headers, body = post(sandbox, CREATE)
    assert (status, headers["retry-after"], b"RequestLimitExceeded" in body) == (503, "9", True)


def test_a_delay_is_real_and_does_not_hold_up_others(sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.DELAY, "Create*", delay_s=0.3)
    begun = time.monotonic()
    post(sandbox, CREATE)
    assert time.monotonic() - begun >= 0.3


def test_what_is_hidden_is_shown_later(sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.HIDDEN, "Create*", delay_s=60)
    post(sandbox, CREATE)
    describe = {"Action": "DescribeCapacityReservations", "Version": "2016-11-15"}
    assert b"<item>" not in post(sandbox, describe)[2]
    sandbox.advance(timedelta(seconds=60))
    assert b"<item>" in post(sandbox, describe)[2]


def test_a_rule_strikes_the_calls_that_it_names_and_no_others() -> None:
    faults = Faults()
    faults.add(Rule(kind=FaultKind.ERROR, provider=ProviderName.AWS, operation="Create*", where={"Zone": "*1a"}, nth=2))
    calls = [
        (ProviderName.AWS, "CreateIt", {"Zone": "us-east-1a"}),
        (ProviderName.AWS, "CreateIt", {"Zone": "us-east-1b"}),
        (ProviderName.GCP, "CreateIt", {"Zone": "us-east-1a"}),
        (ProviderName.AWS, "DeleteIt", {"Zone": "us-east-1a"}),
        (ProviderName.AWS, "CreateIt", {}),
        (ProviderName.AWS, "CreateIt", {"Zone": "us-east-1a"}),
        (ProviderName.AWS, "CreateIt", {"Zone": "us-east-1a"}),
    ]
    struck = [bool(faults.strike(*call).rules) for call in calls]
    assert struck == [False, False, False, False, False, True, False]


@given(st.integers(0, 1000), st.floats(0.2, 0.8), st.integers(1, 5))
def test_chance_is_the_seeds_and_times_is_a_limit(seed: int, probability: float, times: int) -> None:
    def struck(seed: int, times: int | None) -> list[bool]:
        faults = Faults(seed)
        faults.add(Rule(kind=FaultKind.ERROR, probability=probability, times=times))
        return [bool(faults.strike(ProviderName.AWS, "x", {}).rules) for _ in range(200)]

    assert struck(seed, times) == struck(seed, times)
    assert sum(struck(seed, times)) <= times
    assert abs(sum(struck(seed, None)) / 200 - probability) < 0.2


def test_the_documentation_names_every_kind() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text(encoding="utf-8")
    assert [kind.value for kind in FaultKind if f"`{kind.value}`" not in page] == []
