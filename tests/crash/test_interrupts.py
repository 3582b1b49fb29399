"""The whole command line, told to stop at any instant by Ctrl-C, SIGTERM or a terminal that closes, once or twice."""

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

from broker.apply.apply import apply
from broker.apply.boundary import Boundary, Checkpoint
from broker.apply.settle import settle
from broker.cli import run
from broker.commands import acting
from broker.interruption import SAME_WISH_S, SIGNALS, WORD, Stopping
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from tests.crash.clouds import CLOUDS
from tests.crash.test_whole_broker import MOST_JOBS, Site, must_be_whole

SAVE, APPLY_SAVED = "plan --out plan.json", "apply plan.json --yes"
COMMANDS = (
    "run",
    "run --max-seconds 60",
    "apply --yes",
    "release --all-ours --yes",
    SAVE,
    APPLY_SAVED,
    "state backup copy.db",
    "history import past.csv",
    "status",
)
UNTOLD_CODES = {0, 1, 3, 5}
"""It had ended before it was told. 1: there is no such plan. 3: a fault struck. 5: the saved plan does not fit."""

PAST = "id,tenant,submit,start,end,state,gpus,gpu_type,nodes\n" + "".join(
    f"{job},nlp,2026-03-01T08:00:00Z,2026-03-01T09:00:00Z,2026-03-01T10:00:00Z,completed,8,h100,1\n"
    for job in range(1, 400)
)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """To stop: at that boundary, or where there is none after so many seconds; and perhaps once more, later."""

    number: int
    at: Boundary | None
    after_s: float
    again_s: float | None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    code: int
    err: str


def drawn(draw: random.Random) -> Wish:
    return Wish(
        number=draw.choice(SIGNALS),
        at=draw.choice(tuple(Boundary)) if draw.random() < 0.5 else None,
        after_s=draw.uniform(0, 1),
        again_s=draw.choice((None, None, 0.01, SAME_WISH_S + 0.05)),
    )


def told(site: Site, command: str, wish: Wish) -> Told:
    """The command in a process of its own, that gets the signals."""
    said = site.folder / "stderr"
    listening, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(site, command, wish, said, ready)
    os.close(ready)
    os.read(listening, 1)
    os.close(listening)
    if wish.at is None:
        time.sleep(wish.after_s)
        _tell(pid, wish)
    _, status = os.waitpid(pid, 0)
    return Told(code=os.waitstatus_to_exitcode(status), err=said.read_text(encoding="utf-8"))


def _tell(pid: int, wish: Wish) -> None:
    """Nobody has waited for the process yet: even if it has ended, the number is still its own."""
    os.kill(pid, wish.number)
    if wish.again_s is not None:
        time.sleep(wish.again_s)
        os.kill(pid, wish.number)


def _child(site: Site, command: str, wish: Wish, said: Path, ready: int) -> None:
    code = 99
    with contextlib.suppress(BaseException):
        _only_files(said)
        os.chdir(site.folder)
        checkpoint = _telling(wish)
        vars(acting).update(
            carry_out=partial(apply, checkpoint=checkpoint), settle=partial(settle, checkpoint=checkpoint)
        )
        stopping = Stopping()
        os.close(ready)
        code = _as_main(stopping, [*command.split(), "-c", str(site.config)])
        sys.stderr.flush()
    os._exit(code)


def _as_main(stopping: Stopping, arguments: list[str]) -> int:
    """As the console script does it: an interruption may also come before or after the command itself."""
    try:
        return stopping.ended(run(arguments))
    except KeyboardInterrupt:
        sys.stderr.write(f"{WORD}\n")
        return 130


def _only_files(said: Path) -> None:
    """No terminal, and what is said on stderr goes into the file."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    nowhere, there = os.open(os.devnull, os.O_RDWR), os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for source, target in ((nowhere, 0), (nowhere, 1), (there, 2)):
        os.dup2(source, target)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w")


def _telling(wish: Wish) -> Checkpoint:
    """Whichever thread is first at the boundary sees to it; that one goes on, as it would."""
    passed: Counter[Boundary] = Counter()

    def checkpoint(boundary: Boundary) -> None:
        passed[boundary] += 1
        if boundary is wish.at and passed[boundary] == 1:
            threading.Thread(target=_tell, args=(os.getpid(), wish), daemon=True).start()
            time.sleep(0.01)

    return checkpoint


def check(ended: Told, command: str) -> None:
    """An exit code that is documented, and one line."""
    if ended.code == 130:
        assert ended.err.splitlines()[-1] == WORD, (command, ended.err)
        assert ended.err.count(WORD) == 1, (command, ended.err)
    else:
        assert ended.code in UNTOLD_CODES, (command, ended)
    assert "Traceback" not in ended.err and "ignored" not in ended.err, (command, ended.err)


def trouble(site: Site, draw: random.Random) -> None:
    """A slow answer, so that there is something to be interrupted, or one that never comes."""
    cloud = draw.choice(CLOUDS)
    kind = draw.choice((FaultKind.DELAY, FaultKind.DELAY_BEFORE, FaultKind.REPLY_LOST, FaultKind.HIDDEN))
    operation = draw.choice((cloud.reserve, cloud.resize, cloud.release))
    site.sandbox.fault(kind, operation, cloud.name, delay_s=draw.uniform(0.1, 0.8), times=2)


def live(site: Site, *, interruptions: int, seed: int) -> int:
    """A history of commands that are told to stop; how many of them broke off."""
    draw, broke_off, planned_for = random.Random(seed), 0, 0
    (site.folder / "past.csv").write_text(PAST, encoding="utf-8")
    for _ in range(40 * interruptions):
        if broke_off >= interruptions:
            return broke_off
        site.queue(draw.randint(0, MOST_JOBS))
        site.get_well()
        trouble(site, draw)
        before, command = site.held, draw.choice(COMMANDS)
        ended = told(site, command, drawn(draw))
        check(ended, command)
        broke_off += ended.code == 130
        if command == SAVE:  # one that broke off may have saved its plan, or have left the one before
            planned_for = max(planned_for if ended.code == 130 else 0, site.jobs)
        wanted = planned_for if command == APPLY_SAVED else site.jobs
        assert site.held <= max(before, wanted), f"{command} bought what was held or under way already"
        site.sandbox.advance(timedelta(seconds=draw.choice((1, 60, 200, 700, 4000))))
    raise AssertionError(f"only {broke_off} broke off")


def survive(site: Site, *, interruptions: int, seed: int) -> int:
    broke_off = live(site, interruptions=interruptions, seed=seed)
    must_be_whole(site)
    return broke_off


def test_commands_are_told_to_stop_a_few_times(sandbox: Sandbox, tmp_path: Path) -> None:
    assert survive(Site(sandbox, tmp_path), interruptions=4, seed=5)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(6))
def test_commands_are_told_to_stop_all_the_time(
    seed: int, sandbox: Sandbox, tmp_path: Path, tally: Counter[str]
) -> None:
    tally["interruptions"] += survive(Site(sandbox, tmp_path), interruptions=25, seed=seed)
