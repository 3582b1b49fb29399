"""Requests and replies as a face sees them, and what a face is."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from broker.model.place import ProviderName
from providers.sandbox.faults import Rule

if TYPE_CHECKING:
    from providers.sandbox.world import World


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`path` is decoded, `query` holds the last value of each name, header names are lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    base_url: str
    """`http://127.0.0.1:PORT`, for absolute links in replies."""

    @classmethod
    def parse(cls, method: str, target: str, headers: dict[str, str], body: bytes, base_url: str) -> "Request":
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return cls(method=method, path=unquote(parts.path), query=query, headers=headers, body=body, base_url=base_url)

    @property
    def form(self) -> dict[str, str]:
        """The body as an URL-encoded form."""
        fields = parse_qs(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return {name: values[-1] for name, values in fields.items()}

    @property
    def json(self) -> Any:
        """The body as JSON, {} when it is empty. Raises ValueError."""
        return json.loads(self.body) if self.body else {}


class Response(msgspec.Struct, kw_only=True):
    """`code` is the cloud's error code, for the record."""

    status: int = 200
    headers: dict[str, str] = {}
    body: bytes = b""
    code: str = ""

    @classmethod
    def of_json(
        cls, value: Any, status: int = 200, headers: dict[str, str] | None = None, code: str = ""
    ) -> "Response":
        """Dates become RFC 3339, decimals strings."""
        head = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
        return cls(status=status, headers=head, body=msgspec.json.encode(value), code=code)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for: the API's own operation name, and parameters that fault rules can match."""

    name: str
    parameters: dict[str, Any] = {}


class Face(Protocol):
    """One cloud's wire protocol. It keeps what the market does not know in `world.memory[provider]` (JSON values)."""

    provider: ProviderName

    def operation(self, request: Request) -> Operation:
        """Never fails: an unknown request has some name too."""
        ...

    def handle(self, request: Request, world: "World") -> Response:
        """Called with `world.lock` held, after the faults that come before the effect."""
        ...

    def error(self, request: Request, rule: Rule, request_id: str) -> Response:
        """The rule's error (`status`, `code`, `message`) as this cloud would write it; where they are not given, a
        server error, or for THROTTLE its answer to too many calls.
        """
        ...


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)
