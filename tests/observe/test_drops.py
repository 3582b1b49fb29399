from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker.errors import StateError
from broker.model.job import Job, JobState
from broker.model.snapshot import SourceView, Trust
from broker.observe.drops import after, judged, unremembered
from state.queue_reads import QueueRead, recall, recall_or_begin, remember

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)


def view(live: int, as_of: datetime | None = AT, trust: Trust = Trust.COMPLETE) -> SourceView:
    jobs = tuple(Job(id=str(number), tenant="t", submit=AT, state=JobState.PENDING, gpus=8) for number in range(live))
    ended = Job(id="over", tenant="t", submit=AT, state=JobState.DONE, gpus=8)
    return SourceView(source="q", trust=trust, as_of=as_of, jobs=(*jobs, ended))


def read(*views: SourceView) -> list[Trust]:
    """The trust of each read, one after the other, with the memory in between."""
    last: dict[str, QueueRead] = {}
    found = []
    for each in views:
        (seen,) = judged([each], last)
        last = after([each], last)
        found.append(seen.trust)
    return found


COMPLETE, PARTIAL, UNKNOWN = Trust.COMPLETE, Trust.PARTIAL, Trust.UNKNOWN


def test_a_sudden_drop_is_doubted_until_a_later_read_says_the_same() -> None:
    assert read(view(500), view(50), view(40, LATER)) == [COMPLETE, PARTIAL, COMPLETE]


def test_the_same_content_read_again_is_no_second_read() -> None:
    assert read(view(500), view(0), view(0), view(0, LATER)) == [COMPLETE, PARTIAL, PARTIAL, COMPLETE]


def test_a_source_without_a_date_is_not_believed_by_repetition() -> None:
    assert read(view(500), view(0, None), view(0, None)) == [COMPLETE, PARTIAL, PARTIAL]


def test_when_the_jobs_come_back_the_doubt_is_over_and_the_next_drop_is_doubted_anew() -> None:
    found = read(view(500), view(0), view(480, LATER), view(0, LATER + timedelta(minutes=5)))
    assert found == [COMPLETE, PARTIAL, COMPLETE, PARTIAL]


def test_what_was_not_read_changes_nothing() -> None:
    assert read(view(500), view(0, None, UNKNOWN), view(0)) == [COMPLETE, UNKNOWN, PARTIAL]


@pytest.mark.parametrize(("before", "now"), [(19, 0), (500, 51), (0, 0), (20, 500)])
def test_small_queues_and_small_drops_are_believed(before: int, now: int) -> None:
    assert read(view(before), view(now)) == [COMPLETE, COMPLETE]


def test_the_doubt_is_said_in_one_line_with_what_to_do() -> None:
    (seen,) = judged([view(3)], {"q": QueueRead(source="q", live=400)})
    assert seen.problems == (
        "queue q: holds 3 live jobs, 400 when it was last read: nothing is released until a later read says the same, "
        "or: broker jobs --confirm q",
    )


def test_the_memory_is_a_private_file_beside_the_state_and_may_be_lost(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    reads = {"q": QueueRead(source="q", live=400, doubted_as_of=AT)}
    assert recall(state) == {}
    remember(state, reads)
    assert recall(state) == reads
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"[{", b"[" * 100_000, b"\xff\xfe", b'[{"source": 1}]'])
def test_a_memory_that_is_damaged_is_not_taken_for_none(tmp_path: Path, content: bytes) -> None:
    state = tmp_path / "state.db"
    state.with_name("state.db.queues").write_bytes(content)
    with pytest.raises(StateError, match="is damaged"):
        recall(state)
    assert recall_or_begin(state) == {}


def test_without_a_memory_no_read_is_believed_and_what_is_unknown_stays_so() -> None:
    found = unremembered([view(500), view(0, trust=Trust.UNKNOWN)], "s.queues is damaged")
    assert [each.trust for each in found] == [PARTIAL, UNKNOWN]
    assert found[0].problems == ("s.queues is damaged: nothing is released",)
