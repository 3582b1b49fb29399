"""`broker jobs`: what was dropped is said with its reason, and any number that a queue may hold can be shown."""

from datetime import UTC, datetime

from broker.commands.queue_reading import Queue
from broker.model.job import Job, JobState
from broker.model.snapshot import SourceView, Trust
from broker.view.jobs import jobs_text

AT = datetime(2026, 3, 4, 8, tzinfo=UTC)


def shown(limit_s: int | None, **more: object) -> str:
    job = Job(id="7", tenant="nlp", submit=AT, state=JobState.PENDING, gpus=8, time_limit_s=limit_s, name="n" * 99)
    view = SourceView(source="q", trust=Trust.COMPLETE, as_of=AT, jobs=(job,), rows=1, kept=1, **more)  # type: ignore[arg-type]
    return jobs_text(Queue(sources=(view,), groups=()), verbose=True)


def test_a_limit_of_any_size_is_shown() -> None:
    assert " 12h " in shown(43_200) and "d" in shown(10**18) and shown(None)


def test_why_rows_were_dropped() -> None:
    assert "dropped: asks for no GPU (2)" in shown(None, dropped_why=(("asks for no GPU", 2),))
    assert "dropped:" not in shown(None)
