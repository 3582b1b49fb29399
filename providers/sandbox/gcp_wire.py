"""How Compute Engine writes: URLs, errors, pages and filters."""

import base64
import re
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.wire import Response
from providers.sandbox.world import World

ROOT = "https://www.googleapis.com/compute/v1"
MAX_PAGE = 500
_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_CLAUSE = re.compile(
    r'\s*\(*\s*(?P<field>[\w.]+)\s*(?P<op>!=|=|:|\beq\b|\bne\b)\s*(?P<value>"[^"]*"|[^\s()]+)\s*\)*\s*(?:AND\b)?'
)


class Refused(Exception):
    """An HTTP error with its `reason` (`alreadyExists`, ...)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


def invalid(field: str, value: object, why: str = "") -> Refused:
    return Refused(400, "invalid", f"Invalid value for field '{field}': '{value}'. {why}".rstrip())


def not_found(path: str) -> Refused:
    return Refused(404, "notFound", f"The resource '{path}' was not found")


def error(status: int, reason: str, message: str, request_id: str = "") -> Response:
    domain = "usageLimits" if status == HTTPStatus.TOO_MANY_REQUESTS or "imit" in reason else "global"
    body: dict[str, Any] = {
        "code": status,
        "message": message,
        "errors": [{"message": message, "domain": domain, "reason": reason}],
    }
    if status in _STATUS_NAMES:
        body["status"] = _STATUS_NAMES[status]
    if request_id:
        body["details"] = [{"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": request_id}]
    return Response.of_json({"error": body}, status, code=reason)


def last(url: str) -> str:
    """The resource's own name."""
    return url.rpartition("/")[2]


def timestamp(at: datetime) -> str:
    """Milliseconds, as Compute Engine writes them; finer where the world is, so that no bill is rounded."""
    return at.astimezone(UTC).isoformat(timespec="microseconds" if at.microsecond % 1000 else "milliseconds")


def parse_time(field: str, text: str) -> datetime:
    """Raises Refused."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as mistake:
        raise invalid(field, text, "Must be an RFC 3339 time.") from mistake
    if at.tzinfo is None:
        raise invalid(field, text, "Must be an RFC 3339 time.")
    return at.astimezone(UTC)


def selected(items: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
    """Those that the query's `filter` lets through. Raises Refused for a filter that is not understood."""
    clauses = _clauses(query.get("filter", ""))
    return [item for item in items if all(_holds(item, *clause) for clause in clauses)]


def paged(items: list[Any], query: dict[str, str], world: World) -> tuple[list[Any], str]:
    """One page and the token of the next ("" at the end). Raises Refused."""
    size = min(_page_size(query.get("maxResults", "")), world.page_size(ProviderName.GCP, MAX_PAGE))
    start = _offset(query.get("pageToken", ""))
    following = start + size
    token = base64.urlsafe_b64encode(f"from:{following}".encode()).decode() if following < len(items) else ""
    return items[start:following], token


def listed(kind: str, path: str, items: list[Any], query: dict[str, str], world: World) -> dict[str, Any]:
    """A list reply. Raises Refused."""
    page, token = paged(selected(items, query), query, world)
    reply: dict[str, Any] = {"kind": kind, "id": path, "selfLink": f"{ROOT}/{path}"}
    if page:
        reply["items"] = page
    return reply | ({"nextPageToken": token} if token else {})


def _page_size(text: str) -> int:
    if not text:
        return MAX_PAGE
    if not text.isdigit() or int(text) > MAX_PAGE:
        raise invalid("maxResults", text, f"Must be 0 to {MAX_PAGE}.")
    return int(text) or MAX_PAGE


def _offset(token: str) -> int:
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token.encode()).decode().removeprefix("from:"))
    except ValueError as mistake:
        raise invalid("pageToken", token) from mistake


def _clauses(text: str) -> list[tuple[str, str, str]]:
    clauses, at = [], 0
    while text[at:].strip():
        match = _CLAUSE.match(text, at)
        if not match:
            raise invalid("filter", text, "Invalid list filter expression.")
        clauses.append((match["field"], match["op"], match["value"].strip('"')))
        at = match.end()
    return clauses


def _holds(item: dict[str, Any], field: str, op: str, wanted: str) -> bool:
    value: Any = item
    for part in field.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    found = str(value).lower() if isinstance(value, bool) else str(value)
    if op == ":":
        return wanted in found
    equal = re.fullmatch(wanted, found) is not None if op in ("eq", "ne") else found == wanted
    return equal if op in ("=", "eq") else not equal
