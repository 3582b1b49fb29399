"""Claims: what owed jobs and late tenants are due, served in the order in which the claims were made."""

from broker.sia.columns import (
    AFRESH,
    DRAINING,
    ENTITLEMENT,
    GRANT,
    NEVER,
    NOBODY,
    ORDER,
    PARDONED,
    RESTART,
    RUNNING,
    TINY_S,
    State,
)
from broker.sia.compiling import kernel
from broker.sia.lists import log, retire_idle, running_add, waiting_remove
from broker.sia.shadow import hold_owed


@kernel
def settle_claims(s: State, now: float) -> None:
    """Jobs that have just become owed draw on what their tenant had claimed; then claims are looked at again."""
    serve_claims(s, now)
    note_lateness(s, now, -TINY_S)
    serve_claims(s, now)
    note_lateness(s, now, TINY_S)
    retire_idle(s)
    measure_claims(s)


@kernel
def serve_claims(s: State, now: float) -> None:
    free, wanted = s.pool[0].capacity - s.pool[0].busy, 0
    for i in range(s.pool[0].active):
        v = s.active[i]
        s.tenants[v].share = claim_of(s, v)
        wanted += s.tenants[v].share
    if wanted > free:
        share_in_order(s, max(0, free))
    for i in range(s.pool[0].active):
        grant(s, s.active[i], now)


@kernel
def claim_of(s: State, v: int) -> int:
    """All slots that the tenant has a claim on and does not hold."""
    if s.tenants[v].entitled_since < NEVER:
        return max(s.tenants[v].entitlement, s.tenants[v].owed) - s.tenants[v].granted
    wanted, j = 0, s.tenants[v].first_waiting
    while j != NOBODY:
        if s.jobs[j].waiting_since < NEVER:
            wanted += s.jobs[j].gpus
        j = s.jobs[j].waits_after
    return max(wanted, s.tenants[v].keep - s.tenants[v].granted)


@kernel
def share_in_order(s: State, room: int) -> None:
    """There is less than is claimed: the oldest claim first, and what it covers is nobody else's."""
    for i in range(s.pool[0].active):
        v = s.active[i]
        s.tenants[v].share = min(room, max(0, s.tenants[v].keep - s.tenants[v].granted))
        room -= s.tenants[v].share
        s.tenants[v].asked = 0
        s.tenants[v].cursor = s.tenants[v].first_waiting
    v = next_claimant(s)
    while v != NOBODY and room > 0:
        s.tenants[v].asked += claim_at_cursor(s, v)
        got = min(room, max(0, s.tenants[v].asked - s.tenants[v].share))
        s.tenants[v].share += got
        room -= got
        v = next_claimant(s)


@kernel
def next_claimant(s: State) -> int:
    best, best_since = NOBODY, NEVER
    for i in range(s.pool[0].active):
        v = s.active[i]
        since = since_at_cursor(s, v)
        if since == NEVER:
            continue
        newer = since > best_since or (since == best_since and v > best)
        older = since < best_since or (since == best_since and v < best)
        if best == NOBODY or (older if s.on[ORDER] else newer):
            best, best_since = v, since
    return best


@kernel
def since_at_cursor(s: State, v: int) -> float:
    """When the tenant's next claim was made; NEVER if it has none left. Cursor -2: all looked at."""
    j = s.tenants[v].cursor
    if j == -2:
        return NEVER
    if j != NOBODY and s.jobs[j].waiting_since < s.tenants[v].entitled_since:
        return s.jobs[j].waiting_since
    return s.tenants[v].entitled_since


@kernel
def claim_at_cursor(s: State, v: int) -> int:
    j = s.tenants[v].cursor
    if j != NOBODY and s.jobs[j].waiting_since < s.tenants[v].entitled_since:
        s.tenants[v].cursor = s.jobs[j].waits_after
        return s.jobs[j].gpus
    s.tenants[v].cursor = -2
    return max(s.tenants[v].entitlement, s.tenants[v].owed) - s.tenants[v].granted - s.tenants[v].asked


@kernel
def grant(s: State, v: int, now: float) -> None:
    """Start the tenant's owed jobs, in order, on its share; a draining one only if starting afresh is quicker."""
    j = s.tenants[v].first_waiting
    while j != NOBODY and s.jobs[j].gpus <= s.tenants[v].share:
        following = s.jobs[j].waits_after
        s.tenants[v].share -= s.jobs[j].gpus
        if s.jobs[j].state != DRAINING:
            start_owed(s, j, now, GRANT)
        elif s.on[RESTART] and s.jobs[j].service <= s.jobs[j].drained_at - now:
            s.pool[0].lost += s.jobs[j].service * s.jobs[j].gpus
            s.jobs[j].leaving = s.jobs[j].held
            s.jobs[j].service = 0.0
            start_owed(s, j, now, AFRESH)
        j = following


@kernel
def start_owed(s: State, j: int, now: float, kind: int) -> None:
    v = s.jobs[j].tenant
    waiting_remove(s, v, j)
    if not s.jobs[j].missed:
        note_sensitive(s, j, now, 0)
    s.jobs[j].state = RUNNING
    s.jobs[j].held = s.jobs[j].gpus
    s.jobs[j].since = now
    s.jobs[j].started_at = now
    s.pool[0].busy += s.jobs[j].gpus
    running_add(s, j)
    hold_owed(s, j, now)
    log(s, j, kind)


@kernel
def note_sensitive(s: State, j: int, now: float, missed: int) -> None:
    """Count the owed starts that a wait for slots would hurt: waited little in the shadow, and maybe short.

    One that no hold-back could have helped (PARDONED) wanted slots all the same, but says nothing of the hold-back.
    """
    kept_waiting = s.jobs[j].shadow_start - s.jobs[j].submit + s.jobs[j].quick_s
    if not s.pool[0].tolerance * kept_waiting < s.pool[0].pause_s:
        return
    window = now // s.pool[0].reach_s
    if window != s.pool[0].window:
        close_window(s)
        s.pool[0].window = window
    s.pool[0].window_gpus += s.jobs[j].gpus
    if missed != PARDONED:
        s.pool[0].sensitive += 1
        s.pool[0].missed += missed


@kernel
def close_window(s: State) -> None:
    """Write down how much the last reclaim time's sensitive owed starts wanted."""
    if s.pool[0].window_gpus > 0:
        s.wanted[min(s.pool[0].window_gpus, len(s.wanted) - 1)] += 1
        s.pool[0].window_gpus = 0


@kernel
def note_lateness(s: State, now: float, slack_s: float) -> None:
    """A tenant that is late while jobs stand behind it in its shadow queue claims its whole entitlement.

    What still waits when an instant is settled is late from then on (slack above 0); before that, it may yet be served.
    A job that becomes owed under such a claim inherits its age: else, when its late predecessor ends and with it the
    tenant's claim, it would have to queue behind claims that were made after the one which covered it.
    """
    s.pool[0].late_at = NEVER
    for i in range(s.pool[0].active):
        v = s.active[i]
        late = s.tenants[v].late > 0
        j = s.tenants[v].first_waiting
        while j != NOBODY:
            s.jobs[j].waiting_since = min(s.jobs[j].waiting_since, now, s.tenants[v].entitled_since)
            late_at = s.jobs[j].shadow_start + s.jobs[j].service
            if late_at <= now + slack_s:
                late = True
            else:
                s.pool[0].late_at = min(s.pool[0].late_at, late_at)
            j = s.jobs[j].waits_after
        if not (late and s.tenants[v].behind > 0 and s.on[ENTITLEMENT]):
            s.tenants[v].entitled_since = NEVER
        elif s.tenants[v].entitled_since == NEVER:
            s.tenants[v].entitled_since = now


@kernel
def note_misses(s: State, now: float) -> None:
    """Jobs that wait though they are owed. By how much claims exceed capacity, they would wait if nothing were lent."""
    beyond = s.pool[0].short
    if beyond > 0:
        beyond -= pardoned(s)
    for i in range(s.pool[0].active):
        j = s.tenants[s.active[i]].last_waiting
        while j != NOBODY:
            if not s.jobs[j].missed:
                s.jobs[j].missed = 1 if s.jobs[j].gpus > beyond else PARDONED
                note_sensitive(s, j, now, s.jobs[j].missed)
                if s.jobs[j].missed == PARDONED:
                    beyond -= s.jobs[j].gpus
            j = s.jobs[j].waits_before


@kernel
def pardoned(s: State) -> int:
    """GPUs of waiting jobs that have been pardoned before and still are beyond capacity."""
    gpus = 0
    for i in range(s.pool[0].active):
        j = s.tenants[s.active[i]].last_waiting
        while j != NOBODY:
            if s.jobs[j].missed == PARDONED:
                gpus += s.jobs[j].gpus
            j = s.jobs[j].waits_before
    return gpus


@kernel
def measure_claims(s: State) -> None:
    """Update the pool's `unmet`, `claimed` and `short`."""
    unmet, claimed = 0, s.pool[0].owed_all
    for i in range(s.pool[0].active):
        v = s.active[i]
        due = max(s.tenants[v].owed, s.tenants[v].keep)
        if s.tenants[v].entitled_since < NEVER:
            due = max(s.tenants[v].entitlement, s.tenants[v].owed)
        unmet += due - s.tenants[v].granted
        claimed += due - s.tenants[v].owed
    s.pool[0].unmet = unmet
    s.pool[0].claimed = claimed
    s.pool[0].short = max(0, claimed + s.pool[0].firm - s.pool[0].capacity)
