"""`backtest`: a job trace under SIA and the baselines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.common import Common, command

if TYPE_CHECKING:
    from broker.model.job import Job


def add_to(app: typer.Typer) -> None:
    command(app, "backtest", ("broker backtest trace.csv.gz --html page.html", "broker backtest --synthetic 1 --json"))(
        _backtest
    )


def _backtest(
    common: Common,
    trace: Annotated[Path | None, typer.Argument(help="Columns, SWF, Helios or Philly; plain or gzip.")] = None,
    how: Annotated[
        str, typer.Option("--format", help="auto, columns, swf, helios, philly, csv, or a format of `broker jobs`.")
    ] = "auto",
    synthetic: Annotated[
        int | None, typer.Option("--synthetic", help="Seed of a made-up trace; used too where there is no history.")
    ] = None,
    entitlement: Annotated[
        list[str] | None, typer.Option("--entitlement", help="TENANT=GPUS, once a tenant; default: from the trace.")
    ] = None,
    entitlement_quantile: Annotated[
        float, typer.Option("--entitlement-quantile", min=0.0, max=1.0, help="Of each tenant's own concurrency.")
    ] = 0.90,
    reclaim: Annotated[float, typer.Option("--reclaim", min=0.0, help="Seconds that calling a job back takes.")] = 60.0,
    restore: Annotated[float, typer.Option("--restore", min=0.0, help="Seconds that a restore costs.")] = 120.0,
    lead: Annotated[float, typer.Option("--lead", min=0.0, help="Seconds until bought capacity arrives.")] = 600.0,
    failure: Annotated[
        float, typer.Option("--failure", min=0.0, max=1.0, help="Probability that a purchase brings nothing.")
    ] = 0.0,
    elastic: Annotated[int, typer.Option("--elastic", min=1, help="Jobs run on up to so many times their GPUs.")] = 1,
    forecast: Annotated[
        str, typer.Option("--forecast", help="rolling or learned: of the rises of demand.")
    ] = "rolling",
    quantile: Annotated[
        float | None,
        typer.Option("--quantile", min=0.0, max=1.0, help="Of the rises of demand to cover: 0.9; learned: 0.98."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option("--horizon", min=1, help="Hours within which demand may rise: 8; learned: 2.")
    ] = None,
    days: Annotated[float, typer.Option("--days", min=0.1, help="Days of rises to look at.")] = 7.0,
    share: Annotated[
        float | None, typer.Option("--share", min=0.0, help="Of running and queued GPUs to cover: 0.9; learned: 0.85.")
    ] = None,
    term: Annotated[float, typer.Option("--term", min=0.0, help="Seconds that bought capacity has to be kept.")] = 0.0,
    insurance: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            "--insurance",
            metavar="FAILURE MISSED LENT",
            help="Sets --quantile: probability that an unreserved launch fails; in prices of a GPU-hour, the cost of "
            "one that is owed and missing, and the value of one lent.",
        ),
    ] = None,
    misses: Annotated[
        float, typer.Option("--misses", min=0.0, max=1.0, help="Share of sensitive starts that may wait for a reclaim.")
    ] = 0.003,
    fixed: Annotated[bool, typer.Option("--fixed", help="Hold all that is promised, all the time.")] = False,
    ablations: Annotated[bool, typer.Option("--ablations", help="Also SIA with one part off, for each part.")] = False,
    frontier: Annotated[bool, typer.Option("--frontier", help="Also what each cost from 0.40 to 0.70 buys.")] = False,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of SIA that differ in which purchases fail.")] = 1,
    analyse: Annotated[bool, typer.Option("--analyse", help="What static allocation leaves idle, by tenant.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Policies to replay side by side.")] = 1,
    html: Annotated[Path | None, typer.Option("--html", help="Write one page with plots.")] = None,
) -> int:
    """Replay a job trace: latency, slowdown and cost under SIA, static shares and naive sharing.

    Without TRACE and --synthetic, the history of the state is replayed if there is one.
    Times in seconds. Nothing is bought and no cloud is asked."""
    from broker.backtest import command as backtest
    from broker.backtest.analysis import analyse as use_of
    from broker.backtest.insurance import quantile_to_hold
    from broker.backtest.page import as_html, as_text, use_as_text
    from broker.backtest.protocols import knobs_of
    from broker.errors import Exit
    from broker.view.document import document

    options = backtest.Options(
        trace=trace,
        format=how,
        history=_remembered(common) if trace is None and synthetic is None else (),
        synthetic_seed=synthetic or 0,
        entitlement_quantile=entitlement_quantile,
        entitlements=backtest.parse_entitlements(entitlement or []),
        reclaim_s=reclaim,
        restore_s=restore,
        lead_s=lead,
        failure=failure,
        elastic=elastic,
        fixed_capacity=fixed,
        ablations=ablations,
        frontier=frontier,
        seeds=seeds,
        jobs=jobs,
        knobs=knobs_of(
            forecast,
            quantile=quantile_to_hold(*insurance) if insurance else quantile,
            hours=horizon,
            days=days,
            share=share,
            alpha=misses,
            term_s=term,
        ),
    )
    found = backtest.backtest(options)
    if html is not None:
        html.write_text(as_html(found), encoding="utf-8")
    if common.json:
        common.console.answer(document("backtest", found.document()))
        return Exit.OK
    common.console.answer(as_text(found))
    if analyse:
        common.console.answer("\n" + use_as_text(use_of(found.case.trace, found.case.entitlements)))
    return Exit.OK


def _remembered(common: Common) -> "tuple[Job, ...]":
    """The history; nothing where neither a configuration nor a history is there."""
    if not common.path.exists():
        return ()
    import os

    from broker.commands.history import remembered
    from broker.config import load

    return tuple(remembered(load(common.path, flags=common.flags, env=os.environ)))
