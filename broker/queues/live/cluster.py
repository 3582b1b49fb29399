"""Lists every kind of job that a Kubernetes cluster serves, page by page, with the official client."""

import importlib
import json
from collections.abc import Iterator
from typing import Any

from broker.queues.kube_kinds import KINDS
from broker.queues.live import Unasked

_PAGE = 500
_CALL_S = 30
_NEEDED = "needs the Kubernetes client: pip install 'gpu-capacity-broker[kubernetes]', or use kubectl as a command"
_BESIDE = (
    ("kueue.x-k8s.io", "resourceflavors"),
    ("kueue.x-k8s.io", "workloadpriorityclasses"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
)
"""What tells models, priorities and claimed devices; a cluster that does not let us list these is read without them."""
_FIELDS = {"pods": "status.phase!=Succeeded,status.phase!=Failed"}
_GONE, _DENIED, _EXPIRED = 404, frozenset({401, 403}), 410
_ATTEMPTS = 2
_RETRIES = 2
_OK = 200


class _Refused(Exception):
    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def ask(context: str) -> dict[str, Any]:
    """One `List`, as kubectl prints it. Raises Unasked."""
    client = _client(context)
    try:
        versions = _versions(client)
        kinds = dict.fromkeys((group, kind.resource) for (group, _), kind in KINDS.items())
        items = [item for group, resource in kinds for item in _listed(client, versions, group, resource)]
        for group, resource in _BESIDE:
            items += _allowed(client, versions, group, resource)
    except _Refused as refused:
        raise Unasked(_hint(refused.status, str(refused))) from None
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _client(context: str) -> Any:
    """Through the kubeconfig, or from within the cluster where there is none."""
    try:
        config = importlib.import_module("kubernetes.config")
        api = importlib.import_module("kubernetes.client")
    except ImportError:
        raise Unasked(_NEEDED) from None
    try:
        return config.new_client_from_config(context=context or None)
    except config.ConfigException as error:
        if context:
            raise Unasked(f"the kubeconfig has no usable context {context}: {error}") from None
    try:
        config.load_incluster_config()
        return api.ApiClient()
    except config.ConfigException:
        raise Unasked("there is no kubeconfig (KUBECONFIG, ~/.kube/config) and this is not in a cluster") from None


def _versions(client: Any) -> dict[str, str]:
    """The path under which each API group is served, in the version that the cluster prefers."""
    groups = _get(client, "/apis", {}).get("groups") or []
    return {"": "/api/v1"} | {each["name"]: f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups}


def _allowed(client: Any, versions: dict[str, str], group: str, resource: str) -> list[Any]:
    try:
        return list(_listed(client, versions, group, resource))
    except _Refused as refused:
        if refused.status in _DENIED:
            return []
        raise


def _listed(client: Any, versions: dict[str, str], group: str, resource: str) -> Iterator[Any]:
    """Nothing where the cluster does not have the kind. A listing whose next page has expired is begun anew, once."""
    if group not in versions:
        return
    path = f"{versions[group]}/{resource}"
    for attempt in range(_ATTEMPTS):
        try:
            yield from list(_pages(client, path, _FIELDS.get(resource, "")))
            return
        except _Refused as refused:
            if refused.status == _GONE:
                return
            if refused.status != _EXPIRED or attempt + 1 == _ATTEMPTS:
                raise


def _pages(client: Any, path: str, fields: str) -> Iterator[Any]:
    query = {"limit": str(_PAGE)} | ({"fieldSelector": fields} if fields else {})
    while True:
        page = _get(client, path, query)
        kind, version = str(page.get("kind") or ""), page.get("apiVersion")
        if not kind.endswith("List") or not isinstance(page.get("items"), list):
            raise Unasked(f"{path} did not answer with a list; is a proxy between?")
        named = {"apiVersion": version, "kind": kind.removesuffix("List")}
        yield from (named | item for item in page["items"])
        token = (page.get("metadata") or {}).get("continue")
        if not token:
            return
        query["continue"] = token


def _get(client: Any, path: str, query: dict[str, str]) -> dict[str, Any]:
    """One question through the client's own connections, whose interface for this is the same in all its versions.

    Raises _Refused for an answer that says no, Unasked where there is none.
    """
    transport = importlib.import_module("urllib3")
    url, pool = f"{client.configuration.host.rstrip('/')}{path}", client.rest_client.pool_manager
    patience = transport.Timeout(total=_CALL_S)
    try:
        answer = pool.request(
            "GET", url, fields=query, headers=_headers(client), timeout=patience, retries=_RETRIES, redirect=False
        )
        found = json.loads(answer.data) if answer.status == _OK else None
    except transport.exceptions.HTTPError as error:
        raise Unasked(f"the API server cannot be reached: {str(error)[:200]}") from None
    except (ValueError, RecursionError):
        raise Unasked(f"{path} did not answer with JSON; is a login or proxy between?") from None
    if answer.status != _OK:
        raise _Refused(answer.status, f"{path} answered HTTP {answer.status} {answer.reason or ''}".rstrip())
    if not isinstance(found, dict):
        raise Unasked(f"{path} did not answer with an object")
    return found


def _headers(client: Any) -> dict[str, str]:
    """Asks for the token each time: the client renews it when it is about to expire."""
    named = [each for each in client.configuration.auth_settings().values() if each.get("in") == "header"]
    return {"Accept": "application/json"} | {str(each["key"]): str(each["value"]) for each in named}


def _hint(status: int, said: str) -> str:
    if status == 401:
        return f"{said}: renew the kubeconfig's credentials"
    return f"{said}: grant get and list on it (ClusterRole in docs/queues-kubernetes.md)" if status == 403 else said
