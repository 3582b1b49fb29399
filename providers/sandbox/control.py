"""The control endpoint: what tests, demos and people set and read over `/_sandbox/`. JSON both ways.

GET    /_sandbox/health                {"now": ..., "seed": ...}
POST   /_sandbox/clock                 {"set": TIME} | {"advance_s": 60} | {"speed": 60}; any of them
GET    /_sandbox/faults                the rules in force, with how often they struck
POST   /_sandbox/faults                a `faults.Rule`; {"id": 1}
DELETE /_sandbox/faults[/ID]           one, or all
POST   /_sandbox/capacity              a `supply.PoolRule`;  DELETE forgets them all
POST   /_sandbox/quota                 a `terms.QuotaRule`
POST   /_sandbox/price                 a `terms.PriceRule`
POST   /_sandbox/provisioning          {"provider": "aws", "delay_s": 30}
POST   /_sandbox/endlag                {"provider": "aws", "delay_s": 3600}
POST   /_sandbox/paging                {"provider": "aws", "size": 2}
GET    /_sandbox/calls, effects, holdings, instances, bill
DELETE /_sandbox/calls                 forget calls and effects
POST   /_sandbox/save                  {"path": FILE}
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from broker.model.place import ProviderName
from providers.sandbox.faults import Rule
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import PriceRule, QuotaRule
from providers.sandbox.wire import Request, Response, seconds
from providers.sandbox.world import World

PREFIX = "/_sandbox/"


class ClockChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    set: datetime | None = None
    advance_s: float | None = None
    speed: float | None = None


class Lag(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    provider: ProviderName
    delay_s: float


class Paging(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    provider: ProviderName
    size: int


class SaveTo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str


def control(request: Request, world: World) -> Response:
    """Answer one control call. 404 for an unknown one, 400 with the reason for one that cannot be read."""
    name, _, rest = request.path.removeprefix(PREFIX).partition("/")
    handler = _ROUTES.get((request.method, name))
    if handler is None:
        return Response.of_json({"error": f"no control call {request.method} {request.path}"}, 404)
    try:
        with world.lock:
            return Response.of_json(handler(world, request, rest))
    except (msgspec.MsgspecError, ValueError, OSError) as error:
        return Response.of_json({"error": str(error)}, 400)


def _health(world: World, _request: Request, _rest: str) -> Any:
    return {"now": world.clock.now(), "seed": world.seed}


def _clock(world: World, request: Request, rest: str) -> Any:
    change = msgspec.json.decode(request.body, type=ClockChange)
    if change.set is not None:
        world.clock.set(change.set)
    if change.advance_s is not None:
        world.clock.advance(seconds(change.advance_s))
    if change.speed is not None:
        world.clock.run(change.speed)
    return _health(world, request, rest)


def _faults(world: World, _request: Request, _rest: str) -> Any:
    return world.faults.rules


def _add_fault(world: World, request: Request, _rest: str) -> Any:
    return {"id": world.faults.add(msgspec.json.decode(request.body, type=Rule))}


def _drop_faults(world: World, _request: Request, rest: str) -> Any:
    if rest:
        world.faults.remove(int(rest))
    else:
        world.faults.clear()
    return {}


def _capacity(world: World, request: Request, _rest: str) -> Any:
    world.market.set_capacity(msgspec.json.decode(request.body, type=PoolRule))
    return {}


def _drop_capacity(world: World, _request: Request, _rest: str) -> Any:
    world.market.clear_capacity()
    return {}


def _quota(world: World, request: Request, _rest: str) -> Any:
    world.market.set_quota(msgspec.json.decode(request.body, type=QuotaRule))
    return {}


def _price(world: World, request: Request, _rest: str) -> Any:
    world.market.set_price(msgspec.json.decode(request.body, type=PriceRule))
    return {}


def _provisioning(world: World, request: Request, _rest: str) -> Any:
    change = msgspec.json.decode(request.body, type=Lag)
    world.market.set_provisioning(change.provider, seconds(change.delay_s))
    return {}


def _end_lag(world: World, request: Request, _rest: str) -> Any:
    change = msgspec.json.decode(request.body, type=Lag)
    world.market.set_end_lag(change.provider, seconds(change.delay_s))
    return {}


def _paging(world: World, request: Request, _rest: str) -> Any:
    change = msgspec.json.decode(request.body, type=Paging)
    world.memory[change.provider]["page_size"] = change.size
    return {}


def _calls(world: World, _request: Request, _rest: str) -> Any:
    return world.record.calls


def _drop_calls(world: World, _request: Request, _rest: str) -> Any:
    world.record.clear()
    return {}


def _effects(world: World, _request: Request, _rest: str) -> Any:
    return world.record.effects


def _holdings(world: World, _request: Request, _rest: str) -> Any:
    world.market.settle()
    return world.market.state.holdings


def _instances(world: World, _request: Request, _rest: str) -> Any:
    return world.market.state.instances


def _bill(world: World, _request: Request, _rest: str) -> Any:
    return world.market.bill()


def _save(world: World, request: Request, _rest: str) -> Any:
    world.save(Path(msgspec.json.decode(request.body, type=SaveTo).path))
    return {}


_ROUTES: dict[tuple[str, str], Callable[[World, Request, str], Any]] = {
    ("GET", "health"): _health,
    ("POST", "clock"): _clock,
    ("GET", "faults"): _faults,
    ("POST", "faults"): _add_fault,
    ("DELETE", "faults"): _drop_faults,
    ("POST", "capacity"): _capacity,
    ("DELETE", "capacity"): _drop_capacity,
    ("POST", "quota"): _quota,
    ("POST", "price"): _price,
    ("POST", "provisioning"): _provisioning,
    ("POST", "endlag"): _end_lag,
    ("POST", "paging"): _paging,
    ("GET", "calls"): _calls,
    ("DELETE", "calls"): _drop_calls,
    ("GET", "effects"): _effects,
    ("GET", "holdings"): _holdings,
    ("GET", "instances"): _instances,
    ("GET", "bill"): _bill,
    ("POST", "save"): _save,
}
