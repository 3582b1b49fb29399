import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from broker.clock import Clock, FixedClock
from broker.commands import acting, planning
from broker.commands.acting import Limits, run
from broker.commands.care import adopt_all
from broker.commands.workplace import Workplace
from broker.config import Config, at_endpoints, name_of, parse
from broker.config.starter import SANDBOX_QUEUE, sandbox_starter
from broker.errors import GuardError
from broker.model.offer import Offer
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import ReleaseRequest
from broker.model.reservation import Reservation
from broker.model.snapshot import ScopeView, Snapshot, Trust
from broker.observe.observe import observe, observe_queues
from broker.observe.timekeeping import clock_doubt, difference, right_clock
from providers.base import Denied, Provider
from providers.connect import connect
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from state.queue_reads import QueueRead, remember
from state.store import Store


class Setting:
    """A sandbox, a configuration that points at it, and an empty state."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder = folder
        self.sandbox = sandbox
        (folder / "queue.csv").write_text(SANDBOX_QUEUE)
        read = parse(sandbox_starter(), folder / "broker.toml", flags={}, env={})
        self.config = at_endpoints(read, dict.fromkeys(ProviderName, sandbox.endpoint))
        self.clock: Clock = FixedClock(sandbox.clock.now())
        self.store = Store.create(self.config.state, now=self.clock.now())

    def connected(self) -> dict[ProviderName, Provider]:
        return {name_of(each): connect(each, self.clock) for each in self.config.providers}

    def observed(self, providers: dict[ProviderName, Provider] | None = None, **changes: object) -> Snapshot:
        config: Config = msgspec.structs.replace(self.config, **changes)
        return observe(config, self.store, self.connected() if providers is None else providers, self.clock)


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with Sandbox() as sandbox:
        made = Setting(tmp_path, sandbox)
        yield made
        made.store.close()


def of(snapshot: Snapshot, name: ProviderName) -> list[ScopeView]:
    return [view for view in snapshot.scopes if view.scope.provider is name]


def test_everything_is_seen_through_the_real_clients(setting: Setting) -> None:
    seen = setting.observed()
    assert [view.trust for view in seen.scopes] == [Trust.COMPLETE] * 6, [view.problems for view in seen.scopes]
    assert all(view.offers_known and view.reservations_at == setting.clock.now() for view in seen.scopes)
    models = {offer.shape.gpu_model for view in seen.scopes for offer in view.offers}
    assert "h100" in models and models <= {"h100", "a100-80gb"}
    assert any(offer.price for view in seen.scopes for offer in view.offers)
    assert (seen.sources[0].trust, seen.sources[0].kept) == (Trust.COMPLETE, 4)
    assert (seen.lineage, seen.serial, seen.frozen_by) == (setting.store.lineage, setting.store.serial, "")
    assert not setting.sandbox.record.effects


def test_a_queue_that_lost_nearly_all_its_jobs_is_doubted_by_whoever_observes(setting: Setting) -> None:
    (queue,) = setting.config.queues
    remember(setting.config.state, {queue.name: QueueRead(source=queue.name, live=400)})
    for (view,) in (observe_queues(setting.config, setting.clock), setting.observed({}).sources):
        assert view.trust is Trust.PARTIAL and f"--confirm {queue.name}" in view.problems[-1]


def test_one_cloud_that_refuses_is_unknown_and_the_rest_goes_on(setting: Setting) -> None:
    setting.sandbox.fault(FaultKind.ERROR, provider=ProviderName.GCP, code="PERMISSION_DENIED", status=403, times=99)
    seen = setting.observed()
    refused = of(seen, ProviderName.GCP)
    assert all(view.trust is Trust.UNKNOWN and not view.offers_known and not view.reservations for view in refused)
    assert all(view.reservations_at is None for view in refused)
    assert all(str(view.scope) in line and "\n" not in line for view in refused for line in view.problems)
    assert {view.trust for name in (ProviderName.AWS, ProviderName.AZURE) for view in of(seen, name)} == {
        Trust.COMPLETE
    }


class Fake:
    """A cloud of so many regions, each of which takes so long; what is in `broken` fails."""

    def __init__(self, regions: int, takes_s: float, broken: dict[str, Exception] | None = None) -> None:
        self._scopes = tuple(Scope(ProviderName.AWS, "main", f"r{index}") for index in range(regions))
        self._takes_s = takes_s
        self._broken = broken or {}

    def scopes(self) -> tuple[Scope, ...]:
        return self._scopes

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        time.sleep(self._takes_s)
        if error := self._broken.get(scope.region):
            raise error
        return ()

    def offers(self, scope: Scope, gpu_models: object = ()) -> tuple[Offer, ...]:
        time.sleep(self._takes_s)
        return ()


def test_listing_takes_as_long_as_the_slowest_region(setting: Setting) -> None:
    begun = time.monotonic()
    seen = setting.observed({ProviderName.AWS: Fake(20, 0.2)})  # type: ignore[dict-item]
    assert len(seen.scopes) == 20
    assert time.monotonic() - begun < 20 * 0.2 / 2


def test_a_failure_names_code_and_request_and_even_a_bug_stays_in_its_region(setting: Setting) -> None:
    denied = Denied("DescribeCapacityReservations", code="UnauthorizedOperation", message="no", request_id="req-7")
    fake = Fake(3, 0, {"r1": denied, "r2": KeyError("surprise")})
    good, refused, buggy = setting.observed({ProviderName.AWS: fake}).scopes  # type: ignore[dict-item]
    assert good.trust is Trust.COMPLETE
    assert refused.trust is buggy.trust is Trust.UNKNOWN
    assert "UnauthorizedOperation" in refused.problems[0] and "req-7" in refused.problems[0]
    assert "KeyError" in buggy.problems[0]


def test_a_price_file_that_cannot_be_read_leaves_everything_without_a_price(setting: Setting) -> None:
    seen = setting.observed(prices=setting.folder / "none.csv")
    assert all(offer.price is None for view in seen.scopes for offer in view.offers)
    assert any("no prices, so nothing is bought" in line for view in seen.scopes for line in view.problems)


def test_the_users_own_price_wins(setting: Setting) -> None:
    own = setting.folder / "prices.csv"
    own.write_text("provider,region,machine_type,usd_per_hour,as_of\naws,us-east-1,p5.48xlarge,1.25,2026-03-01\n")
    offers = [offer for view in setting.observed(prices=own).scopes for offer in view.offers]
    priced = {offer.price.usd_per_hour for offer in offers if offer.price and offer.shape.machine_type == "p5.48xlarge"
              and offer.place.scope.region == "us-east-1"}  # fmt: skip
    assert priced == {Decimal("1.25")}


def test_the_freeze_file_freezes(setting: Setting) -> None:
    setting.config.freeze_file.touch()
    assert setting.observed().frozen_by == str(setting.config.freeze_file)


@pytest.mark.parametrize(("off", "word"), [(timedelta(hours=1), "ahead of"), (timedelta(hours=-1), "behind")])
def test_a_clock_that_is_an_hour_off_freezes(setting: Setting, off: timedelta, word: str) -> None:
    setting.clock = FixedClock(setting.sandbox.clock.now() + off)
    frozen_by = setting.observed().frozen_by
    assert f"60 min {word}" in frozen_by or f"59 min {word}" in frozen_by


def test_with_a_wrong_clock_nothing_is_even_settled(setting: Setting) -> None:
    clock = FixedClock(setting.sandbox.clock.now() + timedelta(hours=1))
    before = setting.store.entries()
    with ExitStack() as closing:
        place = Workplace(setting.config, clock, closing, read_only=False)
        with pytest.raises(GuardError, match=r"clock, which is (59|60) min ahead of aws's; set it"):
            run(place, lambda event: None, Limits())
    assert setting.store.entries() == before
    assert setting.store.heartbeat() is None and not setting.sandbox.record.effects


def test_a_cloud_that_does_not_answer_raises_no_doubt_of_the_clock(setting: Setting) -> None:
    away = at_endpoints(setting.config, dict.fromkeys(ProviderName, "http://127.0.0.1:9"))
    assert clock_doubt(away.providers, setting.clock) == ""


def test_a_slow_answer_raises_no_doubt_of_the_clock(setting: Setting) -> None:
    now = setting.clock.now()
    assert difference(now + timedelta(minutes=7), now, now + timedelta(minutes=14)) == timedelta(0)


@pytest.mark.parametrize("off", [timedelta(minutes=4), timedelta(minutes=-4)])
def test_a_clock_that_is_somewhat_off_is_set_right_for_the_run(setting: Setting, off: timedelta) -> None:
    theirs = setting.sandbox.clock.now()
    ours = right_clock(setting.config.providers, FixedClock(theirs + off))
    assert abs(ours.now() - theirs) <= timedelta(seconds=2)
    exact = FixedClock(theirs)
    assert right_clock(setting.config.providers, exact) is exact


def test_a_clock_set_forward_between_two_runs_gives_no_purchase_up_too_early(setting: Setting) -> None:
    """Both times within the tolerance, nine minutes apart: longer than the window, and none of it has passed."""
    setting.sandbox.fault(FaultKind.REPLY_LOST, "CreateCapacityReservation", provider=ProviderName.AWS)
    setting.sandbox.fault(FaultKind.HIDDEN, "CreateCapacityReservation", provider=ProviderName.AWS, delay_s=120)
    _run_with_a_clock_off_by(setting, timedelta(minutes=-4.5))
    assert [intent.status.value for intent in setting.store.intents(open_only=True)] == ["unknown"]
    effects = len(setting.sandbox.record.purchases())
    _run_with_a_clock_off_by(setting, timedelta(minutes=4.5))
    assert [intent.status.value for intent in setting.store.intents(open_only=True)] == ["unknown"]
    assert len(setting.sandbox.record.purchases()) == effects


def test_nor_does_a_plan_foresee_that_it_failed(setting: Setting) -> None:
    setting.sandbox.fault(FaultKind.REPLY_LOST, "CreateCapacityReservation", provider=ProviderName.AWS)
    setting.sandbox.fault(FaultKind.HIDDEN, "CreateCapacityReservation", provider=ProviderName.AWS, delay_s=120)
    _run_with_a_clock_off_by(setting, timedelta(minutes=-4.5))
    setting.sandbox.clock.advance(timedelta(seconds=60))  # with those 4.5 minutes the window would be over
    with ExitStack() as closing:
        ahead = FixedClock(setting.sandbox.clock.now() + timedelta(minutes=4.5))
        place = Workplace(setting.config, ahead, closing, read_only=True)
        foreseen = [intent.status.value for intent in planning.seen(place).intents]
    assert "unknown" in foreseen and "failed" not in foreseen


@pytest.mark.parametrize(("protect", "why"), [((), ""), (("cr-1",), "protect"), (("cr-2",), "")])
def test_a_release_that_is_open_waits_for_ever_once_it_is_protected(
    setting: Setting, protect: tuple[str, ...], why: str
) -> None:
    policy = msgspec.structs.replace(setting.config.policy, protect=frozenset(protect))
    with ExitStack() as closing:
        place = Workplace(
            msgspec.structs.replace(setting.config, policy=policy), setting.clock, closing, read_only=True
        )
        somewhere = Place(Scope(ProviderName.AWS, "main", "us-east-1"), "us-east-1a")
        release = ReleaseRequest(key="k", lineage=setting.store.lineage, place=somewhere, reservation_id="cr-1")
        assert acting._brake(place)(release) == why


def _run_with_a_clock_off_by(setting: Setting, off: timedelta) -> None:
    with ExitStack() as closing:
        place = Workplace(setting.config, FixedClock(setting.sandbox.clock.now() + off), closing, read_only=False)
        run(place, lambda event: None, Limits())


def test_a_state_is_not_adopted_by_a_wrong_clock(setting: Setting) -> None:
    """Its quiet time would be over before it began."""
    setting.config.state.rename(setting.folder / "lost.db")
    with ExitStack() as closing:
        wrong = FixedClock(setting.sandbox.clock.now() - timedelta(hours=1))
        with pytest.raises(GuardError, match="behind"):
            adopt_all(Workplace(setting.config, wrong, closing, read_only=False), "0123456789ab")
    assert not setting.config.state.exists()


def test_queues_alone_need_no_cloud(setting: Setting) -> None:
    setting.sandbox.stop()
    assert observe_queues(setting.config, setting.clock)[0].kept == 4
