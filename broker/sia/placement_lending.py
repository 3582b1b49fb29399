"""Lending cells: queued jobs start early where they fit, elastic jobs grow in place; called back for the hold-back."""

from broker.sia.columns import CREDIT, EXPAND, GUARD, LOAN, NEVER, NOBODY, RUNNING, State
from broker.sia.heap import heap_less
from broker.sia.lending import credit_of, gain_of, largest_early, most_expanded, pause
from broker.sia.lists import log, queue_leave, running_add
from broker.sia.placement import Cell, Cells
from broker.sia.placement_claims import shrink, stop
from broker.sia.placement_state import Nodes
from broker.sia.shadow import service_of


def keep_free(s: State, n: Nodes, now: float) -> bool:
    """Call back what the hold-back wants, before anybody is owed it. True if slots came free at once."""
    freed = False
    while s.on[GUARD] and n.free_for_loans() + n.coming(s) < s.pool[0].hold:
        j = most_expanded(s, 0.0, now)
        if j != NOBODY and shrink(s, n, j, now):
            freed = True
        elif j == NOBODY:
            j = largest_early(s, 0, now)
            if j == NOBODY:
                break
            stop(s, n, j, now)
    return freed


def lend(s: State, n: Nodes, now: float) -> None:
    """Best-ranked first, skipping what fits nowhere; what is left is for elastic jobs."""
    j, cells = next_loan(s, n)
    while j != NOBODY:
        queue_leave(s, j)
        start_early(s, n, j, cells, now)
        j, cells = next_loan(s, n)
    if s.pool[0].elastic > 0:
        use_elastic(s, n, now)


def next_loan(s: State, n: Nodes) -> tuple[int, Cells]:
    room = n.free_for_loans() - s.pool[0].hold
    best, where = NOBODY, Cells()
    for root in s.sizes if room > 0 else ():
        if root == NOBODY or (best != NOBODY and heap_less(s.queue, best, root)):
            continue
        slots = n.slots(s.jobs[root].gpus)
        cells = n.floor.room(slots) if slots <= room else ()
        if cells:
            best, where = root, cells
    return best, where


def start_early(s: State, n: Nodes, j: int, cells: Cells, now: float) -> None:
    job = s.jobs[j]
    n.floor.settle(j, cells)
    job.state, job.held, job.since, job.started_at = RUNNING, job.gpus, now, now
    running_add(s, j)
    log(s, j, LOAN)


def use_elastic(s: State, n: Nodes, now: float) -> None:
    """Shrink jobs that are ahead for one that waits; else make jobs larger."""
    wanted = slots_wanted(s, n)
    spare = n.free_for_loans() - s.pool[0].hold
    best = most_expanded(s, 0.0, now)
    while best != NOBODY and 0 < wanted - spare - n.coming(s) <= n.extra(s):
        shrink(s, n, best, now)
        spare = n.free_for_loans() - s.pool[0].hold
        best = most_expanded(s, 0.0, now)
    if spare > 0 and (wanted == 0 or wanted > spare + n.coming(s) + n.extra(s)):
        expand(s, n, now)


def slots_wanted(s: State, n: Nodes) -> int:
    """Slots of the job that would start early next; 0 if none waits."""
    best = NOBODY
    for root in s.sizes:
        if root != NOBODY and (best == NOBODY or heap_less(s.queue, root, best)):
            best = root
    return 0 if best == NOBODY else n.slots(s.jobs[best].gpus)


def expand(s: State, n: Nodes, now: float) -> None:
    """By largest predicted saving a GPU."""
    best, cells = best_expansion(s, n, now)
    while best != NOBODY:
        grow(s, n, best, cells, now)
        best, cells = best_expansion(s, n, now)


def grow(s: State, n: Nodes, j: int, cells: Cells, now: float) -> None:
    job = s.jobs[j]
    n.note_least(j, service_of(s, j, now))
    job.was = job.held
    if job.started_at < now:
        pause(s, j, now)
    more = min(job.most, sum(cell.width for cell in cells)) - job.held
    job.held += more
    job.target = job.held
    n.floor.widen(j, cells)
    s.pool[0].extra += more
    s.pool[0].resizes += 1
    log(s, j, EXPAND)


def best_expansion(s: State, n: Nodes, now: float) -> tuple[int, Cells]:
    best, best_gain, where = NOBODY, 0.0, Cells()
    room = n.free_for_loans() - s.pool[0].hold
    for j in s.running[: s.pool[0].runs] if room > 0 else ():
        job = s.jobs[j]
        if job.state != RUNNING or job.leaving or job.most <= job.held or job.held > job.gpus or j in n.waiting:
            continue  # one that is owed and not at home has to pay for going there
        if s.on[CREDIT] and job.shadow_start < NEVER and job.service > 0 and credit_of(s, j, now) < job.restore_s:
            continue  # starting afresh would not be cheap any more: a pause has to fit into its credit and one reclaim
        cells = larger(n, n.floor.base[j], n.slots(job.most), room)
        more = min(job.most, sum(cell.width for cell in cells)) - job.held
        gain = gain_of(s, j, more, now) if more > 0 else 0.0
        if gain > best_gain:
            best, best_gain, where = j, gain, cells
    return best, where


def larger(n: Nodes, base: Cells, most: int, room: int) -> Cells:
    """The largest place around a job's own, of at most so many slots; what it has if there is none."""
    cells, size, loans = base, n.size, n.floor.loans
    while cells[0].width < min(size, most):
        node, offset, width = cells[0]
        wider = Cell(node, offset & ~width, 2 * width)
        beside = wider.mask & ~cells[0].mask
        if loans.used[node] & beside or 2 * width - base[0].width > room:
            return cells
        cells = (wider,)
    if most > size:
        room -= size * len(cells) - sum(cell.width for cell in base)
        count = min(room // size, most // size - len(cells))
        whole = loans.lists[-1][: max(0, count)]
        cells = (*cells, *(Cell(node, 0, size) for node in whole))
    return cells
