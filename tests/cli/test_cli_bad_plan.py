"""A saved plan that cannot be trusted or no longer fits is refused, and nothing is bought."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from broker.cli.asking import Asking
from providers.sandbox.local import Sandbox
from state.store import Store
from tests.cli.conftest import Broker, one_line, purchases
from tests.state.worlds import intent


def edited(plan: Path) -> None:
    plan.write_text(plan.read_text().replace('"count": 4', '"count": 40'))


def truncated(plan: Path) -> None:
    plan.write_text(plan.read_text()[:-300])


BAD_PLANS: dict[str, tuple[Callable[[Path], object], str]] = {
    "edited": (edited, "edited"),
    "truncated": (truncated, "cut off"),
    "missing": (Path.unlink, "there is no plan"),
    "not a plan": (lambda plan: plan.write_text("{}"), "not a saved plan"),
    "nested without end": (lambda plan: plan.write_text("[" * 100_000), "cut off"),
}


@pytest.mark.parametrize("kind", BAD_PLANS)
def test_a_saved_plan_that_cannot_be_trusted(broker: Broker, demo: Path, kind: str) -> None:
    spoil, said = BAD_PLANS[kind]
    assert broker("plan", "-c", demo, "--out", "p.json").code == 0
    spoil(Path("p.json"))
    ran = broker("apply", "p.json", "-c", demo, "--yes")
    assert ran.code == 1, ran
    assert said in one_line(ran)
    assert purchases(demo) == 0


def test_a_plan_of_another_state(broker: Broker, demo: Path) -> None:
    broker("init", "other", "--sandbox")
    broker("plan", "-c", "other/broker.toml", "--out", "p.json")
    ran = broker("apply", "p.json", "-c", demo, "--yes")
    assert ran.code == 1
    assert "another state" in one_line(ran)
    assert purchases(demo) == 0


def test_a_plan_that_went_stale_while_the_question_stood_is_refused(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*_: object) -> bool:
        with Store.open(demo.parent / "state.db") as store:
            store.intend(intent())
        return True

    broker("plan", "-c", demo, "--out", "p.json")
    monkeypatch.setattr(Asking, "confirmed", meanwhile)
    ran = broker("apply", "p.json", "-c", demo, "--yes")
    assert (ran.code, purchases(demo)) == (5, 0)
    assert "serial" in one_line(ran)


def test_a_stale_plan_is_refused_and_leaves_no_lock(broker: Broker, demo: Path) -> None:
    broker("plan", "-c", demo, "--out", "p.json")
    assert broker("run", "-c", demo).code == 0
    before = purchases(demo)
    ran = broker("apply", "p.json", "-c", demo, "--yes")
    assert ran.code == 5
    assert "serial" in one_line(ran)
    assert purchases(demo) == before
    assert broker("run", "-c", demo, "--lock-timeout", "1s").code == 0


def test_an_expired_plan_is_refused(broker: Broker, demo: Path) -> None:
    broker("plan", "-c", demo, "--out", "p.json")
    world = demo.parent / "world.json"
    sandbox = Sandbox(path=world)
    sandbox.advance(timedelta(hours=2))
    sandbox.save(world)
    ran = broker("apply", "p.json", "-c", demo, "--yes")
    assert ran.code == 5
    assert "expired" in one_line(ran)
    assert purchases(demo) == 0
