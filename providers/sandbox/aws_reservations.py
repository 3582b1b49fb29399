"""EC2's capacity reservations: created, changed, cancelled, described, as AWS does and with what AWS refuses."""

import hashlib
import json
from datetime import datetime, timedelta
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.aws_call import AwsCall, filtered, given_tags, page, tag_list, tag_values
from providers.sandbox.aws_wire import AwsError
from providers.sandbox.catalogue import Pool
from providers.sandbox.holdings import Holding, HoldingState
from providers.sandbox.terms import NoSuchHolding, NotSold, OutOfCapacity, OverQuota, Refusal, WrongState

TOKEN_LIFETIME = timedelta(hours=24)
"""How long a client token is remembered. AWS publishes no figure for reservations: an assumption."""

FAILED_VISIBLE = timedelta(minutes=60)
GONE_VISIBLE = timedelta(hours=24)
"""How long cancelled and expired reservations are still described: an assumption."""

STATES = {
    HoldingState.PENDING: "pending",
    HoldingState.ACTIVE: "active",
    HoldingState.RELEASED: "cancelled",
    HoldingState.EXPIRED: "expired",
    HoldingState.FAILED: "failed",
}


def create(call: AwsCall) -> dict[str, Any]:
    """CreateCapacityReservation; the same client token again gives the same reservation."""
    if known := _made_with_token(call):
        return {"CapacityReservation": render(call, known, {})}
    _refuse_unsupported(call)
    zone = _zone(call)
    tags = given_tags(call, "capacity-reservation")
    holding = _reserve(call, zone, tags)
    _remember_token(call, holding.id)
    return {"CapacityReservation": render(call, holding, {})}


def modify(call: AwsCall) -> dict[str, Any]:
    """ModifyCapacityReservation: count, end, match criteria."""
    holding = _live(call)
    end_given = "EndDateType" in call.parameters or "EndDate" in call.parameters
    end = _end(call)
    criteria = call.get("InstanceMatchCriteria")
    if criteria not in (None, criteria_of(holding)) and call.market.consumers(holding):
        raise AwsError("InvalidParameterValue", "The instance match criteria can be changed while nothing uses it.")
    if (count := call.get("InstanceCount")) is not None:
        _resize(call, holding, count)
    if end_given:
        call.market.set_end(holding, end)
    if criteria is not None:
        call.market.true_holding(ProviderName.AWS, call.account, call.region, holding.id).details["criteria"] = criteria
    return {"Return": True}


def cancel(call: AwsCall) -> dict[str, Any]:
    """CancelCapacityReservation; instances in it go on."""
    call.market.release(_live(call))
    return {"Return": True}


def describe(call: AwsCall) -> dict[str, Any]:
    """DescribeCapacityReservations."""
    seen = {holding.id: holding for holding in _visible(call)}
    wanted = call.get("CapacityReservationIds", list(seen))
    if missing := [id for id in wanted if id not in seen]:
        raise _not_found(missing[0])
    used = call.market.used_counts(ProviderName.AWS, call.account, call.region)
    found = filtered(call, [seen[id] for id in wanted], lambda holding, name: _filter_values(call, holding, name))
    shown, token = page(call, found)
    return {"CapacityReservations": [render(call, holding, used) for holding in shown], "NextToken": token}


def usage(call: AwsCall) -> dict[str, Any]:
    """GetCapacityReservationUsage."""
    holding = find(call, call.get("CapacityReservationId"))
    used = len(call.market.consumers(holding))
    return {
        "CapacityReservationId": holding.id,
        "InstanceType": holding.machine_type,
        "TotalInstanceCount": _total(holding),
        "AvailableInstanceCount": _available(holding, used),
        "State": STATES[holding.state],
        "InstanceUsages": [{"AccountId": call.account, "UsedInstanceCount": used}] if used else [],
    }


def find(call: AwsCall, id: str) -> Holding:
    """As reads show it. Raises AwsError."""
    if not id.startswith("cr-"):
        raise AwsError("InvalidCapacityReservationId.Malformed", f"The capacity reservation ID '{id}' is malformed")
    try:
        holding = call.market.holding(ProviderName.AWS, call.account, call.region, id)
    except NoSuchHolding:
        raise _not_found(id) from None
    if not _still_shown(holding, call.now):
        raise _not_found(id)
    return holding


def platform_of(holding: Holding) -> str:
    """Of one that was made in process, without EC2's own details, the default; as for the next two."""
    return str(holding.details.get("platform", "Linux/UNIX"))


def tenancy_of(holding: Holding) -> str:
    return str(holding.details.get("tenancy", "default"))


def criteria_of(holding: Holding) -> str:
    return str(holding.details.get("criteria", "open"))


def refusal(error: Refusal) -> AwsError:
    """The market's no, as EC2 says it."""
    if isinstance(error, OutOfCapacity):
        return AwsError("InsufficientInstanceCapacity", "Insufficient capacity.", 500)
    if isinstance(error, OverQuota):
        message = f"You have requested more vCPU capacity than your current limit of {error.limit} allows."
        return AwsError("InstanceLimitExceeded", message)
    if isinstance(error, NotSold):
        return AwsError("Unsupported", "Your requested instance type is not supported in your requested zone.")
    return AwsError("IncorrectState", "The resource is not in a state that allows this.")


def render(call: AwsCall, holding: Holding, used: dict[str, int]) -> dict[str, Any]:
    """A CapacityReservation. The client token is not echoed."""
    return {
        "CapacityReservationId": holding.id,
        "OwnerId": call.account,
        "CapacityReservationArn": call.arn("capacity-reservation", holding.id),
        "AvailabilityZoneId": holding.zone,
        "AvailabilityZone": call.zone_name(holding.zone),
        "InstanceType": holding.machine_type,
        "InstancePlatform": platform_of(holding),
        "Tenancy": tenancy_of(holding),
        "TotalInstanceCount": _total(holding),
        "AvailableInstanceCount": _available(holding, used.get(holding.id, 0)),
        "EbsOptimized": holding.details.get("ebs_optimized", False),
        "EphemeralStorage": holding.details.get("ephemeral", False),
        "State": STATES[holding.state],
        "StartDate": holding.started,
        "EndDate": holding.ends,
        "EndDateType": "limited" if holding.ends else "unlimited",
        "InstanceMatchCriteria": criteria_of(holding),
        "CreateDate": holding.created,
        "Tags": tag_list(holding.tags),
        "PlacementGroupArn": holding.details.get("placement_group"),
        "ReservationType": "default",
        "CapacityAllocations": _allocations(used.get(holding.id, 0)),
    }


def _total(holding: Holding) -> int:
    """While it is pending what was asked for, then what is there."""
    if not holding.state.live:
        return 0
    return holding.count if holding.state is HoldingState.PENDING else holding.there


def _available(holding: Holding, used: int) -> int:
    return max(holding.there - used, 0) if holding.state is HoldingState.ACTIVE else 0


def _allocations(used: int) -> list[dict[str, Any]]:
    return [{"AllocationType": "used", "Count": used}] if used else []


def _not_found(id: str) -> AwsError:
    return AwsError("InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{id}' does not exist")


def _live(call: AwsCall) -> Holding:
    holding = find(call, call.get("CapacityReservationId"))
    if holding.state is not HoldingState.ACTIVE:
        # AWS publishes no code for this; adapters must not depend on the one chosen here.
        raise AwsError("IncorrectState", f"The capacity reservation '{holding.id}' is {STATES[holding.state]}")
    return holding


def _visible(call: AwsCall) -> list[Holding]:
    holdings = call.market.holdings(ProviderName.AWS, call.account, call.region)
    return [holding for holding in holdings if _still_shown(holding, call.now)]


def _still_shown(holding: Holding, now: datetime) -> bool:
    lasting = FAILED_VISIBLE if holding.state is HoldingState.FAILED else GONE_VISIBLE
    return holding.ended is None or now < holding.ended + lasting


def _filter_values(call: AwsCall, holding: Holding, name: str) -> list[str] | None:
    if (tags := tag_values(holding.tags, name)) is not None:
        return tags
    shown = {
        "instance-type": holding.machine_type,
        "owner-id": call.account,
        "instance-platform": platform_of(holding),
        "availability-zone": call.zone_name(holding.zone),
        "availability-zone-id": holding.zone,
        "tenancy": tenancy_of(holding),
        "state": STATES[holding.state],
        "start-date": holding.started.isoformat() if holding.started else "",
        "end-date": holding.ends.isoformat() if holding.ends else "",
        "end-date-type": "limited" if holding.ends else "unlimited",
        "instance-match-criteria": criteria_of(holding),
        "placement-group-arn": holding.details.get("placement_group") or "",
        "outpost-arn": "",
    }
    return [shown[name]] if name in shown else None


# -- creating


def _refuse_unsupported(call: AwsCall) -> None:
    for name in ("StartDate", "CommitmentDuration", "DeliveryPreference", "OutpostArn"):
        if name in call.parameters:
            raise AwsError("UnsupportedOperation", f"The sandbox has no future-dated or Outpost reservations: {name}")
    if not 1 <= call.get("InstanceCount") <= 1000:
        raise AwsError("InvalidParameterValue", "InstanceCount is from 1 to 1000")


def _zone(call: AwsCall) -> str:
    """The zone id asked for, by name or by id."""
    name, id = call.get("AvailabilityZone"), call.get("AvailabilityZoneId")
    if (name is None) == (id is None):
        code = "MissingParameter" if name is None else "InvalidParameterCombination"
        raise AwsError(code, "Give one of AvailabilityZone and AvailabilityZoneId")
    found = call.zones.get(name) if name is not None else id
    if found not in call.zones.values():
        raise AwsError("InvalidParameterValue", f"Invalid availability zone: [{name or id}]")
    return str(found)


def _end(call: AwsCall) -> datetime | None:
    end: datetime | None = call.get("EndDate")
    limited = call.get("EndDateType", "unlimited") == "limited"
    if limited is not (end is not None):
        raise AwsError("InvalidParameterCombination", "EndDate is given if and only if EndDateType is limited")
    if end is not None and end <= call.now:
        raise AwsError("InvalidParameterValue", "EndDate must be in the future")
    return end


def _reserve(call: AwsCall, zone: str, tags: dict[str, str]) -> Holding:
    pool = Pool(ProviderName.AWS, call.region, zone, call.get("InstanceType"))
    _known_type(call, pool)
    details = {
        "platform": call.get("InstancePlatform"),
        "tenancy": call.get("Tenancy", "default"),
        "ebs_optimized": call.get("EbsOptimized", False),
        "ephemeral": call.get("EphemeralStorage", False),
        "criteria": call.get("InstanceMatchCriteria", "open"),
        "placement_group": call.get("PlacementGroupArn"),
    }
    end, id = _end(call), call.market.new_id("cr-", 17)
    try:
        return call.market.reserve(
            pool, call.account, call.get("InstanceCount"), id=id, ends=end, tags=tags, details=details
        )
    except Refusal as error:
        raise refusal(error) from None


def _known_type(call: AwsCall, pool: Pool) -> None:
    if call.world.catalogue.find(ProviderName.AWS, pool.region, pool.machine_type) is None:
        raise AwsError("InvalidParameterValue", f"Invalid value '{pool.machine_type}' for InstanceType.")


def _resize(call: AwsCall, holding: Holding, count: int) -> None:
    used = len(call.market.consumers(holding))
    if not count >= 1 or abs(count - holding.count) > 1000 or count < used:
        raise AwsError("InvalidParameterValue", f"Invalid InstanceCount {count}: {holding.count} held, {used} in use")
    try:
        call.market.resize(holding, count)
    except (OutOfCapacity, OverQuota, NotSold, WrongState) as error:
        raise refusal(error) from None


# -- client tokens


def _token_key(call: AwsCall) -> str | None:
    token = call.get("ClientToken")
    if token is not None and not (1 <= len(token) <= 64 and token.isascii()):
        raise AwsError("InvalidClientToken", "The client token is at most 64 ASCII characters")
    return f"{call.account}/{call.region}/{token}" if token else None


def _token_digest(call: AwsCall) -> str:
    ignored = {"ClientToken", "AvailabilityZone", "AvailabilityZoneId", "DryRun"}
    asked = {name: value for name, value in call.parameters.items() if name not in ignored}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


def _made_with_token(call: AwsCall) -> Holding | None:
    key = _token_key(call)
    known = call.memory.get("tokens", {}).get(key) if key else None
    if known is None or datetime.fromisoformat(known["at"]) + TOKEN_LIFETIME <= call.now:
        return None
    if known["digest"] != _token_digest(call):
        message = "The client token was used before with other parameters."
        raise AwsError("IdempotentParameterMismatch", message)
    return call.market.true_holding(ProviderName.AWS, call.account, call.region, known["id"])


def _remember_token(call: AwsCall, id: str) -> None:
    if key := _token_key(call):
        tokens = call.memory.setdefault("tokens", {})
        tokens[key] = {"id": id, "digest": _token_digest(call), "at": call.now.isoformat()}
