"""The story: contention, a dry zone, a lost reply, a killed run, a renewal, a release, the bill."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from broker.counted import number
from broker.demo.jobs import at
from broker.demo.stage import Stage, changes
from broker.errors import BrokerError
from broker.model.place import ProviderName
from broker.view.plan import how_to_act, observed, plan_text
from broker.view.report import report_text
from broker.view.status import status_text
from broker.view.text import bounds, money
from state import plans

_P5 = "p5.48xlarge"
_MINUTES = 1 / 60


def play(stage: Stage, hours: int) -> None:
    scenes: tuple[tuple[float, Callable[[Stage], None]], ...] = (
        (0, _morning),
        (2, _dry_zone),
        (4, _lost_reply),
        (6, _killed),
    )
    for begins, scene in scenes:
        if begins <= hours:
            stage.until(at(begins))
            scene(stage)
    _rest_of_the_day(stage, hours)
    _bill(stage, hours)


def _morning(stage: Stage) -> None:
    stage.say("Three teams want GPUs at once, and nothing is reserved yet. What would the broker do?")
    made = stage.plan()
    stage.show(plan_text(made.plan, observed(made.snapshot, made.policy), next_step=how_to_act(made.plan)))
    stage.say("The plan is saved and applied: exactly what it says is bought, each purchase noted before it is sent.")
    saved = stage.folder.path / "plan.json"
    plans.save(made.plan, saved)
    stage.apply(saved)
    stage.say("The same plan once more: nothing happens, for a saved plan is applied once.")
    stage.apply(saved)
    stage.run()
    stage.say(f"The jobs run in what was reserved; {number(len(stage.cluster.waiting()), 'job')} wait. So it stands:")
    stage.show(status_text(stage.standing()))


def _dry_zone(stage: Stage) -> None:
    stage.dry("use1-az1", _P5)
    stage.say("A job for two more nodes arrives, but zone us-east-1a has run dry. From here on cron runs the broker.")
    stage.tell(stage.run())
    stage.say("Unfilled is not an error: the zone is left alone for a while, and the next run looks elsewhere.")
    stage.until(at(2 + 10 * _MINUTES))
    stage.tell(stage.run())


def _lost_reply(stage: Stage) -> None:
    stage.dry("use1-az2", _P5)
    stage.say("One more job; now both AWS zones are full, so the broker turns to Google Cloud.")
    stage.tell(stage.run())
    stage.until(at(4 + 10 * _MINUTES))
    stage.lose_reply(ProviderName.GCP, "reservations.insert")
    stage.say("Google sells the machine, and the reply is lost on its way. Was it bought? Nobody knows.")
    before = stage.bought()
    stage.tell(stage.run())
    stage.say("Until that is settled it counts as supply. The next run looks for it by name, and buys nothing:")
    stage.until(at(4 + 20 * _MINUTES))
    stage.tell(stage.run())
    _bought(stage, before, 1)


def _killed(stage: Stage) -> None:
    stage.say("Another job. This time the run is killed (SIGKILL) after the cloud has sold and before it has answered.")
    before = stage.bought()
    stage.killed_run(ProviderName.GCP, ("reservations.insert", "reservations.resize"))
    stage.say("The lock died with its holder. The next run finds the open request and takes up what was bought:")
    stage.until(at(6 + 10 * _MINUTES))
    stage.tell(stage.run())
    _bought(stage, before, 1)


def _bought(stage: Stage, before: int, expected: int) -> None:
    """The clouds' own record is the judge."""
    bought = stage.bought() - before
    stage.show(f"By the clouds' own record {number(bought, 'instance')} was bought for it, not two.")
    if bought != expected or stage.unsettled():
        raise BrokerError(f"the demo expected {expected} bought and saw {bought}", next_step="Please report it")


_TOLD = {
    "extend": "Half of the time to its end is over, so it is renewed. With a dead broker, AWS would end it.",
    "release": "Idle for longer than getting it back would cost: it is given back.",
    "resize": "Fewer nodes are needed now: the reservation is made smaller where it stands, not bought anew.",
    "reserve": "More is needed, and it is bought.",
}


def _rest_of_the_day(stage: Stage, hours: int) -> None:
    """A run every half hour; what is told is told once a kind."""
    told: set[str] = set()
    while (following := stage.sandbox.clock.now() + timedelta(minutes=30)) <= at(hours):
        stage.until(following)
        events = stage.run()
        kinds = {kind for event in events if (kind := changes(event))}
        for kind in sorted(kinds - told):
            stage.say(_TOLD[kind])
        if kinds - told:
            stage.tell(events)
        told |= kinds


def _bill(stage: Stage, hours: int) -> None:
    stage.until(at(hours))
    stage.say("The day is over. What it cost, by tenant:")
    with stage.looking() as point:
        report = point.report(since=f"{hours}h", by="tenant")
    stage.show(report_text(report))
    truth, spent = _true_bill(stage), report.total.spent
    stage.say(f"By the clouds' own bill it was {money(truth)}; the report says {bounds(spent)}.")
    if not spent.low - _CENT <= truth <= spent.high + _CENT:
        raise BrokerError("the report does not hold the clouds' own bill", next_step="Please report it")


_CENT = Decimal("0.01")


def _true_bill(stage: Stage) -> Decimal:
    now = stage.sandbox.clock.now()
    return sum((line.usd(now) for line in stage.sandbox.market.bill()), Decimal(0))
