"""Commands that may spend or free money, and `plan`, which shows what they would do."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.common import Common, command, interactive
from broker.cli.completion import clouds, pools, reservation_ids, tenants
from broker.cli.telling import Telling

if TYPE_CHECKING:
    from broker.cli.asking import Asking
    from broker.commands.acting import Confirm, Limits

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
LockTimeout = Annotated[
    str | None, typer.Option(metavar="30s", help="How long to wait for another run.  [env var: BROKER_LOCK_TIMEOUT]")
]
Force = Annotated[list[str] | None, typer.Option(metavar="GUARD", help="Override this guard; budgets cannot be.")]


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """What may be done beyond the configuration, or less than it allows."""

    max_hourly: Annotated[
        str | None, typer.Option(metavar="USD", help="A lower hourly limit.  [env var: BROKER_MAX_HOURLY]")
    ] = None
    allow_irreversible: Annotated[
        bool, typer.Option("--allow-irreversible", help="Also buy what cannot be undone.")
    ] = False
    lock_timeout: LockTimeout = None
    force: Force = None

    def flags(self, common: Common) -> dict[str, str]:
        given = {"max_hourly": self.max_hourly, "lock_timeout": self.lock_timeout}
        return common.flags | {name: value for name, value in given.items() if value}

    def limits(self) -> "Limits":
        from broker.commands.acting import Limits

        return Limits(force=frozenset(self.force or ()), allow_irreversible=self.allow_irreversible)


class PlanFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    MD = "md"


def add_to(app: typer.Typer) -> None:
    command(app, "plan", ("broker plan", "broker plan --out p.json --pool h100 --detailed-exitcode"))(_plan)
    command(app, "apply", ("broker apply", "broker plan --out p.json && broker apply p.json --yes"))(_apply)
    command(app, "run", ("broker run", "broker run --dry-run --max-seconds 240"))(_run)
    command(app, "release", ("broker release cr-0123456789abcdef0", "broker release --all-ours --yes"))(_release)


def _plan(
    common: Common,
    out: Annotated[Path | None, typer.Option(help="Save the plan for `broker apply FILE`.")] = None,
    pool: Annotated[list[str] | None, typer.Option(help="Only these pools.", autocompletion=pools)] = None,
    tenant: Annotated[
        list[str] | None, typer.Option(help="Only what is for these tenants.", autocompletion=tenants)
    ] = None,
    provider: Annotated[list[str] | None, typer.Option(help="Only these clouds.", autocompletion=clouds)] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="As if it were then.")] = None,
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit 2 for changes.")] = False,
    how: Annotated[PlanFormat, typer.Option("--format", help="How to write it.")] = PlanFormat.TEXT,
) -> int:
    """What would be bought, changed or released, why, at what cost.

    Changes nothing: requests that are not settled are settled in memory, and no lock is taken.
    """
    from broker.commands import planning
    from broker.commands.workplace import workplace
    from broker.view.plan import how_to_act, observed, plan_json, plan_markdown, plan_text

    narrowing = planning.Narrowing.of(pool or (), tenant or (), provider or ())
    with workplace(common.path, flags=common.flags, read_only=True) as place:
        made = planning.plan(place, narrowing, at=at, out=out)
    console, seen = common.console, observed(made.snapshot, made.policy)
    match PlanFormat.JSON if common.json else how:
        case PlanFormat.JSON:
            console.answer(plan_json(made.plan, seen))
        case PlanFormat.MD:
            console.answer(plan_markdown(made.plan, seen))
        case PlanFormat.TEXT:
            config = "" if common.config is None else f" -c {common.config}"
            unread = planning.unread(made.snapshot)
            then = how_to_act(made.plan, unread=bool(unread), saved=out, options=config)
            text = plan_text(made.plan, seen, next_step=then, paint=console.paint, verbose=console.verbose)
            console.answer(text)
    return planning.exit_code(made, detailed=detailed_exitcode)


def _apply(
    common: Common,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A saved plan: exactly it is done.")] = None,
    *,
    yes: Yes = False,
    allowed: Allowed,
) -> int:
    """Plan, ask, act; with FILE, exactly that plan."""
    from broker.commands import acting
    from broker.commands.workplace import workplace

    asking, tell, limits = _asking(common, yes), Telling(common.console), allowed.limits()
    with workplace(common.path, flags=allowed.flags(common)) as place:
        if file is not None:
            return tell.ended(acting.apply_file(place, tell, _confirm(asking), limits, file))
        asking.possible()
        return tell.ended(acting.apply_now(place, tell, _confirm(asking), limits))


def _run(
    common: Common,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    max_seconds: Annotated[float | None, typer.Option(min=1, metavar="S", help="Send nothing new after S.")] = None,
    *,
    allowed: Allowed,
) -> int:
    """For cron: settle, observe, plan, guard, apply; never asks."""
    from broker.commands import acting
    from broker.commands.deadline import at_most
    from broker.commands.workplace import workplace

    tell, flags = Telling(common.console), allowed.flags(common)
    with at_most(max_seconds), workplace(common.path, flags=flags, read_only=dry_run) as place:
        return tell.ended((acting.rehearse if dry_run else acting.run)(place, tell, allowed.limits()))


def _release(
    common: Common,
    reservation: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="What to give back.", autocompletion=reservation_ids)
    ] = None,
    all_ours: Annotated[bool, typer.Option("--all-ours", help="Everything that this state bought.")] = False,
    yes: Yes = False,
    lock_timeout: LockTimeout = None,
    force: Force = None,
) -> int:
    """Give reservations back."""
    from broker.commands import acting
    from broker.commands.workplace import workplace
    from broker.errors import UsageError

    if bool(reservation) == all_ours:
        raise UsageError("name what to release", next_step="Give either IDs or --all-ours")
    asking, tell = _asking(common, yes), Telling(common.console)
    allowed = Allowed(lock_timeout=lock_timeout, force=force)
    with workplace(common.path, flags=allowed.flags(common)) as place:
        if not acting.unheard_of(place, reservation or ()):
            asking.possible()
        confirm, limits = _confirm(asking), allowed.limits()
        return tell.ended(acting.release(place, tell, confirm, limits, reservation or (), all_ours=all_ours))


def _asking(common: Common, yes: bool) -> "Asking":
    from broker.cli.asking import Asking

    return Asking(common.console, yes=yes, interactive=interactive() and not common.json)


def _confirm(asking: "Asking") -> "Confirm":
    from broker.commands.planning import Planned
    from broker.model.plan import Plan
    from broker.view.plan import observed, plan_text, saved_text

    def confirm(plan: Plan, made: Planned | None) -> bool:
        shown = plan_text(plan, observed(made.snapshot, made.policy)) if made else saved_text(plan)
        return asking.confirmed(shown, "Do this?")

    return confirm
