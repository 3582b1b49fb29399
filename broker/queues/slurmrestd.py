"""Which version of slurmrestd's answers to ask for, where the configured address names none.

The server describes itself in OpenAPI; of the versions that it serves, the newest whose shapes are read is taken. A
version that is configured is not questioned.
"""

import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import msgspec

from broker.clock import Clock
from broker.queues import http
from broker.queues.fetch import Fetched
from broker.queues.parsed import Unreadable

OLDEST, NEWEST = 37, 46
"""Of the data parsers v0.0.N whose shapes the readers know."""

_DESCRIPTIONS = ("/openapi/v3", "/openapi")
"""Both are answered by servers of today; a proxy may let only one through."""
_WITHOUT_VERSION = re.compile(r"/(slurm|slurmdb)/(jobs/?)")


class _Description(msgspec.Struct):
    paths: dict[str, msgspec.Raw]


def get(url: str, timeout_s: float, max_bytes: int, clock: Clock) -> Fetched:
    """The answer of a service; of slurmrestd, in the version that it serves. Raises Unreadable."""
    deadline = time.monotonic() + timeout_s
    wanted = _WITHOUT_VERSION.fullmatch(urlsplit(url).path)
    if wanted is None:
        return http.get(url, timeout_s, max_bytes, clock)
    described = _described(url, timeout_s, max_bytes, clock)
    versioned = _on(url, f"/{wanted[1]}/v0.0.{_newest(described, wanted[1], http.place(url))}/{wanted[2]}")
    left = deadline - time.monotonic()
    if left <= 0:
        raise Unreadable(f"{http.place(url)} did not answer in full within {timeout_s:g} s; raise timeout?")
    return http.get(versioned, left, max_bytes, clock)


def _described(url: str, timeout_s: float, max_bytes: int, clock: Clock) -> set[str]:
    """The paths that the server serves. Raises Unreadable."""
    first, other = (_on(url, path) for path in _DESCRIPTIONS)
    try:
        raw = http.get(first, timeout_s, max_bytes, clock).raw
    except http.NotServed:
        raw = http.get(other, timeout_s, max_bytes, clock).raw
    try:
        return set(msgspec.json.decode(raw, type=_Description).paths)
    except (msgspec.DecodeError, RecursionError):
        raise Unreadable(
            f"{http.place(url)} does not describe its versions; name one in url: {_example(url)}"
        ) from None


def _newest(paths: set[str], api: str, place: str) -> int:
    found = sorted(_versions(paths, api))
    read = [version for version in found if OLDEST <= version <= NEWEST]
    if read:
        return read[-1]
    served = ", ".join(f"v0.0.{version}" for version in found[:8]) or "none"
    raise Unreadable(
        f"{place}: of the versions that it serves ({served}) none is read (v0.0.{OLDEST} to v0.0.{NEWEST}); "
        "one that is named in url is tried"
    )


def _versions(paths: set[str], api: str) -> Iterator[int]:
    for path in paths:
        if match := re.fullmatch(rf"/{api}/v0\.0\.(\d{{1,4}})/jobs/?", path, re.ASCII):
            yield int(match[1])


def _on(url: str, path: str) -> str:
    """Another path of the same server, with what the address says behind it only for the answer itself."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, path, "" if path in _DESCRIPTIONS else parts.query, ""))


def _example(url: str) -> str:
    return urlsplit(url).path.replace("/jobs", f"/v0.0.{NEWEST}/jobs")
