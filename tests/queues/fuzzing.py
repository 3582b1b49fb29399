"""What must hold of any input in any format; `python -m tests.queues.fuzzing` tries a hundred thousand for each.

No exception but the one for it, no more than a second for each megabyte, every row accounted for, and no damaged input
that is believed to be an empty queue.

An array that waits is shorthand: `0-199999` are 200,000 jobs in eight bytes, and people have such arrays. So what an
input says is measured, not how short it says it: a row counts as at least the bytes that `squeue --array` needs to name
it, and no more time than for those is allowed. How many tasks an answer may hold at all is bounded by the readers.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from broker.clock import FixedClock
from broker.config import QueueSource
from broker.model.snapshot import SourceView, Trust
from broker.queues import read
from broker.queues.fetch import Fetched
from broker.queues.parsed import Unreadable
from broker.queues.registry import FORMATS
from tests.queues import fixtures
from tests.queues.mutations import mutated

TRIES = 100_000
SECONDS_PER_MB = 1.0
LEAST_S = 0.25
"""A pause of the machine is not a hang: an input is slow only if it is so twice, and by more than this."""

ROW_BYTES = len("4711_99999\n")
"""The least that names a task of an array on a line of its own."""

MOST_BYTES = 1 << 24
_BLOCK = 2_000
_CLOCK = FixedClock(fixtures.AT)


class Sum(NamedTuple):
    name: str
    tried: int
    refused: int
    partial: int
    complete: int
    slowest_s: float


def view(name: str, raw: bytes) -> SourceView:
    """As the broker sees it, the format being told or `auto`."""
    source = QueueSource(
        name="q", format=name, timezone="Europe/Zurich", procs_per_gpu=8, max_bytes=MOST_BYTES,
        max_age=timedelta(days=365_000),
    )  # fmt: skip
    try:
        parsed = read._with_models(source, read._part(source, Fetched(raw, fixtures.AT), "f"))
        return read._view(source, parsed, _CLOCK.now())
    except Unreadable as why:
        return read.unknown(source, str(why))


def checked(name: str, raw: bytes) -> SourceView:
    """Raises AssertionError, or whatever a reader let through."""
    begun = time.process_time()
    found = view(name, raw)
    if time.process_time() - begun > allowed_s(raw, found.rows):
        begun = time.process_time()
        found = view(name, raw)
        taken = time.process_time() - begun
        assert taken <= allowed_s(raw, found.rows), f"takes {taken:.2f} s"
    assert found.rows == found.kept + found.merged + found.dropped + found.quarantined
    assert found.kept == len(found.jobs)
    assert all("\n" not in line for line in found.problems)
    assert found.trust is not Trust.COMPLETE or found.rows or looks_empty(raw), "is believed to be an empty queue"
    assert found.trust is Trust.COMPLETE or found.problems, "is not believed, without a reason"
    return found


def allowed_s(raw: bytes, rows: int) -> float:
    return max(SECONDS_PER_MB * max(len(raw), rows * ROW_BYTES) / 1e6, LEAST_S)


def looks_empty(raw: bytes) -> bool:
    """What an empty queue looks like: nothing behind a header line, a list without jobs, a sentence that says so."""
    text = raw.decode("utf-8-sig", "replace").strip()
    lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip(" ,;|\t")]
    header_only = len(lines) == 1 and raw.rstrip(b" \t").endswith((b"\n", b"\r")) and not text.startswith(("{", "["))
    squeezed = "".join(text.split())
    return header_only or any(mark in squeezed for mark in _EMPTY_MARKS) or not squeezed.replace("[]", "")


_EMPTY_MARKS = (
    '"jobs":[]',
    '"jobs":0',
    '"items":[]',
    "Nojobsinthesystem",
    '"value":[]',
    '"TrainingJobs":[]',
    '"items":null',
)


def block(name: str, seed: int, tries: int) -> Sum:
    """A seed names its inputs: `--seed` and `--only` find a failing one again."""
    dice = random.Random(seed)
    samples = [path.read_bytes() for path in fixtures.of_format(name)]
    counts = dict.fromkeys(Trust, 0)
    slowest = 0.0
    for number in range(tries):
        raw = mutated(dice.choice(samples), dice)
        begun = time.process_time()
        try:
            found = checked(dice.choice((name, name, "auto")), raw)
        except BaseException as error:
            raise AssertionError(f"{name}, seed {seed}, input {number}: {error!r}: {raw[:300]!r}") from error
        counts[found.trust] += 1
        slowest = max(slowest, time.process_time() - begun)
    return Sum(name, tries, counts[Trust.UNKNOWN], counts[Trust.PARTIAL], counts[Trust.COMPLETE], slowest)


def summed(name: str, tries: int, workers: int, seed: int) -> Sum:
    seeds = range(seed, seed + max(tries // _BLOCK, 1))
    with ProcessPoolExecutor(workers) as pool:
        parts = list(pool.map(partial(block, name, tries=min(tries, _BLOCK)), seeds))
    return Sum(
        name,
        sum(part.tried for part in parts),
        sum(part.refused for part in parts),
        sum(part.partial for part in parts),
        sum(part.complete for part in parts),
        max(part.slowest_s for part in parts),
    )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=TRIES, help="inputs for each format")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(FORMATS), action="append")
    options = parser.parse_args(words)
    sums = list(_told(options.only or list(FORMATS), options.tries, options.workers, options.seed))
    print(f"{sum(each.tried for each in sums):,} inputs in {len(sums)} formats: nothing that must not be")  # noqa: T201
    return 0


def _told(names: Sequence[str], tries: int, workers: int, seed: int) -> Iterator[Sum]:
    for name in names:
        found = summed(name, tries, workers, seed)
        print(  # noqa: T201
            f"{name:12} {found.tried:>9,} tried: {found.refused:,} refused, {found.partial:,} partial, "
            f"{found.complete:,} complete; slowest {found.slowest_s * 1000:.0f} ms",
            flush=True,
        )
        yield found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
