"""A plan as text, Markdown and JSON."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import msgspec

from broker.counted import number
from broker.model.job import JobState
from broker.model.plan import Action, Extend, Keep, NotTaken, Plan, Release, Reserve, Resize, Reversibility
from broker.model.policy import Policy
from broker.model.snapshot import Snapshot, Trust
from broker.view.document import document
from broker.view.ledger import refused_text
from broker.view.text import Paint, columns, least, markdown, money, plain, pool_text, rate, when

_GREY = frozenset({JobState.PENDING, JobState.HELD})
_SIGNS = {"reserve": ("+", "green"), "resize": ("~", "yellow"), "extend": ("~", "yellow"), "release": ("-", "red")}
_AND_WHY = 6


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen when the plan was made, in figures. `month_unpriced` reservations of the month have no known price;
    with any of them what was spent is None, and known only at least.
    """

    at: datetime
    queued_jobs: int
    pools: int
    offers: int
    reservations: int
    month_spent_usd: Decimal | None
    month_spent_usd_at_least: Decimal
    month_unpriced: int
    month_budget_usd: Decimal | None
    problems: tuple[str, ...]


def observed(snapshot: Snapshot, policy: Policy) -> Observed:
    return Observed(
        at=snapshot.now,
        queued_jobs=sum(job.state in _GREY for source in snapshot.sources for job in source.jobs),
        pools=len(policy.pools),
        offers=sum(len(view.offers) for view in snapshot.scopes),
        reservations=sum(not each.state.gone for view in snapshot.scopes for each in view.reservations),
        month_spent_usd=None if snapshot.spend.unpriced else snapshot.spend.month_usd,
        month_spent_usd_at_least=snapshot.spend.month_usd,
        month_unpriced=snapshot.spend.unpriced,
        month_budget_usd=policy.guards.max_usd_per_month,
        problems=tuple(_problems(snapshot)),
    )


def _problems(snapshot: Snapshot) -> list[str]:
    unread = [f"{source.source} ({source.trust})" for source in snapshot.sources if source.trust is not Trust.COMPLETE]
    listed = [f"{view.scope} ({view.trust})" for view in snapshot.scopes if view.trust is not Trust.COMPLETE]
    details = [line for source in snapshot.sources for line in source.problems]
    details += [line for view in snapshot.scopes for line in view.problems]
    return [f"not known for certain: {name}; nothing is released because of it" for name in unread + listed] + details


def plan_text(
    plan: Plan,
    seen: Observed,
    *,
    next_step: str = "",
    paint: Paint = plain,
    verbose: bool = False,
) -> str:
    """As `broker plan` shows it. `next_step` is what the reader may do now, empty where it is being asked."""
    blocks = [_header(seen), _problem_lines(seen, paint), _actions(plan, paint, verbose), _refused(plan, paint)]
    blocks += [_short(plan, paint, verbose), _notes(plan), _summary(plan, seen, next_step)]
    return "\n\n".join(block for block in blocks if block)


def _header(seen: Observed) -> str:
    counts = [number(seen.queued_jobs, "queued job"), number(seen.pools, "pool")]
    counts += [number(seen.offers, "offer"), number(seen.reservations, "reservation")]
    return f"Observed {when(seen.at)}: {', '.join(counts)}"


def _problem_lines(seen: Observed, paint: Paint) -> str:
    return "\n".join(f"  {paint('!', 'yellow')} {line}" for line in seen.problems)


def _actions(plan: Plan, paint: Paint, verbose: bool) -> str:
    shown = [action for action in plan.actions if verbose or not isinstance(action, Keep)]
    lines = columns([_cells(action) for action in shown], right=frozenset({4, 5, 6}))
    blocks = [
        "\n".join([_signed(action, line, paint), *_reasons(action)]) for action, line in zip(shown, lines, strict=True)
    ]
    kept = len(plan.actions) - len(plan.changes)
    if kept and not verbose:
        blocks.append(f"    keep     {number(kept, 'reservation')} (-v to list)")
    return "\n".join(blocks)


def _signed(action: Action, line: str, paint: Paint) -> str:
    sign, colour = _SIGNS.get(_verb(action), (" ", ""))
    return f"  {paint(sign, colour) if colour else sign} {line}"


def _reasons(action: Action) -> list[str]:
    return [f"{' ' * _AND_WHY}{reason.text}" for reason in action.reasons]


def _verb(action: Action) -> str:
    return str(action.__struct_config__.tag)


def _cells(action: Action) -> list[str]:
    """verb, what, where, GPUs, for how long, rate, idle at worst, how it can be undone or which one it is."""
    return [
        _verb(action).ljust(7),
        _what(action),
        _where(action),
        _gpus(action),
        f"{action.hours:.0f}h" if action.hours else "",
        "" if isinstance(action, Keep | Extend) else rate(action.usd_per_hour),
        money(action.usd_idle_at_worst) if action.usd_idle_at_worst else "",
        "  ".join(part for part in (_undo(action), _which(action)) if part),
    ]


def _what(action: Action) -> str:
    match action:
        case Reserve():
            return f"{action.request.count} x {action.request.machine_type}"
        case Resize():
            request = action.request
            return f"{request.from_count} -> {request.to_count} x {action.reservation.machine_type}"
        case _:
            return f"{action.reservation.count} x {action.reservation.machine_type}"


def _where(action: Action) -> str:
    return str(action.request.place if isinstance(action, Reserve) else action.reservation.place)


def _which(action: Action) -> str:
    return "" if isinstance(action, Reserve) else action.reservation.id


def _gpus(action: Action) -> str:
    match action:
        case Reserve():
            gpus, model = action.request.count * action.offer.shape.gpus, action.offer.shape.gpu_model
        case Resize():
            gpus = action.request.to_count * action.reservation.gpus_per_instance
            model = action.reservation.gpu_model or "GPU"
        case _:
            gpus, model = action.reservation.gpus, action.reservation.gpu_model or "GPU"
    return f"{gpus} {model.upper()}"


def _undo(action: Action) -> str:
    if isinstance(action, Extend):
        return f"until {when(action.request.to_end)}"
    if isinstance(action, Release | Keep) or (isinstance(action, Resize) and not action.request.grows):
        return ""
    match action.reversibility:
        case Reversibility.FREE:
            return "free to cancel"
        case Reversibility.COMMITTED:
            return f"committed until {when(action.committed_until)}"
        case Reversibility.IRREVERSIBLE:
            return "CANNOT be undone"


def _refused(plan: Plan, paint: Paint) -> str:
    return "\n".join(
        f"  {paint('x', 'red')} refused {refused_text(each)}{_way_out(each.guard, each.forceable)}"
        for each in plan.refusals
    )


def _way_out(guard: str, forceable: bool) -> str:
    return f" (--force {guard} overrides)" if forceable else ""


def _short(plan: Plan, paint: Paint, verbose: bool) -> str:
    """Demand that stays unserved, with each option and the rule that removed it; with `verbose` all options."""
    short = {shortfall.pool for shortfall in plan.shortfalls}
    lines = [
        f"  {paint('!', 'yellow')} {pool_text(each.pool)} stays {number(each.gpus, 'GPU')} short: {each.reason.text}"
        for each in plan.shortfalls
    ]
    return "\n".join(lines + _options([each for each in plan.not_taken if verbose or each.pool in short]))


def _options(not_taken: Sequence[NotTaken]) -> list[str]:
    rows = [[each.offer_id, each.reason.text] for each in not_taken]
    return [f"{' ' * _AND_WHY}not taken: {line}" for line in columns(rows)]


def _notes(plan: Plan) -> str:
    return "\n".join(f"  note: {note}" for note in plan.notes)


def saved_text(plan: Plan) -> str:
    """A plan that was made earlier: what it will do, without what was seen then."""
    blocks = [f"Plan {plan.id} of {when(plan.made)}", _actions(plan, plain, verbose=False), _counts(plan)]
    return "\n\n".join(block for block in blocks if block)


def _summary(plan: Plan, seen: Observed, next_step: str) -> str:
    return "\n".join(line for line in (_counts(plan), _money_line(plan, seen), next_step) if line)


def _counts(plan: Plan) -> str:
    of = {verb: sum(_verb(action) == verb for action in plan.actions) for verb in (*_SIGNS, "keep")}
    extend = f", {of['extend']} to extend" if of["extend"] else ""
    refused = f", {len(plan.refusals)} refused" if plan.refusals else ""
    counts = f"{of['reserve']} to reserve, {of['resize']} to resize{extend}, {of['release']} to release"
    return f"Plan: {counts}, {of['keep']} to keep{refused}."


def _money_line(plan: Plan, seen: Observed) -> str:
    change = sum((action.usd_per_hour or Decimal(0) for action in plan.changes), Decimal(0))
    idle = sum((action.usd_idle_at_worst for action in plan.changes), Decimal(0))
    unpriced = sum(action.usd_per_hour is None for action in plan.changes)
    beside = f", and {number(unpriced, 'change')} without a price" if unpriced else ""
    spent = f"{seen.at:%B}: {_spent(seen)}, {money(idle)} more committed"
    return f"Rate: {rate(change)}{beside}. Idle at worst {money(idle)}. {spent}{_of_budget(seen, idle)}."


def _spent(seen: Observed) -> str:
    figure = least(money(seen.month_spent_usd_at_least), unpriced=seen.month_unpriced > 0)
    return f"{figure} spent{f' ({seen.month_unpriced} without a price)' if seen.month_unpriced else ''}"


def _of_budget(seen: Observed, idle: Decimal) -> str:
    if not seen.month_budget_usd:
        return ""
    share = (seen.month_spent_usd_at_least + idle) / seen.month_budget_usd
    return f", of {money(seen.month_budget_usd)} ({least(f'{share:.0%}', unpriced=seen.month_unpriced > 0)})"


def how_to_act(plan: Plan, *, unread: bool = False, saved: Path | None = None, options: str = "") -> str:
    """`saved` is where it was written; `options` are those that lead to the same place."""
    if not plan.changes and unread:
        return "Nothing was decided where something could not be read: see what is marked above."
    if not plan.changes:
        return "Nothing to do." if not plan.refusals else "Nothing is left to do: all of it was refused."
    if saved:
        return f"Nothing was bought. To act: broker apply {saved}{options}"
    return f"Nothing was bought. To act: broker plan --out p.json{options} && broker apply p.json{options}"


def plan_json(plan: Plan, seen: Observed) -> str:
    return document("plan", {"observed": seen, "plan": plan})


def plan_markdown(plan: Plan, seen: Observed) -> str:
    header = ["Action", "What", "Where", "GPUs", "For", "Rate", "Idle at worst", "Note", "Why"]
    rows = [
        [cell.strip() for cell in _cells(action)] + ["<br>".join(reason.text for reason in action.reasons)]
        for action in plan.actions
    ]
    blocks = [f"**{_header(seen)}**", markdown(header, rows, right=frozenset({3, 4, 5, 6})) if rows else ""]
    blocks += [
        "\n".join(f"- {line}" for line in _markdown_notes(plan, seen)),
        _summary(plan, seen, "Nothing was bought."),
    ]
    return "\n\n".join(block for block in blocks if block)


def _markdown_notes(plan: Plan, seen: Observed) -> list[str]:
    refused = [f"refused {refused_text(each)}" for each in plan.refusals]
    short = [f"{pool_text(each.pool)} stays {number(each.gpus, 'GPU')} short: {each.reason.text}"
             for each in plan.shortfalls]  # fmt: skip
    not_taken = [f"not taken: `{each.offer_id}`: {each.reason.text}" for each in plan.not_taken]
    return [*seen.problems, *refused, *short, *not_taken, *plan.notes]
