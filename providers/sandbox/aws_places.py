"""EC2's regions, zones, instance types and where they are offered."""

from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.aws_call import AwsCall, filtered, page
from providers.sandbox.aws_wire import AwsError
from providers.sandbox.catalogue import MachineType

BLOCK_FAMILIES = ("p4d.", "p4de.", "p5.", "p5e.", "p5en.", "p6-")
"""Whose supported usage classes include capacity blocks."""


def regions(call: AwsCall) -> dict[str, Any]:
    """DescribeRegions."""
    names = call.world.catalogue.regions(ProviderName.AWS)
    wanted = call.get("RegionNames", list(names))
    if missing := [name for name in wanted if name not in names]:
        raise AwsError("InvalidParameterValue", f"Invalid region: {missing[0]}")
    shown = filtered(call, wanted, lambda region, name: [region] if name == "region-name" else None)
    return {"Regions": [_region(name) for name in shown]}


def _region(name: str) -> dict[str, Any]:
    endpoint = f"ec2.{name}.amazonaws.com"
    return {"RegionName": name, "Endpoint": endpoint, "OptInStatus": "opt-in-not-required"}


def zones(call: AwsCall) -> dict[str, Any]:
    """DescribeAvailabilityZones: names are the account's own, ids are everybody's."""
    shown = [_zone(call, name, id) for name, id in call.zones.items()]
    names, ids = call.get("ZoneNames"), call.get("ZoneIds")
    shown = [zone for zone in shown if names is None or zone["ZoneName"] in names]
    shown = [zone for zone in shown if ids is None or zone["ZoneId"] in ids]
    return {"AvailabilityZones": filtered(call, shown, _zone_values)}


def _zone(call: AwsCall, name: str, id: str) -> dict[str, Any]:
    return {
        "ZoneName": name,
        "ZoneId": id,
        "RegionName": call.region,
        "State": "available",
        "OptInStatus": "opt-in-not-required",
        "ZoneType": "availability-zone",
        "GroupName": call.region,
        "NetworkBorderGroup": call.region,
    }


def _zone_values(zone: dict[str, Any], name: str) -> list[str] | None:
    members = {"zone-name": "ZoneName", "zone-id": "ZoneId", "region-name": "RegionName", "state": "State"}
    members |= {"zone-type": "ZoneType", "group-name": "GroupName", "opt-in-status": "OptInStatus"}
    return [zone[members[name]]] if name in members else None


def instance_types(call: AwsCall) -> dict[str, Any]:
    """DescribeInstanceTypes: those with GPUs, which are all that this world sells."""
    known = {m.name: m for m in call.world.catalogue.on_sale(ProviderName.AWS, call.region)}
    wanted = call.get("InstanceTypes", sorted(known))
    if missing := [name for name in wanted if name not in known]:
        message = f"The following supplied instance types do not exist: [{', '.join(missing)}]"
        raise AwsError("InvalidInstanceType", message)
    shown, token = page(call, filtered(call, [known[name] for name in wanted], _type_values), 100)
    return {"InstanceTypes": [_type(machine_type) for machine_type in shown], "NextToken": token}


def _type_values(machine_type: MachineType, name: str) -> list[str] | None:
    values = {
        "instance-type": [machine_type.name],
        "supported-usage-class": _usage_classes(machine_type),
        "current-generation": ["true"],
        "vcpu-info.default-vcpus": [str(machine_type.vcpus)],
    }
    return values.get(name)


def _type(machine_type: MachineType) -> dict[str, Any]:
    name, memory = machine_type.gpu.rsplit(" ", 1)
    gpu_mib = int(memory.removesuffix("GB")) * 1024
    gpu = {"Name": name, "Manufacturer": "NVIDIA", "Count": machine_type.gpus, "MemoryInfo": {"SizeInMiB": gpu_mib}}
    return {
        "InstanceType": machine_type.name,
        "CurrentGeneration": True,
        "SupportedUsageClasses": _usage_classes(machine_type),
        "BareMetal": False,
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "VCpuInfo": {"DefaultVCpus": machine_type.vcpus},
        "MemoryInfo": {"SizeInMiB": int(machine_type.memory_gib * 1024)},
        "GpuInfo": {"Gpus": [gpu], "TotalGpuMemoryInMiB": gpu_mib * machine_type.gpus},
    }


def _usage_classes(machine_type: MachineType) -> list[str]:
    block = ["capacity-block"] if machine_type.name.startswith(BLOCK_FAMILIES) else []
    return ["on-demand", "spot", *block]


def offerings(call: AwsCall) -> dict[str, Any]:
    """DescribeInstanceTypeOfferings by region, zone name or zone id."""
    kind = call.get("LocationType", "region")
    on_sale = call.world.catalogue.on_sale(ProviderName.AWS, call.region)
    rows = [
        {"InstanceType": machine_type.name, "LocationType": kind, "Location": location}
        for machine_type in on_sale
        for location in _locations(call, machine_type, kind)
    ]
    shown, token = page(call, filtered(call, rows, _offering_values))
    return {"InstanceTypeOfferings": shown, "NextToken": token}


def _locations(call: AwsCall, machine_type: MachineType, kind: str) -> list[str]:
    if kind == "region":
        return [call.region]
    if kind == "availability-zone":
        return [name for name, id in call.zones.items() if id in machine_type.zones]
    return [id for id in machine_type.zones if kind == "availability-zone-id"]


def _offering_values(row: dict[str, Any], name: str) -> list[str] | None:
    members = {"instance-type": "InstanceType", "location": "Location"}
    return [row[members[name]]] if name in members else None
