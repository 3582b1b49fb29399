"""Long-running operations: what a change was answered with, and what became of it."""

from datetime import datetime, timedelta
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.azure_wire import Refused
from providers.sandbox.wire import Request
from providers.sandbox.world import World


class Operations:
    """Kept in the face's memory; an operation is over when the clock reaches its `at`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._all: dict[str, dict[str, Any]] = world.memory[ProviderName.AZURE].setdefault("operations", {})

    def begin(self, at: datetime, failure: tuple[str, str] | None = None) -> str:
        """Its id. It ends at `at`, well or with `failure`."""
        id = self._world.market.new_id("", 32)
        self._all[id] = {"start": self._world.clock.now().isoformat(), "at": at.isoformat(), "failure": failure}
        return id

    def headers(self, id: str, request: Request, subscription: str, region: str) -> dict[str, str]:
        """Where to look. `Retry-After` is 0: the sandbox's time does not pass while a client waits."""
        where = f"{request.base_url}/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{region}"
        link = f"{where}/operations/{id}?api-version=2026-04-01"
        return {"Azure-AsyncOperation": link, "Location": f"{link}&monitor=true", "Retry-After": "0"}

    def status(self, id: str) -> dict[str, Any]:
        operation = self._all.get(id)
        if operation is None:
            raise Refused("ResourceNotFound", f"The operation '{id}' was not found.")
        shown = {"name": id, "startTime": operation["start"]}
        if datetime.fromisoformat(operation["at"]) > self._world.clock.now():
            return {**shown, "status": "InProgress"}
        ended = {**shown, "endTime": operation["at"]}
        if operation["failure"]:
            code, message = operation["failure"]
            return {**ended, "status": "Failed", "error": {"code": code, "message": message}}
        return {**ended, "status": "Succeeded"}

    def twisted(self) -> tuple[datetime, tuple[str, str] | None]:
        """When an operation that is begun now ends, and with what failure, as a fault may have it."""
        twist, now = self._world.market.twist, self._world.clock.now()
        if twist.failure is None:
            return now, None
        code, message = twist.failure
        return now + (twist.fails_after or timedelta(0)), (code or "AllocationFailed", message)
