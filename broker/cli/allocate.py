"""Commands about who runs where and what will be needed: `schedule`, `forecast`."""

from pathlib import Path
from typing import Annotated

import typer

from broker.cli.common import Common, command


def add_to(app: typer.Typer) -> None:
    command(app, "schedule", ("broker schedule --json", "broker schedule q.csv --entitlement nlp=64 --explain 4711"))(
        _schedule
    )


def _schedule(
    common: Common,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Queue files instead of the configured sources; nothing is remembered.")
    ] = None,
    pools: Annotated[list[str] | None, typer.Option("--pool", help="Only this pool; may be repeated.")] = None,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="JOB", help="All that is known of one job, and why.")
    ] = None,
    entitlement: Annotated[
        list[str] | None,
        typer.Option("--entitlement", metavar="TENANT=GPUS", help="Suppose this instead of what is configured."),
    ] = None,
    capacity: Annotated[int | None, typer.Option("--capacity", min=0, help="Suppose so many GPUs.")] = None,
    look: Annotated[bool, typer.Option("--look", help="Only look: remember nothing of what is ordered.")] = False,
    trust: Annotated[
        list[str] | None, typer.Option("--trust", metavar="CLASS", help="Let a class of jobs borrow again.")
    ] = None,
    begin_again: Annotated[
        bool, typer.Option("--begin-again", help="Forget the past; lags are counted from now on.")
    ] = False,
) -> int:
    """Say who starts on what now, who borrows from whom, and what to call back.

    Orders for a scheduler to carry out; the broker starts and stops nothing itself."""
    from broker import scheduling
    from broker.backtest.command import parse_entitlements
    from broker.view.schedule import schedule_json, schedule_text

    wish = scheduling.Wish(
        files=tuple(files or ()),
        pools=tuple(pools or ()),
        entitlements=parse_entitlements(entitlement or []),
        capacity=capacity,
        explain=explain,
        keep=not look,
        begin_again=begin_again,
        trust=tuple(trust or ()),
    )
    made = scheduling.schedule(common.path, wish, flags=common.flags)
    console = common.console
    text = schedule_json(made) if common.json else schedule_text(made, verbose=console.verbose, paint=console.paint)
    console.answer(text)
    return made.exit_code
