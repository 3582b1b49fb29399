"""The instants at which a process may die while money moves: before and after each commit and each call.

Whoever applies passes a `checkpoint` that is called at each of them. In use it does nothing; tests kill there.
"""

from collections.abc import Callable
from enum import StrEnum


class Boundary(StrEnum):
    BEFORE_INTENT = "apply: before the intent is committed"
    AFTER_INTENT = "apply: intent committed, nothing sent"
    AFTER_CALL = "apply: the call came back"
    BEFORE_OUTCOME = "apply: before the outcome is committed"
    AFTER_OUTCOME = "apply: outcome committed"
    BEFORE_APPLIED = "apply: before the plan is noted as applied"
    AFTER_APPLIED = "apply: plan noted as applied"
    BEFORE_LOOK = "settle: before looking"
    AFTER_LOOK = "settle: looked"
    BEFORE_REPEAT = "settle: before a release is called again"
    AFTER_REPEAT = "settle: the repeated release came back"
    BEFORE_SETTLED = "settle: before the finding is committed"
    AFTER_SETTLED = "settle: finding committed"


Checkpoint = Callable[[Boundary], None]


def go_on(_boundary: Boundary) -> None:
    """The checkpoint of everyday use."""
