"""Files beside the state that cannot be read or written: one clear line, or done without them; never a crash."""

import errno
import faulthandler
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.commands import acting
from broker.errors import Exit, StateError
from state.store import Store
from tests.cli.conftest import Broker, Ran, edit, one_line

Spoil = Callable[[Path, pytest.MonkeyPatch], None]
EXTRA = 'prices = "prices.csv"\nforecast = "forecast.csv"\n'
FILES = (
    "broker.toml", "world.json", "world.json.lock", "queue.csv", "prices.csv", "forecast.csv", "FREEZE", "state.db",
    "state.db.lock", "state.db.queues", "state.db.mark", "state.history.db", "state.demand.json",
    "state.durations.json", "state.schedule.json",
)  # fmt: skip
COMMANDS = ("check", "jobs", "offers", "plan", "run", "apply --yes", "status", "report", "schedule", "forecast",
            "history show", "state list", "state unlock")  # fmt: skip


def _folder(path: Path, _: pytest.MonkeyPatch) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def _dangling(path: Path, _: pytest.MonkeyPatch) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.with_name("nowhere"))


def _pipe(path: Path, _: pytest.MonkeyPatch) -> None:
    """Nobody ever writes into it, so whoever opens it to read waits for ever."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _denied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user who may not read it: root, who runs these tests in containers, may read everything."""
    if not path.exists():
        path.write_text("")

    def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, *rest: Any, **named: Any) -> Any:
            if isinstance(file, str | os.PathLike) and Path(file).absolute() == path.absolute():
                raise PermissionError(errno.EACCES, "Permission denied", str(file))
            return real(file, *rest, **named)

        return opened

    monkeypatch.setattr(io, "open", refusing(io.open))
    monkeypatch.setattr(os, "open", refusing(os.open))


SPOILT: dict[str, Spoil] = {
    "a folder": _folder, "a link to nothing": _dangling, "unreadable": _denied, "a pipe": _pipe,
}  # fmt: skip


@pytest.fixture
def settled(broker: Broker, demo: Path) -> Path:
    """A sandbox with something bought, its own price and forecast file, and every small file beside the state."""
    demo.write_text(EXTRA + demo.read_text())
    (demo.parent / "prices.csv").write_text("provider,region,machine_type,usd_per_hour,source,retrieved\n")
    (demo.parent / "forecast.csv").write_text("pool,at,quantile,gpus\n")
    for command in ("run", "schedule"):
        broker(command, "-c", demo)
    return demo


@pytest.mark.deep
@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_used_never_ends_in_a_crash(
    broker: Broker, settled: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    before = shutil.copytree(settled.parent, settled.parent.with_name("before"), symlinks=True)
    for command in COMMANDS:
        shutil.rmtree(settled.parent)
        shutil.copytree(before, settled.parent, symlinks=True)
        with monkeypatch.context() as patch:
            SPOILT[kind](settled.parent / name, patch)
            ran = broker(*command.split(), "-c", settled)
        plainly(ran, command)


def plainly(ran: Ran, command: str) -> None:
    assert "internal error" not in ran.err, (command, ran.err)
    assert "Traceback" not in ran.err + ran.out, (command, ran.err)
    assert "Errno" not in ran.err + ran.out, (command, ran.err, ran.out)
    if ran.code and not ran.out:
        one_line(ran)


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize("command", ["run", "status", "release --all-ours --yes"])
def test_a_world_that_cannot_be_read_is_named_and_nothing_is_done(
    broker: Broker, settled: Path, monkeypatch: pytest.MonkeyPatch, command: str, kind: str
) -> None:
    with Store.open(settled.parent / "state.db", read_only=True) as store:
        before = store.entries()
    SPOILT[kind](settled.parent / "world.json", monkeypatch)
    ran = broker(*command.split(), "-c", settled)
    assert ran.code == Exit.ERROR
    assert "world.json" in one_line(ran)
    monkeypatch.undo()
    with Store.open(settled.parent / "state.db", read_only=True) as store:
        assert store.entries() == before


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "unreadable"])
def test_without_the_memory_of_queues_a_run_buys_and_gives_nothing_back(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It is what a sudden drop is noticed by: what cannot be noticed may have happened."""
    memory = demo.parent / "state.db.queues"
    edit(demo, "[purchase]", '[purchase]\nminimum_hold = "0s"\nreacquire = "0s"\nrelease_grace = "0s"')
    SPOILT[kind](memory, monkeypatch)
    bought = broker("run", "-c", demo)
    assert bought.code == Exit.PARTLY_DONE and "2 done." in bought.out
    assert "state.db.queues" in bought.out and "nothing is released" in bought.out
    queue = demo.parent / "queue.csv"
    queue.write_text(queue.read_text().splitlines()[0] + "\n")
    held = broker("run", "-c", demo)
    assert held.code == Exit.PARTLY_DONE and "nothing to do" in held.out, held
    monkeypatch.undo()
    shutil.rmtree(memory) if memory.is_dir() else memory.unlink()
    assert "release" in broker("run", "-c", demo).out


def test_a_run_that_cannot_keep_how_large_the_queues_were_gives_nothing_back(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, queue = demo.parent / "state.db.queues", demo.parent / "queue.csv"
    edit(demo, "[purchase]", '[purchase]\nminimum_hold = "0s"\nreacquire = "0s"\nrelease_grace = "0s"')
    assert broker("run", "-c", demo).code == Exit.OK
    queue.write_text(queue.read_text().splitlines()[0] + "\n")
    memory.unlink()

    def full(*_: object) -> None:
        raise StateError(f"cannot write {memory}: no space left", next_step="Make room")

    with monkeypatch.context() as filled:
        filled.setattr(acting, "remember", full)
        held = broker("run", "-c", demo)
    assert held.code == Exit.PARTLY_DONE and "nothing is released" in held.out, held
    assert "nothing to do" in held.out
    assert "release" in broker("run", "-c", demo).out


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """What waits longer than that, also inside of SQLite, is killed with the whole run of tests: it hangs."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("name", ["broker.toml", "prices.csv", "state.db", "state.db.lock", "state.db.queues"])
def test_a_pipe_in_the_place_of_a_file_keeps_no_run_waiting(
    broker: Broker, settled: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _pipe(settled.parent / name, monkeypatch)
    with patience(60):
        ran = broker("run", "-c", settled)
    plainly(ran, "run")


NESTED = {
    "broker.toml": "x = " + "[" * 5_000,
    "world.json": '{"format":1,"x":' + "[" * 100_000,
    "state.db.lock": '{"x":' + "[" * 100_000,
    "state.db.queues": '[{"x":' + "[" * 100_000,
    "state.schedule.json": '{"x":' + "[" * 100_000,
}


@pytest.mark.parametrize("name", NESTED)
def test_what_is_nested_without_end_is_damage_and_no_mistake_of_ours(broker: Broker, demo: Path, name: str) -> None:
    (demo.parent / name).write_text(NESTED[name])
    for command in ("run", "schedule", "state unlock", "status"):
        plainly(broker(*command.split(), "-c", demo), command)


@pytest.mark.parametrize(
    "command", ["apply pipe --yes", "report --plan pipe", "plan --out pipe", "state backup pipe", "jobs pipe",
                "status --state pipe", "state adopt --state pipe", "history import pipe", "backtest pipe",
                "history export pipe", "report --html pipe", "init pipe", "sandbox --world pipe"],
)  # fmt: skip
def test_a_pipe_that_a_command_is_given_is_named_and_left_there(broker: Broker, demo: Path, command: str) -> None:
    os.mkfifo("pipe")
    with patience(60):
        ran = broker(*command.split(), "-c", demo)
    assert ran.code == Exit.ERROR and "pipe" in ran.err + ran.out
    plainly(ran, command)
    assert Path("pipe").is_fifo()


@contextmanager
def full_disk(part: str, *, syncs: bool = True) -> Iterator[None]:
    """Whatever is written under a name that holds `part` finds no room, nor does what is synced to the disk."""
    real = io.open

    def opened(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if isinstance(file, str | os.PathLike) and part in Path(file).name and set(mode) & set("wax+"):
            raise OSError(errno.ENOSPC, "No space left on device", str(file))
        return real(file, mode, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", opened)
        if syncs:
            patch.setattr(os, "fsync", _no_room)
        yield


def _no_room(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_under_the_sandbox_is_said_and_what_was_bought_is_not_called_nothing(
    broker: Broker, demo: Path
) -> None:
    with full_disk(".world.json.part", syncs=False):
        looked = broker("offers", "-c", demo)
        bought = broker("run", "-c", demo)
    assert looked.code == Exit.ERROR and "No space left" in one_line(looked)
    assert bought.code == Exit.PARTLY_DONE
    assert "cannot write the sandbox's world" in bought.err and "Traceback" not in bought.err


@pytest.mark.deep
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_at_every_sync_never_ends_in_a_crash(broker: Broker, settled: Path, command: str) -> None:
    with full_disk("no such name"):
        ran = broker(*command.split(), "-c", settled)
    plainly(ran, command)


@pytest.mark.parametrize("arguments", ["init again --sandbox", "init again", "plan --out p.json", "state backup s.bak",
                                       "history export h.csv", "demo --fast --dir d"])  # fmt: skip
def test_a_full_disk_where_a_command_writes_is_one_line(broker: Broker, settled: Path, arguments: str) -> None:
    with full_disk(""):
        ran = broker(*arguments.split(), "-c", settled)
    plainly(ran, arguments)


@pytest.mark.parametrize("part", [".world.json.part", "broker.toml", "queue.csv"])
def test_an_init_that_failed_can_be_repeated(broker: Broker, part: str) -> None:
    with full_disk(part):
        ran = broker("init", "d", "--sandbox")
    assert ran.code == Exit.ERROR and "No space left" in one_line(ran)
    assert broker("init", "d", "--sandbox").code == 0
    assert broker("plan", "-c", "d/broker.toml").code == 0


def test_a_state_that_is_a_link_to_nothing_is_not_said_to_exist(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "state.db").symlink_to("nowhere")
    assert "a link to a file that is not there" in one_line(broker("init", "d"))


def test_a_world_of_another_format_is_refused(broker: Broker, demo: Path) -> None:
    edit(demo.parent / "world.json", '"format":1', '"format":2')
    assert "its format is 2" in one_line(broker("plan", "-c", demo))
