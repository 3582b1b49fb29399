"""A number beside the state file: the entry of the latest intent made under this path.

It is not restored together with the state. A file that knows less than the mark is an older copy: what was bought
since may not be visible yet, so nothing is bought for one visibility window.
"""

import contextlib
from pathlib import Path

from broker import regular
from state.whole_file import write_whole


def mark(state: Path, seq: int) -> None:
    """Losing it is no harm, so a disk that refuses it is no error."""
    with contextlib.suppress(OSError):
        write_whole(_beside(state), f"{seq}\n".encode("ascii"))


def marked(state: Path) -> int:
    """0 where there is no readable mark."""
    try:
        return int(regular.content(_beside(state)))
    except (OSError, ValueError):
        return 0


def _beside(state: Path) -> Path:
    return state.with_name(f"{state.name}.mark")
