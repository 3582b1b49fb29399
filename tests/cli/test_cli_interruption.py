"""Ctrl-C and its kin, from the first instant to the last, in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.interruption import SAME_WISH_S, WORD

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def told(code: str, *wishes: tuple[float, int]) -> Ended:
    """How a program ends that is sent signals, each so many seconds after the one before; first it says "ready"."""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            for after_s, number in wishes:
                time.sleep(after_s)
                child.send_signal(number)
            out, err = child.communicate(timeout=20)
        finally:
            child.kill()
    return Ended(child.returncode, out, err)


def main_with(command: str) -> str:
    """The console script, of which only the command is replaced."""
    return (
        "import sys, time, threading, broker.cli\n"
        "def ready(): print('ready', flush=True)\n"
        f"def run(arguments):\n{command}\n"
        "broker.cli.run = run\n"
        "broker.cli.main()"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_wish_to_stop_ends_the_same_way(number: signal.Signals) -> None:
    """cron, systemd and `timeout` send SIGTERM; a process that dies of it says nothing and lets nothing end."""
    assert told(main_with("    ready(); time.sleep(60)"), (0, number)) == (130, "", f"{WORD}\n")


def test_what_is_passed_on_twice_is_one_wish() -> None:
    """`timeout` signals its child, and then its whole group."""
    command = "    try: ready(); time.sleep(60)\n    finally: time.sleep(0.2); print('tidied', flush=True)"
    ended = told(main_with(command), (0, signal.SIGTERM), (0.05, signal.SIGTERM))
    assert ended == (130, "tidied\n", f"{WORD}\n")


def test_told_again_it_ends_at_once() -> None:
    command = "    try: ready(); time.sleep(60)\n    finally: time.sleep(60)"
    ended = told(main_with(command), (0, signal.SIGINT), (SAME_WISH_S + 0.2, signal.SIGINT))
    assert ended == (130, "", f"{WORD}\n")


def test_an_interruption_that_strikes_where_nothing_can_be_raised_is_not_lost() -> None:
    """A finalizer swallows exceptions: Python prints them and goes on, and the wish would be gone."""
    command = "    class Slow:\n        def __del__(self): ready(); time.sleep(60)\n    Slow()\n    time.sleep(60)"
    assert told(main_with(command), (0, signal.SIGINT)) == (130, "", f"{WORD}\n")


def test_the_bound_on_a_run_is_not_lost_either() -> None:
    command = (
        "    from broker.commands.deadline import OutOfTimeError, at_most\n"
        "    class Slow:\n"
        "        def __del__(self): time.sleep(60)\n"
        "    ready()\n"
        "    try:\n"
        "        with at_most(0.3):\n"
        "            Slow()\n"
        "            time.sleep(60)\n"
        "    except OutOfTimeError: return 3"
    )
    assert told(main_with(command)) == (3, "", "")


def test_at_its_exit_the_answer_stands() -> None:
    """Told to stop when all is done and said: the exit code is that of what was done."""
    command = (
        "    threading.Thread(target=time.sleep, args=(60,)).start(); threading.Timer(0.5, ready).start(); return 3"
    )
    assert told(main_with(command), (0, signal.SIGTERM)) == (3, "", "")


def test_what_is_ignored_stays_ignored() -> None:
    """`nohup broker run &`: the terminal may close."""
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    ended = told(ignoring + main_with("    ready(); time.sleep(1); return 0"), (0, signal.SIGHUP))
    assert ended == (0, "", "")
