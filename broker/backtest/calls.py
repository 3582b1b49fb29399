"""How a trace's jobs can be called back, where it says so: in what time, or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broker.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """One entry a job. `reclaim_s` is NaN where nothing is said of it; a job that is `firm` cannot be called back."""

    reclaim_s: npt.NDArray[np.float64]
    firm: npt.NDArray[np.bool_]

    def pick(self, mask: npt.NDArray[np.bool_]) -> "Calls":
        return Calls(reclaim_s=self.reclaim_s[mask], firm=self.firm[mask])

    @staticmethod
    def none(jobs: int) -> "Calls":
        """Nothing is said of any."""
        return Calls(reclaim_s=np.full(jobs, np.nan), firm=np.zeros(jobs, dtype=np.bool_))

    def of_classes(self, names: Sequence[tuple[str, str]], seconds: Mapping[str, float]) -> "Calls":
        """`seconds` by tenant, or tenant/user, which comes first; `names` are both of each job. What jobs say stays.

        Raises UsageError for one that has no job.
        """
        known = {name for tenant, user in names for name in (tenant, f"{tenant}/{user}")}
        absent = sorted(set(seconds) - known)
        if absent:
            raise UsageError(
                f"--reclaim-of {', '.join(absent)}: no job is of it",
                next_step="Give TENANT or TENANT/USER of the trace",
            )
        of_class = np.array(
            [seconds.get(f"{tenant}/{user}", seconds.get(tenant, np.nan)) for tenant, user in names], dtype=np.float64
        )
        said = np.isfinite(self.reclaim_s)
        return Calls(reclaim_s=np.where(said, self.reclaim_s, of_class), firm=self.firm)


def parse_reclaims(given: Sequence[str]) -> dict[str, float]:
    """CLASS=SECONDS, one each."""
    parsed: dict[str, float] = {}
    for text in given:
        name, _, seconds = text.rpartition("=")
        value = _seconds(seconds)
        if not name or not 0 <= value < np.inf:
            raise UsageError(
                f"--reclaim-of {text!r} is not CLASS=SECONDS", next_step="For example: --reclaim-of nlp/ada=300"
            )
        if parsed.setdefault(name, value) != value:
            raise UsageError(
                f"--reclaim-of gives {name} both {parsed[name]:g} and {value:g}", next_step="Give each class one"
            )
    return parsed


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
