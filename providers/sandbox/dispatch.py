"""One call from request to reply: recorded, struck by faults, handled, bent by faults."""

import json
import re
import time
from enum import Enum, auto
from typing import Any

from providers.sandbox.faces import Faces, cloud_of
from providers.sandbox.faults import FaultKind, Rule, Strike
from providers.sandbox.record import Call
from providers.sandbox.terms import Twist
from providers.sandbox.wire import Face, Request, Response, seconds
from providers.sandbox.world import World


class Broken(Enum):
    """What the client gets instead of a reply."""

    RESET = auto()
    CLOSED = auto()


class Dispatch:
    """`answer` is called from many threads; the world is changed by one at a time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faces = Faces()

    def answer(self, request: Request) -> Response | Broken:
        provider = cloud_of(request)
        if provider is None:
            return Response.of_json({"error": f"no cloud answers {request.path}"}, 404)
        face = self.faces.get(provider)
        with self.world.lock:
            call, strike = self._begin(face, request)
        if rule := strike.first(FaultKind.DELAY_BEFORE):
            time.sleep(rule.delay_s)
        reply = self._reply(face, request, call, strike)
        if rule := strike.first(FaultKind.DELAY):
            time.sleep(rule.delay_s)
        return reply

    def _begin(self, face: Face, request: Request) -> tuple[Call, Strike]:
        operation = face.operation(request)
        world = self.world
        strike = world.faults.strike(face.provider, operation.name, operation.parameters)
        call = world.record.begin(world.clock.now(), face.provider, operation.name, operation.parameters)
        call.fault = strike.names
        call.request_id = f"req-{world.seed}-{call.number}"
        return call, strike

    def _reply(self, face: Face, request: Request, call: Call, strike: Strike) -> Response | Broken:
        if strike.first(FaultKind.RESET_BEFORE):
            return Broken.RESET
        if rule := strike.first(FaultKind.THROTTLE, FaultKind.ERROR):
            return self._sent(call, self._error(face, request, rule, call))
        response = self._effect(face, request, call, strike)
        if strike.first(FaultKind.RESET_AFTER):
            return Broken.RESET
        if strike.first(FaultKind.REPLY_LOST):
            return Broken.CLOSED
        if rule := strike.first(FaultKind.ERROR_AFTER):
            response = self._error(face, request, rule, call)
        for rule in strike.rules:
            response = _bend(response, rule)
        return self._sent(call, response)

    def _effect(self, face: Face, request: Request, call: Call, strike: Strike) -> Response:
        with self.world.lock:
            market = self.world.market
            market.call, market.twist = call.number, _twist(strike)
            try:
                return face.handle(request, self.world)
            finally:
                market.call, market.twist = 0, Twist()
                self.world.keep()

    def _error(self, face: Face, request: Request, rule: Rule, call: Call) -> Response:
        response = face.error(request, rule, call.request_id)
        if rule.kind is FaultKind.THROTTLE:
            response.headers = {**response.headers, "Retry-After": str(rule.retry_after_s)}
        return response

    def _sent(self, call: Call, response: Response) -> Response:
        call.status, call.code = response.status, response.code
        return response


def _twist(strike: Strike) -> Twist:
    hidden, fails = strike.first(FaultKind.HIDDEN), strike.first(FaultKind.FAILS_LATER)
    partly = strike.first(FaultKind.PARTLY)
    return Twist(
        hidden=seconds(hidden.delay_s) if hidden else None,
        fails_after=seconds(fails.delay_s) if fails else seconds(0),
        failure=(fails.code, fails.message) if fails else None,
        delivers=partly.count if partly else None,
    )


def _bend(response: Response, rule: Rule) -> Response:
    if rule.kind is FaultKind.MALFORMED:
        response.body = response.body[: max(len(response.body) // 2, 1)]
    elif rule.kind in (FaultKind.UNKNOWN_FIELD, FaultKind.UNKNOWN_ENUM, FaultKind.MISSING_FIELD):
        bent = _bend_json if "json" in response.headers.get("Content-Type", "") else _bend_xml
        response.body = bent(response.body, rule)
    return response


def _bend_json(body: bytes, rule: Rule) -> bytes:
    return json.dumps(_bent(json.loads(body), rule)).encode() if body else body


def _bent(value: Any, rule: Rule) -> Any:
    if isinstance(value, list):
        return [_bent(item, rule) for item in value]
    if not isinstance(value, dict):
        return value
    bent = {name: _bent(item, rule) for name, item in value.items()}
    if rule.kind is FaultKind.UNKNOWN_FIELD:
        bent[rule.field or "brandNewField"] = {"x": 1}
    elif rule.field in bent and rule.kind is FaultKind.UNKNOWN_ENUM:
        bent[rule.field] = rule.value
    elif rule.field in bent:
        del bent[rule.field]
    return bent


def _bend_xml(body: bytes, rule: Rule) -> bytes:
    text, name = body.decode(), re.escape(rule.field)
    if rule.kind is FaultKind.UNKNOWN_FIELD:
        field = rule.field or "brandNewField"
        text = re.sub(r"(<item>|<capacityReservation>)(?=<)", rf"\1<{field}><x>1</x></{field}>", text)
    elif rule.kind is FaultKind.UNKNOWN_ENUM:
        text = re.sub(rf"(<{name}>)[^<]*(</{name}>)", rf"\g<1>{rule.value}\g<2>", text)
    else:
        text = re.sub(rf"<{name}>.*?</{name}>|<{name}/>", "", text, flags=re.DOTALL)
    return text.encode()
