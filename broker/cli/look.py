"""Commands that look and change nothing: `check`, `jobs`, `offers`, `status`, `report`."""

from enum import StrEnum
from typing import Annotated

import typer

from broker.cli.common import Common, command
from broker.cli.completion import reservation_ids


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


def add_to(app: typer.Typer) -> None:
    command(app, "status", ("broker status", "broker status cr-0123456789abcdef0"))(_status)
    command(app, "report", ("broker report --since 7d --by tenant", "broker report --by pool --format csv"))(_report)


def _status(
    common: Common,
    reservation: Annotated[
        str | None, typer.Argument(metavar="ID", help="One reservation.", autocompletion=reservation_ids)
    ] = None,
    unused: Annotated[bool, typer.Option("--unused", help="Only what nothing uses.")] = False,
) -> None:
    """What is held, its use and end, and what is not settled.

    From the state alone: no cloud is asked. With an ID: exactly how a job consumes that reservation."""
    from broker import standpoint
    from broker.view import status as view

    console = common.console
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
    since: Annotated[str, typer.Option("--since", help="7d, 24h, or a time such as 2026-03-01T00:00:00Z.")] = "7d",
    by: Annotated[Group, typer.Option("--by", help="What to group by.")] = Group.TENANT,
    how: Annotated[TableFormat, typer.Option("--format", help="How to write it.")] = TableFormat.TABLE,
) -> int:
    """Money spent, committed, used and idle.

    And what the same peak would have cost, held all the time."""
    from broker import standpoint
    from broker.errors import Exit
    from broker.view import report as view

    with standpoint.opened(common.path, flags=common.flags) as point:
        made = point.report(since=since, by=by.value)
    render = {
        TableFormat.TABLE: view.report_text,
        TableFormat.JSON: view.report_json,
        TableFormat.CSV: view.report_csv,
        TableFormat.MD: view.report_markdown,
    }
    common.console.answer(render[TableFormat.JSON if common.json else how](made))
    return Exit.OK
