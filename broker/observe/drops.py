"""A queue that suddenly holds nearly no jobs is more often misread than empty: nothing is released on one such read.

A second read that says the same, of a later time, or a person (`broker jobs --confirm NAME`) makes it believed.
"""

from collections.abc import Mapping, Sequence

import msgspec

from broker.model.snapshot import SourceView, Trust
from state.queue_reads import QueueRead

LEAST_JOBS = 20
"""With fewer live jobs before, losing them is nothing unusual."""
LOST_TO = 10
"""A queue that has shrunk to this part of what it was (1/10) has lost nearly all."""


def judged(views: Sequence[SourceView], last: Mapping[str, QueueRead]) -> tuple[SourceView, ...]:
    """Each view, or the same as partial where it lost nearly all jobs and nothing has confirmed that yet."""
    return tuple(_doubted(view, last[view.source]) if _suspect(view, last) else view for view in views)


def unremembered(views: Sequence[SourceView], why: str) -> tuple[SourceView, ...]:
    """Where what was there before is not known, or what is there now cannot be kept, no drop would be noticed."""
    return tuple(
        view if view.trust is Trust.UNKNOWN else _partial(view, f"{why}: nothing is released") for view in views
    )


def after(views: Sequence[SourceView], last: Mapping[str, QueueRead]) -> dict[str, QueueRead]:
    """What to remember: of a doubted read, what was there before it. A queue that was not read changes nothing."""
    reads = dict(last)
    for view in views:
        if view.trust is Trust.UNKNOWN:
            continue
        if _suspect(view, last):
            before = last[view.source]
            at = before.doubted_as_of or view.as_of
            reads[view.source] = msgspec.structs.replace(before, doubted_as_of=at)
        else:
            reads[view.source] = QueueRead(source=view.source, live=live(view))
    return reads


def live(view: SourceView) -> int:
    return sum(job.state.live for job in view.jobs)


def _suspect(view: SourceView, last: Mapping[str, QueueRead]) -> bool:
    before = last.get(view.source)
    if before is None or view.trust is Trust.UNKNOWN or not _dropped(live(view), before.live):
        return False
    return before.doubted_as_of is None or view.as_of is None or view.as_of <= before.doubted_as_of


def _dropped(now: int, before: int) -> bool:
    return before >= LEAST_JOBS and now * LOST_TO <= before


def _doubted(view: SourceView, before: QueueRead) -> SourceView:
    line = (
        f"queue {view.source}: holds {live(view)} live jobs, {before.live} when it was last read: nothing is released "
        f"until a later read says the same, or: broker jobs --confirm {view.source}"
    )
    return _partial(view, line)


def _partial(view: SourceView, line: str) -> SourceView:
    return msgspec.structs.replace(view, trust=Trust.PARTIAL, problems=(*view.problems, line))
