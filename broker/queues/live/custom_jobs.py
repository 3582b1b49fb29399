"""Vertex AI: custom and tuning jobs that are not over, and those that were made in the last week."""

import importlib
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from broker.clock import WallClock
from broker.queues.live import Unasked, rest
from broker.queues.live.rest import Call, Page

ELSEWHERE = "BROKER_VERTEX_ENDPOINT"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_KINDS = ("customJobs", "hyperparameterTuningJobs")
_OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
_PAST = timedelta(days=7)
_AT = re.compile(r"(?:(?P<project>[a-z0-9][a-z0-9:.-]{0,80})/)?(?P<region>[a-z]+-[a-z]+\d+)")
_PAGE = "100"


def ask(at: str) -> list[Any]:
    """`at` is REGION, or PROJECT/REGION. As `gcloud ai custom-jobs list --format=json` prints them. Raises Unasked."""
    named = _AT.fullmatch(at)
    if named is None:
        raise Unasked('at names no region: give at = "us-central1" or "PROJECT/us-central1" in the [[queue]]')
    address = rest.elsewhere(ELSEWHERE)
    session, own = _signed_in() if not address else (_session(), "")
    project = named["project"] or own
    if not project:
        raise Unasked('the credentials name no project: give at = "PROJECT/REGION" in the [[queue]]')
    region = named["region"]
    parent = f"{address or f'https://{region}-aiplatform.googleapis.com'}/v1/projects/{project}/locations/{region}"
    found = {str(job.get("name")): job for kind in _KINDS for job in _jobs(session, parent, kind)}
    return list(found.values())


def _jobs(session: Any, parent: str, kind: str) -> Iterator[dict[str, Any]]:
    """What is not over comes first, so that a job that ends while we ask is told with its end."""
    for which in _filters():
        first = Call(f"{parent}/{kind}", {"filter": which, "pageSize": _PAGE})
        for job in rest.listed(session, first, kind, _following):
            if not isinstance(job, dict):
                raise Unasked(f"{kind} holds something that is no job; is a proxy between?")
            yield job


def _filters() -> tuple[str, str]:
    since = (WallClock().now() - _PAST).strftime("%Y-%m-%dT%H:%M:%SZ")
    return " AND ".join(f'state!="JOB_STATE_{state}"' for state in _OVER), f'create_time>"{since}"'


def _following(call: Call, page: Page) -> Call | None:
    token = page.get("nextPageToken")
    return Call(call.url, {**call.query, "pageToken": str(token)}) if token else None


def _signed_in() -> tuple[Any, str]:
    """A session with the default credentials, and the project that they name."""
    try:
        auth, transport = (
            importlib.import_module("google.auth"),
            importlib.import_module("google.auth.transport.requests"),
        )
    except ImportError:
        raise Unasked("needs google-auth: pip install gpu-capacity-broker, or use gcloud as a command") from None
    try:
        credentials, project = auth.default(scopes=[_SCOPE])
        credentials.refresh(transport.Request())
    except importlib.import_module("google.auth.exceptions").GoogleAuthError as error:
        raise Unasked(f"cannot sign in to Google Cloud: {str(error)[:200]}") from None
    return rest.patient(transport.AuthorizedSession(credentials)), str(project or "")


def _session() -> Any:
    return rest.patient(importlib.import_module("requests").Session())
