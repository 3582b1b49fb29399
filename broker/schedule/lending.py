"""Whose slots a job that runs early is on: its tenant's own idle share, what is promised to nobody, then others'."""

from broker.schedule.orders import Loan, Part
from broker.sia import following
from broker.sia.machine import Machine


def loans(machine: Machine, names: dict[str, str]) -> tuple[Loan, ...]:
    """Of all jobs that run early, oldest first; `names` are the queue's names of the allocator's jobs.

    Slots carry no owner: this is the one attribution in which nobody lends more than it leaves idle and may lend.
    """
    books = _Books(machine)
    early = [
        j
        for j in machine.state.running[: machine.state.pool[0].runs]
        if not following.is_owed(machine, machine.jobs[j])
    ]
    early.sort(key=lambda j: (machine.state.jobs[j].started_at, j))
    return tuple(books.lend(j, names.get(machine.jobs[j], machine.jobs[j])) for j in early)


class _Books:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        tenants = machine.state.tenants
        self._own = {v: max(0, tenant.entitlement - tenant.owed) for v, tenant in enumerate(tenants)}
        self._lendable = {
            v: max(0, tenant.entitlement - max(tenant.owed, tenant.keep)) for v, tenant in enumerate(tenants)
        }
        promised = sum(tenant.entitlement for tenant in tenants)
        self._nobodys = max(0, machine.state.pool[0].capacity - promised)

    def lend(self, j: int, name: str) -> Loan:
        job = self._machine.state.jobs[j]
        rest = job.held
        own = min(rest, self._own[job.tenant])
        self._take(job.tenant, own)
        rest -= own
        parts, rest = self._parts(job.tenant, rest)
        return Loan(
            job=name,
            tenant=self._machine.tenants[job.tenant],
            gpus=job.held,
            own_gpus=own,
            lenders=parts,
            beyond_gpus=rest,
        )

    def _take(self, v: int, gpus: int) -> None:
        """Own idle slots that are used go off what may be lent last: what a tenant keeps, it uses first."""
        self._own[v] -= gpus
        self._lendable[v] = min(self._lendable[v], self._own[v])

    def _parts(self, borrower: int, rest: int) -> tuple[tuple[Part, ...], int]:
        parts = []
        free = min(rest, self._nobodys)
        if free:
            self._nobodys -= free
            parts.append(Part(tenant=None, gpus=free))
            rest -= free
        for v in sorted(self._lendable, key=lambda v: (-self._lendable[v], v)):
            got = min(rest, self._lendable[v]) if v != borrower else 0
            if got > 0:
                self._lendable[v] -= got
                self._own[v] -= got
                parts.append(Part(tenant=self._machine.tenants[v], gpus=got))
                rest -= got
        return tuple(parts), rest
