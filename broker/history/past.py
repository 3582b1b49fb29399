"""What the history remembers, as jobs: for forecasts, replays and exports."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from broker.model.job import Job, JobState
from state.encode import from_us, to_us
from state.history.facts import LIVE
from state.history.reading import Attempt
from state.history.store import History

SOURCE = "history"
_TIMES = frozenset({"not_before", "deadline"})


def jobs(history: History, since: datetime | None = None) -> Iterator[Job]:
    """Attempt by attempt. What is still said to run and cannot is GONE, without an end."""
    for attempts in history.jobs(None if since is None else to_us(since)):
        yield from map(job_of, attempts)


def job_of(attempt: Attempt) -> Job:
    first = attempt.attempt == 1
    more = _more(attempt.more)
    known = {"gpus_per_node": _per_node(attempt)} | more
    return Job(
        id=attempt.id,
        tenant=attempt.tenant,
        submit=from_us(attempt.first_submit),
        state=JobState.GONE if attempt.runaway else JobState(attempt.state),
        gpus=attempt.gpus,
        attempt=attempt.attempt,
        cluster=attempt.cluster,
        user=attempt.user,
        name=attempt.name,
        queue=attempt.queue,
        requeued=None if first else from_us(attempt.submit),
        eligible=_time(attempt.eligible),
        start=_time(attempt.began),
        end=_time(attempt.ended),
        gpu_model=attempt.model,
        nodes=attempt.nodes,
        time_limit_s=attempt.time_limit_s,
        priority=attempt.priority,
        source=SOURCE,
        **known,
    )


def heard(attempts: Sequence[Attempt]) -> int:
    """The latest time (microseconds) that is known of a job."""
    return max(attempt.seen if attempt.told == LIVE else attempt.ended or attempt.seen for attempt in attempts)


def _time(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


def _per_node(attempt: Attempt) -> int | None:
    return attempt.gpus // attempt.nodes if attempt.nodes and attempt.gpus % attempt.nodes == 0 else None


def _more(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    found: dict[str, Any] = msgspec.json.decode(text)
    return {name: _value(name, value) for name, value in found.items()}


def _value(name: str, value: Any) -> Any:
    if name in _TIMES:
        return datetime.fromisoformat(value)
    return tuple(value) if isinstance(value, list) else value
