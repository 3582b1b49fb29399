"""Lent slots by how fast they come back: a slower borrower needs more free slack in front of it.

The hold-back is what starts that a wait would hurt may want within the longest reclaim time. Rungs are equal parts of
that time; what is wanted until a rung's slots come back is taken to be in proportion, and the risk control corrects the
hold-back where that is wrong: a hold-back of all slots lends nothing on any rung. A job on a rung is lent to where the
free slots left and what is lent on faster rungs cover the hold-back of its rung. Where all jobs are as slow as can be,
that is the hold-back itself.
"""

from broker.sia.columns import NEVER, RUNGS, State
from broker.sia.compiling import kernel


@kernel
def rung_of(reclaim_s: float, longest_s: float) -> int:
    """0 is the fastest."""
    if not 0.0 < longest_s < NEVER or not reclaim_s < longest_s:
        return RUNGS - 1
    return int(max(0.0, reclaim_s) / longest_s * RUNGS)


@kernel
def rung_hold(s: State, rung: int) -> int:
    hold = s.pool[0].hold
    return hold if hold >= s.pool[0].capacity else (hold * (rung + 1) + RUNGS - 1) // RUNGS


@kernel
def count_rungs(s: State) -> None:
    """GPUs that are lent on each rung and can be called back."""
    for rung in range(RUNGS):
        s.rungs[rung] = 0
    for i in range(s.pool[0].runs):
        j = s.running[i]
        if s.jobs[j].shadow_start == NEVER and s.jobs[j].lendable:
            s.rungs[s.jobs[j].rung] += s.jobs[j].gpus


@kernel
def slack_for(s: State, rung: int) -> int:
    """Free slots that must be left beside a new loan on the rung."""
    slack, faster = 0, 0
    for k in range(rung + 1):
        if k == rung or s.rungs[k] > 0:
            slack = max(slack, rung_hold(s, k) - faster)
        faster += s.rungs[k]
    return slack


@kernel
def slowest_in_need(s: State) -> int:
    """The rung that wants most free slots in front of what is lent on it now; 0 where nothing is lent."""
    worst, most, faster = 0, 0, 0
    for k in range(RUNGS):
        if s.rungs[k] > 0 and rung_hold(s, k) - faster > most:
            worst, most = k, rung_hold(s, k) - faster
        faster += s.rungs[k]
    return worst


@kernel
def slack_now(s: State) -> int:
    """Free slots wanted in front of what is lent: all that is held back, unless some jobs are fast."""
    if s.pool[0].fast == 0 or s.pool[0].extra > 0:
        return s.pool[0].hold
    count_rungs(s)
    rung = slowest_in_need(s)
    return slack_for(s, rung) if s.rungs[rung] > 0 else 0


@kernel
def room_on_rung(s: State, j: int, room: int) -> int:
    """How much of what is free may be lent to the job; `room` is left above the whole hold-back."""
    if s.pool[0].fast == 0 or not s.jobs[j].lendable:
        return room
    return room + s.pool[0].hold - slack_for(s, s.jobs[j].rung)


@kernel
def widest_room(s: State, room: int) -> int:
    """At most so much may be lent to any job."""
    return room if s.pool[0].fast == 0 else room + s.pool[0].hold
