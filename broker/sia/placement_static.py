"""A tenant's static schedule on nodes of its own, replayed as far as it is certain.

With placement, an end that becomes known late could move every later start, in place and in either direction: a job
that has started somewhere could be found to belong elsewhere. So nothing is guessed and nothing is undone. A start is
taken only when all ends are known on which it depends, and placement is chosen so that few do: a cell that has rested
for a whole reclaim time goes first, and as no job is later than that, which cells have rested is always known. Only a
job that fits into no rested cell has to wait until the late ones of its tenant have caught up.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heappop, heappush

from broker.sia.columns import NEVER
from broker.sia.placement import Buddy, Cells

_DECIMALS = 6
"""Decimals of a shadow end: the work of a job is a sum of floats, and equal times must be equal."""
_LONG_AGO = -1e300


@dataclass(slots=True)
class Waiting:
    """A job in the static queue. `leaves` is when it was cancelled; `work` is known once it has ended."""

    submit: float
    slots: int
    work: float = NEVER
    leaves: float = NEVER
    service: float = 0.0


@dataclass(slots=True)
class Static:
    """`rest_s` is the longest reclaim time. `full` has what the schedule uses, `rested` what it has used within it."""

    size: int
    nodes: int
    rest_s: float
    full: Buddy
    rested: Buddy
    last: list[list[int]]  # who used a slot last
    clock: float = _LONG_AGO
    queue: dict[int, Waiting] = field(default_factory=dict)  # in order
    ends: list[tuple[float, int]] = field(default_factory=list)  # heaps; known ends whose cells are not free yet
    rests: list[tuple[float, int]] = field(default_factory=list)
    cells: dict[int, Cells] = field(default_factory=dict)
    needs: float = NEVER  # the first in the queue can be decided on when all is known up to then

    def __post_init__(self) -> None:
        self.queue = OrderedDict(self.queue)  # a dict that is eaten from its front is slow

    @classmethod
    def new(cls, size: int, nodes: int, rest_s: float) -> "Static":
        last = [[-1] * size for _ in range(nodes)]
        return cls(size, nodes, rest_s, Buddy(size, [0] * nodes), Buddy(size, [0] * nodes), last)

    def leave(self, job: int, end: float) -> None:
        """A job that has started here is known to leave at `end`."""
        end = round(end, _DECIMALS)
        heappush(self.ends, (end, job))
        heappush(self.rests, (end, job))

    def advance(self, known: float, now: float) -> tuple[int, float] | None:
        """The next start (job, time), if it is certain; all ends up to `known` are known."""
        self.needs = NEVER
        while self.queue:
            job, first = next(iter(self.queue.items()))
            at = self._start(job, first, known, now)
            if at is None:
                return None
            del self.queue[job]
            if at < NEVER:
                return job, at
        return None

    def _start(self, job: int, first: Waiting, known: float, now: float) -> float | None:
        """When the first in the queue starts; NEVER if it was cancelled before; None if that is not known yet."""
        at = max(first.submit, self.clock)
        while at < first.leaves and at <= now:
            cells = self._room(first.slots, at, known)
            if cells is None:
                return None
            if cells:
                self._place(job, first, cells, at)
                return at
            self.clock = at
            at = self.ends[0][0] if self.ends else NEVER
            if at <= now and at < first.leaves and not self._knows(at, known):
                return None
        if first.leaves <= self.clock or (first.leaves <= min(at, now) and self._knows(first.leaves, known)):
            self.clock = max(self.clock, first.leaves)
            return NEVER
        self.needs = min(at, first.leaves)
        return None

    def _room(self, slots: int, at: float, known: float) -> Cells | None:
        """Where a job fits at that time; None if it is not known."""
        if not self._knows(at - self.rest_s, known):
            return None
        self._free(at)
        cells = self.rested.find(slots)
        if cells:
            return cells
        return self.full.find(slots) if self._knows(at, known) else None

    def _knows(self, at: float, known: float) -> bool:
        self.needs = at
        return known >= at

    def _free(self, at: float) -> None:
        while self.ends and self.ends[0][0] <= at:
            self.full.free(self.cells[heappop(self.ends)[1]])
        while self.rests and self.rests[0][0] <= at - self.rest_s:
            job = heappop(self.rests)[1]
            for node, offset, width in self.cells.pop(job):
                mask = sum(1 << slot for slot in range(offset, offset + width) if self.last[node][slot] == job)
                self.rested.put(node, self.rested.used[node] & ~mask)

    def _place(self, job: int, first: Waiting, cells: Cells, at: float) -> None:
        self.clock = at
        self.full.take(cells)
        self.cells[job] = cells
        for cell in cells:
            self.rested.put(cell.node, self.rested.used[cell.node] | cell.mask)
            self.last[cell.node][cell.offset : cell.offset + cell.width] = [job] * cell.width
        if first.work < NEVER:
            self.leave(job, at + first.work)
        elif first.leaves < NEVER:
            self.leave(job, min(first.leaves, at + first.service))
