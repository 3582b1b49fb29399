"""STS identity and roles, and the service quotas that capacity counts against."""

from datetime import UTC, datetime
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.aws_call import AwsCall, page
from providers.sandbox.aws_wire import AwsError

QUOTA_NAMES = {
    "L-417A185B": "Running On-Demand P instances",
    "L-DB2E81BA": "Running On-Demand G and VT instances",
}
NEVER = datetime(2100, 1, 1, tzinfo=UTC)
"""SDKs compare expiry to this machine's clock, which is not the world's."""


def caller_identity(call: AwsCall) -> dict[str, Any]:
    """GetCallerIdentity."""
    arn = f"arn:aws:iam::{call.account}:user/sandbox"
    return {"UserId": "AIDASANDBOXSANDBOXSB", "Account": call.account, "Arn": arn}


def assume_role(call: AwsCall) -> dict[str, Any]:
    """AssumeRole: credentials whose key id names the role's account, which is how the face knows it again."""
    parts = call.get("RoleArn").split(":")
    if len(parts) != 6 or not parts[4].isdigit() or not parts[5].startswith("role/"):
        raise AwsError("ValidationError", f"{call.get('RoleArn')} is invalid")
    account, session = parts[4], call.get("RoleSessionName")
    arn = f"arn:aws:sts::{account}:assumed-role/{parts[5].removeprefix('role/')}/{session}"
    credentials = {
        "AccessKeyId": f"ASIA{account}",
        "SecretAccessKey": "sandbox",
        "SessionToken": "sandbox",
        "Expiration": NEVER,
    }
    user = {"AssumedRoleId": f"AROASANDBOXSANDBOXSB:{session}", "Arn": arn}
    return {"Credentials": credentials, "AssumedRoleUser": user}


def list_quotas(call: AwsCall) -> dict[str, Any]:
    """ListServiceQuotas of `ec2`."""
    _only_ec2(call)
    limits = call.world.catalogue.quota_limits(ProviderName.AWS, call.region)
    shown, token = page(call, [_quota(call, code) for code in sorted(limits)], 100)
    return {"Quotas": shown, **({"NextToken": token} if token else {})}


def get_quota(call: AwsCall) -> dict[str, Any]:
    """GetServiceQuota."""
    _only_ec2(call)
    code = call.get("QuotaCode")
    if call.market.quota_limit(ProviderName.AWS, call.account, call.region, code) is None:
        raise AwsError("NoSuchResourceException", f"There is no quota {code} of ec2")
    return {"Quota": _quota(call, code)}


def _only_ec2(call: AwsCall) -> None:
    if call.get("ServiceCode") != "ec2":
        raise AwsError("NoSuchResourceException", f"There is no service {call.get('ServiceCode')} here")


def _quota(call: AwsCall, code: str) -> dict[str, Any]:
    limit = call.market.quota_limit(ProviderName.AWS, call.account, call.region, code)
    return {
        "ServiceCode": "ec2",
        "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
        "QuotaArn": f"arn:aws:servicequotas:{call.region}:{call.account}:ec2/{code}",
        "QuotaCode": code,
        "QuotaName": QUOTA_NAMES.get(code, code),
        "Value": float(limit or 0),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
