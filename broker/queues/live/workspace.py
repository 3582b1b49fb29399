"""Azure ML: the jobs of a workspace that are not over, those that were made in the last week, and its clusters."""

import importlib
import re
from datetime import datetime, timedelta
from typing import Any

from broker.clock import WallClock
from broker.queues.live import Unasked, rest
from broker.queues.live.rest import Call, Page

ELSEWHERE = "BROKER_AZURE_ML_ENDPOINT"
_ARM = "https://management.azure.com"
_VERSION = "2024-10-01"
_OVER = frozenset({"Completed", "Failed", "Canceled"})
_PAST = timedelta(days=7)
_AT = re.compile(r"(?P<subscription>[0-9a-fA-F-]{36})/(?P<group>[\w.()-]{1,90})/(?P<workspace>[\w-]{1,64})")


def ask(at: str) -> dict[str, Any]:
    """`at` is SUBSCRIPTION/RESOURCE GROUP/WORKSPACE. As Azure Resource Manager answers. Raises Unasked.

    Resource Manager lists all jobs that there ever were; it cannot be asked for those that are not over.
    """
    named = _AT.fullmatch(at)
    if named is None:
        raise Unasked('at names no workspace: give at = "SUBSCRIPTION/RESOURCE-GROUP/WORKSPACE" in the [[queue]]')
    address = rest.elsewhere(ELSEWHERE)
    session = rest.patient(importlib.import_module("requests").Session())
    if not address:
        session.headers["Authorization"] = f"Bearer {_token()}"
    workspace = (
        f"{address or _ARM}/subscriptions/{named['subscription']}/resourceGroups/{named['group']}"
        f"/providers/Microsoft.MachineLearningServices/workspaces/{named['workspace']}"
    )
    jobs = [job for job in _all(session, f"{workspace}/jobs") if _matters(job, WallClock().now())]
    return {"value": [*jobs, *_all(session, f"{workspace}/computes")]}


def _all(session: Any, url: str) -> list[dict[str, Any]]:
    """Each once: what is made while we ask moves others to the next page."""
    found = list(rest.listed(session, Call(url, {"api-version": _VERSION}), "value", _following))
    if not all(isinstance(each, dict) for each in found):
        raise Unasked(f"{url.rpartition('/')[2]} holds something that is no object; is a proxy between?")
    return list({str(each.get("id") or each.get("name")): each for each in found}.values())


def _following(_: Call, page: Page) -> Call | None:
    return Call(str(page["nextLink"]), {}) if page.get("nextLink") else None


def _matters(job: dict[str, Any], now: datetime) -> bool:
    """What cannot be told to be old and over does."""
    properties, system = job.get("properties"), job.get("systemData")
    if not isinstance(properties, dict) or not isinstance(system, dict) or properties.get("status") not in _OVER:
        return True
    try:
        return datetime.fromisoformat(str(system.get("createdAt"))) > now - _PAST
    except (ValueError, TypeError):
        return True


def _token() -> str:
    """Of the default credential chain, for Azure Resource Manager."""
    try:
        identity, core = importlib.import_module("azure.identity"), importlib.import_module("azure.core.exceptions")
    except ImportError:
        raise Unasked("needs azure-identity: pip install gpu-capacity-broker, or use az as a command") from None
    try:
        return str(identity.DefaultAzureCredential().get_token(f"{_ARM}/.default").token)
    except core.AzureError as error:
        raise Unasked(f"cannot sign in to Azure: {str(error).splitlines()[0][:200]}") from None
