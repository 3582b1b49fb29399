"""What the handlers of the AWS face share: the call in hand, filters, pages, and names of zones."""

import hashlib
import string
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import msgspec

from broker.model.place import ProviderName
from providers.sandbox.aws_wire import AwsError
from providers.sandbox.market import Market
from providers.sandbox.world import World

T = TypeVar("T")
DEFAULT_ACCOUNT = "123456789012"
"""Whose zone names are in the order of the zone ids; every other account's are shuffled."""

Values = Callable[[T, str], Iterable[str] | None]
"""The values of a thing for the filter of that name, None if there is no such filter."""


class AwsCall(msgspec.Struct, frozen=True):
    """Who calls from where, in which world, with which parameters (as the SDK's caller gave them)."""

    world: World
    account: str
    region: str
    parameters: dict[str, Any]

    @property
    def market(self) -> Market:
        return self.world.market

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    @property
    def memory(self) -> dict[str, Any]:
        """The face's own, saved with the world."""
        return self.world.memory[ProviderName.AWS]

    def get(self, name: str, default: Any = None) -> Any:
        return self.parameters.get(name, default)

    @property
    def zones(self) -> dict[str, str]:
        """Zone name in this account -> zone id."""
        ids = self.world.catalogue.zones(ProviderName.AWS, self.region)
        if self.account != DEFAULT_ACCOUNT:
            ids = tuple(sorted(ids, key=lambda id: hashlib.sha256(f"{self.account}/{id}".encode()).digest()))
        return {f"{self.region}{letter}": id for letter, id in zip(string.ascii_lowercase, ids, strict=False)}

    def zone_name(self, id: str) -> str:
        return next(name for name, zone_id in self.zones.items() if zone_id == id)

    def arn(self, kind: str, id: str) -> str:
        return f"arn:aws:ec2:{self.region}:{self.account}:{kind}/{id}"


def filtered(call: AwsCall, things: Iterable[T], values: Values[T]) -> list[T]:
    """Those for which every filter has a value that one of its patterns matches. Raises AwsError."""
    found = list(things)
    for rule in call.get("Filters", []):
        name, patterns = rule.get("Name", ""), rule.get("Values", [])
        found = [thing for thing in found if _matches(values(thing, name), patterns, name)]
    return found


def _matches(values: Iterable[str] | None, patterns: Sequence[str], name: str) -> bool:
    if values is None:
        raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return any(fnmatchcase(value, pattern) for value in values for pattern in patterns)


def tag_values(tags: dict[str, str], name: str) -> list[str] | None:
    """For the filters `tag:KEY`, `tag-key` and `tag-value`."""
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return [tags[key]] if key in tags else []
    return {"tag-key": list(tags), "tag-value": list(tags.values())}.get(name)


def page(call: AwsCall, things: Sequence[T], largest: int = 1000) -> tuple[list[T], str | None]:
    """The page that NextToken and MaxResults ask for, and the token of the next. Raises AwsError."""
    token = call.get("NextToken", "page-0")
    if not token.startswith("page-") or not token.removeprefix("page-").isdigit():
        raise AwsError("InvalidParameterValue", f"Value ({token}) for parameter nextToken is invalid.")
    size = min(call.get("MaxResults", largest), call.world.page_size(ProviderName.AWS, largest))
    start = int(token.removeprefix("page-"))
    more = len(things) > start + size
    return list(things[start : start + size]), f"page-{start + size}" if more else None


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def given_tags(call: AwsCall, resource_type: str) -> dict[str, str]:
    """From TagSpecifications. Raises AwsError for another resource's."""
    tags: dict[str, str] = {}
    for specification in call.get("TagSpecifications", []):
        if specification.get("ResourceType") != resource_type:
            message = f"'{specification.get('ResourceType')}' is not a valid taggable resource type for this operation."
            raise AwsError("InvalidParameterValue", message)
        tags |= {tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", [])}
    return checked_tags(tags)


def checked_tags(tags: dict[str, str]) -> dict[str, str]:
    """Raises AwsError for what AWS does not let one write."""
    for key, value in tags.items():
        if key.lower().startswith("aws:"):
            raise AwsError("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
        if not 1 <= len(key) <= 128 or len(value) > 256:
            raise AwsError("InvalidParameterValue", f"Tag {key[:128]}: keys have 1 to 128, values at most 256 letters")
    if len(tags) > 50:
        raise AwsError("TagLimitExceeded", "A resource has at most 50 tags")
    return tags
