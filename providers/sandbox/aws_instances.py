"""EC2's instances, as far as they consume reservations, and the tags of both."""

from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.aws_call import AwsCall, checked_tags, filtered, given_tags, page, tag_list, tag_values
from providers.sandbox.aws_reservations import criteria_of, find, platform_of, refusal, tenancy_of
from providers.sandbox.aws_wire import AwsError
from providers.sandbox.catalogue import Pool
from providers.sandbox.holdings import Holding, HoldingState, Instance
from providers.sandbox.terms import NotSold, Refusal, WrongState

DEFAULT_TYPE = "g4dn.xlarge"
PLATFORM = "Linux/UNIX"


def run(call: AwsCall) -> dict[str, Any]:
    """RunInstances, into the target reservation, a matching open one, or plain on-demand capacity.

    As many as can be had from MinCount to MaxCount, else none.
    """
    launched: list[Instance] = []
    for _ in range(call.get("MaxCount")):
        try:
            launched.append(_launch(call))
        except AwsError:
            if len(launched) < call.get("MinCount"):
                for instance in launched:
                    call.market.terminate(instance)
                raise
            break
    instances = [_instance(call, instance) for instance in launched]
    return {"ReservationId": call.market.new_id("r-", 17), "OwnerId": call.account, "Instances": instances}


def terminate(call: AwsCall) -> dict[str, Any]:
    """TerminateInstances, repeatable."""
    known = {i.id: i for i in call.market.instances(ProviderName.AWS, call.account, call.region)}
    ids = call.get("InstanceIds")
    if missing := [id for id in ids if id not in known]:
        raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{missing[0]}' does not exist")
    changes = []
    for id in ids:
        before = _state(known[id])
        call.market.terminate(known[id])
        changes.append({"InstanceId": id, "CurrentState": _state(known[id]), "PreviousState": before})
    return {"TerminatingInstances": changes}


def describe(call: AwsCall) -> dict[str, Any]:
    """DescribeInstances, one reservation (in the old sense of the word) each."""
    known = {i.id: i for i in call.market.instances(ProviderName.AWS, call.account, call.region)}
    wanted = call.get("InstanceIds", list(known))
    if missing := [id for id in wanted if id not in known]:
        raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{missing[0]}' does not exist")
    found = filtered(call, [known[id] for id in wanted], lambda instance, name: _filter_values(call, instance, name))
    shown, token = page(call, found)
    rows = [
        {"ReservationId": f"r-{i.id.removeprefix('i-')}", "OwnerId": call.account, "Instances": [_instance(call, i)]}
        for i in shown
    ]
    return {"Reservations": rows, "NextToken": token}


def _launch(call: AwsCall) -> Instance:
    holding = _reservation(call)
    zones = [holding.zone] if holding else _zones(call)
    refusals: list[Refusal] = []
    for zone in zones:
        pool = Pool(ProviderName.AWS, call.region, zone, call.get("InstanceType", DEFAULT_TYPE))
        try:
            return call.market.launch(
                pool,
                call.account,
                id=call.market.new_id("i-", 17),
                holding=holding,
                tags=given_tags(call, "instance"),
                details={"image": call.get("ImageId"), "tenancy": _tenancy(call)},
            )
        except WrongState:
            message = "The requested reservation does not have sufficient compatible and available capacity."
            raise AwsError("ReservationCapacityExceeded", message) from None
        except Refusal as refused:
            refusals.append(refused)
    # With no zone asked for, that some zones do not sell the type says nothing about those that do.
    raise refusal(next((r for r in refusals if not isinstance(r, NotSold)), refusals[0]))


def _reservation(call: AwsCall) -> Holding | None:
    """The one to launch into. Raises AwsError where it must be one and there is none."""
    wish = call.get("CapacityReservationSpecification", {})
    preference, target = wish.get("CapacityReservationPreference"), wish.get("CapacityReservationTarget", {})
    if target and preference not in (None, "capacity-reservations-only"):
        raise AwsError("InvalidParameterCombination", "Give a target or a preference, not both")
    if id := target.get("CapacityReservationId"):
        return _targeted(call, id)
    if preference == "none":
        return None
    matching = [h for h in call.market.holdings(ProviderName.AWS, call.account, call.region) if _open_for(call, h)]
    if not matching and preference == "capacity-reservations-only":
        raise AwsError("ReservationCapacityExceeded", "There is no open reservation with room for it.")
    return matching[0] if matching else None


def _targeted(call: AwsCall, id: str) -> Holding:
    holding = find(call, id)
    if not _fits(call, holding):
        message = f"The request's attributes do not match those of the capacity reservation {id}."
        raise AwsError("InvalidParameterValue", message)
    if holding.state is HoldingState.PENDING:
        raise AwsError("InvalidCapacityReservationState.PendingActivation", f"{id} is not active yet")
    return holding


def _open_for(call: AwsCall, holding: Holding) -> bool:
    has_room = holding.state is HoldingState.ACTIVE and len(call.market.consumers(holding)) < holding.there
    return criteria_of(holding) == "open" and has_room and _fits(call, holding)


def _fits(call: AwsCall, holding: Holding) -> bool:
    zone = call.get("Placement", {}).get("AvailabilityZone")
    wanted = (call.get("InstanceType", DEFAULT_TYPE), PLATFORM, _tenancy(call))
    offered = (holding.machine_type, platform_of(holding), tenancy_of(holding))
    return wanted == offered and zone in (None, call.zone_name(holding.zone))


def _tenancy(call: AwsCall) -> str:
    return str(call.get("Placement", {}).get("Tenancy", "default"))


def _zones(call: AwsCall) -> list[str]:
    name = call.get("Placement", {}).get("AvailabilityZone")
    if name is not None and name not in call.zones:
        raise AwsError("InvalidParameterValue", f"Invalid availability zone: [{name}]")
    return [call.zones[name]] if name else list(call.zones.values())


def _state(instance: Instance) -> dict[str, Any]:
    return {"Code": 48, "Name": "terminated"} if instance.ended else {"Code": 16, "Name": "running"}


def _instance(call: AwsCall, instance: Instance) -> dict[str, Any]:
    placement = {
        "AvailabilityZone": call.zone_name(instance.zone),
        "AvailabilityZoneId": instance.zone,
        "Tenancy": instance.details.get("tenancy", "default"),
    }
    return {
        "InstanceId": instance.id,
        "ImageId": instance.details.get("image", "ami-00000000000000000"),
        "InstanceType": instance.machine_type,
        "State": _state(instance),
        "Placement": placement,
        "LaunchTime": instance.launched,
        "CapacityReservationId": instance.holding,
        "PlatformDetails": PLATFORM,
        "Tags": tag_list(instance.tags),
    }


def _filter_values(call: AwsCall, instance: Instance, name: str) -> list[str] | None:
    if (tags := tag_values(instance.tags, name)) is not None:
        return tags
    shown = {
        "instance-type": instance.machine_type,
        "instance-state-name": str(_state(instance)["Name"]),
        "availability-zone": call.zone_name(instance.zone),
        "capacity-reservation-id": instance.holding or "",
        "tenancy": instance.details.get("tenancy", "default"),
    }
    return [shown[name]] if name in shown else None


# -- tags


def create_tags(call: AwsCall) -> dict[str, Any]:
    """CreateTags on reservations and instances."""
    given = {tag["Key"]: tag.get("Value", "") for tag in call.get("Tags")}
    for id in call.get("Resources"):
        _set_tags(call, id, checked_tags(_tags_of(call, id) | given))
    return {}


def delete_tags(call: AwsCall) -> dict[str, Any]:
    """DeleteTags: all of them, or those named (with their value, where one is given)."""
    for id in call.get("Resources"):
        tags = _tags_of(call, id)
        gone = {tag["Key"] for tag in call.get("Tags", []) if tag.get("Value") in (None, tags.get(tag["Key"]))}
        _set_tags(
            call, id, {key: value for key, value in tags.items() if "Tags" in call.parameters and key not in gone}
        )
    return {}


def describe_tags(call: AwsCall) -> dict[str, Any]:
    """DescribeTags."""
    scope = (ProviderName.AWS, call.account, call.region)
    kinds = (("capacity-reservation", call.market.holdings(*scope)), ("instance", call.market.instances(*scope)))
    rows = [
        {"ResourceId": thing.id, "ResourceType": kind, "Key": key, "Value": value}
        for kind, things in kinds
        for thing in things
        for key, value in thing.tags.items()
    ]
    shown, token = page(call, filtered(call, rows, _tag_filter_values))
    return {"Tags": shown, "NextToken": token}


def _tag_filter_values(row: dict[str, str], name: str) -> list[str] | None:
    if name.startswith("tag:"):
        return [row["Value"]] if row["Key"] == name.removeprefix("tag:") else []
    members = {"key": "Key", "value": "Value", "resource-id": "ResourceId", "resource-type": "ResourceType"}
    return [row[members[name]]] if name in members else None


def _tags_of(call: AwsCall, id: str) -> dict[str, str]:
    return find(call, id).tags if id.startswith("cr-") else _known_instance(call, id).tags


def _set_tags(call: AwsCall, id: str, tags: dict[str, str]) -> None:
    if id.startswith("cr-"):
        call.market.tag(find(call, id), tags)
    else:
        _known_instance(call, id).tags = tags


def _known_instance(call: AwsCall, id: str) -> Instance:
    for instance in call.market.instances(ProviderName.AWS, call.account, call.region):
        if instance.id == id:
            return instance
    raise AwsError("InvalidID", f"The ID '{id}' is not valid")
