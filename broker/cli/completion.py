"""Completion of ids and names: from the local state and configuration alone, never from a cloud."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import typer

from broker import regular
from broker.cli.common import DEFAULT_CONFIG

_MOST = 50
_IDS = "SELECT id FROM reservation WHERE gone = 0 AND substr(id, 1, length(?)) = ? ORDER BY id LIMIT ?"


def reservation_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Those that begin so; nothing where the state cannot be read, for a completion must not complain."""
    try:
        connection = sqlite3.connect(f"{_state(ctx).absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)
        try:
            return [row[0] for row in connection.execute(_IDS, (incomplete, incomplete, _MOST))]
        finally:
            connection.close()
    except (sqlite3.Error, OSError, ValueError):
        return []


def pools(ctx: typer.Context, incomplete: str) -> list[str]:
    return _names(ctx, "pool", incomplete)


def tenants(ctx: typer.Context, incomplete: str) -> list[str]:
    return _names(ctx, "tenant", incomplete)


def clouds(incomplete: str) -> list[str]:
    from broker.model.place import ProviderName

    return [name.value for name in ProviderName if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    from broker.config.schema import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def _names(ctx: typer.Context, table: str, incomplete: str) -> list[str]:
    """Of the tables of that kind in the configuration."""
    try:
        found = _glance(_config(ctx)).get(table, [])
        return [name for each in found if (name := str(each.get("name", ""))) and name.startswith(incomplete)]
    except (OSError, ValueError, AttributeError, TypeError):
        return []


def _state(ctx: typer.Context) -> Path:
    """The configured state file, by no more than a glance at the configuration."""
    given = _flag(ctx, "state") or os.environ.get("BROKER_STATE")
    if given:
        return Path(given)
    config = _config(ctx)
    return config.parent / str(_glance(config).get("state", "state.db"))


def _config(ctx: typer.Context) -> Path:
    return Path(_flag(ctx, "config") or os.environ.get("BROKER_CONFIG") or DEFAULT_CONFIG)


def _flag(ctx: typer.Context, name: str) -> Any:
    """What stands on the command line so far, before the command's name too."""
    outer = ctx.parent.params.get(name) if ctx.parent else None
    return ctx.params.get(name) or outer


def _glance(config: Path) -> dict[str, Any]:
    import tomllib

    found: dict[str, Any] = tomllib.loads(regular.content(config).decode("utf-8-sig"))
    return found
