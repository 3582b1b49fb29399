"""What was bought for a job is kept for it while it waits.

Packing is done greedily, so that with one more instance the same jobs may be laid out otherwise, and a job for which
that instance was bought may find it taken. Without earmarks it would then be bought for again, run after run.
"""

from collections.abc import Iterable

import msgspec

from broker.purchase.holdings import Lot
from broker.purchase.needs import Need, Standing


class Earmarks(msgspec.Struct, frozen=True):
    """`by_job` names the lots of ours that were bought for a waiting job; `kept` is how many instances of a lot, by
    its key, were bought for jobs that wait.
    """

    by_job: dict[str, tuple[Lot, ...]]
    kept: dict[str, int]

    def of(self, need: Need) -> tuple[Lot, ...]:
        """The lots that were bought for it, while it waits."""
        return self.by_job.get(need.job, ()) if need.standing is Standing.WAITING else ()

    def bought_for(self, need: Need) -> bool:
        """Whether a purchase for this job stands ready and nobody has begun to use it."""
        return any(lot.usable - lot.used >= self.kept[lot.key] for lot in self.of(need))


def earmarks(lots: Iterable[Lot], needs: Iterable[Need]) -> Earmarks:
    """What of ours is free and was bought for jobs among these needs that still wait."""
    waiting = {need.job for need in needs if need.job and need.standing is Standing.WAITING}
    by_job: dict[str, tuple[Lot, ...]] = {}
    kept: dict[str, int] = {}
    for lot in lots:
        if not lot.ours or lot.used >= lot.usable:
            continue
        for part in lot.parts:
            expected = waiting.intersection(part.jobs)
            kept[lot.key] = kept.get(lot.key, 0) + (part.instances if expected else 0)
            for job in expected:
                by_job[job] = (*by_job.get(job, ()), lot)
    return Earmarks(by_job, kept)
