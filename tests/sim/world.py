"""What the world, people and the clouds do between commands. Each event draws what it needs, and says what it did."""

import copy
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from random import Random

from broker.model.request import ReleaseRequest, ResizeRequest
from broker.model.reservation import Reservation
from providers.base import ProviderError
from providers.sandbox.catalogue import Pool
from providers.sandbox.faults import FaultKind
from providers.sandbox.holdings import Holding, HoldingState
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import PriceRule, QuotaRule, Refusal
from tests.crash.clouds import CLOUDS, Cloud
from tests.sim.site import Job, QueueFile, Site

Which = tuple[str, str]
"""A holding: its provider and its id."""

MOST_JOBS = 14
LISTINGS = {
    "aws": "DescribeCapacityReservations",
    "gcp": "reservations.*List",
    "azure": "capacityReservationGroups.list*",
}
_LOST = (FaultKind.REPLY_LOST, FaultKind.RESET_BEFORE, FaultKind.RESET_AFTER, FaultKind.MALFORMED)
_MINUTES = (1, 1, 3, 6, 6, 11, 16, 31, 31, 35, 35, 65, 300, 1500, 2880)


def which(holding: Holding) -> Which:
    return (holding.provider.value, holding.id)


class World:
    """`added` are instances that people put into our reservations; `asked` are reservations that a person gave back."""

    def __init__(self, site: Site) -> None:
        self.site, self.sandbox, self.market = site, site.sandbox, site.sandbox.market
        self.foreign: dict[Which, int] = {}
        self.added: Counter[Which] = Counter()
        self.asked: set[Which] = set()
        self._submitted = 0
        self._hold_stock()

    # -- the truth

    def live(self) -> list[Holding]:
        self.market.settle()
        return [h for h in self.market.state.holdings if h.state.live]

    def ours(self) -> list[Holding]:
        return [h for h in self.live() if which(h) not in self.foreign]

    def used(self) -> dict[Which, int]:
        return {which(h): min(len(self.market.consumers(h)), h.count) for h in self.live()}

    # -- jobs

    def jobs_arrive(self, draw: Random) -> str:
        new = [self._new_job() for _ in range(draw.randint(1, 4)) if len(self.site.jobs) < MOST_JOBS]
        return f"jobs {new}"

    def _new_job(self) -> int:
        self._submitted += 1
        self.site.jobs.append(Job(id=self._submitted, submitted=self.site.now))
        return self._submitted

    def job_starts(self, draw: Random) -> str:
        waiting = [job for job in self.site.jobs if not job.started]
        room = [h for h in self.ours() if h.state is HoldingState.ACTIVE and self.used()[which(h)] < h.there]
        if not waiting or not room:
            return ""
        job, holding = draw.choice(waiting), draw.choice(room)
        job.instance = f"vm-{job.id}"
        group = _azure_group(holding)
        affinity = {"consumeReservationType": "SPECIFIC_RESERVATION", "values": [holding.name]}
        vm = f"{_azure_root(holding, 'jobs')}/virtualMachines/{job.instance}"
        details = {"id": vm, "group": group, "reservationAffinity": affinity}
        self.market.launch(
            holding.pool, holding.account, id=job.instance, holding=holding, name=job.instance, details=details
        )
        job.started = self.site.now
        return f"{job.id} on {holding.id}"

    def job_ends(self, draw: Random) -> str:
        return self._leave([job for job in self.site.jobs if job.started], draw)

    def job_is_cancelled(self, draw: Random) -> str:
        return self._leave([job for job in self.site.jobs if not job.started], draw)

    def all_jobs_end(self, draw: Random) -> str:
        for job in list(self.site.jobs):
            self._leave([job], draw)
        return "all"

    def _leave(self, those: list[Job], draw: Random) -> str:
        if not those:
            return ""
        job = draw.choice(those)
        self.site.jobs.remove(job)
        for instance in self.market.state.instances:
            if instance.id == job.instance:
                self.market.terminate(instance)
        return str(job.id)

    # -- files and clocks

    def queue_breaks(self, draw: Random) -> str:
        self.site.file = draw.choice(list(QueueFile)[1:])
        return self.site.file

    def queue_mends(self, draw: Random) -> str:
        self.site.file = QueueFile.FRESH
        return ""

    def time_passes(self, draw: Random) -> str:
        minutes = draw.choice(_MINUTES)
        self.sandbox.advance(timedelta(minutes=minutes))
        return f"{minutes} min"

    def clock_goes_wrong(self, draw: Random) -> str:
        self.site.clock.off = timedelta(minutes=draw.choice((-120, -10, -3, 3, 10, 120)))
        return str(self.site.clock.off)

    def clock_is_set(self, draw: Random) -> str:
        self.site.clock.off = timedelta(0)
        return ""

    def price_changes(self, draw: Random) -> str:
        """Of what is not held now, so that the bill of what is held stays as it was decided."""
        cloud = draw.choice(CLOUDS)
        machine_type = "p5.48xlarge" if cloud.name == "aws" else cloud.machine_type
        if any(h.machine_type == machine_type for h in self.ours()):
            return ""
        region, usd = cloud.place.scope.region, draw.choice((40, 70, 110))
        self.site.prices[cloud.name.value, region, machine_type] = str(usd)
        self.site.write_prices()
        rule = PriceRule(provider=cloud.name, region=region, machine_type=machine_type, usd_per_hour=Decimal(usd))
        self.market.set_price(rule)
        return f"{machine_type} {usd}"

    def price_file_breaks(self, draw: Random) -> str:
        return self._prices(False)

    def price_file_mends(self, draw: Random) -> str:
        return self._prices(True)

    def _prices(self, readable: bool) -> str:
        self.site.prices_readable = readable
        self.site.write_prices()
        return ""

    def freeze(self, draw: Random) -> str:
        self.site.freeze(True)
        return ""

    def unfreeze(self, draw: Random) -> str:
        self.site.freeze(False)
        return ""

    # -- clouds

    def _hold_stock(self) -> None:
        """Little of each, so that all three clouds are bought from."""
        self.market.clear_capacity()
        for cloud in CLOUDS:
            self.market.set_capacity(PoolRule(provider=cloud.name, capacity=2))

    def stock_changes(self, draw: Random) -> str:
        cloud, capacity = draw.choice(CLOUDS), draw.randint(0, 5)
        self.market.set_capacity(PoolRule(provider=cloud.name, capacity=capacity))
        return f"{cloud.name} {capacity}"

    def quota_changes(self, draw: Random) -> str:
        cloud, nodes = draw.choice(CLOUDS), draw.randint(0, 6)
        machine_type = self.sandbox.world.catalogue.find(
            cloud.name, cloud.place.scope.region, "p5.48xlarge" if cloud.name == "aws" else cloud.machine_type
        )
        assert machine_type is not None
        limit = machine_type.quota_units * nodes
        self.market.set_quota(QuotaRule(provider=cloud.name, quota=machine_type.quota, limit=limit))
        return f"{cloud.name} {nodes} nodes"

    def reply_is_lost(self, draw: Random) -> str:
        return self._trouble(draw, draw.choice(_LOST))

    def change_shows_later(self, draw: Random) -> str:
        return self._trouble(draw, FaultKind.HIDDEN, delay_s=draw.choice((30, 120, 240)))

    def cloud_errs(self, draw: Random) -> str:
        return self._trouble(draw, draw.choice((FaultKind.ERROR, FaultKind.ERROR_AFTER)), status=500)

    def change_is_denied(self, draw: Random) -> str:
        cloud = draw.choice(CLOUDS)
        return self._trouble(draw, FaultKind.ERROR, cloud, status=403, code=cloud.denied)

    def change_fails_later(self, draw: Random) -> str:
        return self._trouble(draw, FaultKind.FAILS_LATER, delay_s=draw.choice((0, 60)), code="InternalError")

    def comes_in_part(self, draw: Random) -> str:
        """However many are bought at once, one of them comes."""
        cloud = draw.choice(CLOUDS)
        for operation in (cloud.reserve, cloud.resize):
            self.sandbox.fault(FaultKind.PARTLY, operation, cloud.name, times=draw.randint(1, 3), count=1)
        return cloud.name

    def _trouble(self, draw: Random, kind: FaultKind, cloud: Cloud | None = None, **rest: object) -> str:
        cloud = cloud or draw.choice(CLOUDS)
        operation = draw.choice((cloud.reserve, cloud.reserve, cloud.resize, cloud.release))
        self.sandbox.fault(kind, operation, cloud.name, times=draw.randint(1, 3), **rest)
        return f"{kind} {cloud.name} {operation} {rest}"

    def cloud_throttles(self, draw: Random) -> str:
        cloud = draw.choice(CLOUDS)
        self.sandbox.fault(FaultKind.THROTTLE, "*", cloud.name, times=None, retry_after_s=0)
        return cloud.name

    def listing_fails(self, draw: Random) -> str:
        cloud = draw.choice(CLOUDS)
        self.sandbox.fault(FaultKind.ERROR, LISTINGS[cloud.name], cloud.name, times=None, status=503)
        return cloud.name

    def clouds_get_well(self, draw: Random) -> str:
        self.sandbox.world.faults.clear()
        self._hold_stock()
        self.market.state.quotas.clear()
        return ""

    # -- people

    def person_deletes(self, draw: Random) -> str:
        return self._by_hand(draw, self._delete)

    def person_resizes(self, draw: Random) -> str:
        return self._by_hand(draw, lambda held: self._resize(held, draw.randint(1, held.count + 2)))

    def _by_hand(self, draw: Random, change: Callable[[Reservation], str]) -> str:
        """In the console, with the same calls; what really came of it is read from the effects."""
        held = [r for r in self._listed() if r.owner and r.owner.lineage == self.site.lineage and not r.state.gone]
        if not held:
            return ""
        began, reservation, said = len(self.sandbox.record.effects), draw.choice(held), "refused"
        with suppress(ProviderError):
            said = change(reservation)
        for effect in self.sandbox.record.effects[began:]:
            self.added[effect.provider.value, effect.id] += effect.after - effect.before
        return f"{reservation.id} {said}"

    def _listed(self) -> list[Reservation]:
        found: list[Reservation] = []
        for console in self.site.consoles.values():
            with suppress(ProviderError):
                found += [r for scope in console.scopes() for r in console.reservations(scope)]
        return found

    def _delete(self, held: Reservation) -> str:
        console = self.site.consoles[held.place.scope.provider]
        console.release(
            ReleaseRequest(key="by-hand", lineage=self.site.lineage, place=held.place, reservation_id=held.id)
        )
        return "deleted"

    def _resize(self, held: Reservation, count: int) -> str:
        request = ResizeRequest(
            key="by-hand",
            lineage=self.site.lineage,
            place=held.place,
            reservation_id=held.id,
            from_count=held.count,
            to_count=count,
        )
        self.site.consoles[held.place.scope.provider].resize(request)
        return f"set to {count}"

    def others_buy(self, draw: Random) -> str:
        """Somebody else, with another broker's mark or with none, in an account that we share."""
        pool, tags = _shared(), draw.choice(({}, {"broker:lineage": "ffffffffffff", "broker:key": "f" * 24}))
        id = self.market.new_id("cr-", 17)
        with suppress(Refusal):
            made = self.market.reserve(pool, CLOUDS[0].account, draw.randint(1, 2), id=id, tags=copy.copy(tags))
            self.foreign[which(made)] = made.count
        return id


def _shared() -> Pool:
    place = CLOUDS[0].place
    return Pool(place.scope.provider, place.scope.region, place.zone_id or "", "p5.48xlarge")


def _azure_group(holding: Holding) -> str:
    return f"{_azure_root(holding, 'capacity')}/capacityReservationGroups/{holding.name}"


def _azure_root(holding: Holding, group: str) -> str:
    return f"/subscriptions/{holding.account}/resourceGroups/{group}/providers/Microsoft.Compute"
