"""What is read from AWS, complete or not at all."""

from typing import Any

from broker.model.place import Place, Scope
from broker.model.reservation import Reservation
from providers.aws import reading
from providers.aws.wire import Wire
from providers.base import BrokenReply, NotFound

DESCRIBE = "DescribeCapacityReservations"
_PAGE = 1000


class Listing:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        """All pages, whoever owns them and whatever their state. Raises BrokenReply where a page has no list."""
        found = {}
        for page in self._wire.pages(scope, DESCRIBE, MaxResults=_PAGE):
            if "CapacityReservations" not in page:
                raise BrokenReply(DESCRIBE, code="CapacityReservations", message="a page without the list")
            for raw in page["CapacityReservations"]:
                reservation = reading.reservation(DESCRIBE, raw, scope)
                found[reservation.id] = reservation
        return tuple(found.values())

    def reservation(self, scope: Scope, id: str) -> Reservation | None:
        """None where AWS does not know it, or does not show it yet."""
        try:
            reply = self._wire.repeat(scope, DESCRIBE, CapacityReservationIds=[id])
        except NotFound:
            return None
        found = (reading.reservation(DESCRIBE, raw, scope) for raw in reply.get("CapacityReservations", ()))
        return next((reservation for reservation in found if reservation.id == id), None)

    def places(self, scope: Scope) -> tuple[Place, ...]:
        """The zones that are open to this account; Local Zones and the like are not among them."""
        filters = [{"Name": "zone-type", "Values": ["availability-zone"]}]
        zones = self._wire.repeat(scope, "DescribeAvailabilityZones", Filters=filters).get("AvailabilityZones", ())
        return tuple(Place(scope, zone["ZoneName"], zone.get("ZoneId")) for zone in zones if zone.get("ZoneName"))

    def sold(self, scope: Scope) -> dict[str, set[str]]:
        """Zone name -> the instance types that are sold there."""
        sold: dict[str, set[str]] = {}
        for page in self._wire.pages(scope, "DescribeInstanceTypeOfferings", LocationType="availability-zone"):
            for row in page.get("InstanceTypeOfferings", ()):
                sold.setdefault(row.get("Location", ""), set()).add(row.get("InstanceType", ""))
        return sold

    def instance_types(self, scope: Scope) -> list[dict[str, Any]]:
        """Of the families that have GPUs: asking for all of them would be a dozen pages."""
        filters = [{"Name": "instance-type", "Values": ["g*", "p*"]}]
        pages = self._wire.pages(scope, "DescribeInstanceTypes", Filters=filters)
        return [raw for page in pages for raw in page.get("InstanceTypes", ())]
