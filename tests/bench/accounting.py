"""A large `sacct --parsable2` file with 22 columns, as a site's year looks: the same seed gives the same file."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

COLUMNS = (
    "JobIDRaw|JobID|Cluster|User|Account|QOS|Partition|Submit|Eligible|Start|End|ElapsedRaw|State|Reason|TimelimitRaw|"
    "Timelimit|ReqTRES|AllocTRES|NNodes|Priority|Restarts|DerivedExitCode"
)
_FIRST = 1_740_000_000


def lines(rows: int, seed: int = 1) -> Iterator[str]:
    """Without line ends. One row in fifty requeued, some CPU jobs, the newest still running."""
    draw = Random(seed)
    submit = _FIRST
    for number in range(rows):
        submit += draw.randrange(60)
        yield _line(draw, 1_000_000 + number, submit, runs=number > rows * 0.998)


def _line(draw: Random, number: int, submit: int, *, runs: bool) -> str:
    gpus = draw.choice((1, 1, 1, 2, 4, 8, 8, 16, 64))
    nodes = max(gpus // 8, 1)
    user, limit = draw.randrange(400), draw.choice((60, 240, 1440, 4320))
    start = submit + draw.randrange(3600)
    length = draw.randrange(limit * 60)
    state = "RUNNING" if runs else draw.choice(("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", f"CANCELLED by {user}"))
    tres = f"billing={gpus * 8},cpu={gpus * 8},gres/gpu:h100={gpus},gres/gpu={gpus},mem={gpus * 64}G,node={nodes}"
    end = "Unknown" if runs else _at(start + length)
    cells = (
        number, number, "alps", f"user{user:03d}", f"team{user % 12}", "normal", "gpu", _at(submit), _at(submit),
        _at(start), end, length, state, "None", limit, f"{limit // 1440}-{limit % 1440 // 60:02d}:00:00", tres, tres,
        nodes, 1000 + user, 0, "0:0",
    )  # fmt: skip
    return "|".join(map(str, cells))


def _at(second: int) -> str:
    """ISO in UTC, faster than `datetime` would write it."""
    day, rest = divmod(second - _FIRST, 86400)
    month, day = divmod(day, 28)
    year, month = divmod(month, 12)
    return f"{2025 + year}-{month + 1:02d}-{day + 1:02d}T{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join([COLUMNS, *rows]) + "\n", encoding="utf-8")
    return path
