"""A million rows of `sacct` into the history, twice, then most or all of them mixed; and what a bare read costs."""

import csv
import subprocess
import sys
import time
from array import array
from itertools import accumulate
from pathlib import Path
from random import Random

import pytest

from tests.bench import accounting
from tests.measures import Take

ROWS = 1_000_000
_SHARES = (0.8, 0.95, 1.0)
"""Of the rows of an earlier export, what a later one still shows, in another order."""

_IMPORT = """
import resource, sys, time
from datetime import UTC, datetime
from pathlib import Path
from broker.history.importing import Options, import_file
from state.history.store import History
for file in sys.argv[2:]:
    with History.open(Path(sys.argv[1])) as history:
        begun = time.process_time()
        found = import_file(Path(file), Options(timezone="UTC"), history, datetime(2030, 1, 1, tzinfo=UTC))
        print(time.process_time() - begun, found.kept, found.changed, int(found.known))
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
high = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
print((high or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0] / 1024)
"""
"""Linux counts in ru_maxrss what the process that started this one held; VmHWM is this one's own."""


@pytest.mark.bench
def test_a_million_rows_into_the_history(tmp_path: Path, take: Take) -> None:
    file = tmp_path / "sacct.txt"
    with file.open("w", encoding="utf-8") as out:
        out.write(f"{accounting.COLUMNS}\n")
        out.writelines(f"{line}\n" for line in accounting.lines(ROWS))
    mixed = {tmp_path / f"mixed-{share}.txt": share for share in _SHARES}
    known = [_mixed(file, target, share) for target, share in mixed.items()]
    ran = subprocess.run(
        [sys.executable, "-c", _IMPORT, tmp_path / "h.db", file, file, *mixed],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, again, *overlapping, peak = (line.split() for line in ran.stdout.splitlines())
    assert first[1:] == [str(ROWS), str(ROWS), "0"]
    assert again[1:] == ["0", "0", "1"]
    assert [each[1:] for each in overlapping] == [[str(rows), "0", "0"] for rows in known]
    bare = _bare(file)
    print(f"\nhistory import takes {float(first[0]) / bare:.1f} times a bare csv read ({bare:.2f} s)")  # noqa: T201
    take("1,000,000 rows into the history", float(first[0]), 20.0, "s CPU")
    take("peak memory of the import", float(peak[0]), 250.0, "MiB")
    take("the same file again", float(again[0]), float(first[0]) / 4, "s CPU")
    for rows, (taken, *_) in zip(known, overlapping, strict=True):
        take(f"{rows:,} of its rows again, mixed", float(taken), float(first[0]), "s CPU")


def _mixed(file: Path, target: Path, share: float) -> int:
    """The last of its rows in any order; how many. Row by row: what this process holds, its children start with."""
    with file.open("rb") as source, target.open("wb") as out:
        header = source.readline()
        ends = array("Q", accumulate(map(len, source), initial=len(header)))
        window = ends[:-1][-round(ROWS * share) :]
        Random(1).shuffle(window)
        out.write(header)
        for start in window:
            source.seek(start)
            out.write(source.readline())
    return len(window)


def _bare(file: Path) -> float:
    begun = time.process_time()
    with file.open(encoding="utf-8", newline="") as lines:
        assert sum(1 for _ in csv.reader(lines, delimiter="|")) == ROWS + 1
    return time.process_time() - begun
