"""The protocol that every cloud is driven through, and its errors, typed by what to do next. Pure.

Adapters translate, they never decide. An adapter sends a purchase (`reserve`, or `resize` that grows) exactly once
per call, with the SDK's own retries off; reads and calls that are safe to repeat are retried with tenacity inside
the adapter. What an adapter raises is always a `ProviderError`.
"""

from collections.abc import Collection
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Protocol

import msgspec

from broker.model.offer import Offer
from broker.model.place import ProviderName, Scope
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation

VISIBILITY_WINDOW = timedelta(minutes=5)
"""How long after it was sent a purchase may stay invisible: an unknown intent becomes `failed` only when a complete
look that began later than this after `sent` does not show it. Configurable; longer is safer."""


class ProviderError(Exception):
    """`code`, `message` and `request_id` are the provider's own ("" where it gave none); `operation` is the API's.

    `may_have_acted` is the question that money depends on: could the effect have happened although we got no yes?
    """

    may_have_acted: ClassVar[bool] = False
    kind: ClassVar[str] = "failed"

    def __init__(self, operation: str, *, code: str = "", message: str = "", request_id: str = "") -> None:
        super().__init__(operation, code, message, request_id)
        self.operation = operation
        self.code = code
        self.message = message
        self.request_id = request_id

    def __str__(self) -> str:
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.operation}: {self.code or type(self).__name__}: {self.message}{request}"


class Unfilled(ProviderError):
    """No capacity there now. Try another place, or later. `hints` are zones that the provider named instead."""

    kind = "unfilled"

    def __init__(
        self, operation: str, *, code: str = "", message: str = "", request_id: str = "", hints: tuple[str, ...] = ()
    ) -> None:
        super().__init__(operation, code=code, message=message, request_id=request_id)
        self.hints = hints


class QuotaExceeded(ProviderError):
    """Our own limit there is used up. A person raises it; trying again does not help."""

    kind = "quota"


class Throttled(ProviderError):
    """Refused unread because of too many calls. Nothing happened; later is fine."""

    kind = "throttled"


class Unsupported(ProviderError):
    """This is not sold there, or the request is not valid there. Never retried as it is."""

    kind = "unsupported"


class Denied(ProviderError):
    """Credentials are missing, expired or lack a permission. A person acts."""

    kind = "denied"


class NotFound(ProviderError):
    """There is no such reservation (any more)."""

    kind = "not-found"


class Conflict(ProviderError):
    """It exists already with other properties, or its state does not allow this now."""

    kind = "conflict"


class Unreachable(ProviderError):
    """The request never reached the cloud (refused connection, no address): nothing happened."""

    kind = "unreachable"


class Ambiguous(ProviderError):
    """Time-out, reset, or a server error: it may have happened. Look before anything else."""

    may_have_acted = True
    kind = "ambiguous"


class BrokenReply(ProviderError):
    """The answer could not be read: it may have happened. Look before anything else."""

    may_have_acted = True
    kind = "broken-reply"


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a cloud can do, asked rather than assumed.

    `end_settable`: a reservation can be given an end, and that end can be moved. `tags`: resources carry tags or
    labels. `parks_at_zero`: a count of 0 is allowed. `states_billing_start` / `states_billing_end`: the cloud says
    to the second when it began / stopped to bill.
    """

    end_settable: bool
    tags: bool
    parks_at_zero: bool
    states_billing_start: bool
    states_billing_end: bool
    max_count: int = 1000


class Identity(msgspec.Struct, frozen=True):
    """Who the credentials are for, as the cloud says; never the credentials."""

    account: str
    principal: str


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """A limit on what may be bought. `unit` is "vcpus", "gpus" or "reservations"; None is unknown."""

    scope: Scope
    name: str
    unit: str
    limit: int | None
    used: int | None


class Seen(StrEnum):
    """What looking for the effect of a request showed."""

    DONE = "done"
    """It happened: `reservation` is its effect."""

    REFUSED = "refused"
    """The cloud's own record says that it did not and will not happen: `error` says why. With a `reservation`, the
    refusal left that one marred: resize it to the count that it has, which buys nothing."""

    NOT_YET = "not-yet"
    """No trace of it in a complete, fresh look. Final only after the visibility window. Of a release, `reservation` is
    what is still there."""


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    seen: Seen
    reservation: Reservation | None = None
    error: ProviderError | None = None


class Provider(Protocol):
    """One cloud. Every method may raise any `ProviderError`; none retries a purchase."""

    name: ProviderName

    def capabilities(self) -> Capabilities: ...

    def scopes(self) -> tuple[Scope, ...]:
        """Every configured account and region. No call is made."""
        ...

    def identify(self, scope: Scope) -> Identity: ...

    def offers(self, scope: Scope, gpu_models: Collection[str] = ()) -> tuple[Offer, ...]:
        """What could be bought in the allowed zones, without prices; no models means all GPU machine types.

        Types that the cloud does not let one reserve are included, with `excluded` set.
        """
        ...

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        """All reservations in the scope, all pages, whoever owns them; gone ones where the cloud still lists them.

        Raises rather than return part of them.
        """
        ...

    def quotas(self, scope: Scope) -> tuple[Quota, ...]: ...

    def reserve(self, request: ReserveRequest) -> Reservation:
        """Buy, once. Returns when the cloud has said yes (state may still be pending)."""
        ...

    def resize(self, request: ResizeRequest) -> Reservation:
        """Set the count in place, once if it grows. Never deletes. Raises Conflict where it cannot shrink now."""
        ...

    def set_end(self, request: EndRequest) -> Reservation:
        """Move the end. Raises Unsupported where `capabilities().end_settable` is false."""
        ...

    def release(self, request: ReleaseRequest) -> Reservation:
        """Give back; repeatable. A reservation that is already gone is success. Returns it `released`, or
        `cancelling` while something still hinders (instances attached): call again in a later run.
        """
        ...

    def look(self, request: Request) -> Sighting:
        """Look for the effect of a request that was sent, by its key, name, tag or id; only reads.

        For a resize, end or release: DONE when the reservation now is as asked (or gone, for a release).
        """
        ...

    def consumption(self, reservation: Reservation) -> tuple[tuple[str, str], ...]:
        """Exactly what a job's instance must set to consume the reservation, as pairs to print. No call is made."""
        ...
