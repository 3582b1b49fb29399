"""A server that describes its versions: the newest that is read is asked for, unless the configuration names one."""

import json
from datetime import timedelta
from typing import Any

import pytest

from broker.config import QueueSource
from broker.model.snapshot import SourceView, Trust
from broker.queues import http
from broker.queues.read import read_source
from tests.queues.test_http import VALID, serving
from tests.queues.test_read import CLOCK

JOBS, ACCOUNTING = "/slurm/jobs", "/slurmdb/jobs"


def described(*versions: int, end: str = "/") -> bytes:
    paths = [f"/{api}/v0.0.{version}/jobs{end}" for api in ("slurm", "slurmdb") for version in versions]
    others = ["/slurm/v0.0.99/ping/", "/slurm/v0.0.98/jobs/state/", "/openapi/v3"]
    return json.dumps({"openapi": "3.0.3", "paths": {path: {"get": {}} for path in [*paths, *others]}}).encode()


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(http.TOKEN, VALID)


def seen(description: bytes, path: str = JOBS, **settings: Any) -> tuple[SourceView, list[str], list[dict[str, str]]]:
    with serving(description) as (address, asked):
        view = read_source(QueueSource(name="q", url=f"{address}{path}", **settings), CLOCK)
    return view, [each[":path"] for each in asked], asked


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [((37,), 37), ((39, 40, 41), 41), ((41, 40, 9), 41), ((44, 45, 46, 47, 130), 46), ((40, 100), 40)],
)
@pytest.mark.parametrize(("path", "kept"), [(JOBS, 15), (ACCOUNTING, 22)])
def test_the_newest_that_is_read_is_asked_for(versions: tuple[int, ...], chosen: int, path: str, kept: int) -> None:
    view, paths, _ = seen(described(*versions), path)
    assert paths == ["/openapi/v3", path.replace("/jobs", f"/v0.0.{chosen}/jobs")]
    assert view.kept == kept


def test_a_version_that_is_configured_is_not_questioned() -> None:
    view, paths, _ = seen(described(41, 42), "/slurm/v0.0.38/jobs")
    assert paths == ["/slurm/v0.0.38/jobs"]
    assert view.kept == 15


def test_a_server_that_describes_itself_only_under_the_older_name() -> None:
    view, paths, asked = seen(b"old" + described(38, end=""), "/slurm/jobs/?update_time=5")
    assert paths == ["/openapi/v3", "/openapi", "/slurm/v0.0.38/jobs/?update_time=5"]
    assert view.kept == 15
    assert all(each["X-Slurm-User-Token"] == VALID for each in asked)


@pytest.mark.parametrize(
    ("description", "why"),
    [
        (described(47, 48), "of the versions that it serves (v0.0.47, v0.0.48) none is read (v0.0.37 to v0.0.46)"),
        (described(), "that it serves (none) none is read"),
        (b"", "answered HTTP 404"),
        (b"<html>login</html>", "does not describe its versions; name one in url: /slurm/v0.0.46/jobs"),
        (b'{"openapi": "3.0.3"}', "does not describe its versions"),
        (b"[" * 10_000, "does not describe its versions"),
        (described(41) + b" " * 3_000_000, "more than 2000000 bytes"),
    ],
)
def test_what_goes_wrong_is_one_clear_line(description: bytes, why: str) -> None:
    view, _, _ = seen(description, max_bytes=2_000_000)
    assert view.trust is Trust.UNKNOWN
    (line,) = view.problems
    assert why in line and "\n" not in line and VALID not in line


def test_the_time_out_is_for_both_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 9.0])
    monkeypatch.setattr("broker.queues.slurmrestd.time.monotonic", lambda: next(moments, 9.0))
    real = http.get
    monkeypatch.setattr("broker.queues.http.get", lambda url, *rest: real(url, 5, 10**7, CLOCK))
    view, paths, _ = seen(described(41), timeout=timedelta(seconds=5))
    assert paths == ["/openapi/v3"]
    assert "did not answer in full within 5 s" in view.problems[0]
