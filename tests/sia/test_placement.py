"""The buddy allocator: no slot twice, none lost, buddies merge, and places depend on what is free alone."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.sia.placement import Buddy, Cell, Cells, checked_size, free_cells, slots_of

SIZES = st.sampled_from([1, 2, 4, 8, 16])


def slots(cells: Cells) -> set[tuple[int, int]]:
    return {(cell.node, slot) for cell in cells for slot in range(cell.offset, cell.offset + cell.width)}


@pytest.mark.parametrize(("gpus", "size", "taken"), [(1, 8, 1), (3, 8, 4), (5, 8, 8), (8, 8, 8), (9, 8, 16), (3, 1, 3)])
def test_gpus_round_up_to_a_cell_or_to_whole_nodes(gpus: int, size: int, taken: int) -> None:
    assert slots_of(gpus, size) == taken


def test_a_node_is_a_power_of_two() -> None:
    assert checked_size(8) == 8
    for size in (0, 6, 128):
        with pytest.raises(UsageError, match="cannot be cut into cells"):
            checked_size(size)


def test_free_cells_are_the_largest_aligned_ones() -> None:
    assert free_cells(0, 8) == ((8, 0),)
    assert free_cells(0b0000_0100, 8) == ((1, 3), (2, 0), (4, 4))
    assert free_cells(0b1111_1111, 8) == ()


@settings(max_examples=200)
@given(size=SIZES, nodes=st.integers(1, 5), rng=st.randoms(use_true_random=False))
def test_nothing_overlaps_and_nothing_is_lost(size: int, nodes: int, rng: random.Random) -> None:
    buddy, held = Buddy(size, [0] * nodes), list[Cells]()
    for _ in range(60):
        if held and rng.randint(0, 1):
            buddy.free(held.pop(rng.randrange(len(held))))
        else:
            wanted = slots_of(rng.randint(1, 2 * size), size)
            cells = buddy.find(wanted)
            if not cells:
                assert not fits(buddy, wanted)
                continue
            assert len(slots(cells)) == wanted
            assert len(cells) == 1 or all(cell.width == size for cell in cells)
            assert all(cell.offset % cell.width == 0 for cell in cells)
            buddy.take(cells)
            held.append(cells)
        used = [slot for cells in held for slot in slots(cells)]
        assert len(used) == len(set(used)) == nodes * size - buddy.free_slots()
    for cells in held:
        buddy.free(cells)
    assert buddy.lists == Buddy(size, [0] * nodes).lists


def fits(buddy: Buddy, wanted: int) -> bool:
    free = [[width for width, _ in free_cells(used, buddy.size)] for used in buddy.used]
    if wanted > buddy.size:
        return sum(buddy.size in widths for widths in free) * buddy.size >= wanted
    return any(width >= wanted for widths in free for width in widths)


@given(size=SIZES, masks=st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=5), wanted=st.integers(1, 32))
def test_where_a_job_goes_depends_on_what_is_free_alone(size: int, masks: list[int], wanted: int) -> None:
    masks = [mask & (1 << size) - 1 for mask in masks]
    filled = Buddy(size, [0] * len(masks))
    for node, mask in enumerate(masks):
        filled.take(Cell(node, slot, 1) for slot in range(size) if mask >> slot & 1)
    assert filled.find(slots_of(wanted, size)) == Buddy(size, masks).find(slots_of(wanted, size))


def test_the_smallest_cell_that_is_enough_goes_first() -> None:
    buddy = Buddy(8, [0, 0b1111_0011, 0b0000_1111])
    assert buddy.find(1) == (Cell(1, 2, 1),)
    assert buddy.find(4) == (Cell(2, 4, 4),)
    assert buddy.find(8) == (Cell(0, 0, 8),)
    assert buddy.find(16) == ()


def test_a_slot_is_never_used_twice() -> None:
    buddy = Buddy(4, [0])
    buddy.take([Cell(0, 0, 2)])
    with pytest.raises(AssertionError):
        buddy.take([Cell(0, 1, 1)])
    with pytest.raises(AssertionError):
        buddy.free([Cell(0, 2, 1)])
