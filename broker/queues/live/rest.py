"""Lists of a cloud's REST API, page by page: time-outs, few retries, bounded pages, and one line for what goes wrong.

The clouds' own libraries for machine learning weigh hundreds of megabytes and wrap two list calls that have not changed
in years. What is used of them is the sign-in, which the broker needs anyway to buy.
"""

import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from broker.queues.live import Unasked

Page = Mapping[str, Any]
Following = Callable[["Call", Page], "Call | None"]
"""The next question, from the last one and its answer."""
_TIMES_S = (10, 30)
"""To connect, and between two bytes; the whole is stopped by whoever started the program."""
_RETRIES = 3
_PASSING = (429, 500, 502, 503, 504)
_MOST_BYTES = 64 * 2**20
_MOST_PAGES = 10_000
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_OK = 200


class Call(NamedTuple):
    url: str
    query: Mapping[str, str]


def elsewhere(variable: str) -> str:
    """A server on this machine that stands in for the service ("": none), for trials; nobody signs in to it."""
    address = os.environ.get(variable, "").rstrip("/")
    if address and urlsplit(address).hostname not in _LOOPBACK:
        raise Unasked(f"{variable} may only name this machine")
    return address


def patient(session: Any) -> Any:
    """A `requests` session that repeats what may pass, as the service asks, and follows nobody elsewhere."""
    adapters, retry = importlib.import_module("requests.adapters"), importlib.import_module("urllib3.util").Retry
    again = retry(
        total=_RETRIES, backoff_factor=0.5, status_forcelist=_PASSING, allowed_methods=("GET",),
        raise_on_status=False, redirect=0,
    )  # fmt: skip
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapters.HTTPAdapter(max_retries=again))
    return session


def listed(session: Any, first: Call, key: str, following: Following) -> Iterator[Any]:
    """The records under `key` of all pages; a page may lack it where it has none. Raises Unasked."""
    host, call = urlsplit(first.url).netloc, first
    for _ in range(_MOST_PAGES):
        page = _page(session, call)
        records = page.get(key, [])
        if not isinstance(records, list):
            raise Unasked(f"{_place(call.url)} did not answer with a list; is a proxy between?")
        yield from records
        after = following(call, page)
        if after is None:
            return
        if urlsplit(after.url).netloc != host or after == call:
            raise Unasked(f"{_place(call.url)} names a next page that is not its own")
        call = after
    raise Unasked(f"{_place(first.url)} does not come to an end")


def _page(session: Any, call: Call) -> Page:
    failures = importlib.import_module("requests.exceptions")
    try:
        with session.get(
            call.url, params=dict(call.query), timeout=_TIMES_S, stream=True, allow_redirects=False
        ) as answer:
            status, body = answer.status_code, answer.raw.read(_MOST_BYTES + 1, decode_content=True)
    except failures.RequestException as error:
        raise Unasked(f"{_place(call.url)} cannot be reached: {str(error)[:160]}") from None
    except importlib.import_module("urllib3.exceptions").HTTPError as error:
        raise Unasked(f"{_place(call.url)} broke off its answer: {str(error)[:120]}") from None
    if len(body) > _MOST_BYTES:
        raise Unasked(f"{_place(call.url)} answers with pages of more than {_MOST_BYTES >> 20} MiB")
    return _object(call, status, body)


def _object(call: Call, status: int, body: bytes) -> Page:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if status != _OK:
        raise Unasked(f"{_place(call.url)} answered HTTP {status}: {_said(found)}{_HINTS.get(status, '')}")
    if not isinstance(found, dict):
        raise Unasked(f"{_place(call.url)} did not answer with a JSON object; is a login or proxy between?")
    return found


def _said(document: Any) -> str:
    """Both clouds write `{"error": {"message": ...}}`."""
    error = document.get("error") if isinstance(document, dict) else None
    return str(error.get("message") if isinstance(error, dict) else error or "no reason given")[:200]


_HINTS = {
    401: "; sign in again",
    403: "; grant the permission that docs/queues-managed.md names",
    404: "; does `at` name what is there?",
}


def _place(url: str) -> str:
    """Short, and without the query, which may hold what must not be shown."""
    parts = urlsplit(url)
    return f"{parts.netloc}/.../{'/'.join(parts.path.split('/')[-2:])}"
