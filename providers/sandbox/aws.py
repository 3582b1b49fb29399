"""The AWS face: EC2, STS and Service Quotas at one address, told apart by what the request says."""

import json
import re
from collections.abc import Callable
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox import aws_account, aws_instances, aws_places, aws_reservations
from providers.sandbox.aws_call import DEFAULT_ACCOUNT, AwsCall
from providers.sandbox.aws_wire import AwsError, ec2_reply, error_reply, json_reply, parse, service_model, sts_reply
from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.wire import Operation, Request, Response
from providers.sandbox.world import World

Handler = Callable[[AwsCall], dict[str, Any]]

EC2: dict[str, Handler] = {
    "CreateCapacityReservation": aws_reservations.create,
    "ModifyCapacityReservation": aws_reservations.modify,
    "CancelCapacityReservation": aws_reservations.cancel,
    "DescribeCapacityReservations": aws_reservations.describe,
    "GetCapacityReservationUsage": aws_reservations.usage,
    "DescribeRegions": aws_places.regions,
    "DescribeAvailabilityZones": aws_places.zones,
    "DescribeInstanceTypes": aws_places.instance_types,
    "DescribeInstanceTypeOfferings": aws_places.offerings,
    "RunInstances": aws_instances.run,
    "TerminateInstances": aws_instances.terminate,
    "DescribeInstances": aws_instances.describe,
    "CreateTags": aws_instances.create_tags,
    "DeleteTags": aws_instances.delete_tags,
    "DescribeTags": aws_instances.describe_tags,
}
STS: dict[str, Handler] = {
    "GetCallerIdentity": aws_account.caller_identity,
    "AssumeRole": aws_account.assume_role,
}
QUOTAS: dict[str, Handler] = {
    "ListServiceQuotas": aws_account.list_quotas,
    "GetServiceQuota": aws_account.get_quota,
}
_SCOPE = re.compile(r"Credential=(?P<key>[^/,]+)/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/")
_ACCOUNT = re.compile(r"\d{12}$")


class AwsFace:
    provider = ProviderName.AWS

    def operation(self, request: Request) -> Operation:
        """Parameters as sent on the wire, so that a rule can match them (`AvailabilityZone`, `InstanceCount` ...)."""
        _, name = _asked(request)
        sent: dict[str, Any] = _json(request) if "x-amz-target" in request.headers else _form(request)
        _, region = _caller(request)
        shown = {field: value for field, value in sent.items() if field not in ("Action", "Version")}
        return Operation(name=name, parameters={**shown, "region": region})

    def handle(self, request: Request, world: World) -> Response:
        service, name = _asked(request)
        try:
            return self._handle(request, world, service, name)
        except AwsError as error:
            return error_reply(service, error, world.request_id)

    def _handle(self, request: Request, world: World, service: str, name: str) -> Response:
        account, region = _caller(request)
        if service == "service-quotas":
            handler = _known(QUOTAS, name)
            return json_reply(handler(AwsCall(world, account, region, _json(request))), world.request_id)
        handler = _known(STS if service == "sts" else EC2, name)
        parameters = parse(service_model(service).operation_model(name).input_shape, _form(request))
        if service == "ec2" and region not in world.catalogue.regions(ProviderName.AWS):
            raise AwsError("UnsupportedOperation", f"The sandbox has no region {region}")
        if parameters.get("DryRun"):
            raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        result = handler(AwsCall(world, account, region, parameters))
        return (sts_reply if service == "sts" else ec2_reply)(name, result, world.request_id)

    def error(self, request: Request, rule: Rule, request_id: str) -> Response:
        throttled = rule.kind is FaultKind.THROTTLE
        code = rule.code or ("RequestLimitExceeded" if throttled else "InternalError")
        status = rule.status or (503 if throttled else 500)
        return error_reply(_asked(request)[0], AwsError(code, rule.message, status), request_id)


def _asked(request: Request) -> tuple[str, str]:
    """Service and operation."""
    if target := request.headers.get("x-amz-target"):
        return "service-quotas", target.rpartition(".")[2]
    name = _form(request).get("Action", "")
    return ("sts" if name in STS else "ec2"), name


def _form(request: Request) -> dict[str, str]:
    return {**request.query, **request.form}


def _json(request: Request) -> dict[str, Any]:
    try:
        return dict(request.json)
    except (json.JSONDecodeError, TypeError, ValueError):
        return {}


def _caller(request: Request) -> tuple[str, str]:
    """Account and region, from the credential scope: an access key that ends in 12 digits names its account."""
    scope = _SCOPE.search(request.headers.get("authorization", ""))
    if scope is None:
        return DEFAULT_ACCOUNT, "us-east-1"
    account = _ACCOUNT.search(scope["key"])
    return (account[0] if account else DEFAULT_ACCOUNT), scope["region"]


def _known(handlers: dict[str, Handler], name: str) -> Handler:
    if name not in handlers:
        raise AwsError("InvalidAction", f"The action {name} is not valid for this web service.")
    return handlers[name]
