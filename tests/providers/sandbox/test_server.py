"""The server and its control endpoint, over a real connection."""

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from broker.commands.local_clouds import serving
from broker.errors import InputError
from broker.model.place import ProviderName
from providers.sandbox import control
from providers.sandbox.catalogue import Pool
from providers.sandbox.faults import FaultKind
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


def test_the_documented_calls_are_the_calls() -> None:
    line = re.compile(r"^ *(GET|POST|DELETE) +/_sandbox/((?:[a-z]+, )*[a-z]+)", re.MULTILINE)
    listed = {
        (method, name)
        for method, names in line.findall(control.__doc__ or "")
        for name in names.replace(",", " ").split()
    }
    beside = {("DELETE", "capacity")}
    assert listed | beside == set(control._ROUTES)


def test_the_market_is_set_over_the_wire(sandbox: Sandbox) -> None:
    pool = Pool(ProviderName.AWS, "us-east-1", "use1-az1", "p5.48xlarge")
    market = sandbox.market
    machine_type = market.catalogue.find(pool.provider, pool.region, pool.machine_type)
    assert machine_type is not None
    before = market.free(pool)
    settings: dict[str, Any] = {
        "capacity": {"provider": "aws", "zone": "use1-az1", "capacity": 3},
        "quota": {"provider": "aws", "quota": machine_type.quota, "limit": 7},
        "price": {"provider": "aws", "region": "us-east-1", "machine_type": "p5.48xlarge", "usd_per_hour": "1.25"},
        "provisioning": {"provider": "aws", "delay_s": 30},
        "endlag": {"provider": "aws", "delay_s": 60},
        "paging": {"provider": "aws", "size": 2},
    }
    for name, body in settings.items():
        assert call(sandbox, "POST", f"/_sandbox/{name}", body)[0] == 200, name

    assert (before, market.free(pool)) == (16, 3)
    assert market.quota_limit(pool.provider, "1", pool.region, machine_type.quota) == 7
    assert market.price(machine_type) == Decimal("1.25")
    assert market.state.provisioning_s == {ProviderName.AWS: 30.0}
    assert market.state.end_lag_s == {ProviderName.AWS: 60.0}
    assert sandbox.world.page_size(ProviderName.AWS, 100) == 2
    call(sandbox, "DELETE", "/_sandbox/capacity")
    assert market.free(pool) == before


def test_what_is_held_called_and_billed_can_be_read(sandbox: Sandbox, tmp_path: Path) -> None:
    pool = Pool(ProviderName.AWS, "us-east-1", "use1-az1", "p5.48xlarge")
    holding = sandbox.market.reserve(pool, "1", 2, id="cr-1")
    sandbox.market.launch(pool, "1", id="i-1", holding=holding)

    answers = {name: call(sandbox, "GET", f"/_sandbox/{name}")[1] for name in ("holdings", "instances", "bill")}

    assert [(h["id"], h["count"]) for h in answers["holdings"]] == [("cr-1", 2)]
    assert [i["holding"] for i in answers["instances"]] == ["cr-1"]
    assert [(line["count"], line["usd_per_hour"]) for line in answers["bill"]] == [(2, "55.04")]
    assert [e["kind"] for e in call(sandbox, "GET", "/_sandbox/effects")[1]] == ["reserve", "launch"]
    saved = tmp_path / "world.json"
    assert call(sandbox, "POST", "/_sandbox/save", {"path": str(saved)})[0] == 200
    with Sandbox(path=saved) as other:
        assert [h.id for h in other.market.holdings()] == ["cr-1"]
    call(sandbox, "DELETE", "/_sandbox/calls")
    assert sandbox.record.effects == []


def test_a_command_that_is_killed_loses_nothing_that_it_bought(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    code = f"""
import http.client, os
from pathlib import Path
from urllib.parse import urlencode
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import embedded
with embedded(Path({str(path)!r})) as sandbox:
    connection = http.client.HTTPConnection(sandbox.endpoint.removeprefix("http://"))
    form = {{"Action": "CreateCapacityReservation", "Version": "2016-11-15", "InstanceType": "p5.48xlarge",
            "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-east-1a", "InstanceCount": "2"}}
    connection.request("POST", "/", urlencode(form))
    connection.getresponse().read()
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    with embedded(path) as sandbox:
        assert [holding.count for holding in sandbox.market.holdings()] == [2]


def test_a_second_command_waits_for_the_first(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    code = f"""
from pathlib import Path
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import embedded
with embedded(Path({str(path)!r})) as sandbox:
    print(sandbox.clock.now().isoformat())
"""
    with embedded(path) as first:
        second = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(1.0)
        now = first.advance(timedelta(hours=1))
    out, _ = second.communicate(timeout=30)
    assert out.strip() == now.isoformat()


def test_nobody_waits_for_a_world_that_is_served(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    with serving(port=0, seed=1, speed=0.0, busy=0.0, world=path):
        with pytest.raises(InputError, match="in use by broker sandbox"), embedded(path):
            pass
        with pytest.raises(InputError), serving(port=0, seed=1, speed=0.0, busy=0.0, world=path):
            pass
    with embedded(path) as after:
        assert after.world.seed == 1


def test_the_same_seed_and_calls_give_the_same_world() -> None:
    def story(seed: int) -> tuple[list[Any], list[Any]]:
        with Sandbox(seed=seed, busy=0.6) as sandbox:
            sandbox.fault(FaultKind.ERROR, "Create*", probability=0.3, times=None)
            for number in range(12):
                form = {"AvailabilityZone": f"us-east-1{'abc'[number % 3]}", "InstanceCount": str(1 + number % 5)}
                post(sandbox, form)
                sandbox.advance(timedelta(hours=1))
            return sandbox.market.state.holdings, sandbox.record.effects

    assert story(1) == story(1)
    assert story(1) != story(2)


def post(sandbox: Sandbox, form: dict[str, str]) -> None:
    connection = http.client.HTTPConnection(sandbox.endpoint.removeprefix("http://"), timeout=5)
    asked = {"Action": "CreateCapacityReservation", "Version": "2016-11-15", "InstanceType": "p5.48xlarge"}
    connection.request("POST", "/", urlencode({**asked, "InstancePlatform": "Linux/UNIX", **form}))
    connection.getresponse().read()
    connection.close()
