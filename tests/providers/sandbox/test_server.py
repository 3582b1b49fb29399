"""The server and its control endpoint, over a real connection."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from providers.sandbox.local import Sandbox, embedded


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def call(sandbox: Sandbox, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(sandbox.endpoint.removeprefix("http://"), timeout=5)
    connection.request(method, path, json.dumps(body) if body is not None else None)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def test_it_listens_on_the_loopback_only(sandbox: Sandbox) -> None:
    assert sandbox.endpoint.startswith("http://127.0.0.1:")


def test_the_clock_is_set_and_advanced_and_never_goes_back(sandbox: Sandbox) -> None:
    before = sandbox.clock.now()
    assert call(sandbox, "POST", "/_sandbox/clock", {"advance_s": 60})[0] == 200
    assert sandbox.clock.now() == before + timedelta(seconds=60)
    status, answer = call(sandbox, "POST", "/_sandbox/clock", {"set": before.isoformat()})
    assert status == 400
    assert "does not go back" in answer["error"]


def test_faults_are_added_listed_and_dropped(sandbox: Sandbox) -> None:
    _, added = call(sandbox, "POST", "/_sandbox/faults", {"kind": "reply-lost", "operation": "Create*"})
    assert [state["rule"]["kind"] for state in call(sandbox, "GET", "/_sandbox/faults")[1]] == ["reply-lost"]
    call(sandbox, "DELETE", f"/_sandbox/faults/{added['id']}")
    assert call(sandbox, "GET", "/_sandbox/faults")[1] == []


@pytest.mark.parametrize("body", [{"kind": "no-such"}, {"kind": "error", "oops": 1}, {}])
def test_a_rule_that_cannot_be_read_is_refused_with_the_reason(sandbox: Sandbox, body: Any) -> None:
    status, answer = call(sandbox, "POST", "/_sandbox/faults", body)
    assert status == 400
    assert answer["error"]
    assert sandbox.world.faults.rules == []


def test_what_is_no_cloud_is_not_found(sandbox: Sandbox) -> None:
    assert call(sandbox, "GET", "/somewhere")[0] == 404
    assert call(sandbox, "GET", "/_sandbox/nothing")[0] == 404


def test_an_embedded_world_is_kept_between_commands(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    with embedded(path, seed=3) as first:
        now = first.advance(timedelta(hours=5))
    with embedded(path) as second:
        assert (second.clock.now(), second.world.seed) == (now, 3)


def test_it_starts_fast_and_loads_no_sdk() -> None:
    code = (
        "import sys, time; t = time.process_time(); from providers.sandbox.local import Sandbox; s = Sandbox(); "
        "s.start(); took = time.process_time() - t; s.stop(); "
        "print(took, [m for m in ('boto3', 'botocore', 'moto', 'google', 'azure') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    took, loaded = out.split(" ", 1)
    assert loaded == "[]"
    assert float(took) < 0.3
