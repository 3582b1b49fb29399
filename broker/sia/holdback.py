"""How much idle capacity to keep free for owed starts that a wait would hurt: competing experts and risk control.

The amount is the (1 - alpha) quantile of the GPUs that sensitive owed starts want within one reclaim time, as the best
expert of late sees it (fixed-share Hedge on pinball loss: Herbster and Warmuth 1998), plus a correction that is raised
after batches with too many misses and lowered after others (online risk control: Gibbs and Candes 2021).

A burst that nobody foresaw makes many misses at once, and a correction that answered each of them would lend nothing
for months without preventing any. So a batch raises it by little, and the other misses are owed: when as many are owed
as there are GPUs, nothing is lent until enough starts have gone well (saturation: Angelopoulos, Candes and Tibshirani
2023). What lends nothing cannot miss; so misses <= alpha x starts + (1 / step + most_owed) x capacity + those of one
batch, and the long-run share of misses is at most alpha whatever the experts say.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp

EXPERTS = ("forecast", "hour_of_week", "last_day", "nothing_lent")
HOURS_A_WEEK = 168
FEW = 5.0  # misses of one batch that are never a burst, however small the pool
Histogram = dict[int, int]


@dataclass(slots=True, kw_only=True)
class HoldBack:
    """Knobs, and what has been learned. `windows` is the number of reclaim times in an hour, at least 1."""

    capacity: int
    windows: int
    alpha: float = 0.001
    batch: int = 20
    step: float = 1.0  # GPUs by which a miss above the allowance raises the correction
    eagerness: float = 2.0  # of the Hedge
    share: float = 0.02  # of weight handed round, so that a fallen expert can come back
    sudden: float = 0.05  # of capacity: so many misses of one batch raise the correction, the others are owed
    most_owed: float = 1.0  # of capacity, in misses: from there on nothing is lent
    weights: list[float] = field(default_factory=lambda: [1.0] * len(EXPERTS))
    standing: list[float] = field(default_factory=list)
    history: deque[Histogram] = field(default_factory=lambda: deque(maxlen=4 * HOURS_A_WEEK))
    correction: float = 0.0
    owed: float = 0.0  # misses that the correction does not hold yet
    starts: int = 0
    misses: int = 0

    def hold(self, forecast: float | None = None) -> int:
        """GPUs to hold back during the next hour; `forecast` is an outside expert's quantile, None if there is none."""
        self.standing = self._predictions(forecast)
        best = max(range(len(EXPERTS)), key=lambda k: self.weights[k])
        if self.owed >= self.most_owed * self.capacity:
            return self.capacity
        return max(0, min(self.capacity, round(self.standing[best] + self.correction)))

    def learn(self, wanted: Mapping[int, int], starts: int, misses: int) -> None:
        """What the past hour's windows wanted (GPUs -> windows, idle windows left out), and how starts fared."""
        hour = {gpus: count for gpus, count in wanted.items() if count > 0}
        idle = max(0, self.windows - sum(hour.values()))
        if self.standing:
            self._judge({**hour, 0: hour.get(0, 0) + idle})
        self.history.append({**hour, 0: hour.get(0, 0) + idle})
        self.starts += starts
        self.misses += misses
        if self.starts >= self.batch:
            self._correct()

    def _correct(self) -> None:
        """Every miss raises the correction or is owed, and what is owed is paid off before more is lent than is usual.

        So correction / step + owed never falls behind misses - alpha x starts.
        """
        acted = min(float(self.misses), max(FEW, self.sudden * self.capacity))
        correction = self.correction / self.step + acted - self.alpha * self.starts
        self.owed += self.misses - acted + max(0.0, correction - self.capacity / self.step)
        paid = min(self.owed, max(0.0, -correction))
        self.owed -= paid
        self.correction = max(-self.capacity, min(self.capacity, self.step * (correction + paid)))
        self.starts = self.misses = 0

    def _judge(self, hour: Histogram) -> None:
        losses = [self._pinball(value, hour) for value in self.standing]
        scale = max(losses) or 1.0
        weights = [w * exp(-self.eagerness * loss / scale) for w, loss in zip(self.weights, losses, strict=True)]
        total = sum(weights)
        even = self.share / len(weights)
        self.weights = [(1 - self.share) * w / total + even for w in weights]

    def _pinball(self, value: float, hour: Histogram) -> float:
        """Mean pinball loss at level 1 - alpha."""
        loss = 0.0
        for gpus, count in hour.items():
            error = gpus - value
            loss += count * ((1 - self.alpha) * error if error > 0 else -self.alpha * error)
        return loss / sum(hour.values())

    def _predictions(self, forecast: float | None) -> list[float]:
        nothing = float(self.capacity)
        if not self.history:
            return [nothing] * len(EXPERTS)
        weekly = [self.history[i] for i in range(len(self.history) - HOURS_A_WEEK, -1, -HOURS_A_WEEK)]
        daily = [self.history[i] for i in range(max(0, len(self.history) - 24), len(self.history))]
        usable = forecast is not None and 0 <= forecast < float("inf")  # not NaN either
        seen = quantile(daily, 1 - self.alpha)
        return [
            float(forecast) if usable and forecast is not None else seen,
            quantile(weekly, 1 - self.alpha) if weekly else seen,
            seen,
            nothing,
        ]


def figures(claimed: int, demand: int, busy: int, owed: int) -> list[float]:
    """What an outside expert is told of the pool at each hour, in GPUs."""
    return [float(claimed), float(demand), float(busy), float(owed)]


def quantile(hours: list[Histogram], level: float) -> float:
    """Smallest number of GPUs that at least `level` of all windows did not exceed."""
    total: Histogram = {}
    for hour in hours:
        for gpus, count in hour.items():
            total[gpus] = total.get(gpus, 0) + count
    needed = level * sum(total.values())
    reached = 0
    for gpus in sorted(total):
        reached += total[gpus]
        if reached >= needed - 1e-9:
            return float(gpus)
    return 0.0
