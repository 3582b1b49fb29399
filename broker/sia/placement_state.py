"""The allocator's state on nodes: what the pooled state does not hold."""

from dataclasses import dataclass, field

from broker.sia.columns import DRAINING, NEVER, NOBODY, RESIZING, RUNNING, State
from broker.sia.placement import Cells, slots_of
from broker.sia.placement_floor import Floor
from broker.sia.placement_static import Static


@dataclass(slots=True)
class Nodes:
    """`waiting` are owed jobs that are not at home; `content` of them run where they are and stay there.

    `suspects` are a tenant's owed jobs that may be late: the static schedule waits for them. `least` is the most
    service that a job ever had, so what its work is at least; checkpoints and restarts do not make that unknown again.
    """

    size: int
    floor: Floor
    waiting: dict[int, None]
    suspects: list[dict[int, None]]
    least: dict[int, float] = field(default_factory=dict)
    content: list[int] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)

    @classmethod
    def new(cls, size: int, entitlements: list[int], capacity: int, rest_s: float) -> "Nodes":
        statics = [Static.new(size, slots // size, rest_s) for slots in entitlements]
        return cls(size, Floor.new(size, statics, capacity // size), {}, [{} for _ in entitlements])

    def slots(self, gpus: int) -> int:
        return slots_of(gpus, self.size)

    def kept(self, s: State, v: int) -> int:
        """Nodes that the tenant never lends."""
        return min(len(self.floor.bound[v]), -(-s.tenants[v].keep // self.size))

    def note_least(self, j: int, service: float) -> None:
        self.least[j] = max(self.least.get(j, 0.0), service)

    def needed(self, s: State) -> dict[int, int]:
        """Slots that claims cover, by node; what runs at home in them is part of it."""
        found: dict[int, int] = {}
        for j in self.waiting:
            if j not in self.content:
                for cell in self.floor.pin.get(j, ()):
                    found[cell.node] = found.get(cell.node, 0) | cell.mask
        for v, bound in enumerate(self.floor.bound):
            whole = len(bound) if s.tenants[v].entitled_since < NEVER else self.kept(s, v)
            for node in bound[:whole]:
                if node != NOBODY:
                    found[node] = (1 << self.size) - 1
        return found

    def free_for_loans(self) -> int:
        return self.floor.loans.free_slots()

    def coming(self, s: State) -> int:
        """Slots that drain and are nobody's claim."""
        if s.pool[0].drains == NOBODY:
            return 0
        found = sum(self._unclaimed(cells) for cells in self.floor.left.values())
        for j, cells in self.floor.place.items():
            if s.jobs[j].state == DRAINING:
                found += self._unclaimed(cells)
            elif s.jobs[j].state == RESIZING and s.jobs[j].target < s.jobs[j].held:
                found += self._unclaimed(cells) - self._unclaimed(self.floor.base[j])
        return found

    def _unclaimed(self, cells: Cells) -> int:
        return sum((cell.mask & ~self.floor.reserved[cell.node]).bit_count() for cell in cells)

    def extra(self, s: State) -> int:
        """Slots of jobs beyond what they asked for, of those that run."""
        jobs = [j for j in self.floor.place if s.jobs[j].state in (RUNNING, RESIZING)]
        wide = [self.floor.place[j] for j in jobs if s.jobs[j].state == RUNNING or s.jobs[j].target > s.jobs[j].gpus]
        narrow = [self.floor.base[j] for j in jobs if s.jobs[j].state == RUNNING or s.jobs[j].target > s.jobs[j].gpus]
        return sum(c.width for cells in wide for c in cells) - sum(c.width for cells in narrow for c in cells)
