"""What a machine's slots are: pooled, any of which will do, or cells on nodes. Both take the same events."""

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from broker.errors import UsageError
from broker.sia import placement_step, step
from broker.sia.claims import start_owed
from broker.sia.columns import GRANT, NEVER, State
from broker.sia.firm import WELL
from broker.sia.lending import start_early
from broker.sia.lists import queue_leave
from broker.sia.placement import Cells
from broker.sia.placement_claims import note_standing
from broker.sia.placement_state import Nodes
from broker.sia.shadow import note_lag


class Ground(Protocol):
    """`j` is a job's index; times are in seconds. Only what `decide` does is written to the log."""

    def submit(self, s: State, j: int, now: float) -> None: ...

    def start(self, s: State, j: int, now: float) -> None:
        """The scheduler has started a queued job of its own accord."""
        ...

    def progressed(self, s: State, j: int, now: float) -> None:
        """An owed job that runs has done other than was thought."""
        ...

    def end(self, s: State, j: int, now: float) -> None: ...

    def cancel(self, s: State, j: int, now: float) -> None: ...

    def set_capacity(self, s: State, goal: int) -> None: ...

    def decide(self, s: State, now: float) -> None:
        """Drains that are done, then grants, reclaims and loans."""
        ...

    def cells_of(self, j: int, /) -> Cells:
        """Where a job runs or drains; empty where slots have no place."""
        ...

    def saved(self) -> Any:
        """As JSON can hold it; None: there is nothing beside the state."""
        ...


class Pooled:
    def submit(self, s: State, j: int, now: float) -> None:
        step.submit(s, j, now)

    def start(self, s: State, j: int, now: float) -> None:
        if s.jobs[j].shadow_start < NEVER:
            start_owed(s, j, now, GRANT)
        else:
            queue_leave(s, j)
            s.jobs[j].firm_loan = WELL  # nobody asked us for the odds
            start_early(s, j, now)
        s.pool[0].logged -= 1  # it is not a decision of ours

    def progressed(self, s: State, j: int, now: float) -> None:
        note_lag(s, j, now)

    def end(self, s: State, j: int, now: float) -> None:
        step.end(s, j, now)

    def cancel(self, s: State, j: int, now: float) -> None:
        step.cancel(s, j, now)

    def set_capacity(self, s: State, goal: int) -> None:
        step.set_capacity(s, goal)

    def decide(self, s: State, now: float) -> None:
        step.finish_drains(s, now)
        step.decide(s, now)

    def cells_of(self, _: int, /) -> Cells:
        return ()

    def saved(self) -> Any:
        return None


@dataclass(slots=True)
class Placed:
    """A job that the scheduler started of its own accord is taken to be where a loan would have gone."""

    nodes: Nodes

    def submit(self, s: State, j: int, now: float) -> None:
        placement_step.submit(s, self.nodes, j, now)

    def start(self, s: State, j: int, now: float) -> None:
        cells = self.nodes.floor.room(self.nodes.slots(s.jobs[j].gpus))
        if not cells:
            raise UsageError("the job fits on no node", next_step="Report what has ended and what is held first")
        placement_step.start_unasked(s, self.nodes, j, cells, now)

    def progressed(self, s: State, j: int, now: float) -> None:
        note_standing(s, self.nodes, j, now)

    def end(self, s: State, j: int, now: float) -> None:
        placement_step.end(s, self.nodes, j, now)

    def cancel(self, s: State, j: int, now: float) -> None:
        placement_step.cancel(s, self.nodes, j, now)

    def set_capacity(self, s: State, goal: int) -> None:
        placement_step.set_capacity(s, self.nodes, goal)

    def decide(self, s: State, now: float) -> None:
        placement_step.finish_drains(s, self.nodes, now)
        placement_step.decide(s, self.nodes, now)

    def cells_of(self, j: int, /) -> Cells:
        return self.nodes.floor.place.get(j, ())

    def saved(self) -> Any:
        return self.nodes

    @classmethod
    def restore(cls, saved: Any) -> "Placed":
        """Raises msgspec.ValidationError or KeyError for what is damaged. JSON has no infinity: null stands for it."""
        for static in saved["floor"]["statics"]:
            _unbounded(static, "needs")
            for waiting in static["queue"].values():
                _unbounded(waiting, "work", "leaves")
        return cls(msgspec.convert(saved, Nodes, str_keys=True))


def _unbounded(record: dict[str, Any], *names: str) -> None:
    for name in names:
        record[name] = NEVER if record[name] is None else record[name]
