"""Firm loans: to jobs that cannot be called back, where they will most likely have ended before their slots are owed.

A firm loan is outside the promise: its slots do not count as capacity. It is *missed* when claims come to exceed the
capacity without it while it runs and is not owed itself. It is made only if claims, what they may rise by while the job
runs, and a correction leave its slots over. The rise is the (1 - share) quantile of those seen after moments at which
a firm loan was thought of. The correction is online risk control (Gibbs and Candes 2021): each miss raises it, each
loan that went well lowers it; and every loan that is under way is reckoned as if it had missed. So at all times
misses <= share x loans judged + `allowance`, whatever was forecast. At the largest correction none is made any more.
"""

from broker.sia.columns import NEVER, NOBODY, State
from broker.sia.compiling import kernel

FEWEST_ALLOWED = 20
UNSEEN, OPEN, WELL, MISSED = 0, 1, 2, 3  # Job.firm_loan
_BEYOND_S = 1e10  # no horizon is so long, and a forecast so wide says nothing
_LOG_NORMAL = 1.283  # 95% quantile of a log-normal in units of (median - 10% quantile)


@kernel
def firm_wanted(s: State, j: int) -> bool:
    return s.jobs[j].firm > 0 and s.pool[0].firm_share > 0.0


@kernel
def may_lend_firmly(s: State, j: int) -> bool:
    """Whether the odds are good enough, as far as is known."""
    pool = s.pool[0]
    step = firm_step(s)
    if not pool.firm_share > 0.0 or pool.firm_correction + step * (pool.firm_open + 1) > pool.capacity:
        return False
    longest = longest_of(s, j)
    for k in range(len(s.horizons)):
        if s.horizons[k].length_s >= longest:
            needed = pool.claimed + s.horizons[k].rise + pool.firm_correction
            return bool(needed + pool.firm + s.jobs[j].gpus <= min(pool.capacity, pool.goal))
    return False


def shut_off(s: State) -> bool:
    """Whether misses have ended all firm loans; none is under way whose end could lower the correction."""
    pool = s.pool[0]
    return pool.firm_open == 0 and pool.firm_correction + firm_step(s) > pool.capacity


@kernel
def firm_step(s: State) -> float:
    """GPUs by which a miss raises the correction: an allowance of a tenth of the slots, and at least a few."""
    return s.pool[0].capacity / max(FEWEST_ALLOWED, s.pool[0].capacity // 10)


@kernel
def longest_of(s: State, j: int) -> float:
    """What the job will hardly run longer than, in seconds; NEVER where the forecast is of no use."""
    quick, typical = s.jobs[j].quick_s, s.jobs[j].typical_s
    if not 0.0 < quick < NEVER or not 0.0 < typical < _BEYOND_S or typical > quick * _BEYOND_S:
        return NEVER
    return float(max(typical, typical * (typical / quick) ** _LOG_NORMAL))


@kernel
def firm_begin(s: State, j: int) -> None:
    """The job starts early. One that the scheduler started of its own accord is no loan of ours to be judged."""
    s.pool[0].firm += s.jobs[j].gpus
    if s.jobs[j].firm_loan == UNSEEN:
        s.jobs[j].firm_loan = OPEN
        s.pool[0].firm_open += 1


@kernel
def firm_over(s: State, j: int) -> None:
    """The job has ended, or is owed its slots itself."""
    s.pool[0].firm -= s.jobs[j].gpus
    if s.jobs[j].firm_loan == OPEN:
        firm_judge(s, j, 0)
    elif s.jobs[j].firm_loan == MISSED:
        s.pool[0].firm_in_the_way -= s.jobs[j].gpus


@kernel
def firm_again(s: State, j: int) -> None:
    """A roll-back of the shadow takes back that the job is owed."""
    s.pool[0].firm += s.jobs[j].gpus
    if s.jobs[j].firm_loan == MISSED:
        s.pool[0].firm_in_the_way += s.jobs[j].gpus


@kernel
def firm_judge(s: State, j: int, missed: int) -> None:
    pool = s.pool[0]
    s.jobs[j].firm_loan = MISSED if missed else WELL
    correction = pool.firm_correction + firm_step(s) * (missed - pool.firm_share)
    s.pool[0].firm_correction = max(-float(pool.capacity), min(float(pool.capacity), correction))
    s.pool[0].firm_open -= 1
    s.pool[0].firm_judged += 1
    s.pool[0].firm_missed += missed


@kernel
def firm_look(s: State, now: float) -> None:
    """After claims were measured: which firm loans are in the way of a claim, the latest first; and what claims did."""
    pool = s.pool[0]
    in_the_way = min(pool.firm, pool.claimed + pool.firm - pool.capacity)
    while s.pool[0].firm_in_the_way < in_the_way:
        j = latest_firm(s)
        if j == NOBODY:
            break
        s.pool[0].firm_in_the_way += s.jobs[j].gpus
        if s.jobs[j].firm_loan == OPEN:
            firm_judge(s, j, 1)
        s.jobs[j].firm_loan = MISSED
    for k in range(len(s.horizons)):
        if s.horizons[k].since < NEVER:
            watch(s, k, now)


@kernel
def latest_firm(s: State) -> int:
    best = NOBODY
    for i in range(s.pool[0].runs):
        j = s.running[i]
        if s.jobs[j].firm == 0 or s.jobs[j].shadow_start < NEVER or s.jobs[j].firm_loan == MISSED:
            continue
        if best == NOBODY or (s.jobs[j].started_at, j) > (s.jobs[best].started_at, best):
            best = j
    return best


@kernel
def watch(s: State, k: int, now: float) -> None:
    """The largest claims of a span; when it is over, the quantile of rises moves towards what was seen."""
    if now >= s.horizons[k].since + s.horizons[k].length_s:
        rise = float(s.horizons[k].top - s.horizons[k].level)
        known = s.horizons[k].rise
        if known == NEVER:
            s.horizons[k].rise = rise
        else:
            over = 1.0 if rise > known else 0.0
            moved = known + firm_step(s) * (over - s.pool[0].firm_share)
            s.horizons[k].rise = min(max(0.0, moved), max(rise, known))
        s.horizons[k].since = NEVER
    else:
        s.horizons[k].top = max(s.horizons[k].top, s.pool[0].claimed)


@kernel
def think_of_firm_loans(s: State, now: float) -> None:
    """There are slots to lend; where a job waits that cannot be called back, see how claims go on from here."""
    waits = False
    for root in s.sizes:
        if root != NOBODY and s.jobs[root].firm > 0:
            waits = True
    for k in range(len(s.horizons)):
        if waits and s.horizons[k].since == NEVER:
            s.horizons[k].since = now
            s.horizons[k].level = s.pool[0].claimed
            s.horizons[k].top = s.pool[0].claimed
