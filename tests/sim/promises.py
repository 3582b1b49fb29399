"""What must hold after every command, and at last when all is quiet: the sandbox's own record held to the promises."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal

from broker.apply.outcomes import CANCELLING
from broker.model.intent import Intent
from broker.model.money import from_micro
from broker.model.plan import Plan, Release, Reserve, Resize
from broker.model.request import ReleaseRequest
from providers.sandbox.record import Effect, EffectKind
from state.cost import Bounds, by_reservation, cost
from state.upkeep import faults
from tests.sim.site import MAX_NEW, MAX_NODES, MAX_RELEASED, MAX_USD_PER_HOUR, Ran, Site
from tests.sim.world import Which, World, which

CENT = Decimal("0.01")
TOLERATED_SKEW = timedelta(minutes=5)


class Broken(AssertionError):
    """A promise that did not hold."""


class Before:
    """What was so when a command began."""

    def __init__(self, world: World) -> None:
        self.effects = len(world.sandbox.record.effects)
        self.used = world.used()
        self.ours = {which(h): h.there for h in world.ours()}
        self.queue_known = world.site.queue_known
        self.frozen = world.site.frozen
        self.wrong_time = abs(world.site.clock.off) > TOLERATED_SKEW


def check_command(world: World, ran: Ran, before: Before) -> None:
    """Raises Broken."""
    effects = [e for e in world.sandbox.record.effects[before.effects :] if e.call]
    _ours_alone(world, effects, before)
    _once(world.site)
    _still(effects, before)
    _within_the_plan(world, ran)
    _within_the_limits(world, effects)
    _used_is_kept(world, ran, effects, before)
    if ran.what == "run":
        _not_twice(world, effects, before)
    if not ran.what.startswith("release") and not before.queue_known:
        _nothing_given_back(world, ran)


def _ensure(holds: bool, *what: object) -> None:
    if not holds:
        raise Broken(" ".join(str(each) for each in what))


def _id(effect: Effect) -> Which:
    return (effect.provider.value, effect.id)


def _ours_alone(world: World, effects: list[Effect], before: Before) -> None:
    made = {_id(e) for e in effects if e.kind is EffectKind.RESERVE}
    foreign = [e for e in effects if _id(e) not in before.ours and _id(e) not in made]
    _ensure(not foreign, "touched what is not ours:", foreign)
    counts = {which(h): h.count for h in world.live()}
    changed = [each for each, count in world.foreign.items() if counts.get(each) != count]
    _ensure(not changed, "somebody else's changed:", changed)


def _once(site: Site) -> None:
    twice = [key for key, times in site.sent.items() if times > 1]
    _ensure(not twice, "purchases sent more than once for one key:", twice)
    bought = Counter(h.tags.get("broker:key") or h.name for h in site.sandbox.market.state.holdings)
    _ensure(all(n == 1 for key, n in bought.items() if key and key != "f" * 24), "two purchases for one key:", bought)


def _still(effects: list[Effect], before: Before) -> None:
    _ensure(not (before.frozen and effects), "changed although frozen:", effects)
    _ensure(not (before.wrong_time and effects), "changed although the clock is wrong:", effects)


def _not_twice(world: World, effects: list[Effect], before: Before) -> None:
    """Each job wants one instance: a run that holds as many buys none, seen or not."""
    held, jobs = sum(before.ours.values()), world.site.told_jobs
    _ensure(held + _bought(effects) <= max(held, jobs), "bought again:", jobs, "jobs, held", before.ours, effects)


def _bought(effects: list[Effect]) -> int:
    return sum(e.after - e.before for e in effects if e.buys)


def _given_back(effects: list[Effect]) -> list[Effect]:
    return [e for e in effects if e.call and e.after < e.before]


def _after(world: World, at: int) -> list[Effect]:
    return world.sandbox.record.effects[at:]


def planned(plan: Plan) -> int:
    """Instances that a plan says it buys."""
    reserved = sum(a.request.count for a in plan.changes if isinstance(a, Reserve))
    resized = [a.request.to_count - a.request.from_count for a in plan.changes if isinstance(a, Resize)]
    return reserved + sum(more for more in resized if more > 0)


def _within_the_plan(world: World, ran: Ran) -> None:
    for plan, at in ran.decided:
        _ensure(_bought(_after(world, at)) <= planned(plan), "bought more than planned:", planned(plan))
        back = sum(e.before - e.after for e in _given_back(_after(world, at)))
        _ensure(_bought(_after(world, at)) <= MAX_NEW, "bought more in a run than allowed")
        _ensure(back <= MAX_RELEASED or ran.what.startswith("release"), "gave back more in a run than allowed:", back)


def _within_the_limits(world: World, effects: list[Effect]) -> None:
    """What people add by hand is theirs; what is bought beside it must fit."""
    if not _bought(effects):
        return
    own = {which(h): max(h.count - max(world.added[which(h)], 0), 0) for h in world.ours()}
    _ensure(sum(own.values()) <= MAX_NODES, "holds more than allowed:", own)
    now = world.site.now
    lines = [line for line in world.market.bill() if line.end is None or line.end > now]
    rates = {(line.provider.value, line.holding): line.usd_per_hour for line in lines}
    rate = sum((count * rates.get(each, Decimal(0)) for each, count in own.items()), Decimal(0))
    _ensure(rate <= MAX_USD_PER_HOUR, "costs more per hour than allowed:", rate, own)


def _used_is_kept(world: World, ran: Ran, effects: list[Effect], before: Before) -> None:
    """Except where a person asked for it."""
    if ran.what.startswith("release"):
        world.asked |= {
            (a.reservation.place.scope.provider.value, _true_id(world, a.reservation.id))
            for plan, _ in ran.decided
            for a in plan.changes
            if isinstance(a, Release)
        }
        return
    cut = [e for e in _given_back(effects) if e.after < before.used.get(_id(e), 0) and _id(e) not in world.asked]
    _ensure(not cut, "given back while in use:", cut, "used:", before.used)


def _true_id(world: World, id: str) -> str:
    """Adapters may give an id in another form: the last part of both is the name."""
    return next((h.id for h in world.live() if h.id.rsplit("/", 1)[-1] == id.rsplit("/", 1)[-1]), id)


def _nothing_given_back(world: World, ran: Ran) -> None:
    for _, at in ran.decided:
        _ensure(not _given_back(_after(world, at)), "given back although the queue is not known:", ran)


# -- at last


def check_ledger(world: World, *, jobs_run: bool = False) -> None:
    """Nothing open, every instance as it is; where `jobs_run`, what a person gave back may wait for them."""
    with world.site.store() as store:
        unsettled = [i for i in store.intents(open_only=True) if not (jobs_run and _waits_for_jobs(i))]
        ours = [r for r in store.reservations() if r.owner and r.owner.lineage == store.lineage]
        held = Counter({_name(r.id): r.count for r in ours if not r.state.gone and r.count})
    truth = Counter({_name(h.id): h.billed for h in world.ours() if h.billed})
    _ensure(not (wrong := faults(world.site.state)), "the ledger and its tables disagree:", wrong)
    _ensure(not unsettled, "still open:", unsettled)
    _ensure(held == truth, "the ledger is not the truth:", held, truth)


def _waits_for_jobs(intent: Intent) -> bool:
    return (
        isinstance(intent.request, ReleaseRequest) and intent.outcome is not None and intent.outcome.code == CANCELLING
    )


def check_bill(world: World, *, off: timedelta) -> None:
    """The bill lies within the ledger's bounds, but for as much as the clock was `off`."""
    now = world.site.now
    lines = [ln for ln in world.market.bill() if (ln.provider.value, ln.holding) not in world.foreign]
    truth = sum((line.usd(now) for line in lines), Decimal(0))
    with world.site.store() as store:
        steps = store.count_steps()
    total = Bounds()
    for own in by_reservation(steps):
        total += cost(own, min(step.earliest for step in own), now)
    hours = Decimal(off // timedelta(seconds=1)) / 3600
    slack = CENT + sum((2 * hours * line.usd_per_hour * line.count for line in lines), Decimal(0))
    low, high = from_micro(total.low), from_micro(total.high)
    _ensure(total.unpriced == 0, "steps without a price:", total)
    _ensure(low - slack <= truth <= high + slack, "the bill is not within the report:", low, truth, high)


def check_nothing_held(world: World) -> None:
    left = [(h.id, h.count) for h in world.ours() if h.count]
    _ensure(not left, "never given back:", left)


def _name(id: str) -> str:
    return id.rsplit("/", 1)[-1]
