"""From rows to jobs: attempts in order, parts of heterogeneous jobs together, and what cannot be true named.

Rows of one job lie together in the table, so that a million of them stream by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection

from state.history.facts import GONE, LIVE, NAMES, TOLD, Fact, Key

DAY_US = 86_400_000_000
REUSED_US = DAY_US
"""An id that is queued again so long after it ended is another job: numbers wrap, clusters are set up anew."""
LOST_US = 7 * DAY_US
"""What lives, and was not seen for so long while its cluster was, does not live any more."""


class Size(NamedTuple):
    """So many GPUs from then until then; `ended` None while that lasts."""

    began: int
    ended: int | None
    gpus: int


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a job. Times in microseconds since 1970 UTC; names as their source writes them.

    `first_submit` is of the job, `submit` of this attempt. `sizes` are what it held, in order; more than one where it
    was resized. `seen` is the latest time of which something is known: it lived then or, if GONE, was missing then.
    `runaway`: it is still said to run and cannot.
    """

    cluster: str
    id: str
    attempt: int
    first_submit: int
    submit: int
    told: int
    state: str
    eligible: int | None
    sizes: tuple[Size, ...]
    began: int | None
    ended: int | None
    gpus: int
    nodes: int | None
    model: str | None
    tenant: str
    user: str | None
    queue: str | None
    name: str | None
    time_limit_s: int | None
    priority: int
    more: str | None
    seen: int
    runaway: bool = False
    last: bool = True

    @property
    def gpu_us(self) -> int:
        """GPU-microseconds held, as far as is known: what lives, up to when it was last seen."""
        until = self.ended if self.ended is not None else self.seen
        return sum(
            size.gpus * max((until if size.ended is None else size.ended) - size.began, 0) for size in self.sizes
        )


class Surroundings(NamedTuple):
    """What rows are read with. `looked` is by feed, `newest` by cluster: when each was last heard of.

    `listed` is by cluster: when a live queue that has listed jobs of it was last looked at.
    """

    words: Mapping[int, str]
    resized: Mapping[Key, Sequence[Size]]
    looked: Mapping[int, int]
    newest: Mapping[int, int]
    listed: Mapping[int, int]


def jobs(connection: Connection, since: int | None = None) -> Iterator[tuple[Attempt, ...]]:
    """The attempts of each job that was not over before `since`; ordered by cluster and id, not by time."""
    around = surroundings(connection)
    driver = connection.connection.driver_connection
    assert driver is not None
    rows = driver.execute(f"SELECT {NAMES} FROM history_attempt ORDER BY cluster, id, submit, turn, part")
    for _, same in groupby(map(Fact._make, rows), _identity):
        for life in _lives(_each_once(tuple(same))):
            found = _attempts(life, around)
            if since is None or _latest(found) >= since:
                yield found


def surroundings(connection: Connection) -> Surroundings:
    ask = connection.exec_driver_sql
    resized: dict[Key, list[Size]] = {}
    for *key, began, ended, gpus in ask("SELECT * FROM history_resize ORDER BY 1, 2, 3, 4, 5, 6"):
        resized.setdefault((key[0], key[1], key[2], key[3], key[4]), []).append(Size(began, ended, gpus))
    looked = {row[0]: row[1] for row in ask("SELECT source, looked FROM history_feed")}
    newest = {row[0]: row[1] for row in ask("SELECT cluster, max(seen) FROM history_attempt GROUP BY cluster")}
    listed: dict[int, int] = {}
    for cluster, feed in ask("SELECT DISTINCT cluster, feed FROM history_attempt WHERE feed IS NOT NULL"):
        listed[cluster] = max(listed.get(cluster, 0), looked.get(feed, 0))
        newest[cluster] = max(newest[cluster], listed[cluster])
    words = {row[0]: row[1] for row in ask("SELECT id, text FROM history_word")}
    return Surroundings(words, resized, looked, newest, listed)


def _identity(fact: Fact) -> tuple[int, str]:
    return fact.cluster, fact.id


def _latest(attempts: Sequence[Attempt]) -> int:
    last = attempts[-1]
    return last.ended if last.ended is not None else last.seen


def _each_once(same: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Of an attempt that one source names for good and another does not, the account that is believed."""
    if same[0].turn >= 0 and all(fact.turn >= 0 for fact in same):
        return same
    together: dict[tuple[int, int], list[Fact]] = {}
    for fact in same:
        together.setdefault((fact.submit, fact.part), []).append(fact)
    return tuple(fact for facts in together.values() for fact in _believed(facts))


def _believed(facts: list[Fact]) -> list[Fact]:
    """All were submitted at one time. Several that are named are several attempts."""
    named = [fact for fact in facts if fact.turn < 0]
    return (
        [max(facts, key=lambda fact: (fact.told == TOLD, fact.seen, fact.told))] if len(named) == 1 else named or facts
    )


def _lives(same: tuple[Fact, ...]) -> Iterator[tuple[Fact, ...]]:
    """The rows of one id, cut where it was given to another job."""
    if len(same) == 1:
        yield same
        return
    cut, over = 0, same[0].seen
    for at, fact in enumerate(same):
        if fact.submit > over + REUSED_US:
            yield same[cut:at]
            cut = at
        over = max(over, fact.seen)
    yield same[cut:]


def _attempts(life: tuple[Fact, ...], around: Surroundings) -> tuple[Attempt, ...]:
    if len(life) == 1:
        return (_attempt(life, 1, life[0].submit, None, around),)
    ranked = _by_rank(life)
    submits: list[int | None] = [parts[0].submit for parts in ranked]
    following = zip(ranked, [*submits[1:], None], strict=True)
    first = min(fact.submit for fact in life)
    return tuple(_attempt(parts, rank, first, then, around) for rank, (parts, then) in enumerate(following, 1))


def _by_rank(life: tuple[Fact, ...]) -> list[tuple[Fact, ...]]:
    """The n-th rows of all parts together: parts of one job are submitted a moment apart."""
    parts: dict[int, list[Fact]] = {}
    for fact in life:
        parts.setdefault(fact.part, []).append(fact)
    longest = max(map(len, parts.values()))
    return [tuple(rows[rank] for rows in parts.values() if rank < len(rows)) for rank in range(longest)]


def _attempt(
    parts: tuple[Fact, ...], rank: int, first: int, requeued: int | None, around: Surroundings
) -> Attempt:  # fmt: skip
    """`requeued` is when the next attempt was queued; then this one is over, whatever was last heard of it."""
    fact = parts[0]
    words = around.words
    sizes = tuple(size for part in parts for size in _sizes(part, around.resized))
    told, state = min((part.told, part.state) for part in parts) if len(parts) > 1 else (fact.told, fact.state)
    seen = max(fact.seen, around.looked.get(fact.feed, 0) if fact.feed and told == LIVE else 0)
    ended = None if told == LIVE else max((part.ended for part in parts if part.ended is not None), default=None)
    if requeued is not None and told == LIVE:
        told, state, ended = GONE, "gone", requeued
    return Attempt(
        cluster=words[fact.cluster],
        id=fact.id,
        attempt=rank,
        first_submit=first,
        submit=fact.submit,
        told=told,
        state=state,
        eligible=fact.eligible,
        sizes=sizes,
        began=min((size.began for size in sizes), default=None),
        ended=ended,
        gpus=sum(part.gpus for part in parts),
        nodes=_total_nodes(parts),
        model=_model(parts, words),
        tenant=words[fact.tenant],
        user=_word(fact.user, words),
        queue=_word(fact.queue, words),
        name=fact.name,
        time_limit_s=fact.time_limit_s,
        priority=fact.priority,
        more=fact.more,
        seen=seen,
        runaway=told == LIVE and _runaway(fact, seen, around),
        last=requeued is None,
    )


def _sizes(fact: Fact, resized: Mapping[Key, Sequence[Size]]) -> Iterable[Size]:
    """The earlier sizes, then the present one from where they end."""
    if fact.began is None:
        return ()
    earlier = resized.get((fact.cluster, fact.id, fact.submit, fact.turn, fact.part), ()) if resized else ()
    until = max((size.ended for size in earlier if size.ended), default=fact.began)
    return (*earlier, Size(max(fact.began, until), fact.ended, fact.gpus))


def _runaway(fact: Fact, seen: int, around: Surroundings) -> bool:
    """It is beyond its limit, its cluster went on without it, or its queue does not list what a file said of it."""
    beyond = fact.began is not None and fact.time_limit_s and seen > fact.began + fact.time_limit_s * 1_000_000 + DAY_US
    unlisted = fact.feed is None and around.listed.get(fact.cluster, 0) - seen > DAY_US
    return bool(beyond) or unlisted or around.newest[fact.cluster] - seen > LOST_US


def _word(number: int | None, words: Mapping[int, str]) -> str | None:
    return None if number is None else words[number]


def _total_nodes(parts: tuple[Fact, ...]) -> int | None:
    counts = [part.nodes for part in parts]
    return sum(count or 0 for count in counts) if all(counts) else None


def _model(parts: tuple[Fact, ...], words: Mapping[int, str]) -> str | None:
    if len(parts) == 1:
        return _word(parts[0].model, words)
    return "+".join(sorted({words[part.model] for part in parts if part.model is not None})) or None
