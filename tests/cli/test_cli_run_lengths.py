"""Limits that say as much as is allowed: jobs are planned by how long their user's jobs really took."""

from pathlib import Path

import msgspec
import pytest

from broker.config import Config, load
from broker.model.job import Job, JobState
from broker.model.policy import Policy
from broker.model.snapshot import RunLength, SourceView, Trust
from broker.observe.run_lengths import FEWEST, LATEST, run_lengths
from broker.purchase.decide import decide
from broker.purchase.queue_demand import queue_demand
from state.history.store import History, beside
from tests.cli.conftest import Broker
from tests.purchase.worlds import HOUR, NOW, bought, held, job, offer, policy, world

YEAR_S = 525_600 * 60
USUAL = (RunLength(user="ana", runs=40, within_s=3 * 3600),)


def ends_after(limit_s: int | None, *, known: bool = True, rules: Policy | None = None) -> float:
    """Hours after its start at which a job of ana's that just begins is planned to end."""
    seen = world(job("j", user="ana", time_limit_s=limit_s))
    seen = msgspec.structs.replace(seen, run_lengths=USUAL if known else ())
    (need,) = queue_demand(seen, rules or policy()).needs
    return (need.ends - NOW) / HOUR


def test_the_shorter_of_limit_and_history_counts() -> None:
    assert ends_after(YEAR_S) == 3
    assert ends_after(2 * 3600) == 2
    assert ends_after(None) == 3, "a history is more than the configured guess"
    assert ends_after(YEAR_S, known=False) == 365 * 24
    assert ends_after(None, known=False) == policy().purchase.default_runtime / HOUR


def test_what_waits_for_a_job_with_a_years_limit_is_bought_for_when_it_will_begin() -> None:
    """It has run for 2.5 of its user's usual 3 hours, and an hour ahead is bought for."""
    runs = job("a", user="ana", state=JobState.RUNNING, start=NOW - 2.5 * HOUR, time_limit_s=YEAR_S)
    waits = job("b", user="bo", gpus=16, depends_on=("a",))
    seen = world(runs, waits, offers=(offer(),), reservations=(held(used=1),))
    assert bought(decide(seen, policy())) == []
    plan = decide(msgspec.structs.replace(seen, run_lengths=USUAL), policy())
    assert bought(plan) == [("us-east-1a", 1)]
    (note,) = [note for note in plan.notes if note.startswith("ana: ")]
    assert "1 jobs ask for up to 8,760.0 h" in note and "of the last 40 that ended" in note and "3.0 h or less" in note


def test_a_job_that_outlasts_all_before_it_is_not_over() -> None:
    runs = job("a", user="ana", state=JobState.RUNNING, start=NOW - 9 * HOUR, time_limit_s=YEAR_S)
    seen = msgspec.structs.replace(world(runs, reservations=(held(used=1),)), run_lengths=USUAL)
    (need,) = queue_demand(seen, policy()).needs
    assert need.ends == NOW + policy().purchase.default_runtime


def test_limits_near_the_truth_need_no_word() -> None:
    seen = world(job("j", user="ana", time_limit_s=8 * 3600), offers=(offer(),))
    assert decide(msgspec.structs.replace(seen, run_lengths=USUAL), policy()).notes == ()


@pytest.fixture
def config(broker: Broker, demo: Path) -> Config:
    """A demo whose history holds 20 runs of ana's: 1, 2, ... 20 minutes; and 3 of bo's."""
    rows = ["id,tenant,user,submit,start,end,state,gpus,gpu_type,nodes"]
    for user, count in (("ana", FEWEST), ("bo", 3)):
        for minutes in range(1, count + 1):
            day = f"2026-01-{minutes:02}T08"
            at = f"{day}:00:00Z,{day}:00:00Z,{day}:{minutes:02}:00Z"
            rows.append(f"{user}{minutes},vision,{user},{at},completed,8,h100,1")
    rows.append("live,vision,ana,2026-01-30T08:00:00Z,2026-01-30T08:00:00Z,,running,8,h100,1")
    past = demo.parent / "past.csv"
    past.write_text("\n".join(rows) + "\n")
    assert broker("history", "import", past, "-c", demo).code == 0
    return load(demo, flags={}, env={})


def queue(*users: str) -> tuple[SourceView, ...]:
    jobs: tuple[Job, ...] = tuple(job(f"q{index}", user=user) for index, user in enumerate(users))
    return (SourceView(source="queue", trust=Trust.COMPLETE, as_of=NOW, jobs=jobs),)


def test_only_users_with_enough_finished_runs_have_a_length(config: Config) -> None:
    """The 19th of 20 in order is the 95% quantile."""
    assert run_lengths(config, queue("ana", "bo", "cy")) == (RunLength(user="ana", runs=20, within_s=19 * 60),)
    assert run_lengths(config, queue("bo")) == run_lengths(config, ()) == ()


def test_the_part_is_configured_and_nothing_believes_every_limit(config: Config) -> None:
    for level, within in ((0.5, 10), (1.0, 20)):
        set_to = _with_level(config, level)
        assert [each.within_s for each in run_lengths(set_to, queue("ana"))] == [within * 60]
    assert run_lengths(_with_level(config, 0.0), queue("ana")) == ()


def _with_level(config: Config, level: float) -> Config:
    purchase = msgspec.structs.replace(config.policy.purchase, runtime_quantile=level)
    return msgspec.structs.replace(config, policy=msgspec.structs.replace(config.policy, purchase=purchase))


def test_only_the_latest_runs_count(config: Config) -> None:
    with History.open(beside(config.state), read_only=True) as history:
        assert history.runs(["ana"], 5) == {"ana": [minutes * 60.0 for minutes in range(20, 15, -1)]}
        assert len(history.runs(["ana"], LATEST)["ana"]) == 20, "what still runs is not over"


def test_hidden_names_are_found_and_a_history_that_cannot_be_read_says_nothing(config: Config) -> None:
    with History.open(beside(config.state)) as history:
        history.hide_names()
    assert [each.user for each in run_lengths(config, queue("ana"))] == ["ana"]
    beside(config.state).write_bytes(b"not a database, but as long as one would be" * 100)
    assert run_lengths(config, queue("ana")) == ()


def test_a_plan_of_the_commands_uses_it(broker: Broker, demo: Path, config: Config) -> None:
    file = demo.parent / "queue.csv"
    file.write_text(file.read_text().replace("21600", str(YEAR_S)))
    assert any(note.startswith("ana: 1 jobs ask for up to 8,760.0 h") for note in _notes(broker, demo))
    demo.write_text(demo.read_text().replace("[purchase]", "[purchase]\nruntime_quantile = 0"))
    assert not any(note.startswith("ana: ") for note in _notes(broker, demo))


def _notes(broker: Broker, demo: Path) -> list[str]:
    notes: list[str] = broker("plan", "-c", demo, "--json").document["plan"]["notes"]
    return notes
