"""A small server that answers as slurmrestd does, and as services do when something is wrong."""

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from broker.config import QueueSource
from broker.model.snapshot import SourceView, Trust
from broker.queues import http
from broker.queues.read import detected, read_source
from broker.queues.registry import FORMATS
from tests.queues import fixtures
from tests.queues.test_read import CLOCK, NOW

SQUEUE = fixtures.of_format("squeue")[-1].read_bytes()
SACCT = fixtures.of_format("sacct-json")[-1].read_bytes()
RAY = fixtures.of_format("ray")[-1].read_bytes()


def token(until: float, **claims: Any) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"exp": int(until), "sun": "ana"} | claims]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*coded, "c2lnbmF0dXJl"])


VALID = token(NOW.timestamp() + 3600)


class _Slurmrestd(BaseHTTPRequestHandler):
    seen: list[dict[str, str]]
    description: bytes = b""

    def do_GET(self) -> None:
        self.seen.append(dict(self.headers.items()) | {":path": self.path})
        answer = getattr(self, f"_{self.path.partition('?')[0].strip('/').split('/')[-1]}", self._nothing)
        answer()

    def _jobs(self) -> None:
        if self.path == "/api/jobs/":
            self._say(200, RAY)
            return
        if self.headers.get("X-SLURM-USER-TOKEN") != VALID:
            self._say(401, b'{"errors":[{"description":"Authentication failure","error_number":1007}]}')
            return
        self._say(200, SACCT if self.path.startswith("/slurmdb/") else SQUEUE)

    def _v3(self) -> None:
        """How it describes itself; an empty description is one that is not served under this name."""
        if self.headers.get("X-SLURM-USER-TOKEN") != VALID:
            self._say(401, b"Authentication failure")
        elif self.description and not self.description.startswith(b"old"):
            self._say(200, self.description)
        else:
            self._nothing()

    def _openapi(self) -> None:
        self._say(200, self.description.removeprefix(b"old")) if self.description else self._nothing()

    def _say(self, code: int, body: bytes, length: int | None = None, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def _nothing(self) -> None:
        self._say(404, b"Not Found")

    def _elsewhere(self) -> None:
        self._say(302, b"", Location="http://127.0.0.1:9/slurm/v0.0.41/jobs")

    def _short(self) -> None:
        self._say(200, SQUEUE[:500], length=len(SQUEUE))

    def _down(self) -> None:
        self._say(500, b'{"jobs":[],"errors":[{"description":"Unable to contact slurm controller"}]}')

    def _silent(self) -> None:
        time.sleep(0.6)

    def _dribble(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(12):
            self.wfile.write(b" " * 10)
            self.wfile.flush()
            time.sleep(0.05)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving(description: bytes = b"") -> Iterator[tuple[str, list[dict[str, str]]]]:
    seen: list[dict[str, str]] = []
    handler = type("Handler", (_Slurmrestd,), {"seen": seen, "description": description})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are what is tested
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> Any:
    def seen(path: str, jwt: str | None = VALID, timeout_s: float = 5, max_bytes: int = 10**6) -> SourceView:
        monkeypatch.delenv(http.TOKEN, raising=False)
        if jwt is not None:
            monkeypatch.setenv(http.TOKEN, jwt)
        with serving() as (address, _):
            source = QueueSource(
                name="q", url=address + path, timeout=timedelta(seconds=timeout_s), max_bytes=max_bytes
            )
            found = read_source(source, CLOCK)
        assert all(VALID not in line for line in found.problems)
        return found

    return seen


@pytest.mark.parametrize(("path", "jobs"), [("/slurm/v0.0.41/jobs", 15), ("/slurmdb/v0.0.41/jobs", 22)])
def test_slurmrestd_is_read_as_the_commands_are(path: str, jobs: int, view: Any) -> None:
    found = view(path)
    assert found.kept == jobs
    assert found.as_of == NOW


def test_the_job_api_of_ray_is_read_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(http.TOKEN, VALID)
    with serving() as (address, seen):
        found = read_source(QueueSource(name="q", url=f"{address}/api/jobs/"), CLOCK)
    assert found.trust is Trust.PARTIAL  # one job of these says no GPU count
    assert found.read_as.startswith("ray")
    expected = FORMATS["ray"].read(RAY.decode(), fixtures.context())
    assert [job.id for job in found.jobs] == [job.id for job in expected.jobs] != []
    assert not any("token" in name.lower() for name in seen[0])


def test_the_token_and_its_user_are_sent_and_the_format_is_found() -> None:
    with serving() as (address, seen):
        fetched = http.get(f"{address}/slurm/v0.0.41/jobs", 5, 10**6, CLOCK, {http.TOKEN: VALID})
        http.get(f"{address}/slurmdb/v0.0.41/jobs", 5, 10**6, CLOCK, {http.TOKEN: VALID})
    assert fetched.raw == SQUEUE
    assert seen[0]["X-Slurm-User-Token"] == VALID and seen[0]["X-Slurm-User-Name"] == "ana"


def test_detection_works_over_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(http.TOKEN, VALID)
    with serving() as (address, _):
        found = detected(QueueSource(name="q", url=f"{address}/slurmdb/v0.0.41/jobs"), CLOCK)
    assert found.name == "sacct-json"


@pytest.mark.parametrize(
    ("path", "options", "why"),
    [
        ("/slurm/v0.0.41/jobs", {"jwt": None}, "needs SLURM_JWT in the environment"),
        ("/slurm/v0.0.41/jobs", {"jwt": token(NOW.timestamp() - 60)}, "SLURM_JWT expired at 2026-03-04 08:59 UTC"),
        ("/slurm/v0.0.41/jobs", {"jwt": "other.e30.x"}, "refuses the token (HTTP 401: Authentication failure)"),
        ("/slurm/v0.0.41/jobs", {"jwt": "a\nb"}, "SLURM_JWT is not a token"),
        ("/slurm/v0.0.41/jobs", {"max_bytes": 1000}, "more than 1000 bytes"),
        ("/slurm/v9/other", {}, "HTTP 404"),
        ("/slurm/v9/elsewhere", {}, "is not followed"),
        ("/slurm/v9/short", {}, "broke off its answer"),
        ("/slurm/v9/down", {}, "HTTP 500: Unable to contact slurm controller"),
        ("/slurm/v9/silent", {"timeout_s": 0.2}, "did not answer in full within 0.2 s"),
        ("/slurm/v9/dribble", {"timeout_s": 0.2}, "did not answer in full within 0.2 s"),
    ],
)
def test_what_goes_wrong_is_one_clear_line(path: str, options: dict[str, Any], why: str, view: Any) -> None:
    found = view(path, **options)
    assert found.trust is Trust.UNKNOWN
    (line,) = found.problems
    assert why in line and "\n" not in line


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = read_source(QueueSource(name="q", url=f"http://127.0.0.1:{taken.getsockname()[1]}/x"), CLOCK)
    assert found.trust is Trust.UNKNOWN
    assert "cannot be reached" in found.problems[0]


def test_no_token_leaves_for_other_paths() -> None:
    with serving() as (address, seen), pytest.raises(Exception, match="404"):
        http.get(f"{address}/api/jobs_of_ray", 5, 10**6, CLOCK, {http.TOKEN: VALID})
    assert not any("Token" in name for name in seen[0])
