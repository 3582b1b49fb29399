"""Completion of ids: from the local state alone, with the standard library, never from a cloud."""

import os
import sqlite3
from pathlib import Path

from broker import regular
from broker.cli.common import DEFAULT_CONFIG

_MOST = 50
_IDS = "SELECT id FROM reservation WHERE gone = 0 AND substr(id, 1, length(?)) = ? ORDER BY id LIMIT ?"


def reservation_ids(incomplete: str) -> list[str]:
    """Those that begin so; nothing where the state cannot be read, for a completion must not complain."""
    try:
        connection = sqlite3.connect(f"{_state().absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)
        try:
            return [row[0] for row in connection.execute(_IDS, (incomplete, incomplete, _MOST))]
        finally:
            connection.close()
    except (sqlite3.Error, OSError, ValueError):
        return []


def _state() -> Path:
    """The configured state file, by no more than a glance at the configuration."""
    if os.environ.get("BROKER_STATE"):
        return Path(os.environ["BROKER_STATE"])
    import tomllib

    config = Path(os.environ.get("BROKER_CONFIG") or DEFAULT_CONFIG)
    return config.parent / str(tomllib.loads(regular.content(config).decode("utf-8-sig")).get("state", "state.db"))
