"""`broker state`: the ledger, read and cared for."""

from pathlib import Path
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
    command(group, "unlock", ("broker state unlock", "broker state unlock --force"))(_unlock)
    command(group, "backup", ("broker state backup state.bak", "broker state backup /backup/$(date +%F).db"))(_backup)
    command(group, "adopt", ("broker state adopt", "broker state adopt --lineage 0123456789ab"))(_adopt)


def _list(common: Common) -> None:
    """Reservations and unsettled requests in the ledger."""
    from broker.commands import standpoint
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
    from broker.commands import standpoint

    with standpoint.opened(common.path, flags=common.flags) as point:
        entries = point.entries_about(which)
    _answer(common, entries)


def _history(common: Common, since: Since = None) -> None:
    """The ledger's entries, oldest first."""
    from broker.commands import standpoint

    with standpoint.opened(common.path, flags=common.flags) as point:
        entries = point.entries(since)
    _answer(common, entries)


def _unlock(
    common: Common,
    force: Annotated[bool, typer.Option("--force", help="Forget a holder on another host.")] = False,
) -> None:
    """Who holds the lock.

    With --force, forget a holder whose host is gone.
    A dead holder on this host needs no unlocking: the next run takes over.
    """
    from broker.commands import care
    from broker.view.care import lock_json, lock_text

    found = care.unlock(common.path, flags=common.flags, force=force)
    common.console.answer(lock_json(found) if common.json else lock_text(found))


def _backup(common: Common, target: Annotated[Path, typer.Argument(help="The copy; replaced if it exists.")]) -> int:
    """Copy the whole state, and say whether it is sound.

    Also while a run writes."""
    from broker.commands import care
    from broker.view.care import backup_json, backup_text

    made = care.back_up(common.path, target, flags=common.flags)
    common.console.answer(backup_json(made) if common.json else backup_text(made))
    return made.exit_code


def _adopt(
    common: Common,
    lineage: Annotated[str | None, typer.Option(help="Which broker's purchases, where there are several.")] = None,
) -> int:
    """When the state is lost: find all that we own in the clouds.

    Buying then waits until a purchase just before the loss would have become visible.
    """
    from broker.commands import care
    from broker.commands.workplace import workplace
    from broker.view.care import adoption_json, adoption_text

    with workplace(common.path, flags=common.flags) as place:
        adoption = care.adopt_all(place, lineage)
    common.console.answer(adoption_json(adoption) if common.json else adoption_text(adoption))
    return care.exit_code(adoption)


def _answer(common: Common, entries: "Sequence[Entry]") -> None:
    from broker.view.ledger import entries_json, entries_text

    common.console.answer(entries_json(entries) if common.json else entries_text(entries))
