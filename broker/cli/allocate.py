"""Commands about who runs where and what will be needed: `schedule`, `forecast`."""

from pathlib import Path
from typing import Annotated

import typer

from broker.cli.common import Common, ProcsPerGpu, command
from broker.cli.completion import pools as pool_names


def add_to(app: typer.Typer) -> None:
    command(app, "schedule", ("broker schedule --json", "broker schedule q.csv --entitlement nlp=64 --explain 4711"))(
        _schedule
    )
    command(
        app, "forecast", ("broker forecast --pool h100 --hours 48", "broker forecast --accuracy --history sacct.txt")
    )(_forecast)


def _schedule(
    common: Common,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Queue files instead of the configured sources; nothing is remembered.")
    ] = None,
    pools: Annotated[
        list[str] | None, typer.Option("--pool", help="Only this pool; may be repeated.", autocompletion=pool_names)
    ] = None,
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
    """Who starts on what now, who borrows, and what to call back.

    Orders for a scheduler to carry out; the broker starts and stops nothing itself."""
    from broker.commands import scheduling
    from broker.schedule import supposing
    from broker.view.schedule import schedule_json, schedule_text

    wish = scheduling.Wish(
        files=tuple(files or ()),
        pools=tuple(pools or ()),
        entitlements=supposing.entitlements(entitlement or ()),
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


def _forecast(
    common: Common,
    pools: Annotated[
        list[str] | None, typer.Option("--pool", help="Only this pool; may be repeated.", autocompletion=pool_names)
    ] = None,
    hours: Annotated[int, typer.Option("--hours", min=1, max=672, help="How far ahead.")] = 24,
    accuracy: Annotated[
        bool, typer.Option("--accuracy", help="How good forecasts of the past would have been.")
    ] = False,
    history: Annotated[
        list[Path] | None, typer.Option("--history", help="A file of finished jobs; may be repeated.")
    ] = None,
    source_format: Annotated[
        str, typer.Option("--format", help="Of histories: auto, squeue, sacct, csv or jsonl.")
    ] = "auto",
    timezone: Annotated[str | None, typer.Option("--tz", help="Of times that carry none: Europe/Zurich.")] = None,
    processors: ProcsPerGpu = 0,
) -> None:
    """Quantiles of the GPUs that will be wanted, per pool.

    From the configured queue and from histories; with --accuracy, beside what a forecast has to beat."""
    from broker.commands import forecasting
    from broker.view.forecast import forecast_json, forecast_text

    wish = forecasting.Wish(
        files=tuple(history or ()),
        pools=tuple(pools or ()),
        hours=hours,
        accuracy=accuracy,
        source_format=source_format,
        timezone=timezone,
        procs_per_gpu=processors,
    )
    found = forecasting.forecast(common.path, wish, flags=common.flags)
    common.console.answer(forecast_json(found) if common.json else forecast_text(found))
