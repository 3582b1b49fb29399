"""Faults by rule: which calls they strike, and what then goes wrong."""

import random
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from broker.model.place import ProviderName


class FaultKind(StrEnum):
    ERROR = "error"
    """Refused with `status`, `code`, `message`; nothing happens."""

    ERROR_AFTER = "error-after"
    """It happens, and the reply is the error."""

    THROTTLE = "throttle"
    """The cloud's own answer to too many calls (or `code`, `status`), with `Retry-After: retry_after_s`."""

    DELAY = "delay"
    """The reply waits for `delay_s` real seconds, after the effect; joins with other faults."""

    DELAY_BEFORE = "delay-before"
    """As DELAY, before the effect."""

    RESET_BEFORE = "reset-before"
    """The connection is reset; nothing happens."""

    RESET_AFTER = "reset-after"
    """It happens; the connection is reset."""

    REPLY_LOST = "reply-lost"
    """It happens; the connection closes without a reply."""

    MALFORMED = "malformed"
    """It happens; the reply's body breaks off in the middle."""

    UNKNOWN_FIELD = "unknown-field"
    """Every object of the reply has one field more (`field`, default brandNewField) with an object in it."""

    UNKNOWN_ENUM = "unknown-enum"
    """Every `field` of the reply (state, status, provisioningState ...) has the value `value`."""

    MISSING_FIELD = "missing-field"
    """Every `field` of the reply is left out."""

    HIDDEN = "hidden"
    """It happens, and reads show the world as it was before for `delay_s` world seconds."""

    FAILS_LATER = "fails-later"
    """Accepted, and fails `delay_s` world seconds later with `code`, `message`."""

    PARTLY = "partly"
    """A purchase or growth is accepted, and `count` of its new instances are there: the rest is not delivered."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Strikes calls that match all of `provider`, `operation` (shell pattern) and `where` (parameter -> pattern).

    `nth`: only the nth matching call counted from 1, None any. `times`: how often it strikes at most, None always.
    `probability` is drawn from the seed. Parameters are what the face reports for the call (see `record.Call`).
    """

    kind: FaultKind
    provider: ProviderName | None = None
    operation: str = "*"
    where: dict[str, str] = {}
    nth: int | None = None
    times: int | None = 1
    probability: float = 1.0
    status: int | None = None
    code: str = ""
    message: str = "a fault was asked for"
    delay_s: float = 0.0
    retry_after_s: int = 1
    count: int = 0
    field: str = ""
    value: str = "brand-new-value"


class RuleState(msgspec.Struct, kw_only=True):
    """A rule with how many calls matched it and how many it struck."""

    id: int
    rule: Rule
    matched: int = 0
    struck: int = 0


class Strike(msgspec.Struct, frozen=True):
    """The rules that strike one call, in the order in which they were added."""

    rules: tuple[Rule, ...] = ()

    def first(self, *kinds: FaultKind) -> Rule | None:
        return next((rule for rule in self.rules if rule.kind in kinds), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(rule.kind.value for rule in self.rules)

    @property
    def stops(self) -> bool:
        """Whether the call ends before any effect."""
        return self.first(FaultKind.ERROR, FaultKind.THROTTLE, FaultKind.RESET_BEFORE) is not None


class Faults:
    """The rules in force. The same seed, rules and calls give the same strikes."""

    def __init__(self, seed: int = 0, rules: list[RuleState] | None = None) -> None:
        self.rules = rules if rules is not None else []
        self._seed = seed
        self._made = max((state.id for state in self.rules), default=0)

    def add(self, rule: Rule) -> int:
        """The rule's id."""
        self._made += 1
        self.rules.append(RuleState(id=self._made, rule=rule))
        return self._made

    def remove(self, id: int) -> None:
        self.rules = [state for state in self.rules if state.id != id]

    def clear(self) -> None:
        self.rules = []

    def strike(self, provider: ProviderName, operation: str, parameters: dict[str, Any]) -> Strike:
        """The rules that strike this call; counts it."""
        return Strike(tuple(s.rule for s in self.rules if self._strikes(s, provider, operation, parameters)))

    def _strikes(self, state: RuleState, provider: ProviderName, operation: str, parameters: dict[str, Any]) -> bool:
        rule = state.rule
        if not _matches(rule, provider, operation, parameters):
            return False
        state.matched += 1
        due = rule.nth in (None, state.matched) and (rule.times is None or state.struck < rule.times)
        if due and self._drawn(state):
            state.struck += 1
            return True
        return False

    def _drawn(self, state: RuleState) -> bool:
        if state.rule.probability >= 1.0:
            return True
        # Not for secrets: a draw that depends on nothing but the seed, the rule and how many calls it has seen.
        return random.Random(f"{self._seed}/{state.id}/{state.matched}").random() < state.rule.probability


def _matches(rule: Rule, provider: ProviderName, operation: str, parameters: dict[str, Any]) -> bool:
    return (
        rule.provider in (None, provider)
        and fnmatchcase(operation, rule.operation)
        and all(fnmatchcase(str(parameters.get(name, "")), pattern) for name, pattern in rule.where.items())
    )
