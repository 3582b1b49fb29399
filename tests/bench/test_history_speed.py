"""A million rows of `sacct` into the history, twice; and beside it what reading them at all costs."""

import csv
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench import accounting
from tests.bench.conftest import Take

ROWS = 1_000_000
_IMPORT = """
import resource, sys, time
from datetime import UTC, datetime
from pathlib import Path
from broker.history.importing import Options, import_file
from state.history.store import History
for _ in range(2):
    with History.open(Path(sys.argv[2])) as history:
        begun = time.process_time()
        found = import_file(Path(sys.argv[1]), Options(timezone="UTC"), history, datetime(2030, 1, 1, tzinfo=UTC))
        print(time.process_time() - begun, found.kept, found.changed, int(found.known))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.bench
def test_a_million_rows_into_the_history(tmp_path: Path, take: Take) -> None:
    file = tmp_path / "sacct.txt"
    with file.open("w", encoding="utf-8") as out:
        out.write(f"{accounting.COLUMNS}\n")
        out.writelines(f"{line}\n" for line in accounting.lines(ROWS))
    ran = subprocess.run(
        [sys.executable, "-c", _IMPORT, file, tmp_path / "h.db"], capture_output=True, text=True, check=True
    )
    first, again, peak = (line.split() for line in ran.stdout.splitlines())
    assert first[1:] == [str(ROWS), str(ROWS), "0"]
    assert again[1:] == ["0", "0", "1"]
    bare = _bare(file)
    print(f"\nhistory import takes {float(first[0]) / bare:.1f} times a bare csv read ({bare:.2f} s)")  # noqa: T201
    take("1,000,000 rows into the history", float(first[0]), 20.0, "s CPU")
    take("peak memory of the import", float(peak[0]), 250.0, "MiB")
    take("the same file again", float(again[0]), float(first[0]) / 4, "s CPU")


def _bare(file: Path) -> float:
    begun = time.process_time()
    with file.open(encoding="utf-8", newline="") as lines:
        assert sum(1 for _ in csv.reader(lines, delimiter="|")) == ROWS + 1
    return time.process_time() - begun
