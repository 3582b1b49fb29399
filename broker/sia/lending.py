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
from broker.sia.heap import heap_less, heap_push
from broker.sia.lists import log, queue_leave, running_add, running_remove
from broker.sia.shadow import service_of


@kernel
def spare(s: State) -> int:
    """Free slots that no claim and no hold-back covers; negative: so many are missing."""
    return min(s.pool[0].capacity, s.pool[0].goal) - s.pool[0].busy - s.pool[0].unmet - s.pool[0].hold


@kernel
def reclaim(s: State, now: float) -> None:
    """Call slots back for claims, and before them for the hold-back."""
    if not s.on[GUARD]:
        return
    held = s.pool[0].capacity - min(
        s.pool[0].capacity, s.pool[0].goal
    )  # to be given back, but nobody is stopped for it
    while spare(s) + held + s.pool[0].coming < 0:
        j = most_expanded(s)
        if j != NOBODY:
            take_back_extra(s, j, now)
            continue
        j = cheapest_early(s, now)
        if j == NOBODY:
            return
        preempt(s, j, now)


@kernel
def most_expanded(s: State) -> int:
    best, gain = NOBODY, 0
    if s.pool[0].extra == 0:
        return best
    for i in range(s.pool[0].runs):
        j = s.running[i]
        extra = s.jobs[j].target - s.jobs[j].gpus if s.jobs[j].state == RESIZING else s.jobs[j].held - s.jobs[j].gpus
        if extra > gain:
            best, gain = j, extra
    return best


@kernel
def take_back_extra(s: State, j: int, now: float) -> None:
    """Shrink to what the job asked for; slots that it has not yet come to use are free at once."""
    gpus = s.jobs[j].gpus
    if s.jobs[j].state == RESIZING:
        s.pool[0].busy -= s.jobs[j].held - s.jobs[j].was
        s.pool[0].extra -= s.jobs[j].target - gpus
        s.jobs[j].held = s.jobs[j].was
    else:
        s.pool[0].extra -= s.jobs[j].held - gpus
        pause(s, j, now)
    s.jobs[j].target = gpus
    s.pool[0].coming += s.jobs[j].held - gpus
    log(s, j, SHRINK)


@kernel
def pause(s: State, j: int, now: float) -> None:
    """Write a checkpoint and give way: no progress until drained, and the restore has to be done."""
    service = service_of(s, j, now)
    cut = service - s.jobs[j].restore_s
    s.jobs[j].service = max(0.0, cut) if s.on[RESTORE] else cut
    s.jobs[j].drained_at = now + s.jobs[j].reclaim_s
    s.pool[0].lost += s.jobs[j].held * (s.jobs[j].reclaim_s + service - s.jobs[j].service)
    s.jobs[j].state = RESIZING
    s.pool[0].drains = heap_push(s.drains, s.pool[0].drains, j, s.jobs[j].drained_at, 0.0)


@kernel
def cheapest_early(s: State, now: float) -> int:
    """The early job whose reclaim loses least work a GPU; of equal ones the one that started last."""
    best, best_loss, best_start = NOBODY, NEVER, 0.0
    for i in range(s.pool[0].runs):
        j = s.running[i]
        if s.jobs[j].shadow_start < NEVER or not s.jobs[j].lendable:
            continue
        loss = 0.0 if s.pool[0].latest_first else min(s.jobs[j].restore_s, service_of(s, j, now))
        if loss < best_loss or (loss == best_loss and s.jobs[j].started_at >= best_start):
            best, best_loss, best_start = j, loss, s.jobs[j].started_at
    return best


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
    """Queued jobs of any tenant start early; what is left makes elastic jobs larger."""
    best = next_loan(s, spare(s))
    while best != NOBODY:
        queue_leave(s, best)
        start_early(s, best, now)
        best = next_loan(s, spare(s))
    wanted = slots_wanted(s)
    while s.pool[0].extra > 0 and 0 < wanted - spare(s) - s.pool[0].coming <= s.pool[0].extra:
        take_back_extra(s, most_expanded(s), now)
    if spare(s) > 0 and (wanted == 0 or wanted > spare(s) + s.pool[0].coming + s.pool[0].extra):
        expand(s, now)


@kernel
def slots_wanted(s: State) -> int:
    """GPUs of the job that would start early next; 0 if none waits."""
    best = next_loan(s, s.pool[0].capacity)
    return 0 if best == NOBODY else s.jobs[best].gpus


@kernel
def next_loan(s: State, room: int) -> int:
    """Best-ranked job that fits into `room`."""
    best = NOBODY
    if room <= 0:
        return best
    for root in s.sizes:
        if root != NOBODY and s.jobs[root].gpus <= room and (best == NOBODY or heap_less(s.queue, root, best)):
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
    log(s, j, LOAN)


@kernel
def expand(s: State, now: float) -> None:
    """By largest predicted saving a GPU. A job must be able to pay for the way out and back from its credit."""
    best = best_expansion(s, now)
    while best != NOBODY:
        more = min(spare(s), s.jobs[best].most - s.jobs[best].held)
        s.jobs[best].was = s.jobs[best].held
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
    """Seconds saved a GPU added, if as much work is left as predicted, or as was done (heavy tails); 0: leave it."""
    done, pause_s = service_of(s, j, now), s.jobs[j].reclaim_s + s.jobs[j].restore_s
    behind = max(0.0, now - s.jobs[j].shadow_start)  # 0 when not owed
    if s.on[CREDIT] and done - behind < 2 * pause_s:
        return 0.0
    if more < s.jobs[j].held and s.jobs[j].held + more < s.jobs[j].most:
        return 0.0
    held, gpus, power = s.jobs[j].held, s.jobs[j].gpus, s.jobs[j].speed_power
    slow, fast = speed_of(held, gpus, power), speed_of(held + more, gpus, power)
    typical = s.jobs[j].typical_s
    rest = max(done, typical - done) if 0 < typical < NEVER else done
    saved = rest / slow - rest / fast - 2 * pause_s
    return saved / more
