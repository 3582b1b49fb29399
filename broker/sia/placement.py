"""Cells on nodes: a buddy allocator with power-of-two cells.

A node has `size` GPU slots, a power of two. A job of at most one node sits in one aligned cell inside one node, its
GPUs rounded up to a power of two; a larger gang takes whole nodes. Where a job goes depends on what is free alone, not
on how it came to be free: the smallest free cell that is large enough, on the node of the lowest number.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import NamedTuple

from broker.errors import UsageError

LARGEST_NODE = 64


class Cell(NamedTuple):
    """Slots offset .. offset + width of a node; width is a power of two and divides offset."""

    node: int
    offset: int
    width: int

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.offset


Cells = tuple[Cell, ...]


def checked_size(size: int) -> int:
    if not 1 <= size <= LARGEST_NODE or size & (size - 1):
        raise UsageError(
            f"a node of {size} GPUs cannot be cut into cells",
            next_step=f"Give a power of two up to {LARGEST_NODE}: 1, 2, 4, 8, 16",
        )
    return size


def slots_of(gpus: int, size: int) -> int:
    """Slots that a job of so many GPUs takes on nodes of `size`."""
    if gpus >= size:
        return -(-gpus // size) * size
    return 1 << (gpus - 1).bit_length()


@cache
def free_cells(used: int, size: int) -> tuple[tuple[int, int], ...]:
    """Largest aligned free cells of a node as (width, offset), smallest first; `used` has a bit for each slot."""
    found: list[tuple[int, int]] = []
    _collect(used, 0, size, found)
    return tuple(sorted(found))


def _collect(used: int, offset: int, width: int, found: list[tuple[int, int]]) -> None:
    if not used & Cell(0, offset, width).mask:
        found.append((width, offset))
    elif width > 1:
        _collect(used, offset, width // 2, found)
        _collect(used, offset + width // 2, width // 2, found)


@dataclass(slots=True)
class Buddy:
    """Which slots of which nodes are in use. `lists[k]` are the nodes with a largest free cell of 2**k slots, sorted.

    Free buddies merge by themselves: what is free on a node is read off its slots.
    """

    size: int
    used: list[int]  # a mask for each node
    lists: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lists = [[] for _ in range(self.size.bit_length())]
        for node in range(len(self.used)):
            self._list(node)

    def add_node(self) -> int:
        self.used.append(0)
        self._list(len(self.used) - 1)
        return len(self.used) - 1

    def find(self, slots: int, barred: Sequence[int] = ()) -> Cells:
        """Where a job of so many slots goes; empty if it fits nowhere. `barred` is 1 for nodes to leave out."""
        if slots > self.size:
            wanted = slots // self.size
            free = self.lists[-1] if not barred else (node for node in self.lists[-1] if not barred[node])
            whole = list(islice(free, wanted))
            return tuple(Cell(node, 0, self.size) for node in whole) if len(whole) == wanted else ()
        for nodes in self.lists[slots.bit_length() - 1 :]:
            for node in nodes:
                if not (barred and barred[node]):
                    return (Cell(node, self._offset(node, slots), slots),)
        return ()

    def take(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            assert not self.used[cell.node] & cell.mask, f"{cell} is used twice"
            self.put(cell.node, self.used[cell.node] | cell.mask)

    def free(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            assert self.used[cell.node] & cell.mask == cell.mask, f"{cell} is free already"
            self.put(cell.node, self.used[cell.node] & ~cell.mask)

    def put(self, node: int, used: int) -> None:
        """State a node's used slots."""
        if used == self.used[node]:
            return
        self._unlist(node)
        self.used[node] = used
        self._list(node)

    def free_slots(self) -> int:
        return sum(self.size - used.bit_count() for used in self.used)

    def _offset(self, node: int, slots: int) -> int:
        return next(offset for width, offset in free_cells(self.used[node], self.size) if width >= slots)

    def _list(self, node: int) -> None:
        for width in {width for width, _ in free_cells(self.used[node], self.size)}:
            insort(self.lists[width.bit_length() - 1], node)

    def _unlist(self, node: int) -> None:
        for width in {width for width, _ in free_cells(self.used[node], self.size)}:
            nodes = self.lists[width.bit_length() - 1]
            del nodes[bisect_left(nodes, node)]
