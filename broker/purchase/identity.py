"""Digests and keys: the same snapshot gives the same plan, and the same plan the same keys."""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from broker.model.plan import Action, Keep

_KEY_LENGTH = 24
_DIGEST_LENGTH = 32


def digest(value: object) -> str:
    """Of all that the value holds, in any process and on any machine alike."""
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:_DIGEST_LENGTH]


def action_key(lineage: str, plan_id: str, ordinal: int) -> str:
    """At most 24 characters of [a-z0-9], as every cloud accepts in a name, a tag and a token."""
    return sha256(f"{lineage}/{plan_id}/{ordinal}".encode()).hexdigest()[:_KEY_LENGTH]


def with_keys(actions: Sequence[Action], lineage: str, plan_id: str) -> tuple[Action, ...]:
    """The actions, each request with its own key."""
    keyed: list[Action] = []
    for ordinal, action in enumerate(actions):
        if isinstance(action, Keep):
            keyed.append(action)
            continue
        request = msgspec.structs.replace(action.request, key=action_key(lineage, plan_id, ordinal))
        keyed.append(msgspec.structs.replace(action, request=request))
    return tuple(keyed)
