"""Lending above the hold-back, and reclaim in the reverse order: free slots, expanded ones, early jobs."""

from broker.sia.columns import (
    CREDIT,
    DRAINING,
    EXPAND,
    GUARD,
    LOAN,
    NEVER,
    NOBODY,
    RECLAIM,
    RESIZING,
    RESTORE,
    RUNNING,
    SHRINK,
    State,
    speed_of,
)
from broker.sia.compiling import kernel
from broker.sia.firm import firm_begin, may_lend_firmly, think_of_firm_loans
from broker.sia.heap import heap_less, heap_push, heap_remove
from broker.sia.lists import log, queue_leave, running_add, running_remove
from broker.sia.rungs import count_rungs, room_on_rung, slack_now, slowest_in_need, widest_room
from broker.sia.shadow import note_lag, service_of


@kernel
def spare(s: State) -> int:
    """Free slots that no claim and no hold-back covers; negative: so many are missing."""
    return min(s.pool[0].capacity, s.pool[0].goal) - s.pool[0].busy - s.pool[0].unmet - s.pool[0].hold


@kernel
def missing(s: State) -> bool:
    """Whether claims and hold-back exceed what is free or coming. Nobody is stopped for capacity that goes back."""
    pool = s.pool[0]
    hold = pool.hold if pool.fast == 0 else slack_now(s)
    return s.on[GUARD] > 0 and pool.capacity - pool.busy + pool.coming < pool.unmet + hold


@kernel
def reclaim(s: State, now: float) -> bool:
    """Call slots back for claims, and before them for the hold-back. True if slots may have come free at once."""
    shrunk = False
    while missing(s):
        j = most_expanded(s, 0.0, now)
        if j == NOBODY:
            j = most_expanded(s, -NEVER, now)
        if j != NOBODY:
            take_back_extra(s, j, now)
            shrunk = True
            continue
        j = largest_early(s, slowest_to_call(s), now)
        if j == NOBODY:
            break
        preempt(s, j, now)
    return shrunk


@kernel
def most_expanded(s: State, least_credit: float, now: float) -> int:
    """The job with most slots above what it asked for, of those whose credit after giving them back is enough."""
    best, most = NOBODY, 0
    if s.pool[0].extra == 0:
        return best
    for i in range(s.pool[0].runs):
        j = s.running[i]
        extra = (s.jobs[j].target if s.jobs[j].state == RESIZING else s.jobs[j].held) - s.jobs[j].gpus
        if extra > most and credit_of(s, j, now) - shrink_cost(s, j, now) >= least_credit:
            best, most = j, extra
    return best


@kernel
def credit_of(s: State, j: int, now: float) -> float:
    """How far ahead of its shadow a job is; what it has done, if it is not owed yet."""
    return service_of(s, j, now) - max(0.0, now - s.jobs[j].shadow_start)


@kernel
def shrink_cost(s: State, j: int, now: float) -> float:
    """Seconds that a job loses when it gives its extra slots back: it drains and restores, or it starts afresh."""
    done = service_of(s, j, now)
    if s.jobs[j].state == RESIZING:
        if s.jobs[j].was < s.jobs[j].held:
            return max(0.0, s.jobs[j].drained_at - now)
        return s.jobs[j].reclaim_s + min(done, s.jobs[j].restore_s)
    return min(done, s.jobs[j].reclaim_s + min(done, s.jobs[j].restore_s))


@kernel
def take_back_extra(s: State, j: int, now: float) -> None:
    """Shrink to what the job asked for; slots that it has not yet come to use are free at once.

    Where it was seen to have them, before the pause was thought to be over, it has to pause again to give them back.
    """
    gpus = s.jobs[j].gpus
    if s.jobs[j].state == RESIZING:
        s.pool[0].coming -= s.jobs[j].held - s.jobs[j].target
        s.pool[0].extra -= s.jobs[j].target - gpus
        if s.jobs[j].was < s.jobs[j].held:
            s.pool[0].busy -= s.jobs[j].held - s.jobs[j].was
            s.jobs[j].held = s.jobs[j].was
        else:
            pause(s, j, now)
    else:
        s.pool[0].extra -= s.jobs[j].held - gpus
        if service_of(s, j, now) <= shrink_cost(s, j, now):
            shrink_afresh(s, j, now)
        else:
            pause(s, j, now)
    s.jobs[j].target = gpus
    s.pool[0].coming += s.jobs[j].held - gpus
    log(s, j, SHRINK)
    if s.jobs[j].shadow_start < NEVER:
        note_lag(s, j, now)


@kernel
def shrink_afresh(s: State, j: int, now: float) -> None:
    """So little is done that it costs less to do it again; the extra slots are free at once."""
    done = service_of(s, j, now)
    s.pool[0].lost += done * s.jobs[j].held
    s.pool[0].busy -= s.jobs[j].held - s.jobs[j].gpus
    s.jobs[j].held = s.jobs[j].gpus
    s.jobs[j].service = 0.0
    s.jobs[j].since = now


@kernel
def pause(s: State, j: int, now: float) -> None:
    """Write a checkpoint and give way: no progress until drained, and the restore has to be done."""
    service = service_of(s, j, now)
    cut = service - s.jobs[j].restore_s
    s.jobs[j].service = max(0.0, cut) if s.on[RESTORE] else cut
    if s.jobs[j].state == RESIZING:
        s.pool[0].drains = heap_remove(s.drains, s.pool[0].drains, j)
    s.jobs[j].drained_at = now + s.jobs[j].reclaim_s
    s.pool[0].lost += s.jobs[j].held * (s.jobs[j].reclaim_s + service - s.jobs[j].service)
    s.jobs[j].state = RESIZING
    s.pool[0].drains = heap_push(s.drains, s.pool[0].drains, j, s.jobs[j].drained_at, 0.0)


@kernel
def slowest_to_call(s: State) -> int:
    """The fastest rung on which a reclaim helps: any if claims need slots, else where slack in front is short."""
    pool = s.pool[0]
    if pool.fast == 0 or pool.capacity - pool.busy + pool.coming < pool.unmet:
        return 0
    count_rungs(s)
    return slowest_in_need(s)


@kernel
def largest_early(s: State, least_rung: int, now: float) -> int:
    """The early job, on that rung or a slower one, with most predicted work left in GPU-seconds.

    A reclaim costs any of them the same drain and restore; the one that would hold its slots longest bears it.
    """
    best, best_rest = NOBODY, -1.0
    for i in range(s.pool[0].runs):
        j = s.running[i]
        if s.jobs[j].shadow_start < NEVER or not s.jobs[j].lendable or s.jobs[j].rung < least_rung:
            continue
        rest = s.jobs[j].started_at if s.pool[0].latest_first else rest_of(s, j, now) * s.jobs[j].gpus
        if rest >= best_rest:
            best, best_rest = j, rest
    return best


@kernel
def rest_of(s: State, j: int, now: float) -> float:
    """Predicted seconds of work left: as much as was done (heavy tails), or more if the forecast says so."""
    done, typical = service_of(s, j, now), s.jobs[j].typical_s
    return max(done, typical - done) if 0 < typical < NEVER else done


@kernel
def preempt(s: State, j: int, now: float) -> None:
    running_remove(s, j)
    if s.jobs[j].state == RUNNING:
        pause(s, j, now)
    s.jobs[j].state = DRAINING
    s.jobs[j].preempted += 1
    s.pool[0].coming += s.jobs[j].gpus
    s.pool[0].preemptions += 1
    log(s, j, RECLAIM)


@kernel
def lend(s: State, now: float) -> None:
    """Queued jobs of any tenant start early; what is left is for elastic jobs."""
    if s.pool[0].firm_share > 0.0:
        think_of_firm_loans(s, now)
    best = next_loan(s, spare(s))
    while best != NOBODY:
        queue_leave(s, best)
        start_early(s, best, now)
        best = next_loan(s, spare(s))
    if s.pool[0].elastic > 0:
        use_elastic(s, now)


@kernel
def use_elastic(s: State, now: float) -> None:
    """Shrink jobs that are ahead for one that waits; else make jobs larger."""
    wanted = slots_wanted(s)
    best = most_expanded(s, 0.0, now)
    while best != NOBODY and 0 < wanted - spare(s) - s.pool[0].coming <= s.pool[0].extra:
        take_back_extra(s, best, now)
        best = most_expanded(s, 0.0, now)
    if spare(s) > 0 and (wanted == 0 or wanted > spare(s) + s.pool[0].coming + s.pool[0].extra):
        expand(s, now)


@kernel
def slots_wanted(s: State) -> int:
    """GPUs of the job that would start early next; 0 if none waits."""
    best = next_loan(s, s.pool[0].capacity)
    return 0 if best == NOBODY else s.jobs[best].gpus


@kernel
def next_loan(s: State, room: int) -> int:
    """Best-ranked job that fits into `room`, or on a fast rung into what else is free."""
    best, left, rungs = NOBODY, room, s.pool[0].fast > 0
    if room <= 0 and not (rungs and widest_room(s, room) > 0):
        return best
    if rungs:
        count_rungs(s)
    for root in s.sizes:
        if root != NOBODY and rungs:
            left = room_on_rung(s, root, room)
        if root == NOBODY or s.jobs[root].gpus > left or (best != NOBODY and not heap_less(s.queue, root, best)):
            continue
        if s.jobs[root].firm == 0 or may_lend_firmly(s, root):
            best = root
    return best


@kernel
def start_early(s: State, j: int, now: float) -> None:
    s.jobs[j].state = RUNNING
    s.jobs[j].held = s.jobs[j].gpus
    s.jobs[j].since = now
    s.jobs[j].started_at = now
    s.pool[0].busy += s.jobs[j].gpus
    running_add(s, j)
    if s.jobs[j].firm:
        firm_begin(s, j)
    log(s, j, LOAN)


@kernel
def expand(s: State, now: float) -> None:
    """By largest predicted saving a GPU."""
    best = best_expansion(s, now)
    while best != NOBODY:
        more = min(spare(s), s.jobs[best].most - s.jobs[best].held)
        s.jobs[best].was = s.jobs[best].held
        if s.jobs[best].started_at < now:
            pause(s, best, now)
        s.jobs[best].held += more
        s.jobs[best].target = s.jobs[best].held
        s.pool[0].busy += more
        s.pool[0].extra += more
        s.pool[0].resizes += 1
        log(s, best, EXPAND)
        best = best_expansion(s, now)


@kernel
def best_expansion(s: State, now: float) -> int:
    best, best_gain, room = NOBODY, 0.0, spare(s)
    if room <= 0:
        return best
    for i in range(s.pool[0].runs):
        j = s.running[i]
        if s.jobs[j].state != RUNNING or s.jobs[j].leaving or s.jobs[j].most <= s.jobs[j].held:
            continue
        gain = gain_of(s, j, min(room, s.jobs[j].most - s.jobs[j].held), now)
        if gain > best_gain:
            best, best_gain = j, gain
    return best


@kernel
def gain_of(s: State, j: int, more: int, now: float) -> float:
    """Predicted seconds saved a GPU added; 0: leave the job as it is."""
    held, most = s.jobs[j].held, s.jobs[j].most
    if (more < held and held + more < most) or not may_expand(s, j, more, now):
        return 0.0
    gpus, power = s.jobs[j].gpus, s.jobs[j].speed_power
    rest = rest_of(s, j, now)
    saved = rest / speed_of(held, gpus, power) - rest / speed_of(held + more, gpus, power)
    if s.jobs[j].started_at < now:
        saved -= 2 * (s.jobs[j].reclaim_s + s.jobs[j].restore_s)
    return saved / more


@kernel
def may_expand(s: State, j: int, more: int, now: float) -> bool:
    """A running job must be able to pay for the pauses on the way out and back from its credit.

    A job that starts has no pause on the way out. On the way back it drains and restores, or starts afresh, whichever
    costs less. Where both cost the same, after (pause - done) / speed seconds, it is late by that time and what it had
    done before, less its credit; that must not exceed one reclaim time.
    """
    if not s.on[CREDIT]:
        return True
    pause_s, credit = s.jobs[j].reclaim_s + s.jobs[j].restore_s, credit_of(s, j, now)
    if s.jobs[j].started_at < now:
        return credit >= 2 * pause_s
    speed = speed_of(s.jobs[j].held + more, s.jobs[j].gpus, s.jobs[j].speed_power)
    done = service_of(s, j, now)
    worst = min(pause_s, done + max(0.0, pause_s - done) / speed)
    return credit >= 0.0 and worst - credit <= s.jobs[j].reclaim_s
