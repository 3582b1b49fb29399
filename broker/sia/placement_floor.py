"""What is on the nodes that are held, and which of them are whose: jobs in cells, homes of owed jobs, loans.

A tenant's static schedule names nodes of its own, numbered from 0. One of them has a node of the pool *bound* to it
while a claim on it stands. A job that the static schedule has started and that is not over has its *home* in such a
node: its cell there, mirrored to a cell of the bound node so that cells which contain one another still do. The mirror
is free to choose for every part of the node that is home to nobody else, so a job often is at home where it runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from broker.sia.columns import NOBODY
from broker.sia.placement import Buddy, Cell, Cells
from broker.sia.placement_static import Static

Cost = Callable[[int, Cell], tuple[float, ...]]


@dataclass(slots=True)
class Floor:
    """`busy` are slots in use, `reserved` those that only a claim may use; `loans` counts both, and closing nodes."""

    size: int
    statics: list[Static]
    held: list[int] = field(default_factory=list)  # 1: the node is there
    closing: list[int] = field(default_factory=list)  # 1: it goes back, or has gone
    busy: list[int] = field(default_factory=list)
    who: list[list[int]] = field(default_factory=list)  # job by slot
    reserved: list[int] = field(default_factory=list)
    loans: Buddy = field(default_factory=lambda: Buddy(1, []))
    base: dict[int, Cells] = field(default_factory=dict)  # where a job runs on what it asked for
    place: dict[int, Cells] = field(default_factory=dict)  # where it runs or drains, with what it has beyond that
    left: dict[int, Cells] = field(default_factory=dict)  # where an abandoned drain goes on
    bound: list[list[int]] = field(default_factory=list)  # node of the pool, by tenant and node of its own
    owner: list[int] = field(default_factory=list)  # by node: 1 if it is bound
    guests: list[list[list[int]]] = field(default_factory=list)  # jobs at home, by tenant and node of its own
    home: dict[int, Cells] = field(default_factory=dict)  # on the tenant's own nodes
    pin: dict[int, Cells] = field(default_factory=dict)  # the mirrored home

    @classmethod
    def new(cls, size: int, statics: list[Static], nodes: int) -> "Floor":
        floor = cls(size, statics, loans=Buddy(size, []))
        floor.bound = [[NOBODY] * static.nodes for static in statics]
        floor.guests = [[[] for _ in range(static.nodes)] for static in statics]
        for _ in range(nodes):
            floor.add_node()
        return floor

    # Nodes

    def add_node(self) -> None:
        """One that had been given back, or a new one."""
        node = next((node for node, held in enumerate(self.held) if not held), len(self.held))
        if node == len(self.held):
            self.loans.add_node()
            self.who.append([NOBODY] * self.size)
            for column in (self.held, self.closing, self.busy, self.reserved, self.owner):
                column.append(0)
        self.held[node], self.closing[node] = 1, 0
        self.show(node)

    def hold(self, goal: int) -> None:
        """At least so many slots are held from now on; which nodes beyond them go back is looked at anew."""
        while self.capacity() < goal:
            self.add_node()
        self.close_surplus(goal)

    def close_surplus(self, goal: int) -> None:
        """Nothing is lent on the nodes that go back: those that are nobody's home and have least on them."""
        surplus = sum(self.held) - goal // self.size
        going: list[int] = []
        if surplus > 0:
            going = sorted(self.unbound(), key=lambda node: (self.busy[node].bit_count(), -node))[:surplus]
        for node, held in enumerate(self.held):
            if held and self.closing[node] != (node in going):
                self.closing[node] = int(node in going)
                self.show(node)

    def give_back(self) -> None:
        """Nodes that go back and have nothing on them."""
        for node, held in enumerate(self.held):
            if held and self.closing[node] and not self.busy[node] and not self.owner[node]:
                self.held[node] = 0
                self.show(node)

    def room(self, slots: int) -> Cells:
        """Where a loan goes: on nodes that are bound to nobody if it fits there, for next homes are on those bound."""
        return self.loans.find(slots, self.owner) or self.loans.find(slots)

    def capacity(self) -> int:
        """Slots on the nodes that are held."""
        return self.size * sum(self.held)

    def reserve(self, node: int, mask: int) -> None:
        self.reserved[node] = mask
        self.show(node)

    def show(self, node: int) -> None:
        """Bring what may be lent up to date."""
        full = (1 << self.size) - 1
        self.loans.put(node, full if self.closing[node] else self.busy[node] | self.reserved[node])

    # Jobs in cells

    def occupy(self, j: int, cells: Cells) -> None:
        for cell in cells:
            assert not self.busy[cell.node] & cell.mask, f"{cell} is in use"
            assert self.held[cell.node], f"node {cell.node} is not held"
            self.busy[cell.node] |= cell.mask
            self.who[cell.node][cell.offset : cell.offset + cell.width] = [j] * cell.width
            self.show(cell.node)

    def vacate(self, cells: Cells) -> None:
        for cell in cells:
            self.busy[cell.node] &= ~cell.mask
            self.who[cell.node][cell.offset : cell.offset + cell.width] = [NOBODY] * cell.width
            self.show(cell.node)

    def settle(self, j: int, cells: Cells) -> None:
        self.occupy(j, cells)
        self.base[j] = self.place[j] = cells

    def lift(self, j: int) -> None:
        """The job's slots are free."""
        self.vacate(self.place.pop(j))
        del self.base[j]

    def widen(self, j: int, cells: Cells) -> None:
        """`cells` contain its own."""
        self.vacate(self.place[j])
        self.occupy(j, cells)
        self.place[j] = cells

    def narrow(self, j: int) -> None:
        """Back to what it asked for."""
        self.widen(j, self.base[j])

    def abandon(self, j: int) -> None:
        """Its slots go on draining while it runs elsewhere."""
        self.left[j] = self.place.pop(j)
        del self.base[j]

    def occupants(self, node: int, mask: int) -> dict[int, int]:
        """Jobs on these slots, and which of them each has."""
        mask &= self.busy[node]
        found: dict[int, int] = {}
        for slot in range(self.size if mask else 0):
            if mask >> slot & 1:
                j = self.who[node][slot]
                found[j] = found.get(j, 0) | 1 << slot
        return found

    def is_free(self, cells: Cells) -> bool:
        return not any(self.busy[cell.node] & cell.mask for cell in cells)

    def part(self, cells: Cells, node: int, mask: int) -> int:
        """Which of these slots belong to the cells."""
        return sum(cell.mask for cell in cells if cell.node == node) & mask

    def is_at_home(self, j: int) -> bool:
        return j in self.pin and self.base.get(j) == self.pin[j]

    def busy_slots(self) -> int:
        return sum(mask.bit_count() for mask in self.busy)

    # Homes

    def move_in(self, v: int, j: int) -> None:
        """The static schedule has started the job."""
        self.home[j] = self.statics[v].cells[j]
        for cell in self.home[j]:
            self.guests[v][cell.node].append(j)

    def move_out(self, v: int, j: int) -> None:
        for cell in self.home.pop(j):
            self.guests[v][cell.node].remove(j)
        self.pin.pop(j, None)

    def bind(self, v: int, own: int, node: int) -> None:
        self.bound[v][own] = node
        self.owner[node] = 1

    def unbind(self, v: int, own: int) -> None:
        self.owner[self.bound[v][own]] = 0
        self.bound[v][own] = NOBODY

    def pin_down(self, v: int, j: int, cost: Cost) -> bool:
        """Give the job a home on nodes of the pool where it costs least; False if too few nodes are held."""
        missing = [cell.node for cell in self.home[j] if self.bound[v][cell.node] == NOBODY]
        if len(missing) > sum(1 for _ in self.unbound()):
            return False
        self.pin[j] = tuple(self._mirror(v, j, cell, cost) for cell in self.home[j])
        return True

    def unbound(self) -> Iterator[int]:
        return (node for node, held in enumerate(self.held) if held and not self.owner[node])

    def _mirror(self, v: int, j: int, cell: Cell, cost: Cost) -> Cell:
        node = self.bound[v][cell.node]
        if node == NOBODY:
            blocks = [Cell(node, 0, self.size) for node in self.unbound()]
        else:
            blocks = [self._image(v, cell, node)]
        options = [
            Cell(block.node, block.offset + start, cell.width)
            for block in blocks
            for start in range(0, block.width, cell.width)
        ]
        best = min(options, key=lambda option: (*cost(j, option), option))
        if node == NOBODY:
            self.bind(v, cell.node, best.node)
        return best

    def _image(self, v: int, cell: Cell, node: int) -> Cell:
        """The largest block of the bound node in which the mirror may be chosen."""
        pinned = [
            (home.offset, pin.offset)
            for guest in self.guests[v][cell.node]
            for home, pin in zip(self.home[guest], self.pin.get(guest, ()), strict=False)
            if home.node == cell.node
        ]
        own, there, width = 0, 0, self.size
        while pinned:
            width //= 2
            own_upper = cell.offset & width
            beside = [offset & width for at, offset in pinned if (at & width) == own_upper]
            across = [offset & width for at, offset in pinned if (at & width) != own_upper]
            there |= beside[0] if beside else across[0] ^ width
            own |= own_upper
            pinned = [(at, offset) for at, offset in pinned if (at & width) == own_upper]
        return Cell(node, there, width)
