"""A history in a folder of its own, and accounting rows to fill it with."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker.history.importing import Imported, Options, import_file
from state.history.store import History

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HEADER = (
    "JobID|Cluster|User|Account|Partition|Submit|Eligible|Start|End|ElapsedRaw|State|ReqTRES|AllocTRES|NNodes|JobName"
)

Bring = Callable[..., Imported]


def row(
    job: str = "1", submit: str = "2026-05-01T00:00:00", start: str = "2026-05-01T00:10:00",
    end: str = "2026-05-01T02:10:00", state: str = "COMPLETED", gpus: int = 8, cluster: str = "alps",
    user: str = "ada", account: str = "vision",
) -> str:  # fmt: skip
    tres = f"cpu=8,gres/gpu:h100={gpus},gres/gpu={gpus}"
    return f"{job}|{cluster}|{user}|{account}|gpu|{submit}|{submit}|{start}|{end}|60|{state}|{tres}|{tres}|1|train"


def written(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History.open(tmp_path / "state.history.db") as opened:
        yield opened


@pytest.fixture
def bring(history: History, tmp_path: Path) -> Bring:
    """`bring(rows)`: import them as one more file."""
    names = iter(range(1000))

    def imported(rows: list[str], timezone: str | None = "UTC") -> Imported:
        file = written(tmp_path / f"{next(names)}.txt", rows)
        return import_file(file, Options(timezone=timezone), history, NOW)

    return imported
