"""Commands that look and change nothing: `check`, `jobs`, `offers`, `status`, `report`."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from broker.cli.common import Common, Epoch, ProcsPerGpu, began, command, named_column
from broker.cli.completion import formats, reservation_ids

if TYPE_CHECKING:
    from broker.commands.queue_reading import Given
    from broker.commands.standpoint import Standpoint
    from broker.outlook import PlanReport


class TableFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


class Group(StrEnum):
    """What the report groups by; the names of `broker.report.By`, which is not imported to start fast."""

    TENANT = "tenant"
    POOL = "pool"
    PROVIDER = "provider"
    RESERVATION = "reservation"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Whose rows `jobs` shows; named as in the options."""

    files: Annotated[list[Path] | None, typer.Argument(help="Queue files instead of the configured sources.")] = None
    source_format: Annotated[
        str, typer.Option("--format", help="auto, squeue, sacct, csv, ...", autocompletion=formats)
    ] = "auto"
    timezone: Annotated[str | None, typer.Option("--tz", help="Of times that carry none: Europe/Zurich.")] = None
    processors: ProcsPerGpu = 0
    epoch: Epoch = None
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="OURS=THEIRS", help='Of a CSV with other names: gpus="GPU count". Repeatable.'
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """What `jobs` is asked beside the table; at most one of these."""

    explain: Annotated[
        str | None, typer.Option(metavar="ID", help="How one job's raw fields became ours, by its id or name.")
    ] = None
    quarantine: Annotated[bool, typer.Option("--quarantine", help="Each row that was set aside, and why.")] = False
    confirm: Annotated[str | None, typer.Option(metavar="NAME", help="Believe a queue that lost most jobs.")] = None

    @property
    def asked(self) -> int:
        return sum((bool(self.confirm), bool(self.explain), self.quarantine))

    def check(self) -> None:
        from broker.errors import UsageError

        if self.asked > 1:
            raise UsageError("--confirm, --explain and --quarantine are three questions", next_step="Give one of them")


def add_to(app: typer.Typer) -> None:
    command(app, "check", ("broker check", "broker check -v --json"))(_check)
    command(app, "jobs", ("broker jobs", "squeue --json > q.json && broker jobs q.json"))(_jobs)
    command(app, "offers", ("broker offers --gpu H100", "broker offers --json"))(_offers)
    command(app, "status", ("broker status", "broker status cr-0123456789abcdef0"))(_status)
    command(app, "report", ("broker report --since 7d --by tenant", "broker report --html cost.html"))(_report)


def _check(common: Common) -> int:
    """Say whether everything is in order; change nothing.

    Configuration, credentials, permissions, queues, quotas, age of prices, clock and state."""
    from broker.commands import check
    from broker.commands.workplace import workplace
    from broker.view.check import check_json, check_text

    with workplace(common.path, flags=common.flags, read_only=True) as place:
        found = check.check(place)
        settings = place.config.settings if common.verbose else ()
    console = common.console
    console.answer(check_json(found, settings) if common.json else check_text(found, settings, paint=console.paint))
    return check.exit_code(found)


def _jobs(common: Common, shown: Shown, question: Question) -> int:
    """The queue as the broker reads it, by tenant and pool.

    With the rows that were read, kept, merged, dropped and quarantined."""
    from broker.commands import queue_reading
    from broker.view import jobs

    question.check()
    given = queue_reading.Given(
        files=tuple(shown.files or ()),
        format=shown.source_format,
        timezone=shown.timezone,
        procs_per_gpu=shown.processors,
        epoch=began(shown.epoch),
        columns=tuple(named_column(each) for each in shown.columns or ()),
    )
    if question.asked:
        common.console.answer(_answer(common, given, question))
        return 0
    read = queue_reading.read(common.path, given, flags=common.flags)
    console = common.console
    text = jobs.jobs_json(read) if common.json else jobs.jobs_text(read, verbose=console.verbose, paint=console.paint)
    console.answer(text)
    return read.exit_code


def _answer(common: Common, given: "Given", question: Question) -> str:
    from broker.commands import queue_reading
    from broker.view import jobs

    if question.confirm:
        believed = queue_reading.confirm(common.path, question.confirm, flags=common.flags)
        return f"{question.confirm} is believed to hold {believed} live jobs."
    if question.explain:
        found = queue_reading.explain(common.path, given, question.explain, flags=common.flags)
        return jobs.explained_json(found) if common.json else jobs.explained_text(found)
    rows = queue_reading.quarantine(common.path, given, flags=common.flags)
    return jobs.quarantine_json(rows) if common.json else jobs.quarantine_text(rows)


def _offers(
    common: Common,
    gpu: Annotated[str | None, typer.Option("--gpu", help="Only this GPU model, such as H100.")] = None,
) -> int:
    """What could be bought, at what price, and what not and why."""
    from broker.commands import shop
    from broker.commands.workplace import workplace
    from broker.view.offers import offers_json, offers_text

    with workplace(common.path, flags=common.flags, read_only=True) as place:
        found = shop.offers(place, gpu)
    common.console.answer(offers_json(found) if common.json else offers_text(found))
    return found.exit_code


def _status(
    common: Common,
    reservation: Annotated[
        str | None, typer.Argument(metavar="ID", help="One reservation.", autocompletion=reservation_ids)
    ] = None,
    unused: Annotated[bool, typer.Option("--unused", help="Only what nothing uses.")] = False,
) -> None:
    """What is held, its use and end, and what is not settled.

    From the state alone: no cloud is asked. With an ID: exactly how a job consumes that reservation."""
    from broker.commands import standpoint
    from broker.errors import UsageError
    from broker.view import status as view

    console = common.console
    if reservation is not None and unused:
        raise UsageError("--unused is for the list, not for one reservation", next_step="Leave out the ID or the flag")
    with standpoint.opened(common.path, flags=common.flags) as point:
        if reservation is not None:
            held = point.held(reservation)
            consumption = point.consumption(held.reservation)
            render = view.reservation_json if common.json else view.reservation_text
            console.answer(render(held, consumption))
            return
        standing = point.standing(only_unused=unused)
    text = view.status_json(standing) if common.json else None
    console.answer(text or view.status_text(standing, paint=console.paint, verbose=console.verbose))


def _report(
    common: Common,
    since: Annotated[
        str | None, typer.Option("--since", help="7d, 24h, or a time such as 2026-03-01T00:00:00Z.  [default: 7d]")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="What this saved plan would cost instead.")
    ] = None,
    by: Annotated[Group, typer.Option("--by", help="What to group by.")] = Group.TENANT,
    how: Annotated[TableFormat, typer.Option("--format", help="How to write it.")] = TableFormat.TABLE,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page: plots, and every grouping.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 where a price is missing.")] = False,
) -> int:
    """Money spent, committed, used and idle.

    And what the same peak would have cost, held all the time. With --plan, what a saved plan would do and cost."""
    from broker.errors import Exit, UsageError

    if plan is not None and since is not None:
        raise UsageError("--since and --plan do not go together", next_step="A plan is of what is to come")
    if plan is not None and html is not None:
        raise UsageError("--html and --plan do not go together", next_step="The page is of what was done")
    written = TableFormat.JSON if common.json else how
    asked = Asked(since or "7d", by, written, html)
    complete = _spent(common, asked) if plan is None else _to_come(common, plan, by, written)
    if complete or not strict:
        return 0
    common.console.insist("The figures are not complete: a price is missing.")
    return Exit.PARTLY_DONE


class Asked(NamedTuple):
    """What is asked of the past, and in which form; `html` is for all groupings."""

    since: str
    by: Group
    how: TableFormat
    html: Path | None


def _spent(common: Common, asked: Asked) -> bool:
    """Whether every price was known."""
    from broker.commands import standpoint
    from broker.view import report as view

    with standpoint.opened(common.path, flags=common.flags) as point:
        made = point.report(since=asked.since, by=asked.by.value)
        if asked.html is not None:
            _page(point, asked.since, asked.html)
    render = {
        TableFormat.TABLE: view.report_text,
        TableFormat.JSON: view.report_json,
        TableFormat.CSV: view.report_csv,
        TableFormat.MD: view.report_markdown,
    }
    common.console.answer(render[asked.how](made))
    return made.complete


def _page(point: "Standpoint", since: str, path: Path) -> None:
    from broker.view.report import report_html
    from broker.webpage import save

    reports = [point.report(since=since, by=group.value) for group in Group]
    save(path, report_html(reports, point.course(since=since)))


def _to_come(common: Common, plan: Path, by: Group, how: TableFormat) -> bool:
    """Whether every price is known. A plan that cannot be applied any more is shown all the same."""
    from broker.commands import saved_plans
    from broker.view import outlook as view

    made = saved_plans.looked_at(common.path, plan, by=by.value, flags=common.flags)
    render: dict[TableFormat, Callable[[PlanReport], str]] = {
        TableFormat.TABLE: partial(view.outlook_text, paint=common.console.paint),
        TableFormat.JSON: view.outlook_json,
        TableFormat.CSV: view.outlook_csv,
        TableFormat.MD: view.outlook_markdown,
    }
    common.console.answer(render[how](made))
    if how is TableFormat.CSV:
        for warning in made.warnings:
            common.console.remark(warning)
    return made.complete
