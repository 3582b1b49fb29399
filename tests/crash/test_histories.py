"""What people and schedulers do to a broker beside killing it: twice, at once, from an old copy, from nothing."""

import multiprocessing
import shutil
from collections import Counter
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from broker.apply.adopt import adopt, choose
from broker.apply.apply import admit, apply
from broker.apply.boundary import Boundary
from broker.errors import Exit, PlanError
from broker.model.place import ProviderName
from broker.model.plan import Plan
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from state.plans import load, save
from state.store import Store
from state.upkeep import backup
from tests.crash.cell import Stage
from tests.crash.clouds import CLOUDS, Cloud
from tests.crash.process import in_process
from tests.crash.steps import apply_saved, decide, look, run
from tests.crash.truth import bought, check_ledger, held_by_ledger, held_in_truth, open_intents

DAY = timedelta(days=1)


def _quick_on(cloud: Cloud) -> object:
    """One cloud is enough for the quick tests."""
    marks = [] if cloud.name is ProviderName.GCP else [pytest.mark.crash]
    return pytest.param(cloud, id=cloud.name, marks=marks)


@pytest.fixture(params=[_quick_on(cloud) for cloud in CLOUDS])
def stage(request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path: Path) -> Stage:
    cloud: Cloud = request.param
    return Stage(sandbox, cloud, tmp_path / "state.db")


def finish(stage: Stage, want: int, tally: Counter[str]) -> None:
    """Run past the window until nothing is wanted; then all must be true."""
    for _ in range(2):
        stage.past_the_window()
        stage.whole_run(want)
    assert sum(held_in_truth(stage.sandbox, stage.cloud).values()) == want
    check_ledger(stage.sandbox, stage.cloud, stage.state, stage.now)
    tally["histories"] += 1


def planned(stage: Stage, want: int) -> Plan:
    """As `broker plan --out`: nothing is written but the file, which is read back."""
    world = stage.world(want)
    with Store.open(stage.state, read_only=True) as store:
        provider = stage.cloud.connect(stage.sandbox.endpoint, world.clock)
        made = decide(world, store, look(stage.cloud, provider, world.now))
    save(made, stage.state.with_name("plan.json"))
    return load(stage.state.with_name("plan.json"))


def test_a_saved_plan_applied_twice_buys_once(stage: Stage, tally: Counter[str]) -> None:
    plan = planned(stage, 2)
    first = apply_saved(stage.world(2), plan)
    stage.sandbox.record.clear()
    again = apply_saved(stage.world(2), plan)
    assert (first.exit, again.exit, again.results) == (Exit.OK, Exit.OK, ()) and again.already is not None
    assert stage.sandbox.record.calls == []
    finish(stage, 2, tally)


@pytest.mark.parametrize("boundary", [Boundary.AFTER_INTENT, Boundary.AFTER_CALL, Boundary.BEFORE_APPLIED])
def test_a_saved_plan_applied_again_after_it_was_cut_off_buys_once(
    stage: Stage, boundary: Boundary, tally: Counter[str]
) -> None:
    plan = planned(stage, 2)
    world = stage.world(2)
    in_process(lambda c: apply_saved(msgspec.structs.replace(world, checkpoint=c), plan), die_at=boundary)
    before = bought(stage.sandbox)
    again = in_process(lambda _: apply_saved(world, plan))
    assert again.exit == 1, "stale"
    assert bought(stage.sandbox) == before
    with Store.open(stage.state) as store:
        provider = stage.cloud.connect(stage.sandbox.endpoint, world.clock)
        apply(plan, store, {stage.cloud.name: provider}, world.clock)
    assert bought(stage.sandbox) == before, "even where nobody asked whether the plan is stale"
    finish(stage, 2, tally)
    assert bought(stage.sandbox) == 2


def test_two_runs_at_once_buy_once(stage: Stage, tally: Counter[str]) -> None:
    stage.sandbox.fault(FaultKind.DELAY, stage.cloud.reserve, stage.cloud.name, delay_s=0.3)
    world = stage.world(2)
    fork = multiprocessing.get_context("fork")
    runs = [fork.Process(target=run, args=(world,)) for _ in range(2)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert [each.exitcode for each in runs] == [0, 0]
    assert bought(stage.sandbox) == 2
    finish(stage, 2, tally)


@pytest.mark.parametrize("soon", [False, True], ids=["visible", "not yet visible"])
def test_a_day_old_state_file_does_not_buy_again(stage: Stage, soon: bool, tally: Counter[str]) -> None:
    stage.whole_run(1)
    old = backup(stage.state, stage.state.with_name("yesterday.db"))
    stage.sandbox.advance(DAY)
    if soon:
        stage.sandbox.fault(FaultKind.HIDDEN, "*", stage.cloud.name, delay_s=180, times=None)
    stage = grown_by_new(stage)
    stage.whole_run(3)
    assert bought(stage.sandbox) == 3
    put_back(old, stage.state)
    stage.sandbox.advance(timedelta(minutes=1))
    stage.whole_run(3)
    assert bought(stage.sandbox) == 3, "the purchase that the old file does not know of was bought again"
    stage.sandbox.world.faults.clear()
    finish_unpriced(stage, 3, tally)
    assert bought(stage.sandbox) == 3


def grown_by_new(stage: Stage) -> Stage:
    """More is bought as a reservation of its own."""
    stage._world["grow"] = False
    return stage


def put_back(old: Path, state: Path) -> None:
    for beside in ("-wal", "-shm"):
        state.with_name(state.name + beside).unlink(missing_ok=True)
    shutil.copy(old, state)


def finish_unpriced(stage: Stage, want: int, tally: Counter[str]) -> None:
    """What was adopted without its record has no price in the ledger; instances must still be equal."""
    for _ in range(2):
        stage.past_the_window()
        stage.whole_run(want)
    assert sum(held_in_truth(stage.sandbox, stage.cloud).values()) == want
    assert open_intents(stage.state) == 0
    assert held_by_ledger(stage.state) == held_in_truth(stage.sandbox, stage.cloud)
    tally["histories"] += 1


def remake(stage: Stage) -> None:
    """As `broker state adopt`."""
    world = stage.world(0)
    views = look(stage.cloud, stage.cloud.connect(stage.sandbox.endpoint, world.clock), world.now)
    with Store.restore(stage.state, now=world.now, lineage=choose(views)) as store:
        adopt(store, views, world.now)


def lose(stage: Stage) -> None:
    for file in stage.state.parent.glob("state.db*"):
        file.unlink()


def test_a_deleted_state_file_is_adopted_from_the_clouds(stage: Stage, tally: Counter[str]) -> None:
    stage.whole_run(2)
    stage.sandbox.advance(DAY)
    lose(stage)
    remake(stage)
    stage.whole_run(2)
    assert bought(stage.sandbox) == 2
    with Store.open(stage.state) as store:
        assert [entry.kind.value for entry in store.entries()][:2] == ["gap", "adopted"]
    finish_unpriced(stage, 2, tally)
    stage.whole_run(0)
    finish_unpriced(stage, 0, tally)


def test_adopting_waits_for_what_may_not_be_visible_yet(stage: Stage, tally: Counter[str]) -> None:
    stage.whole_run(1)
    stage = grown_by_new(stage)
    stage.sandbox.fault(FaultKind.HIDDEN, stage.cloud.reserve, stage.cloud.name, delay_s=180)
    stage.whole_run(3)
    lose(stage)
    stage.sandbox.advance(timedelta(seconds=30))
    remake(stage)
    stage.whole_run(3)
    assert bought(stage.sandbox) == 3, "bought again what was not visible yet"
    finish_unpriced(stage, 3, tally)
    assert bought(stage.sandbox) == 3


def test_a_run_with_nothing_to_do_changes_nothing(stage: Stage, tally: Counter[str]) -> None:
    stage.whole_run(2)
    stage.past_the_window()
    stage.whole_run(2)
    with Store.open(stage.state, read_only=True) as store:
        before = store.entries()
    stage.sandbox.record.clear()
    stage.past_the_window()
    stage.whole_run(2)
    with Store.open(stage.state, read_only=True) as store:
        assert store.entries() == before
        beat = store.heartbeat()
        assert beat is not None and beat.at == stage.now
    changing = {stage.cloud.reserve, stage.cloud.resize, stage.cloud.release}
    assert changing.isdisjoint(stage.sandbox.record.operations())
    assert stage.sandbox.record.effects == []
    tally["histories"] += 1


def test_admitting_and_applying_are_for_this_state_only(stage: Stage) -> None:
    plan = planned(stage, 2)
    with Store.create(stage.state.with_name("other.db"), now=stage.now) as other, pytest.raises(PlanError) as error:
        admit(plan, other, stage.now)
    assert "another state" in str(error.value)
