"""Every boundary x every way in which a call goes wrong x every change x three clouds."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.apply.boundary import Boundary
from providers.sandbox.local import Sandbox
from tests.crash.cell import Cell, Mode, Stage, Wish, survive
from tests.crash.clouds import CLOUDS, ENDING, Cloud

REPEATS = (Boundary.BEFORE_REPEAT, Boundary.AFTER_REPEAT)


def cells(cloud: Cloud) -> Iterator[Cell]:
    for wish in Wish:
        for mode in Mode:
            for boundary in Boundary:
                if wish is Wish.RELEASE or boundary not in REPEATS:
                    yield Cell(cloud=cloud, wish=wish, mode=mode, boundary=boundary)


def staged(sandbox: Sandbox, cell: Cell, folder: Path) -> Stage:
    return Stage(sandbox, cell.cloud, folder / "state.db", end_ahead=cell.wish.end_ahead)


QUICK = [
    Cell(cloud=cloud, wish=Wish.RESERVE, mode=mode, boundary=boundary)
    for cloud, mode, boundary in zip(
        (*CLOUDS, *CLOUDS),
        (Mode.REPLY_LOST, Mode.KILLED, Mode.LATER, Mode.LATER, Mode.REPLY_LOST, Mode.KILLED),
        (
            Boundary.AFTER_CALL,
            Boundary.AFTER_INTENT,
            Boundary.AFTER_CALL,
            Boundary.BEFORE_SETTLED,
            Boundary.AFTER_LOOK,
            Boundary.BEFORE_OUTCOME,
        ),
        strict=True,
    )
]
QUICK += [
    Cell(cloud=cloud, wish=Wish.EXTEND, mode=mode, boundary=boundary)
    for cloud in ENDING
    for mode, boundary in ((Mode.REPLY_LOST, Boundary.AFTER_CALL), (Mode.REFUSED, Boundary.BEFORE_OUTCOME))
]


@pytest.mark.parametrize("cell", QUICK, ids=str)
def test_a_killed_run_neither_buys_twice_nor_leaks(cell: Cell, sandbox: Sandbox, tmp_path: Path) -> None:
    assert survive(staged(sandbox, cell, tmp_path), cell)


@pytest.mark.crash
@pytest.mark.parametrize(
    ("cloud", "wish"),
    [(cloud, wish) for wish in Wish for cloud in wish.clouds],
    ids=lambda each: getattr(each, "name", each),
)
def test_matrix(cloud: Cloud, wish: Wish, sandbox: Sandbox, tmp_path: Path, tally: Counter[str]) -> None:
    new = sandbox.world.saved()
    for number, cell in enumerate(cell for cell in cells(cloud) if cell.wish is wish):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            hit = survive(staged(sandbox, cell, folder), cell)
        except AssertionError as error:
            raise AssertionError(f"{cell}: {error}") from error
        sandbox.world.restore(new)
        tally["cells"] += 1
        tally.update({boundary.value: count for boundary, count in hit.items()})
