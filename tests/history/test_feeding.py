"""Runs watch the queue: what is new, what started, what left; nothing leaves a queue that was not read whole."""

from datetime import datetime, timedelta

from broker.config import HistorySettings
from broker.history.feeding import feed
from broker.history.past import jobs
from broker.model.job import Job, JobState
from broker.model.snapshot import SourceView, Trust
from state.history.store import History
from state.history.watching import Noticed
from tests.history.conftest import NOW, Bring, row

SETTINGS = HistorySettings()


def view(*listed: Job, at: datetime = NOW, trust: Trust = Trust.COMPLETE, source: str = "kube") -> SourceView:
    return SourceView(source=source, trust=trust, as_of=at, jobs=listed)


def job(name: str = "a", state: JobState = JobState.PENDING, start: datetime | None = None) -> Job:
    submit = NOW - timedelta(hours=1)
    return Job(id=name, tenant="vision", submit=submit, state=state, gpus=8, start=start)


def states(history: History) -> list[tuple[str, JobState]]:
    return [(each.id, each.state) for each in jobs(history)]


def look(history: History, minutes: int, *listed: Job, trust: Trust = Trust.COMPLETE) -> Noticed:
    at = NOW + timedelta(minutes=minutes)
    return feed(history, [view(*listed, at=at, trust=trust)], at, SETTINGS)


def test_a_job_is_followed_from_queue_to_end(history: History) -> None:
    start = NOW + timedelta(minutes=5)
    assert look(history, 0, job()) == Noticed(1, 0)
    assert look(history, 10, job(state=JobState.RUNNING, start=start)) == Noticed(1, 0)
    assert look(history, 20, job(state=JobState.RUNNING, start=start)) == Noticed(0, 0)
    assert look(history, 30) == Noticed(0, 1)
    (found,) = jobs(history)
    assert (found.state, found.start) == (JobState.GONE, start)
    assert found.end == NOW + timedelta(minutes=25)


def test_nothing_leaves_a_queue_that_was_not_read_or_in_part(history: History) -> None:
    look(history, 0, job())
    look(history, 10, trust=Trust.UNKNOWN)
    look(history, 20, trust=Trust.PARTIAL)
    assert states(history) == [("a", JobState.PENDING)]


def test_a_look_that_failed_is_no_word_that_a_job_still_lives(history: History) -> None:
    look(history, 0, job(state=JobState.RUNNING, start=NOW))
    ((seen,),) = history.jobs()
    look(history, 10, trust=Trust.UNKNOWN)
    assert list(history.jobs()) == [(seen,)]
    look(history, 20, job(state=JobState.RUNNING, start=NOW))
    ((later,),) = history.jobs()
    assert later.seen > seen.seen


def test_a_job_that_was_missed_once_lives_again(history: History) -> None:
    look(history, 0, job())
    look(history, 10)
    look(history, 20, job())
    assert states(history) == [("a", JobState.PENDING)]


def test_an_end_that_a_file_tells_beats_one_by_absence(history: History, bring: Bring) -> None:
    submit = NOW - timedelta(hours=1)
    live = Job(id="1", tenant="vision", submit=submit, state=JobState.RUNNING, gpus=8, cluster="alps", start=submit)
    look(history, 0, live)
    look(history, 10)
    bring([row("1", submit="2026-06-01T11:00:00", start="2026-06-01T11:00:00", end="2026-06-01T12:04:00")])
    (found,) = jobs(history)
    assert found.state is JobState.DONE
    assert found.end == NOW + timedelta(minutes=4)


def test_a_job_that_moves_to_another_queue_has_not_left(history: History) -> None:
    feed(history, [view(job()), view(source="slurm")], NOW, SETTINGS)
    later = NOW + timedelta(minutes=10)
    feed(history, [view(at=later), view(job(), source="slurm", at=later)], later, SETTINGS)
    assert states(history) == [("a", JobState.PENDING)]


def test_old_jobs_are_forgotten_as_configured(history: History) -> None:
    look(history, 0, job())
    look(history, 10)
    much_later = NOW + timedelta(days=40)
    feed(history, [view(at=much_later)], much_later, HistorySettings(keep_days=30))
    assert states(history) == []


def test_names_are_hidden_as_configured(history: History) -> None:
    named = Job(id="a", tenant="vision", submit=NOW, state=JobState.PENDING, gpus=8, user="ada", name="secret")
    feed(history, [view(named)], NOW, HistorySettings(hash_names=True))
    (found,) = jobs(history)
    assert found.user not in (None, "ada")
    assert found.name not in (None, "secret")


def alive(history: History) -> dict[str, bool]:
    return {
        attempt.id: attempt.told == 0 and not attempt.runaway for attempts in history.jobs() for attempt in attempts
    }


def running(name: str, cluster: str = "alps", begun: str = "2026-06-01T08:00:00") -> str:
    return row(name, submit=begun, start=begun, end="Unknown", state="RUNNING", cluster=cluster)


def test_what_a_file_said_to_live_and_its_queue_does_not_list_lives_no_longer(history: History, bring: Bring) -> None:
    """Also where the queue is empty ever after, so that nothing else is heard of the cluster."""
    other = Job(id="2", tenant="vision", submit=NOW, state=JobState.RUNNING, gpus=8, cluster="alps", start=NOW)
    bring([running("1"), running("5", cluster="jura")])
    look(history, 10, other)
    assert alive(history) == {"1": True, "2": True, "5": True}
    look(history, 20)
    look(history, 2 * 24 * 60)
    assert alive(history) == {"1": False, "2": False, "5": True}
    (found,) = (each for each in jobs(history) if each.id == "1")
    assert (found.state, found.end) == (JobState.GONE, None)


def test_what_its_queue_lists_as_well_lives_on(history: History, bring: Bring) -> None:
    start = NOW - timedelta(hours=4)
    live = Job(id="1", tenant="vision", submit=start, state=JobState.RUNNING, gpus=8, cluster="alps", start=start)
    begun = f"{start:%Y-%m-%dT%H:%M:%S}"
    bring([running("1", begun=begun)])
    for days in range(4):
        look(history, days * 24 * 60, live)
    assert alive(history) == {"1": True}
    bring([row("1", submit=begun, start=begun, end="2026-06-01T23:00:00")])
    assert [each.state for each in jobs(history)] == [JobState.DONE]
