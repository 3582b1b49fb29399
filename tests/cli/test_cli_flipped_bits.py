"""A state file in which bits flipped, wherever they lie: one line and exit code 1, or not noticed; never a purchase."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Broker, one_line, purchases

PLACES = 50


@pytest.fixture
def whole(broker: Broker, demo: Path) -> bytes:
    """The state after a run, in one file."""
    assert broker("run", "-c", demo).code == 0
    state = demo.parent / "state.db"
    with closing(sqlite3.connect(state)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return state.read_bytes()


def flipped(whole: bytes, draw: random.Random) -> bytes:
    """One bit of a byte that means something: most of the file is empty room."""
    damaged = bytearray(whole)
    place = draw.choice([at for at, byte in enumerate(whole) if byte])
    damaged[place] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def put(demo: Path, state: bytes) -> None:
    for beside in ("-wal", "-shm"):
        (demo.parent / f"state.db{beside}").unlink(missing_ok=True)
    (demo.parent / "state.db").write_bytes(state)


@pytest.mark.parametrize(("command", "places"), [("status", PLACES), ("report", PLACES), ("run", 12)])
def test_flipped_bits(broker: Broker, demo: Path, whole: bytes, command: str, places: int) -> None:
    draw, before, noticed = random.Random(11), purchases(demo), 0
    for _ in range(places):
        put(demo, flipped(whole, draw))
        ran = broker(command, "-c", demo)
        assert ran.code in (0, 1), ran
        if ran.code:
            noticed += 1
            assert "state.db" in one_line(ran)
    assert noticed
    assert purchases(demo) == before


def test_a_row_that_holds_what_was_never_written_is_damage(broker: Broker, demo: Path, whole: bytes) -> None:
    """SQLite keeps no checksums: it hands out what it finds."""
    put(demo, whole.replace(b'"machine_type"', b'"machine_typo"'))
    for command in ("status", "plan", "run", "report", "release --all-ours --yes"):
        ran = broker(*command.split(), "-c", demo)
        assert ran.code == 1, ran
        assert "damaged" in one_line(ran)
        assert "state adopt" in ran.err
