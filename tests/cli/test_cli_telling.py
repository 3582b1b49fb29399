"""A run whose words find no reader, or no room, goes on to its end all the same."""

import errno
import sys
from pathlib import Path

import pytest

from broker.errors import Exit
from broker.view.console import Console
from state.store import Store
from tests.cli.conftest import Broker, Ran

FULL = OSError(errno.ENOSPC, "No space left on device")
LEFT = BrokenPipeError(errno.EPIPE, "Broken pipe")


def unheard(broker: Broker, demo: Path, error: OSError, command: str) -> Ran:
    """The command, where writing to stdout fails; what stdout is afterwards does not reach the other tests."""

    def answer(*_: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Console, "answer", answer)
        patch.setattr(sys, "stdout", sys.stdout)
        return broker(*command.split(), "-c", demo)


@pytest.mark.parametrize("command", ["run", "apply --yes"])
@pytest.mark.parametrize(("error", "code"), [(FULL, Exit.PARTLY_DONE), (LEFT, Exit.OK)])
def test_it_is_done_and_recorded_and_said_on_stderr(
    broker: Broker, demo: Path, error: OSError, code: Exit, command: str
) -> None:
    ran = unheard(broker, demo, error, command)
    assert ran.code == code
    assert ("No space left" in ran.err) == (error is FULL) and "Traceback" not in ran.err
    with Store.open(demo.parent / "state.db", read_only=True) as store:
        beat = store.heartbeat()
        assert beat is not None and beat.summary == "2 of 2 done"
    assert "2 reservations held" in broker("status", "-c", demo).out


def test_so_is_a_release(broker: Broker, demo: Path) -> None:
    assert broker("run", "-c", demo).code == 0
    assert unheard(broker, demo, FULL, "release --all-ours --yes").code == Exit.PARTLY_DONE
    assert "0 reservations held" in broker("status", "-c", demo).out


def test_what_only_answers_ends_with_an_error(broker: Broker, demo: Path) -> None:
    ran = unheard(broker, demo, FULL, "status")
    assert ran.code == Exit.ERROR and ran.err.count("\n") == 1
    assert "cannot write: No space left on device. Free some space" in ran.err


def test_another_exit_code_stays(broker: Broker, demo: Path) -> None:
    (demo.parent / "FREEZE").touch()
    assert unheard(broker, demo, FULL, "run").code == Exit.REFUSED
