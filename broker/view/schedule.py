"""Grants, loans and reclaims, as text and JSON."""

from broker.commands.scheduling import Made
from broker.counted import number
from broker.schedule.explaining import Explained
from broker.schedule.orders import Order, Overdue, Part, PoolSchedule, Schedule
from broker.view.document import document
from broker.view.text import Paint, plain, table

_SIGNS = {
    "grant": ("+", "green"),
    "restart": ("+", "green"),
    "loan": ("~", "yellow"),
    "reclaim": ("-", "red"),
    "shrink": ("-", "red"),
    "expand": ("~", "yellow"),
}
_ALWAYS, _ELASTIC = ("grants", "loans", "reclaims"), ("shrinks", "expansions")


def schedule_text(made: Made, *, verbose: bool = False, paint: Paint = plain) -> str:
    """With `verbose`, tenants, loans in effect and classes of jobs too."""
    if made.explained:
        return explained_text(made.explained)
    found = made.schedule
    head = f"Observed {found.now:%Y-%m-%d %H:%M} UTC; lags are counted from {found.since:%Y-%m-%d %H:%M} UTC"
    blocks = [head, *found.notes, *(_pool(pool, verbose, paint) for pool in found.pools), _sum(found)]
    return "\n\n".join(blocks)


def _sum(found: Schedule) -> str:
    counts = {name: sum(len(getattr(pool, name)) for pool in found.pools) for name in (*_ALWAYS, *_ELASTIC)}
    shown = (name for name in counts if counts[name] or name in _ALWAYS)
    total = ", ".join(number(counts[name], name.removesuffix("s")) for name in shown)
    return f"Orders: {total}. Nothing was started or stopped; a scheduler carries orders out: docs/schedule.md"


def _pool(pool: PoolSchedule, verbose: bool, paint: Paint) -> str:
    if pool.undecided:
        return f"pool {pool.pool}: {paint('NOT DECIDED', 'yellow')}: {pool.undecided}"
    lines = [
        f"pool {pool.pool}: {pool.capacity_gpus} GPUs, {pool.busy_gpus} taken, {pool.claimed_gpus} claimed, "
        f"{pool.held_back_gpus} held back"
    ]
    if pool.short_gpus:
        lines.append(f"  {paint('!', 'red')} claims exceed the slots by {pool.short_gpus} GPUs: lags are not bounded")
    orders = [order for name in (*_ALWAYS, *_ELASTIC) for order in getattr(pool, name)]
    lines += [line for order in orders for line in _order(order, paint)]
    lines += [_overdue(each, paint) for each in pool.overdue]
    if not orders:
        lines.append("    nothing to do")
    lines += [f"  note: {note}" for note in pool.notes]
    return "\n".join([*lines, *(_details(pool) if verbose else [])])


def _order(order: Order, paint: Paint) -> list[str]:
    sign, colour = _SIGNS[order.kind]
    word = f"{order.kind:<8}" + ("" if order.new else f"(since {order.since:%H:%M:%S}) ")
    lag = f"lag {round(order.lag_s)} s"
    lines = [f"  {paint(sign, colour)} {word} {order.job}  {order.tenant}  {order.gpus} GPUs  {lag}"]
    if order.lenders:
        lines.append(f"      from {_parts(order.lenders)}")
    if order.nodes:
        lines.append(f"      on {', '.join(order.nodes)}")
    if order.places:
        lines.append(f"      could start on {', '.join(f'{spot.node} ({spot.gpus})' for spot in order.places)}")
    return [*lines, f"      {order.reason}"]


def _parts(parts: tuple[Part, ...]) -> str:
    return ", ".join(f"{part.tenant or 'nobody'} {part.gpus}" for part in parts)


def _overdue(each: Overdue, paint: Paint) -> str:
    return (
        f"  {paint('!', 'red')} overdue  {each.job}  {each.tenant}  {each.gpus} GPUs called back at "
        f"{each.since:%H:%M:%S} UTC and still held; {each.kind} does not borrow"
    )


def _details(pool: PoolSchedule) -> list[str]:
    blocks = []
    if pool.tenants:
        header = ["tenant", "promised", "may lend", "borrows", "owed", "held", "early", "lent", "queued"]
        rows = [
            [
                each.tenant,
                *map(str, (each.entitlement_gpus, each.may_lend_gpus)),
                "yes" if each.borrows else "no",
                *map(str, (each.owed_gpus, each.granted_gpus, each.early_gpus, each.lent_gpus, each.queued_jobs)),
            ]
            for each in pool.tenants
        ]
        blocks += ["", table(header, rows, right=frozenset({1, 2, 4, 5, 6, 7, 8}))]
    if pool.lent:
        rows = [[loan.job, loan.tenant, str(loan.gpus), _lenders(loan.own_gpus, loan.lenders)] for loan in pool.lent]
        blocks += ["", table(["runs early", "tenant", "GPUs", "on whose"], rows, right=frozenset({2}))]
    if pool.classes:
        rows = [
            [
                each.name,
                "yes" if each.borrows else "no",
                _measured(each.reclaim_s, each.reclaims),
                _measured(each.restore_s, each.restores),
            ]
            for each in pool.classes
        ]
        blocks += ["", table(["class of jobs", "may borrow", "reclaim", "restore"], rows)]
    return blocks


def _lenders(own: int, parts: tuple[Part, ...]) -> str:
    mine = f"its own {own}" if own else ""
    return ", ".join(part for part in (mine, _parts(parts)) if part) or "started by the scheduler: lent by nobody"


def _measured(seconds: float | None, count: int) -> str:
    return "not measured" if seconds is None else f"{seconds:.0f} s of {count} seen"


def explained_text(job: Explained) -> str:
    head = f"{job.job}  {job.tenant}  {job.gpus} GPUs  pool {job.pool}  class {job.class_name}"
    return "\n".join([head, *(f"  {line}" for line in job.sentences)])


def schedule_json(made: Made) -> str:
    if made.explained:
        return document("schedule_job", {"explained": made.explained})
    return document("schedule", {"schedule": made.schedule})
