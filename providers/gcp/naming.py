"""How a purchase is found again on a cloud without labels: by its name, its description and its request id.

A reservation is called `broker-<lineage>-<key>` and never anything else, so its name alone says whose it is. The
description repeats that for people and carries the user's own tags. Pure.
"""

import re
import uuid
from urllib.parse import quote, unquote

from broker.model.request import ReserveRequest, ResizeRequest
from broker.model.reservation import Owner

_NAME = re.compile(r"broker-(?P<lineage>[0-9a-f]{12})-(?P<key>[0-9a-f]{24})")
"""Exactly what we make: somebody's `broker-0123456789ab-shared` without our description is not ours."""
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://compute.googleapis.com/broker")
_OURS = "broker"


def name_of(request: ReserveRequest) -> str:
    """At most 44 of the 63 characters that Compute Engine allows."""
    return f"broker-{request.lineage}-{request.key}"


def request_id_of(request: ReserveRequest | ResizeRequest) -> str:
    """The `requestId` of the call: the same for the same decision, in any process, and for no other count.

    A second request with the id of an earlier one is answered as if it had been done, and is not.
    """
    count = request.count if isinstance(request, ReserveRequest) else f"{request.from_count}-{request.to_count}"
    return str(uuid.uuid5(_NAMESPACE, f"{request.lineage}/{request.key}/{count}"))


def reservation_id(zone: str, name: str) -> str:
    """Names are unique within a zone only, a scope is a region."""
    return f"{zone}/{name}"


def name_in(reservation_id: str) -> str:
    return reservation_id.rpartition("/")[2]


def describe(lineage: str, key: str, tags: tuple[tuple[str, str], ...]) -> str:
    """`broker lineage=... key=... tag=value ...`, with what would break that up percent-encoded."""
    pairs = (("lineage", lineage), ("key", key), *tags)
    return " ".join([_OURS, *(f"{_encoded(name)}={_encoded(value)}" for name, value in pairs)])


def owner_of(name: str, description: str) -> Owner | None:
    """The name decides, because it cannot be changed; the description helps where a tool has chosen the name."""
    if match := _NAME.fullmatch(name):
        return Owner(lineage=match["lineage"], key=match["key"])
    pairs = dict(_pairs(description))
    if "lineage" in pairs and "key" in pairs:
        return Owner(lineage=pairs["lineage"], key=pairs["key"])
    return None


def tags_in(description: str) -> tuple[tuple[str, str], ...]:
    """The user's own, in the order in which they were given; none in a description that is not ours."""
    return tuple(_pairs(description))[2:]


def last(url: str) -> str:
    """The resource's own name at the end of its URL."""
    return url.rpartition("/")[2]


def _pairs(description: str) -> list[tuple[str, str]]:
    first, *words = description.split(" ") if description else [""]
    if first != _OURS:
        return []
    split = (word.partition("=") for word in words)
    return [(unquote(name), unquote(value)) for name, equals, value in split if equals]


def _encoded(text: str) -> str:
    return quote(text, safe="/:@,+*()[]{}!$&'|;<>?~^\\\"`#")


def items(text: str) -> list[str]:
    """The parts of a `match` value that holds several: `nvidia-tesla-v100:1,nvidia-tesla-t4:2`."""
    return [item.strip() for item in text.split(",") if item.strip()]
