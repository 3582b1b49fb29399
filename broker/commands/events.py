"""What a run tells while it goes on: each event is complete in itself and becomes one line."""

from collections.abc import Callable

import msgspec

from broker.apply.apply import Result
from broker.apply.settle import Settled
from broker.errors import Exit
from broker.model.plan import Action, Plan, Refusal, Shortfall


class Looked(msgspec.Struct, frozen=True, kw_only=True, tag="observed"):
    """`problems` are what could not be read; nothing is released because of them."""

    queued_jobs: int
    reservations: int
    offers: int
    problems: tuple[str, ...]


class FoundOut(msgspec.Struct, frozen=True, kw_only=True, tag="settled"):
    """An earlier request whose outcome is known now, or still is not."""

    settled: Settled


class News(msgspec.Struct, frozen=True, kw_only=True, tag="news"):
    """Something that the clouds show and the ledger did not know."""

    text: str


class Decided(msgspec.Struct, frozen=True, kw_only=True, tag="planned"):
    plan: Plan


class Proposed(msgspec.Struct, frozen=True, kw_only=True, tag="proposed"):
    """What a dry run would do."""

    action: Action


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    refusal: Refusal


class Short(msgspec.Struct, frozen=True, kw_only=True, tag="short"):
    shortfall: Shortfall


class Acted(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    result: Result


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="summary"):
    """Counts by how actions ended."""

    done: int = 0
    unfilled: int = 0
    failed: int = 0
    unknown: int = 0
    not_sent: int = 0
    refused: int = 0
    note: str = ""
    exit_code: int = Exit.OK


Event = Looked | FoundOut | News | Decided | Proposed | Refused | Short | Acted | Ended
Tell = Callable[[Event], None]
