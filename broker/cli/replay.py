"""`backtest`: a job trace under SIA and the baselines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.common import Common, command

if TYPE_CHECKING:
    from broker.backtest.command import Backtest
    from broker.model.job import Job


TraceFile = Annotated[Path | None, typer.Argument(help="Columns, SWF, Helios or Philly; plain or gzip.")]
TraceFormat = Annotated[
    str, typer.Option("--format", help="auto, columns, swf, helios, philly, csv, or a format of `broker jobs`.")
]
Seed = Annotated[
    int | None, typer.Option("--synthetic", help="Seed of a made-up trace; used too where there is no history.")
]
Entitlements = Annotated[
    list[str] | None, typer.Option("--entitlement", help="TENANT=GPUS, once a tenant; default: from the trace.")
]
EntitlementQuantile = Annotated[
    float, typer.Option("--entitlement-quantile", min=0.0, max=1.0, help="Of each tenant's own concurrency.")
]
Reclaim = Annotated[float, typer.Option("--reclaim", min=0.0, help="Seconds that calling a job back takes.")]
Restore = Annotated[float, typer.Option("--restore", min=0.0, help="Seconds that a restore costs.")]
Lead = Annotated[float, typer.Option("--lead", min=0.0, help="Seconds until bought capacity arrives.")]
Failure = Annotated[
    float, typer.Option("--failure", min=0.0, max=1.0, help="Probability that a purchase brings nothing.")
]
Elastic = Annotated[int, typer.Option("--elastic", min=1, help="Jobs run on up to so many times their GPUs.")]
Unstoppable = Annotated[
    float, typer.Option("--unstoppable", min=0.0, max=1.0, help="Share of jobs, at random, that cannot be called back.")
]
FirmMisses = Annotated[
    float,
    typer.Option(
        "--firm-misses", min=0.0, max=0.5, help="Of loans to those that may be in the way of their owner; 0: none made."
    ),
]
Durations = Annotated[
    str, typer.Option("--durations", help="none or learned: what ranks loans and tells whom a wait would hurt.")
]
Forecast = Annotated[str, typer.Option("--forecast", help="rolling or learned: of the rises of demand.")]
Quantile = Annotated[
    float | None,
    typer.Option("--quantile", min=0.0, max=1.0, help="Of the rises of demand to cover: 0.9; learned: 0.85."),
]
ClaimsQuantile = Annotated[
    float | None,
    typer.Option("--claims-quantile", min=0.0, max=1.0, help="Learned: of the rises of claims: 0.995."),
]
Horizon = Annotated[
    int | None, typer.Option("--horizon", min=1, help="Hours within which demand may rise: 8; learned: 2.")
]
Days = Annotated[float, typer.Option("--days", min=0.1, help="Days of rises to look at.")]
Share = Annotated[
    float | None, typer.Option("--share", min=0.0, help="Of running and queued GPUs to cover: 0.9; learned: 1.")
]
Term = Annotated[float, typer.Option("--term", min=0.0, help="Seconds that bought capacity has to be kept.")]
Insurance = Annotated[
    tuple[float, float, float] | None,
    typer.Option(
        "--insurance",
        metavar="FAILURE MISSED LENT",
        help="Sets --quantile: probability that an unreserved launch fails; in prices of a GPU-hour, the cost of "
        "one that is owed and missing, and the value of one lent.",
    ),
]
Misses = Annotated[
    float, typer.Option("--misses", min=0.0, max=1.0, help="Share of sensitive starts that may wait for a reclaim.")
]
Fixed = Annotated[bool, typer.Option("--fixed", help="Hold all that is promised, all the time.")]
Ablations = Annotated[bool, typer.Option("--ablations", help="Also SIA with one part off, for each part.")]
Frontier = Annotated[bool, typer.Option("--frontier", help="Also what each cost from 0.40 to 0.70 buys.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="Runs of SIA that differ in which purchases fail.")]
Analyse = Annotated[bool, typer.Option("--analyse", help="What static allocation leaves idle, by tenant.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Policies to replay side by side.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write one page with plots.")]


def add_to(app: typer.Typer) -> None:
    command(app, "backtest", ("broker backtest trace.csv.gz --html page.html", "broker backtest --synthetic 1 --json"))(
        _backtest
    )


def _backtest(
    common: Common,
    trace: TraceFile = None,
    how: TraceFormat = "auto",
    synthetic: Seed = None,
    entitlement: Entitlements = None,
    entitlement_quantile: EntitlementQuantile = 0.90,
    reclaim: Reclaim = 60.0,
    restore: Restore = 120.0,
    lead: Lead = 600.0,
    failure: Failure = 0.0,
    elastic: Elastic = 1,
    unstoppable: Unstoppable = 0.0,
    firm_misses: FirmMisses = 0.0,
    forecast: Forecast = "rolling",
    durations: Durations = "none",
    quantile: Quantile = None,
    claims_quantile: ClaimsQuantile = None,
    horizon: Horizon = None,
    days: Days = 7.0,
    share: Share = None,
    term: Term = 0.0,
    insurance: Insurance = None,
    misses: Misses = 0.003,
    fixed: Fixed = False,
    ablations: Ablations = False,
    frontier: Frontier = False,
    seeds: Seeds = 1,
    analyse: Analyse = False,
    jobs: Jobs = 1,
    html: Html = None,
) -> int:
    """Replay a job trace: latency, slowdown and cost under SIA, static shares and naive sharing.

    Without TRACE and --synthetic, the history of the state is replayed if there is one.
    Times in seconds. Nothing is bought and no cloud is asked."""
    from broker.backtest import command as backtest
    from broker.backtest.insurance import quantile_to_hold
    from broker.backtest.protocols import knobs_of
    from broker.errors import Exit, UsageError

    if insurance and quantile is not None:
        raise UsageError("--insurance sets the quantile", next_step="Give one of --insurance and --quantile")
    insured = quantile_to_hold(*insurance) if insurance else None
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
        unstoppable=unstoppable,
        firm_share=firm_misses,
        fixed_capacity=fixed,
        ablations=ablations,
        frontier=frontier,
        seeds=seeds,
        jobs=jobs,
        knobs=knobs_of(
            forecast,
            durations,
            quantile=quantile if insured is None else insured,
            claims_quantile=claims_quantile if insured is None else insured,
            hours=horizon,
            days=days,
            share=share,
            alpha=misses,
            term_s=term,
        ),
    )
    _answer(common, backtest.backtest(options), analyse=analyse, html=html)
    return Exit.OK


def _answer(common: Common, found: "Backtest", *, analyse: bool, html: Path | None) -> None:
    from broker.backtest.analysis import analyse as use_of
    from broker.backtest.page import as_html, as_text, use_as_text
    from broker.errors import UsageError
    from broker.view.document import document

    if html is not None:
        try:
            html.write_text(as_html(found), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {html}: {error.strerror}", next_step="Give another --html") from None
    if common.json:
        common.console.answer(document("backtest", found.document()))
        return
    common.console.answer(as_text(found))
    if analyse:
        common.console.answer("\n" + use_as_text(use_of(found.case.trace, found.case.entitlements)))


def _remembered(common: Common) -> "tuple[Job, ...]":
    """The history; nothing where neither a configuration nor a history is there."""
    if not common.path.exists():
        return ()
    import os

    from broker.commands.history import remembered
    from broker.config import load

    return tuple(remembered(load(common.path, flags=common.flags, env=os.environ)))
