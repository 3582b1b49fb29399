"""Gets the bytes of a queue from a service: one GET, no redirect, a time-out for all of it and a bound on its size.

slurmrestd wants the token that `scontrol token` prints with each question: it is taken from SLURM_JWT in the
environment, sent only to `/slurm/`, `/slurmdb/` and `/openapi` paths of the configured address, and never shown.
"""

import base64
import binascii
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO, Any
from urllib.parse import urlsplit

from broker.clock import Clock
from broker.queues.fetch import Fetched
from broker.queues.parsed import Unreadable

TOKEN = "SLURM_JWT"  # noqa: S105  the name of the variable
RENEW = "renew it: export $(scontrol token lifespan=86400)"
_CHUNK = 1 << 16
_MOST_COMPLAINT = 1 << 16
_DENIED = frozenset({401, 403})
_OF_SLURM = ("/slurm/", "/slurmdb/", "/openapi")


class NotServed(Unreadable):
    """There is nothing at that path."""


def get(
    url: str, timeout_s: float, max_bytes: int, clock: Clock, env: Mapping[str, str] = os.environ
) -> Fetched:  # fmt: skip
    """The answer is as fresh as the question. Raises Unreadable."""
    begun = clock.now()
    request = urllib.request.Request(url, headers=_headers(url, env, begun))
    deadline = time.monotonic() + timeout_s
    try:
        with _OPENER.open(request, timeout=timeout_s) as answer:
            raw = _body(answer, deadline, max_bytes)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(url, error.code, _complaint(error)) from None
    except TimeoutError:
        raise Unreadable(f"{place(url)} did not answer in full within {timeout_s:g} s; raise timeout?") from None
    except urllib.error.URLError as error:
        raise _unreached(url, error.reason, timeout_s) from None
    except (OSError, http.client.HTTPException) as error:
        raise Unreadable(f"{place(url)} broke off its answer ({_name(error)}); nothing of it is used") from None
    return Fetched(raw, begun)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token must not travel to an address that nobody configured."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def _headers(url: str, env: Mapping[str, str], now: datetime) -> dict[str, str]:
    wanted = {"Accept": "application/json"}
    if not urlsplit(url).path.startswith(_OF_SLURM):
        return wanted
    token = env.get(TOKEN, "").strip()
    if not token:
        raise Unreadable(f"needs {TOKEN} in the environment: export $(scontrol token lifespan=86400)")
    claims = _claims(token)
    _refuse_expired(claims, now)
    user = claims.get("sun") or claims.get("username")
    named = {"X-SLURM-USER-NAME": user} if isinstance(user, str) and user.isprintable() else {}
    return wanted | named | {"X-SLURM-USER-TOKEN": token}


def _claims(token: str) -> dict[str, Any]:
    """What the token says of itself; nothing where it cannot be read, for the service judges it anyway."""
    if not token.isascii() or not token.isprintable():
        raise Unreadable(f"{TOKEN} is not a token; {RENEW}")
    try:
        payload = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, binascii.Error, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _refuse_expired(claims: dict[str, Any], now: datetime) -> None:
    """Said before asking, because slurmrestd only says that authentication failed."""
    until = claims.get("exp")
    if isinstance(until, int) and 0 < until <= now.timestamp():
        ended = datetime.fromtimestamp(min(until, 1e11), UTC)
        raise Unreadable(f"{TOKEN} expired at {ended:%Y-%m-%d %H:%M} UTC; {RENEW}")


def _body(answer: IO[bytes], deadline: float, max_bytes: int) -> bytes:
    """Chunk by chunk: a service that dribbles is stopped as well as one that is silent."""
    found = bytearray()
    while chunk := answer.read1(_CHUNK):  # type: ignore[attr-defined]  # HTTPResponse has it, IO does not
        found += chunk
        if len(found) > max_bytes:
            raise Unreadable(f"answered with more than {max_bytes} bytes; raise max_size")
        if time.monotonic() > deadline:
            raise TimeoutError
    _refuse_short(answer)
    return bytes(found)


def _refuse_short(answer: Any) -> None:
    """`read1` does not tell a connection that broke from an answer that ended."""
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


def _complaint(error: urllib.error.HTTPError) -> str:
    """The service's own first error, else its reason."""
    try:
        said = json.loads(error.read(_MOST_COMPLAINT))
        first = said["errors"][0]
        return str(first.get("description") or first.get("error") or error.reason)[:160]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, http.client.HTTPException):
        return str(error.reason)[:160]


def _refused(url: str, code: int, said: str) -> Unreadable:
    if code in _DENIED or "auth" in said.lower():
        return Unreadable(f"{place(url)} refuses the token (HTTP {code}: {said}); {RENEW}")
    if 300 <= code < 400:
        return Unreadable(f"{place(url)} sends elsewhere (HTTP {code}), which is not followed; correct url")
    if code == 404:
        return NotServed(f"{place(url)} answered HTTP {code}: {said}; is the version in its path served?")
    return Unreadable(f"{place(url)} answered HTTP {code}: {said}")


def _unreached(url: str, reason: object, timeout_s: float) -> Unreadable:
    if isinstance(reason, TimeoutError):
        return Unreadable(f"{place(url)} did not answer in full within {timeout_s:g} s; raise timeout?")
    return Unreadable(f"{place(url)} cannot be reached: {_name(reason)}; is the service running?")


def _name(error: object) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__)[:160]


def place(url: str) -> str:
    """Without the query, which may hold what must not be shown."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
