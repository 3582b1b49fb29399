"""`sacct --parsable2` by the million: the same as `broker.queues.sacct` makes of a row, without making a `Job` of it.

What comes again and again (states, resources, names, limits) is looked up; rows of arrays, of heterogeneous jobs and of
jobs that were resized take the slower way.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from broker.history.clocking import SECOND_US, Clocking
from broker.model.job import JobState
from broker.queues import sacct, words
from broker.queues.arrays import waiting
from broker.queues.bounds import LONGEST, short, title
from broker.queues.parsed import MOST_DIGITS, Context, Parsed, Unfit, Unwanted
from broker.queues.slurm_record import HELD_REASONS
from broker.queues.times import NOT_KNOWN, limit_minutes, span
from broker.queues.tres import gpus, kind_in
from state.history.facts import LIVE, TOLD, Row, turn_of
from state.history.words import Memo, Words

_MISSING = ""
_MOST_SECONDS = re.compile(r"\d{1,10}", re.ASCII)


class Batch(NamedTuple):
    """Rows that ended, rows that live, and earlier sizes of resized jobs."""

    ended: list[Row]
    live: list[Row]
    resized: list[Row]


class _State(NamedTuple):
    told: int
    text: str
    asks: bool
    started: bool
    resizing: bool = False
    dropped: str = ""


class _Wanted(NamedTuple):
    gpus: int
    model: int | None
    dropped: str = ""


class _Owner(NamedTuple):
    cluster: int
    tenant: int
    user: int | None
    queue: int | None


class SacctRows:
    """Reads lines under one header. `newest` is the latest time that any of them speaks of."""

    def __init__(self, header: str, context: Context, names: Words, parsed: Parsed, *, cut: bool) -> None:
        """`cut`: nothing follows the header, not even its line end. Raises Unreadable."""
        self._trailing = "\r" if header.endswith("\r") else ""
        columns = sacct.columns(header, cut=cut)
        self._width = len(columns)
        self._at = {name: index for index, name in enumerate(columns)}
        self._written = self._at.get("jobid", self._at.get("jobidraw", 0))
        self._given = self._place("submit", "eligible", "start", "end", "state", "nnodes", "priority")
        self._named = self._place("cluster", "account", "user", "partition")
        self._request = self._place("reqtres", "alloctres", "constraints", "reason")
        self._limits = self._place("timelimitraw", "timelimit", "elapsedraw", "jobname")
        self._uids = self._place("originalsluid", "sluid")
        self._context = context
        self._names = names
        self._parsed = parsed
        self._clock = Clocking(context.zone)
        self._states: Memo[tuple[str, str], _State] = Memo(_state)
        self._wanted: Memo[tuple[str, str, str, bool], _Wanted] = Memo(self._gpus)
        self._spans: Memo[tuple[str, str], int | None] = Memo(_limit)
        self._owners: Memo[tuple[str, str, str, str], _Owner] = Memo(self._whose)
        self._wholes: Memo[tuple[str, str], int] = Memo(_whole)
        self.newest = 0

    def _place(self, *names: str) -> tuple[int, ...]:
        """Where these columns are; one behind the row for those that are not there."""
        return tuple(self._at.get(name, self._width) for name in names)

    def take(self, lines: Sequence[str], first: int) -> Batch:
        """`first` is the number of the first of these lines in the file."""
        batch = Batch([], [], [])
        for number, line in enumerate(lines, first):
            try:
                self._take(line, batch)
            except Unfit as unfit:
                self._parsed.quarantine(f"row {number}", unfit)
            except Unwanted as unwanted:
                self._parsed.drop(unwanted)
        return batch

    def _take(self, line: str, batch: Batch) -> None:
        cells = line.removesuffix(self._trailing).split("|") if self._trailing else line.split("|")
        if len(cells) != self._width:
            if not line.strip():
                return
            raise Unfit("has not the columns of the header; leave JobName, SubmitLine and Comment out", line)
        cells.append(_MISSING)
        written = cells[self._written]
        if not (written.isascii() and written.isdigit() and len(written) <= LONGEST):
            self._unusual(written.strip(), cells, batch)
            return
        row, state = self._row(written, 0, cells)
        if state.told == TOLD:
            batch.ended.append(row)
        else:
            batch.live.append(row)
            if state.resizing:
                self._resized(row, cells, batch)

    def _unusual(self, written: str, cells: list[str], batch: Batch) -> None:
        """A step, a task, tasks that wait, or a part of a heterogeneous job."""
        named = sacct.named(written)
        short("id", named.id)
        tasks = waiting(named.tasks, self._parsed) if named.tasks else None
        if tasks and tasks.cut:
            self._parsed.damage("the list of an array's tasks is cut off; raise SLURM_BITSTR_LEN")
        ids = [f"{named.job}_{task}" for task in tasks.ids] if tasks else [named.id]
        row, state = self._row(ids[0], named.part or 0, cells)
        into = batch.ended if state.told == TOLD else batch.live
        into.append(row)
        into.extend((row[0], identity, *row[2:]) for identity in ids[1:])
        if state.resizing:
            self._resized(row, cells, batch)

    def _row(self, identity: str, part: int, cells: list[str]) -> tuple[Row, _State]:
        at_submit, at_eligible, at_start, _, at_state, at_nodes, at_priority = self._given
        at_request, at_alloc, at_constraint, at_reason = self._request
        state = self._states[cells[at_state], cells[at_reason]]
        if state.dropped:
            raise Unwanted(state.dropped)
        wanted = self._wanted[cells[at_request], cells[at_alloc], cells[at_constraint], state.asks]
        if wanted.dropped:
            raise Unwanted(wanted.dropped)
        us = self._clock.us
        submit, eligible = us(cells[at_submit]), cells[at_eligible]
        if submit is None:
            raise Unfit("has no Submit time", identity)
        began = us(cells[at_start]) if state.started else None
        ended, seen = self._ending(state, submit, began, cells)
        at_cluster, at_account, at_user, at_partition = self._named
        whose = cells[at_cluster], cells[at_account], cells[at_user], cells[at_partition]
        cluster, tenant, user, queue = self._owners[whose]
        name, uid = cells[self._limits[3]], cells[self._uids[0]] or cells[self._uids[1]]
        row = (
            cluster, identity, submit, turn_of(short("uid", uid)) if uid else 0, part, state.told, seen, state.text,
            submit if eligible == cells[at_submit] else us(eligible), began, ended, wanted.gpus,
            self._wholes[cells[at_nodes], "NNodes"] or None, wanted.model, tenant, user, queue,
            self._names.name(title(name, self._parsed)) if name else None,
            self._spans[cells[self._limits[0]], cells[self._limits[1]]],
            self._wholes[cells[at_priority], "Priority"], _named_for_good(uid) if uid else None, None,
        )  # fmt: skip
        return row, state

    def _ending(self, state: _State, submit: int, began: int | None, cells: list[str]) -> tuple[int | None, int]:
        """When it ended, and the latest time that the row speaks of."""
        start = submit if began is None else began
        if state.told == LIVE:
            elapsed = cells[self._limits[2]]
            seen = start + int(elapsed) * SECOND_US if began is not None and _MOST_SECONDS.fullmatch(elapsed) else start
            ended = None
        else:
            ended = self._clock.us(cells[self._given[3]])
            if ended is not None and ended < start:
                ended = self._clock.after(cells[self._given[3]], start)
                if began is not None and ended is not None and ended < began:
                    raise Unfit("ends before it starts", cells[self._written])
            seen = start if ended is None or ended < start else ended
        if seen > self.newest:
            self.newest = seen
        return ended, seen

    def _whose(self, written: tuple[str, str, str, str]) -> _Owner:
        """Of several partitions that it may run in, the first is its queue."""
        written = (*written[:3], written[3].split(",")[0])
        cluster, account, user, queue = map(short, ("cluster", "tenant", "user", "queue"), written)
        names = self._names
        return _Owner(
            names.cluster[cluster or self._context.cluster],
            names.tenant[account or self._context.fallback_tenant],
            names.user[user] if user else None,
            names.queue[queue] if queue else None,
        )

    def _gpus(self, request: tuple[str, str, str, bool]) -> _Wanted:
        asked, given, asks = gpus(request[0]), gpus(request[1]), request[3]
        found = given if given.count and not asks else asked
        found = found if found.count else (given if given.count else asked)
        if not found.count:
            return _Wanted(0, None, "asks for a fraction of a GPU" if found.fractions else "asks for no GPU")
        kind = found.kind or given.kind or asked.kind or kind_in(request[2])
        return _Wanted(found.count, self._names.model[short("gpu_model", kind)] if kind else None)

    def _resized(self, row: Row, cells: list[str], batch: Batch) -> None:
        """The record of a job's earlier size ends where its present one begins."""
        if not cells[self._uids[0]] and cells[self._uids[1]]:
            self._parsed.note("a resize renews SLUID: ask for OriginalSLUID as well, or its sizes count as attempts")
        began, ended = row[9], self._clock.us(cells[self._given[3]])
        if began is not None and ended is not None:
            batch.resized.append((*row[:5], began, ended, row[11]))


def _state(written: tuple[str, str]) -> _State:
    """By state and reason."""
    text, reason = written
    word = text.strip().upper()
    if word.startswith("REVOKED"):
        return _State(LIVE, "", True, False, dropped="runs in another cluster of the federation")
    state = words.state(text)
    if state is JobState.PENDING and reason in HELD_REASONS:
        state = JobState.HELD
    asks = state in (JobState.PENDING, JobState.HELD)
    started = not asks and state is not JobState.UNKNOWN
    return _State(LIVE if state.live else TOLD, state.value, asks, started, resizing=word.startswith("RESIZING"))


def _named_for_good(uid: str) -> str:
    return msgspec.json.encode({"uid": uid}).decode()


def _limit(written: tuple[str, str]) -> int | None:
    raw, text = written
    return limit_minutes(raw) if raw else span(text)


def _whole(written: tuple[str, str]) -> int:
    """Of a cell and its column's name."""
    text, name = written
    if text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS:
        return int(text)
    if text.strip().lower() in NOT_KNOWN:
        return 0
    raise Unfit(f"{name} is not a whole number", text)
