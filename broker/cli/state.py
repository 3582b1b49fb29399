"""`broker state`: the ledger, read and cared for."""

from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.common import Common, command
from broker.cli.completion import reservation_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from state.entries import Entry

Since = Annotated[str | None, typer.Option("--since", help="7d, 24h, or a time such as 2026-03-01T00:00:00Z.")]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(rich_markup_mode=None, help="The ledger: what was meant, done and seen.")
    app.add_typer(group, name="state", epilog="\b\nExamples:\n  broker state list\n  broker state backup state.bak")
    command(group, "list", ("broker state list", "broker state list --json"))(_list)
    command(group, "show", ("broker state show cr-0123456789abcdef0", "broker state show 9f86d081884c"))(_show)
    command(group, "history", ("broker state history --since 24h", "broker state history --json"))(_history)


def _list(common: Common) -> None:
    """Reservations and unsettled requests in the ledger."""
    from broker import standpoint
    from broker.view import status as view

    with standpoint.opened(common.path, flags=common.flags) as point:
        standing = point.standing()
    console = common.console
    console.answer(view.status_json(standing) if common.json else view.status_text(standing, verbose=True))


def _show(
    common: Common,
    which: Annotated[
        str, typer.Argument(metavar="ID|KEY", help="A reservation or an action.", autocompletion=reservation_ids)
    ],
) -> None:
    """Every entry about one reservation or one action."""
    from broker import standpoint

    with standpoint.opened(common.path, flags=common.flags) as point:
        entries = point.entries_about(which)
    _answer(common, entries)


def _history(common: Common, since: Since = None) -> None:
    """The ledger's entries, oldest first."""
    from broker import standpoint

    with standpoint.opened(common.path, flags=common.flags) as point:
        entries = point.entries(since)
    _answer(common, entries)


def _answer(common: Common, entries: "Sequence[Entry]") -> None:
    from broker.view.ledger import entries_json, entries_text

    common.console.answer(entries_json(entries) if common.json else entries_text(entries))
