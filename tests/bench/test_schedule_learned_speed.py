"""The whole live step with learned models: the queue read, what was learned read, decided, remembered."""

import csv
import random
import time
from datetime import timedelta
from pathlib import Path

import pytest

from broker.clock import FixedClock
from broker.commands import scheduling
from broker.history.importing import Options, import_file
from state.history.store import History, beside
from tests.bench.test_schedule_speed import BAR_S, queue
from tests.measures import Take
from tests.schedule.cluster import START

FIRST_BAR_S = 2.0
"""Of a look that has to forecast each of 12,000 jobs, since it knows none of them."""
POOL = (
    '[[queue]]\nname = "q"\nfile = "queue.csv"\ncluster = "c"\n[[pool]]\nname = "h100"\ngpu = "h100"\ndefault = true\n'
)
OWN = "[[pool.own]]\nnodes = 750\ngpus_per_node = 8\n"
SHARES = "".join(f'[[tenant]]\nname = "t{v}"\nentitlements = {{ h100 = 300 }}\n' for v in range(20))
COLUMNS = ("id", "tenant", "user", "submit", "start", "end", "state", "gpus", "preemptible")


def past(path: Path, jobs: int = 20_000) -> Path:
    rng = random.Random(1)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for number in range(jobs):
            user = rng.randrange(100)
            submit = START - timedelta(days=28) + timedelta(days=27) * (number / jobs)
            end = submit + timedelta(seconds=60 + 40 * (1 + user) * rng.lognormvariate(0, 1))
            rows.writerow((f"p{number}", f"t{user % 20}", f"u{user}", submit, submit, end, "done", 1, "true"))
    return path


def present(path: Path) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for job in queue():
            user = f"u{int(job.id) % 100}"
            rows.writerow(
                (job.id, job.tenant, user, job.submit, job.start or "", "", job.state.value, job.gpus, "true")
            )


@pytest.mark.bench
def test_a_whole_look_with_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Take) -> None:
    monkeypatch.chdir(tmp_path)
    config, clock = tmp_path / "broker.toml", FixedClock(START)
    config.write_text(POOL + OWN + SHARES)
    monkeypatch.setattr(scheduling, "clock_of", lambda _: clock)
    with History.open(beside(tmp_path / "state.db")) as history:
        import_file(past(tmp_path / "past.csv"), Options(timezone="UTC"), history, START)
    scheduling.schedule(config, scheduling.Wish(), flags={})
    assert not (tmp_path / "state.durations.json").exists(), "nobody has to be foretold yet"
    present(tmp_path / "queue.csv")
    for number, bar_s in enumerate((None, BAR_S, BAR_S, FIRST_BAR_S, BAR_S)):
        clock.at = START + timedelta(hours=1.05 * (number + 1))
        before = time.process_time()
        found = scheduling.schedule(config, scheduling.Wish(begin_again=bar_s == FIRST_BAR_S), flags={}).schedule
        spent = time.process_time() - before
        assert found.pools[0].grants
        if bar_s is not None:  # the first look learns
            take(f"learned look {number + 1} at 12,000 jobs", spent, bar_s, "s CPU")
    assert (tmp_path / "state.durations.json").exists()
    assert (tmp_path / "state.starts.json").exists()
