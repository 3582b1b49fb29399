"""What `broker status ID` prints for launching, carried out through the clouds' own SDKs, word for word.

The command lines are taken apart as the vendors' own tools do it: a flag names a parameter of the call.
"""

import json
import re
import shlex
from typing import Any

import boto3
from azure.core.credentials import AccessToken
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

Told = dict[str, str]


def flags_of(command: str) -> dict[str, str]:
    """`--name value`, `--name=value`: by name."""
    words, found = shlex.split(command), {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            name, given, value = word.removeprefix("--").partition("=")
            found[name] = value if given else words[index + 1]
    return found


def aws_command(endpoint: str, told: Told) -> None:
    given = flags_of(told["aws"])
    region = given.pop("region")
    ec2 = boto3.client(
        "ec2",
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
    )
    parameters = {_camel(name): _value(value) for name, value in given.items()}
    ec2.run_instances(MinCount=1, MaxCount=1, **parameters)


def aws_settings(endpoint: str, told: Told) -> None:
    """The settings that are printed beside the command, as a program gives them."""
    ec2 = boto3.client(
        "ec2",
        region_name=told["region"],
        endpoint_url=endpoint,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
    )
    ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId="ami-1",
        InstanceType=told["instance type"],
        Placement={"Tenancy": told["tenancy"]},
        CapacityReservationSpecification=json.loads(told["CapacityReservationSpecification"]),
    )


def _camel(flag: str) -> str:
    return "".join(part.capitalize() for part in flag.split("-"))


def _value(text: str) -> Any:
    if text.startswith("{"):
        return json.loads(text)
    return dict(pair.split("=", 1) for pair in text.split(",")) if "=" in text else text


def gcp_command(endpoint: str, told: Told) -> None:
    given = flags_of(told["gcloud"])
    specific = given["reservation-affinity"] == "specific"
    affinity = compute_v1.ReservationAffinity(
        consume_reservation_type="SPECIFIC_RESERVATION" if specific else "ANY_RESERVATION",
        key="compute.googleapis.com/reservation-name" if specific else None,
        values=[given["reservation"]] if specific else [],
    )
    _insert(endpoint, given["project"], given["zone"], given["machine-type"], affinity)


def gcp_settings(endpoint: str, told: Told) -> None:
    affinity = compute_v1.ReservationAffinity.from_json(told["reservationAffinity"])
    _insert(endpoint, told["project"], told["zone"], told["machineType"], affinity)


def _insert(
    endpoint: str, project: str, zone: str, machine_type: str, affinity: compute_v1.ReservationAffinity
) -> None:
    instances = compute_v1.InstancesClient(
        credentials=AnonymousCredentials(), client_options={"api_endpoint": endpoint}
    )
    instance = compute_v1.Instance(
        name="job", machine_type=f"zones/{zone}/machineTypes/{machine_type}", reservation_affinity=affinity
    )
    instances.insert_unary(project=project, zone=zone, instance_resource=instance)


def azure_command(endpoint: str, told: Told) -> None:
    given = flags_of(told["az"])
    group = given["capacity-reservation-group"]
    _create(endpoint, given["subscription"], given["location"], given.get("zone", ""), given["size"], group)


def azure_settings(endpoint: str, told: Told) -> None:
    group = told["capacityReservation.capacityReservationGroup.id"]
    zone = told["zones"] if told["zones"].isdigit() else ""
    subscription = re.findall("/subscriptions/([^/]+)/", group)[0]
    _create(endpoint, subscription, told["location"], zone, told["size"], group)


class _Anyone:
    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken("sandbox", 4102444800)


def _create(endpoint: str, subscription: str, location: str, zone: str, size: str, group: str) -> None:
    compute = ComputeManagementClient(
        _Anyone(),
        subscription,
        base_url=endpoint,
        authentication_policy=SansIOHTTPPolicy(),
        polling_interval=0,
    )
    body: dict[str, Any] = {
        "location": location,
        "properties": {
            "hardwareProfile": {"vmSize": size},
            "capacityReservation": {"capacityReservationGroup": {"id": group}},
        },
    }
    if zone:
        body["zones"] = [zone]
    compute.virtual_machines.begin_create_or_update("jobs", "job", body).result()


WAYS = {
    ("aws", "command"): aws_command,
    ("aws", "settings"): aws_settings,
    ("gcp", "command"): gcp_command,
    ("gcp", "settings"): gcp_settings,
    ("azure", "command"): azure_command,
    ("azure", "settings"): azure_settings,
}
