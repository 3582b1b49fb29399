"""What was called, and what it did. Tests count effects, not calls."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from broker.model.place import ProviderName


class EffectKind(StrEnum):
    RESERVE = "reserve"
    RESIZE = "resize"
    RELEASE = "release"
    SET_END = "set-end"
    EXPIRE = "expire"
    TAG = "tag"
    LAUNCH = "launch"
    TERMINATE = "terminate"


class Call(msgspec.Struct, kw_only=True):
    """One request. `status` 0 means that no reply was sent; `fault` names the rules that struck."""

    number: int
    at: datetime
    provider: ProviderName
    operation: str
    parameters: dict[str, Any]
    status: int = 0
    code: str = ""
    fault: tuple[str, ...] = ()
    request_id: str = ""


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the world. `before` and `after` are instance counts; `call` is 0 where time did it."""

    at: datetime
    call: int
    provider: ProviderName
    kind: EffectKind
    id: str
    before: int = 0
    after: int = 0

    @property
    def buys(self) -> bool:
        return self.kind in (EffectKind.RESERVE, EffectKind.RESIZE) and self.after > self.before


CALLS_KEPT = 5000
"""In a saved world; its effects are all kept."""


class Record(msgspec.Struct, kw_only=True):
    calls: list[Call] = msgspec.field(default_factory=list)
    effects: list[Effect] = msgspec.field(default_factory=list)

    def begin(self, at: datetime, provider: ProviderName, operation: str, parameters: dict[str, Any]) -> Call:
        number = self.calls[-1].number + 1 if self.calls else 1
        call = Call(number=number, at=at, provider=provider, operation=operation, parameters=dict(parameters))
        self.calls.append(call)
        return call

    def operations(self, provider: ProviderName | None = None) -> list[str]:
        """Names of the operations called, in order."""
        return [call.operation for call in self.calls if provider in (None, call.provider)]

    def purchases(self, provider: ProviderName | None = None) -> list[Effect]:
        """Every effect that bought something: reservations made, and growth."""
        return [effect for effect in self.effects if effect.buys and provider in (None, effect.provider)]

    def recent(self) -> "Record":
        """What is worth saving of it, so that a world that lives for months does not grow with every read."""
        return Record(calls=self.calls[-CALLS_KEPT:], effects=self.effects)

    def clear(self) -> None:
        """Forget; the world stays as it is."""
        self.calls.clear()
        self.effects.clear()
