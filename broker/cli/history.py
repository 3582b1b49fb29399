"""`broker history`: the jobs of the past, for forecasts."""

from pathlib import Path
from typing import Annotated

import typer

from broker.cli.common import Common, Epoch, ProcsPerGpu, began, command
from broker.cli.completion import formats

_TZ = "Zone of times that carry none, such as Europe/Zurich."


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(rich_markup_mode=None, help="The jobs of the past, which forecasts learn from.")
    examples = "broker history import sacct.txt --tz Europe/Zurich\n  broker history show"
    app.add_typer(group, name="history", epilog=f"\b\nExamples:\n  {examples}")
    command(group, "import", ("broker history import sacct.txt --tz Europe/Zurich", "broker history import *.csv.gz"))(
        _import
    )
    command(group, "show", ("broker history show", "broker history show --json"))(_show)
    command(group, "prune", ("broker history prune", "broker history prune --keep-days 90"))(_prune)
    command(group, "export", ("broker history export jobs.csv", "broker history export jobs.parquet --to parquet"))(
        _export
    )


def _import(
    common: Common,
    what: Annotated[list[str], typer.Argument(metavar="FILE|QUEUE", help="Files, or names of configured queues.")],
    how: Annotated[
        str, typer.Option("--format", help="auto, or a format of `broker jobs`.", autocompletion=formats)
    ] = "auto",
    timezone: Annotated[str | None, typer.Option("--tz", metavar="ZONE", help=_TZ)] = None,
    processors: ProcsPerGpu = 0,
    epoch: Epoch = None,
    cluster: Annotated[str, typer.Option("--cluster", help="Of jobs that name none.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="Of jobs that name none.")] = "",
    hash_names: Annotated[
        bool, typer.Option("--hash-names", help="Keep users and job names as aliases, from now on and in what is in.")
    ] = False,
) -> int:
    """Add jobs to the history. The same rows again, in any order, change nothing."""
    from broker.commands import history
    from broker.history.importing import Options
    from broker.view import history as view

    options = Options(
        format=how, cluster=cluster, tenant=tenant, timezone=timezone, procs_per_gpu=processors, epoch=began(epoch)
    )
    found = history.bring_in(common.path, what, options, hash_names=hash_names, flags=common.flags)
    common.console.answer(view.imports_json(found) if common.json else view.imports_text(found))
    return found.exit_code


def _show(common: Common) -> None:
    """What the history holds: counts, span, gaps, by tenant."""
    from broker.commands import history
    from broker.view import history as view

    found = history.summary(common.path, flags=common.flags)
    common.console.answer(view.summary_json(found) if common.json else view.summary_text(found))


def _prune(
    common: Common,
    keep_days: Annotated[
        int | None, typer.Option("--keep-days", min=1, help="Default: [history] keep_days of the configuration.")
    ] = None,
) -> None:
    """Forget what was over for longer, and shrink the file."""
    from broker.commands import history
    from broker.view import history as view

    done = history.prune(common.path, keep_days, flags=common.flags)
    common.console.answer(view.done_json("history_prune", done) if common.json else view.pruned_text(done))


def _export(
    common: Common,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="Replaced if there is one.")],
    form: Annotated[str, typer.Option("--to", help="csv or parquet.")] = "csv",
) -> None:
    """Write the history as a table, an attempt a row."""
    from broker.commands import history
    from broker.view import history as view

    done = history.export(common.path, target, form, flags=common.flags)
    common.console.answer(view.done_json("history_export", done) if common.json else view.exported_text(done))
