"""`backtest`: a job trace under SIA and the baselines."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.common import Common, command

_LONGEST_S = 3653 * 86_400.0

if TYPE_CHECKING:
    from broker.backtest.command import Backtest
    from broker.backtest.protocols import Knobs
    from broker.model.job import Job


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is replayed."""

    trace: Annotated[Path | None, typer.Argument(help="Columns, SWF, Helios or Philly; plain or gzip.")] = None
    format: Annotated[
        str, typer.Option("--format", help="auto, columns, swf, helios, philly, csv, or a format of `broker jobs`.")
    ] = "auto"
    timezone: Annotated[str, typer.Option("--tz", help="Of times that carry none: Europe/Zurich.")] = "UTC"
    synthetic: Annotated[
        int | None, typer.Option("--synthetic", help="Seed of a made-up trace; used too where there is no history.")
    ] = None
    entitlement: Annotated[
        list[str] | None, typer.Option("--entitlement", help="Once a tenant; default: from the trace.")
    ] = None
    reclaim_of: Annotated[
        list[str] | None,
        typer.Option("--reclaim-of", help="Once a class of jobs: TENANT or TENANT/USER; default: --reclaim."),
    ] = None
    entitlement_quantile: Annotated[
        float, typer.Option("--entitlement-quantile", min=0.0, max=1.0, help="Of each tenant's own concurrency.")
    ] = 0.90


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """How the pool and its jobs behave; named as in the options of the replay."""

    reclaim_s: Annotated[
        float, typer.Option("--reclaim", min=0.0, max=_LONGEST_S, help="Seconds that calling a job back takes.")
    ] = 60.0
    restore_s: Annotated[
        float, typer.Option("--restore", min=0.0, max=_LONGEST_S, help="Seconds that a restore costs.")
    ] = 120.0
    lead_s: Annotated[
        float, typer.Option("--lead", min=0.0, max=_LONGEST_S, help="Seconds until bought capacity arrives.")
    ] = 600.0
    every_h: Annotated[
        int, typer.Option("--every", min=1, max=8784, help="Hours between two decisions on how much to hold.")
    ] = 1
    failure: Annotated[
        float, typer.Option("--failure", min=0.0, max=1.0, help="Probability that a purchase brings nothing.")
    ] = 0.0
    elastic: Annotated[
        int, typer.Option("--elastic", min=1, max=1024, help="Jobs run on up to so many times their GPUs.")
    ] = 1
    speed_power: Annotated[
        float,
        typer.Option("--elastic-power", min=0.0, max=1.0, help="On a times its GPUs a job is a ** this times as fast."),
    ] = 0.8
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", min=0.0, max=100.0, help="Share of its static latency that a start may lose unharmed."
        ),
    ] = 0.1
    most_preemptions: Annotated[
        int, typer.Option("--preemptions", min=0, max=10**6, help="After so many a job is not started early again.")
    ] = 3
    unstoppable: Annotated[
        float,
        typer.Option("--unstoppable", min=0.0, max=1.0, help="Share of jobs, at random, that cannot be called back."),
    ] = 0.0
    node_gpus: Annotated[
        int,
        typer.Option("--gpus-per-node", min=0, help="Place jobs on nodes of so many, a power of two; 0: any slots do."),
    ] = 0
    firm_share: Annotated[
        float,
        typer.Option(
            "--firm-misses",
            min=0.0,
            max=0.5,
            help="Of loans to those that may be in the way of their owner; 0: none made.",
        ),
    ] = 0.0


@dataclass(frozen=True, kw_only=True)
class Holding:
    """How much is held and held back; named as the knobs of the replay. None: as suits the forecast."""

    forecast: Annotated[str, typer.Option("--forecast", metavar="rolling|learned", help="Of the rises of demand.")] = (
        "rolling"
    )
    durations: Annotated[
        str,
        typer.Option("--durations", metavar="none|learned", help="What ranks loans and tells whom a wait would hurt."),
    ] = "none"
    quantile: Annotated[
        float | None,
        typer.Option("--quantile", min=0.0, max=1.0, help="Of the rises of demand to cover: 0.9; learned: 0.85."),
    ] = None
    claims_quantile: Annotated[
        float | None,
        typer.Option("--claims-quantile", min=0.0, max=1.0, help="Learned: of the rises of claims: 0.995."),
    ] = None
    hours: Annotated[
        int | None,
        typer.Option("--horizon", min=1, max=8784, help="Hours within which demand may rise: 8; learned: 2."),
    ] = None
    days: Annotated[float, typer.Option("--days", min=0.1, max=3653.0, help="Days of rises to look at.")] = 7.0
    share: Annotated[
        float | None,
        typer.Option("--share", min=0.0, max=100.0, help="Of running and queued GPUs to cover: 0.9; learned: 1."),
    ] = None
    term_s: Annotated[
        float, typer.Option("--term", min=0.0, max=_LONGEST_S, help="Seconds that bought capacity has to be kept.")
    ] = 0.0
    insurance: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            "--insurance",
            metavar="FAILURE MISSED LENT",
            help="Sets --quantile: probability that an unreserved launch fails; in prices of a GPU-hour, the cost of "
            "one that is owed and missing, and the value of one lent.",
        ),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            "--misses",
            min=0.0,
            max=1.0,
            help="Share of sensitive starts that may wait for a reclaim: 0.003; --fixed: 0.001.",
        ),
    ] = None
    hold_share: Annotated[
        float | None,
        typer.Option(
            "--hold-back", min=0.0, max=1.0, help="Share of what is held that is never lent; default: learned."
        ),
    ] = None

    def knobs(self, *, fixed: bool) -> "Knobs":
        from broker.backtest.insurance import quantile_to_hold
        from broker.backtest.protocols import FIXED, knobs_of
        from broker.errors import UsageError

        given = {name: value for name, value in vars(self).items() if name != "insurance"}
        if self.hold_share is not None and self.alpha is not None:
            raise UsageError(
                "--misses is what a learned hold-back aims at", next_step="Give one of --hold-back and --misses"
            )
        if fixed and self.alpha is None:
            given["alpha"] = FIXED.alpha
        if self.insurance and self.quantile is not None:
            raise UsageError("--insurance sets the quantile", next_step="Give one of --insurance and --quantile")
        if self.insurance:
            given["quantile"] = given["claims_quantile"] = quantile_to_hold(*self.insurance)
        return knobs_of(**given)


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Which policies are replayed, how often and how many at once; named as in the options of the replay."""

    fixed_capacity: Annotated[bool, typer.Option("--fixed", help="Hold all that is promised, all the time.")] = False
    ablations: Annotated[bool, typer.Option("--ablations", help="Also SIA with one part off, for each part.")] = False
    frontier: Annotated[bool, typer.Option("--frontier", help="Also what each cost from 0.40 to 0.70 buys.")] = False
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of SIA that differ in which purchases fail.")] = 1


Analyse = Annotated[bool, typer.Option("--analyse", help="What static allocation leaves idle, by tenant.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Policies to replay side by side.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write one page with plots.")]


def add_to(app: typer.Typer) -> None:
    command(app, "backtest", ("broker backtest trace.csv.gz --html page.html", "broker backtest --synthetic 1 --json"))(
        _backtest
    )


def _backtest(
    common: Common,
    source: Source,
    conditions: Conditions,
    holding: Holding,
    runs: Runs,
    analyse: Analyse = False,
    jobs: Jobs = 1,
    html: Html = None,
) -> int:
    """Replay a job trace under the allocator and simpler policies.

    Latency, slowdown and cost under the allocator (SIA), static shares and naive sharing.
    Without TRACE and --synthetic, the history of the state is replayed if there is one.
    Times in seconds. Nothing is bought and no cloud is asked."""
    from broker.errors import Exit, UsageError
    from broker.extras import FORECASTS, REPLAYS, require
    from broker.webpage import may_be_saved

    require("backtests need", REPLAYS, "sia")
    if "learned" in (holding.forecast, holding.durations):
        require("forecasts need", FORECASTS, "sia")
    from broker.backtest import command as backtest
    from broker.backtest.calls import parse_reclaims
    from broker.schedule.supposing import entitlements

    if html is not None:
        may_be_saved(html)
    if source.trace is not None and source.synthetic is not None:
        raise UsageError("--synthetic makes up a trace", next_step="Give one of --synthetic and TRACE")
    knobs = holding.knobs(fixed=runs.fixed_capacity)
    options = backtest.Options(
        trace=source.trace,
        format=source.format,
        timezone=source.timezone,
        history=_remembered(common) if source.trace is None and source.synthetic is None else (),
        synthetic_seed=source.synthetic or 0,
        entitlement_quantile=source.entitlement_quantile,
        entitlements=entitlements(source.entitlement or []),
        reclaim_of=parse_reclaims(source.reclaim_of or []),
        jobs=jobs,
        knobs=knobs,
        **vars(conditions),
        **vars(runs),
    )
    _answer(common, backtest.backtest(options), analyse=analyse, html=html)
    return Exit.OK


def _answer(common: Common, found: "Backtest", *, analyse: bool, html: Path | None) -> None:
    from broker.backtest.analysis import analyse as use_of
    from broker.backtest.page import as_html, as_text, use_as_text
    from broker.view.document import document
    from broker.webpage import save

    if html is not None:
        save(html, as_html(found))
    if common.json:
        analysis = {"analysis": use_of(found.case).figures()} if analyse else {}
        common.console.answer(document("backtest", found.document() | analysis))
        return
    common.console.answer(as_text(found))
    if analyse:
        common.console.answer("\n" + use_as_text(use_of(found.case)))


def _remembered(common: Common) -> "tuple[Job, ...]":
    """The history; nothing where neither a configuration nor a history is there."""
    if not common.path.exists():
        return ()
    import os

    from broker.commands.history import remembered
    from broker.config import load

    return tuple(remembered(load(common.path, flags=common.flags, env=os.environ)))
