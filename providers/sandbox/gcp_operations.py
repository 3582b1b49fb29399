"""Zone operations: what a change is answered with, how it ends, and how a repeated request is told.

Kept in the world's memory as plain dicts, in the order in which they were made.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.gcp_wire import ROOT, listed, not_found, timestamp
from providers.sandbox.holdings import Holding, HoldingState
from providers.sandbox.terms import OutOfCapacity, OverQuota, Refusal
from providers.sandbox.world import World

OpRecord = dict[str, Any]

REMEMBERED = timedelta(hours=1)
"""For how long a `requestId` is known again. Not documented: an assumption."""

_HTTP = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": (503, "SERVICE UNAVAILABLE"),
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": (503, "SERVICE UNAVAILABLE"),
    "QUOTA_EXCEEDED": (403, "FORBIDDEN"),
    "RESOURCE_NOT_READY": (400, "BAD REQUEST"),
}
_UNKNOWN_CODE = (500, "INTERNAL SERVER ERROR")
_STOCK_OUT = (
    "The zone '{zone}' does not have enough resources available to fulfill the request. "
    "Try a different zone, or try again later."
)


class Operations:
    """Of one project's zone."""

    def __init__(self, world: World, project: str, zone: str) -> None:
        self._world = world
        self._project = project
        self._zone = zone
        self.path = f"projects/{project}/zones/{zone}/operations"
        self._all: list[OpRecord] = world.memory[ProviderName.GCP].setdefault("operations", [])

    def repeated(self, request_id: str) -> OpRecord | None:
        """The operation that the same request made before."""
        since = self._world.clock.now() - REMEMBERED
        mine = (op for op in self._mine() if request_id and op["clientOperationId"] == request_id)
        return next((op for op in mine if datetime.fromisoformat(op["at"]) > since), None)

    def add(
        self,
        kind: str,
        target: str,
        request_id: str,
        *,
        target_id: str = "0",
        holding: Holding | None = None,
        done: datetime | None = None,
        refusal: Refusal | None = None,
        elsewhere: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Record it; what the caller is told is that it runs. A `holding` decides when and how it ends, else it is
        `done` (None: now) unless a fault lets it fail later. A stock-out names the zones that have some `elsewhere`.
        """
        now, twist = self._world.clock.now(), self._world.market.twist
        late = None if holding or refusal else twist.failure
        op: OpRecord = {
            "name": self._world.market.new_id("operation-", 24),
            "project": self._project,
            "zone": self._zone,
            "at": now.isoformat(),
            "done": (now + twist.fails_after if late else done or now).isoformat(),
            "seen": (now + (twist.hidden or timedelta(0))).isoformat(),
            "operationType": kind,
            "targetLink": f"{ROOT}/{target}",
            "targetId": target_id,
            "clientOperationId": request_id,
            "holding": holding.id if holding else None,
            "error": self._error(refusal, elsewhere) if refusal else _failure(*late) if late else None,
        }
        self._all.append(op)
        return self._rendered(op, status="RUNNING")

    def get(self, name: str) -> dict[str, Any]:
        """Raises Refused. Whoever knows the name may ask, however new it is."""
        for op in self._mine():
            if name == op["name"]:
                return self.rendered(op)
        raise not_found(f"{self.path}/{name}")

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        """Raises Refused."""
        now = self._world.clock.now()
        shown = [self.rendered(op) for op in self._mine() if datetime.fromisoformat(op["seen"]) <= now]
        return listed("compute#operationList", self.path, shown, query, self._world)

    def rendered(self, op: OpRecord) -> dict[str, Any]:
        return self._rendered(op, status=self._status(op))

    def _mine(self) -> list[OpRecord]:
        return [op for op in self._all if (op["project"], op["zone"]) == (self._project, self._zone)]

    def _holding(self, op: OpRecord) -> Holding | None:
        self._world.market.settle()
        return next((h for h in self._world.market.state.holdings if op["holding"] == h.id), None)

    def _status(self, op: OpRecord) -> str:
        holding = self._holding(op)
        if holding is not None:
            return "RUNNING" if holding.state is HoldingState.PENDING else "DONE"
        return "DONE" if datetime.fromisoformat(op["done"]) <= self._world.clock.now() else "RUNNING"

    def _rendered(self, op: OpRecord, *, status: str) -> dict[str, Any]:
        error = self._outcome(op) if status == "DONE" else None
        at = timestamp(datetime.fromisoformat(op["at"]))
        rendered = {
            "kind": "compute#operation",
            "id": str(int(op["name"].removeprefix("operation-")[:15], 16)),
            "name": op["name"],
            "zone": f"{ROOT}/projects/{op['project']}/zones/{op['zone']}",
            "operationType": op["operationType"],
            "targetLink": op["targetLink"],
            "targetId": op["targetId"],
            "clientOperationId": op["clientOperationId"],
            "status": status,
            "user": "somebody@sandbox.example",
            "progress": 100 if status == "DONE" else 0,
            "insertTime": at,
            "startTime": at,
            "selfLink": f"{ROOT}/{self.path}/{op['name']}",
        }
        if status == "DONE":
            rendered["endTime"] = timestamp(self._ended(op))
        return rendered | (error or {})

    def _ended(self, op: OpRecord) -> datetime:
        holding = self._holding(op)
        return holding.ready if holding else datetime.fromisoformat(op["done"])

    def _outcome(self, op: OpRecord) -> dict[str, Any] | None:
        holding = self._holding(op)
        if holding is not None and holding.failure is not None:
            return _failure(*holding.failure)
        error: dict[str, Any] | None = op["error"]
        return error

    def _error(self, refusal: Refusal, elsewhere: Sequence[str]) -> dict[str, Any]:
        if isinstance(refusal, OverQuota):
            message = f"Quota '{refusal.quota}' exceeded.  Limit: {float(refusal.limit)} in region {self._region}."
            info = {"metricName": f"compute.googleapis.com/{refusal.quota.lower()}", "limit": refusal.limit}
            return _failure("QUOTA_EXCEEDED", message, [{"quotaInfo": info}])
        if isinstance(refusal, OutOfCapacity):
            message = _STOCK_OUT.format(zone=f"projects/{self._project}/zones/{self._zone}")
            if not elsewhere:
                return _failure("ZONE_RESOURCE_POOL_EXHAUSTED", message)
            metadata = {"zone": self._zone, "zonesAvailable": ",".join(elsewhere)}
            info = {"reason": "resource_availability", "domain": "compute.googleapis.com", "metadatas": metadata}
            return _failure("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", message, [{"errorInfo": info}])
        return _failure("RESOURCE_NOT_READY", str(refusal))

    @property
    def _region(self) -> str:
        return self._zone.rpartition("-")[0]


def failed(code: str, message: str) -> dict[str, Any]:
    """An operation that was refused as soon as it was made, not remembered."""
    return {
        "kind": "compute#operation",
        "id": "1",
        "name": "operation-refused",
        "status": "DONE",
        "progress": 100,
        **_failure(code, message),
    }


def _failure(code: str, message: str, details: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    status, phrase = _HTTP.get(code, _UNKNOWN_CODE)
    error: dict[str, Any] = {"code": code or "INTERNAL_ERROR", "message": message}
    if details:
        error["errorDetails"] = details
    return {"error": {"errors": [error]}, "httpErrorStatusCode": status, "httpErrorMessage": phrase}
