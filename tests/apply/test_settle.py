from datetime import timedelta
from pathlib import Path

import pytest

from broker.apply.apply import apply
from broker.apply.boundary import Boundary, Checkpoint
from broker.apply.settle import foresee, settle
from broker.clock import FixedClock
from broker.model.intent import IntentStatus
from broker.model.place import ProviderName
from providers.base import Ambiguous
from state.store import Store
from state.upkeep import backup
from tests.apply.cloud import Cloud, buy, give_back, plan, resize
from tests.state.worlds import view

MINUTE = timedelta(minutes=1)


class Killed(BaseException):
    pass


def kill_at(where: Boundary) -> Checkpoint:
    def checkpoint(boundary: Boundary) -> None:
        if boundary is where:
            raise Killed

    return checkpoint


def settled(store: Store, cloud: Cloud, clock: FixedClock) -> list[str]:
    return [found.outcome.status.value for found in settle(store, {ProviderName.GCP: cloud}, clock)]


def lose_reply(store: Store, cloud: Cloud, clock: FixedClock, key: str = "k1") -> None:
    cloud.after[key] = Ambiguous("reserve", code="ReadTimeout")
    apply(plan(buy(key)), store, {ProviderName.GCP: cloud}, clock)


def test_a_lost_reply_is_settled_by_looking(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    lose_reply(store, cloud, clock)
    assert store.intents()[0].status is IntentStatus.UNKNOWN
    assert settled(store, cloud, clock) == ["done"]
    assert [r.id for r in store.reservations()] == ["res-k1"]
    assert cloud.purchases == 1


def test_what_is_visible_only_later_stays_unknown_and_is_adopted(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    cloud.hidden_for = 3 * MINUTE
    lose_reply(store, cloud, clock)
    assert settled(store, cloud, clock) == ["unknown"]
    clock.at += 4 * MINUTE
    assert settled(store, cloud, clock) == ["done"]


def test_what_never_happened_fails_only_after_the_visibility_window(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    cloud.before["k1"] = Ambiguous("reserve", code="ReadTimeout")
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    clock.at += 5 * MINUTE
    assert settled(store, cloud, clock) == ["unknown"]
    clock.at += timedelta(seconds=1)
    assert settled(store, cloud, clock) == ["failed"]
    assert settled(store, cloud, clock) == []


def test_the_window_begins_when_the_call_ended_for_it_may_have_acted_until_then(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    cloud.before["k1"] = Ambiguous("reserve", code="ReadTimeout")
    cloud.takes = 4 * MINUTE
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    cloud.takes = 0 * MINUTE
    clock.at += 5 * MINUTE
    assert settled(store, cloud, clock) == ["unknown"]
    clock.at += MINUTE
    assert settled(store, cloud, clock) == ["failed"]


def test_a_look_that_began_within_the_window_proves_nothing_however_long_it_took(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    cloud.before["k1"] = Ambiguous("reserve", code="ReadTimeout")
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    clock.at += 4 * MINUTE
    cloud.takes = 10 * MINUTE
    assert settled(store, cloud, clock) == ["unknown"]
    assert settled(store, cloud, clock) == ["failed"]


def test_nothing_is_called_again_on_a_look_that_failed(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    cloud.hinders = 1
    apply(plan(give_back("k2", cloud.held["res-k1"])), store, {ProviderName.GCP: cloud}, clock)
    cloud.looks_fail = True
    assert settled(store, cloud, clock) == ["unknown"]
    assert cloud.calls == ["reserve k1", "release k2"]


def test_an_older_copy_in_place_of_the_state_buys_nothing_for_one_window(
    store: Store, cloud: Cloud, clock: FixedClock, tmp_path: Path
) -> None:
    backup(store.path, tmp_path / "old.db")
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    store.close()
    for beside in tmp_path.glob("state.db-*"):
        beside.unlink()
    (tmp_path / "old.db").replace(store.path)
    with Store.open(store.path) as older:
        assert older.quiet_until is None
        settled(older, cloud, clock)
        assert older.quiet_until == clock.at + 5 * MINUTE
        (result,) = apply(plan(buy("k9")), older, {ProviderName.GCP: cloud}, clock).results
        assert (result.sent, result.outcome.code) == (False, "quiet")


def test_what_appears_after_it_was_given_up_is_still_adopted(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    cloud.hidden_for = 10 * MINUTE
    lose_reply(store, cloud, clock)
    clock.at += 6 * MINUTE
    assert settled(store, cloud, clock) == ["failed"]
    clock.at += 6 * MINUTE
    store.witness([view(*cloud.visible(), at=clock.at)], clock.at)
    assert store.intents()[0].status is IntentStatus.DONE


def test_a_look_that_fails_proves_nothing(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    lose_reply(store, cloud, clock)
    cloud.looks_fail = True
    clock.at += timedelta(hours=2)
    found = settle(store, {ProviderName.GCP: cloud}, clock)
    assert [(f.outcome.status.value, bool(f.problem)) for f in found] == [("unknown", True)]


def test_a_cloud_that_was_taken_out_of_the_configuration_proves_nothing(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    lose_reply(store, cloud, clock)
    clock.at += timedelta(hours=2)
    assert [found.outcome.status.value for found in settle(store, {}, clock)] == ["unknown"]


@pytest.mark.parametrize("where", [Boundary.AFTER_INTENT, Boundary.AFTER_CALL, Boundary.BEFORE_OUTCOME])
def test_an_intent_that_a_dead_run_left_is_settled(
    store: Store, cloud: Cloud, clock: FixedClock, where: Boundary
) -> None:
    with pytest.raises(Killed):
        apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock, checkpoint=kill_at(where))
    clock.at += 6 * MINUTE
    assert settled(store, cloud, clock) == ["failed" if where is Boundary.AFTER_INTENT else "done"]
    assert len(store.reservations()) == cloud.purchases


def test_planning_foresees_without_writing(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    lose_reply(store, cloud, clock)
    before, calls = store.entries(), list(cloud.calls)
    (found,) = foresee(store.intents(open_only=True), {ProviderName.GCP: cloud}, clock)
    assert found.as_settled.status is IntentStatus.DONE
    assert (store.entries(), cloud.calls) == (before, calls)


def test_a_hindered_release_is_called_again_in_later_runs_until_it_is_done(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    cloud.hinders = 2
    apply(plan(give_back("k2", cloud.held["res-k1"])), store, {ProviderName.GCP: cloud}, clock)
    before = len(store.entries())
    assert settled(store, cloud, clock) == ["unknown"]
    assert len(store.entries()) == before, "still hindered is no news"
    assert settled(store, cloud, clock) == ["done"]
    assert [call for call in cloud.calls if "release" in call] == ["release k2"] * 3
    assert store.count_steps()[-1].count == 0


def test_a_hindered_release_is_not_called_again_once_something_forbids_it(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    cloud.hinders = 1
    apply(plan(give_back("k2", cloud.held["res-k1"])), store, {ProviderName.GCP: cloud}, clock)
    settle(store, {ProviderName.GCP: cloud}, clock, forbids=lambda request: "protect" if request.key == "k2" else "")
    assert [call for call in cloud.calls if "release" in call] == ["release k2"]
    assert settled(store, cloud, clock) == ["done"]


def test_a_lost_reply_to_growth_is_settled_and_never_repeated(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    apply(plan(buy("k1")), store, {ProviderName.GCP: cloud}, clock)
    cloud.after["k2"] = Ambiguous("resize", code="reset")
    apply(plan(resize("k2", cloud.held["res-k1"], 4)), store, {ProviderName.GCP: cloud}, clock)
    assert settled(store, cloud, clock) == ["done"]
    assert [r.count for r in store.reservations()] == [4]
    assert cloud.calls.count("resize k2") == 1
