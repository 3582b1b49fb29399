"""Vertex AI and Azure ML are asked over the wire, from small servers that list as the services are documented to."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from broker.config import QueueSource
from broker.model.job import JobState
from broker.model.snapshot import SourceView, Trust
from broker.queues.live import Unasked, custom_jobs, rest, workspace
from broker.queues.read import read_source
from tests.queues.test_read import CLOCK

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
VERTEX_AT, AZURE_AT = "proj-1/us-central1", f"{SUBSCRIPTION}/ml-rg/team-ws"
PARENT = "/v1/projects/proj-1/locations/us-central1"
WORKSPACE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml-rg/providers/Microsoft.MachineLearningServices/workspaces/team-ws"
)
NOW = datetime.now(UTC)  # noqa: TID251 - what is asked for depends on the wall clock
Reply = tuple[int, Any]
ASKERS: dict[str, Callable[[str], Any]] = {"vertex": custom_jobs.ask, "azure-ml": workspace.ask}


class Service:
    """Lists what it holds by path, two records a page, in the way of the one cloud or of the other."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = {}
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.instead: list[Reply] = []
        self.address = ""

    def answer(self, path: str, query: dict[str, str], headers: dict[str, str]) -> Reply:
        self.asked.append((path, query, headers))
        if self.instead:
            return self.instead.pop(0) if len(self.instead) > 1 else self.instead[0]
        if path not in self.lists:
            return 404, {"error": {"code": 404, "message": f"{path.rpartition('/')[2]} was not found"}}
        return 200, self._azure(path, query) if "/subscriptions/" in path else self._vertex(path, query)

    def _vertex(self, path: str, query: dict[str, str]) -> Any:
        """An empty list is an empty object."""
        held, start = self._filtered(path, query["filter"]), int(query.get("pageToken", "0"))
        page = {path.rpartition("/")[2]: held[start : start + 2]} if held else {}
        return page | ({"nextPageToken": str(start + 2)} if start + 2 < len(held) else {})

    def _filtered(self, path: str, written: str) -> list[Any]:
        if written.startswith("create_time>"):
            since = written.partition('"')[2].rstrip('"')
            return [job for job in self.lists[path] if job["createTime"] > since]
        left_out = {part.partition('"')[2].rstrip('"') for part in written.split(" AND ")}
        return [job for job in self.lists[path] if job["state"] not in left_out]

    def _azure(self, path: str, query: dict[str, str]) -> Any:
        start = int(query.get("$skip", "0"))
        after = f"{self.address}{path}?api-version={query['api-version']}&$skip={start + 2}"
        rest = {"nextLink": after} if start + 2 < len(self.lists[path]) else {}
        return {"value": self.lists[path][start : start + 2]} | rest


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    found = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, document = found.answer(parts.path, query, dict(self.headers.items()))
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 302:
                self.send_header("Location", f"{found.address}/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are what is tested
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    found.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv(custom_jobs.ELSEWHERE, found.address)
    monkeypatch.setenv(workspace.ELSEWHERE, f"{found.address}/")
    yield found
    server.shutdown()
    server.server_close()


def asked(name: str, at: str, seconds: float = 30, **fields: Any) -> SourceView:
    return read_source(QueueSource(name="q", live=name, at=at, timeout=timedelta(seconds=seconds), **fields), CLOCK)


def at(days: float) -> str:
    return (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.1234567Z")


def custom(number: int, state: str, days: float, **more: Any) -> dict[str, Any]:
    spec = {"machineSpec": {"machineType": "a3-highgpu-8g"}, "replicaCount": "2"}
    return {
        "name": f"projects/1/locations/us-central1/customJobs/{number}", "state": f"JOB_STATE_{state}",
        "createTime": at(days), "jobSpec": {"workerPoolSpecs": [spec]},
    } | more  # fmt: skip


def tuning(number: int, trials: list[int]) -> dict[str, Any]:
    job = custom(number, "RUNNING", 1)
    names = [{"customJob": f"projects/1/locations/us-central1/customJobs/{each}"} for each in trials]
    return {
        "name": job["name"].replace("customJobs", "hyperparameterTuningJobs"), "state": job["state"],
        "createTime": job["createTime"], "parallelTrialCount": 2, "trialJobSpec": job["jobSpec"], "trials": names,
    }  # fmt: skip


def ml_job(name: str, status: str, days: float, **properties: Any) -> dict[str, Any]:
    return {
        "id": f"{WORKSPACE}/jobs/{name}", "name": name, "systemData": {"createdAt": at(days), "createdBy": "Ada"},
        "properties": {"jobType": "Command", "status": status, "computeId": f"{WORKSPACE}/computes/gpu",
                       "resources": {"instanceCount": 2}} | properties,
    }  # fmt: skip


def cluster() -> dict[str, Any]:
    size = {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_ND96isr_H100_v5"}}
    return {"id": f"{WORKSPACE}/computes/gpu", "name": "gpu", "properties": size}


def filled(service: Service) -> None:
    service.lists = {
        f"{PARENT}/customJobs": [
            custom(1, "RUNNING", 40, startTime=at(39)), custom(2, "PENDING", 0.1), custom(3, "SUCCEEDED", 1),
            custom(4, "SUCCEEDED", 40), custom(5, "QUEUED", 0.2), custom(6, "RUNNING", 0.5, startTime=at(0.4)),
        ],
        f"{PARENT}/hyperparameterTuningJobs": [tuning(9, [6])],
        f"{WORKSPACE}/jobs": [
            ml_job("a", "Running", 30), ml_job("b", "Queued", 0.1), ml_job("c", "Completed", 1),
            ml_job("d", "Completed", 40), ml_job("e", "NotStarted", 0.1),
        ],
        f"{WORKSPACE}/computes": [cluster()],
    }  # fmt: skip


def test_vertex_is_listed_page_by_page_and_trials_count_once(service: Service) -> None:
    filled(service)
    view = asked("vertex", VERTEX_AT)
    assert view.trust is Trust.COMPLETE, view.problems
    assert {(job.id, job.state, job.gpus) for job in view.jobs} == {
        ("1", JobState.RUNNING, 16), ("2", JobState.PENDING, 16), ("3", JobState.DONE, 16), ("5", JobState.PENDING, 16),
        ("9", JobState.RUNNING, 32),
    }  # fmt: skip
    assert (view.rows, view.kept, view.dropped) == (6, 5, 1)
    pages = [query.get("pageToken") for path, query, _ in service.asked if path.endswith("customJobs")]
    assert pages == [None, "2", None, "2"]
    assert not any("Authorization" in headers for _, _, headers in service.asked)


def test_azure_ml_is_listed_page_by_page_with_its_clusters(service: Service) -> None:
    filled(service)
    view = asked("azure-ml", AZURE_AT)
    assert view.trust is Trust.COMPLETE, view.problems
    assert {(job.id, job.state, job.gpus) for job in view.jobs} == {
        ("a", JobState.RUNNING, 16), ("b", JobState.PENDING, 16), ("c", JobState.DONE, 16), ("e", JobState.PENDING, 16),
    }  # fmt: skip
    assert [query.get("$skip") for path, query, _ in service.asked if path.endswith("jobs")] == [None, "2", "4"]


@pytest.mark.parametrize(("name", "where"), [("vertex", VERTEX_AT), ("azure-ml", AZURE_AT)])
class TestBoth:
    def test_a_service_without_any_job_is_empty_and_complete(self, service: Service, name: str, where: str) -> None:
        filled(service)
        service.lists = {path: [] for path in service.lists}
        view = asked(name, where)
        assert (view.trust, view.rows) == (Trust.COMPLETE, 0), view.problems

    @pytest.mark.parametrize(
        ("instead", "why"),
        [
            ((401, {"error": {"message": "token expired"}}), "HTTP 401: token expired; sign in again"),
            ((403, {"error": {"code": "AuthorizationFailed", "message": "denied"}}), "grant the permission"),
            ((404, {"error": {"message": "no such place"}}), "does `at` name what is there?"),
            ((302, b""), "HTTP 302"),
            ((400, b"<html>bad</html>"), "HTTP 400: no reason given"),
            ((200, b"<html>login</html>"), "is a login or proxy between?"),
            ((200, b"[]"), "did not answer with a JSON object"),
            ((200, b"[" * 10_000), "did not answer with a JSON object"),
            ((200, {"value": 7, "customJobs": 7}), "did not answer with a list"),
            ((200, {"value": [7], "customJobs": [7]}), "is a proxy between?"),
        ],
    )
    def test_what_goes_wrong_is_said(self, service: Service, name: str, where: str, instead: Reply, why: str) -> None:
        service.instead = [instead]
        with pytest.raises(Unasked) as refused:
            ASKERS[name](where)
        assert why in str(refused.value) and len(str(refused.value)) < 160

    def test_what_goes_wrong_is_unknown_and_one_line(self, service: Service, name: str, where: str) -> None:
        service.instead = [(403, {"error": {"message": "denied\nand more"}})]
        view = asked(name, where)
        assert view.trust is Trust.UNKNOWN
        (line,) = view.problems
        assert "grant the permission" in line and "\n" not in line and sys.executable not in line

    def test_what_passes_is_asked_again(self, service: Service, name: str, where: str) -> None:
        filled(service)
        real, first = service.answer, [503, 429]

        def answer(*question: Any) -> Reply:
            return (first.pop(), {"error": {"message": "busy"}}) if first else real(*question)

        service.answer = answer  # type: ignore[method-assign,assignment]
        assert asked(name, where).trust is Trust.COMPLETE
        assert not first

    def test_more_than_the_limit_is_not_read(self, service: Service, name: str, where: str) -> None:
        filled(service)
        assert "max_size" in asked(name, where, max_bytes=100).problems[0]

    def test_a_server_that_hangs_is_not_waited_for(self, service: Service, name: str, where: str) -> None:
        stop = threading.Event()
        service.answer = lambda *_: (200, stop.wait(20))  # type: ignore[method-assign]
        view = asked(name, where, seconds=2)
        stop.set()
        assert "did not end within 2 s" in view.problems[0]

    def test_a_place_that_is_none_and_a_stand_in_that_is_not_here(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, name: str, where: str
    ) -> None:
        assert 'at = "' in asked(name, "").problems[0]
        assert 'at = "' in asked(name, "../../secrets").problems[0]
        for variable in (custom_jobs.ELSEWHERE, workspace.ELSEWHERE):
            monkeypatch.setenv(variable, "https://example.org")
        assert "may only name this machine" in asked(name, where).problems[0]


@pytest.mark.parametrize("after", ["http://127.0.0.1:1/more", "https://example.org/more"])
def test_no_page_is_fetched_from_another_server(service: Service, after: str) -> None:
    service.instead = [(200, {"value": [], "nextLink": after})]
    assert "names a next page that is not its own" in asked("azure-ml", AZURE_AT).problems[0]


def test_a_page_that_follows_itself_ends(service: Service) -> None:
    service.instead = [(200, {"customJobs": [], "nextPageToken": "again"})]
    assert "names a next page that is not its own" in asked("vertex", VERTEX_AT).problems[0]


def _google(monkeypatch: pytest.MonkeyPatch, project: str | None) -> None:
    class Credentials:
        def refresh(self, request: Any) -> None: ...

        def before_request(self, request: Any, method: str, url: str, headers: dict[str, str]) -> None:
            headers["authorization"] = "Bearer of-google"

    monkeypatch.setattr("google.auth.default", lambda scopes: (Credentials(), project))


def _pointed_at(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    """The real addresses lead here, and the way to them through the real sign-in."""
    real = rest.listed

    def listed(session: Any, first: rest.Call, key: str, following: Callable[..., Any]) -> Iterator[Any]:
        url = urlsplit(first.url)
        assert url.scheme == "https" and url.netloc in ("us-central1-aiplatform.googleapis.com", "management.azure.com")
        return real(session, first._replace(url=f"{service.address}{url.path}"), key, following)

    monkeypatch.setattr(rest, "listed", listed)
    for variable in (custom_jobs.ELSEWHERE, workspace.ELSEWHERE):
        monkeypatch.delenv(variable)


def test_who_signs_in_to_google_cloud_sends_the_token(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(service)
    _google(monkeypatch, "proj-1")
    _pointed_at(monkeypatch, service)
    assert len(custom_jobs.ask("us-central1")) == 6
    assert all(headers["authorization"] == "Bearer of-google" for _, _, headers in service.asked)
    _google(monkeypatch, None)
    with pytest.raises(Unasked, match="name no project"):
        custom_jobs.ask("us-central1")


def test_who_signs_in_to_azure_sends_the_token(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.core.credentials import AccessToken

    class Credential:
        def get_token(self, scope: str) -> AccessToken:
            assert scope == "https://management.azure.com/.default"
            return AccessToken("of-azure", 0)

    filled(service)
    monkeypatch.setattr("azure.identity.DefaultAzureCredential", Credential)
    _pointed_at(monkeypatch, service)
    assert len(workspace.ask(AZURE_AT)["value"]) == 5
    assert all(headers["Authorization"] == "Bearer of-azure" for _, _, headers in service.asked)


def test_who_cannot_sign_in_is_told_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.core.exceptions import ClientAuthenticationError
    from google.auth.exceptions import DefaultCredentialsError

    def refuse(error: Exception) -> Callable[..., Any]:
        def refused(*_: Any, **__: Any) -> Any:
            raise error

        return refused

    monkeypatch.setattr("google.auth.default", refuse(DefaultCredentialsError("no credentials here")))
    monkeypatch.setattr("azure.identity.DefaultAzureCredential", refuse(ClientAuthenticationError("none\nof these")))
    with pytest.raises(Unasked, match="cannot sign in to Google Cloud: no credentials here"):
        custom_jobs.ask(VERTEX_AT)
    with pytest.raises(Unasked, match=r"cannot sign in to Azure: none$"):
        workspace.ask(AZURE_AT)


def test_without_the_sign_in_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(Unasked, match="pip install"):
        custom_jobs.ask(VERTEX_AT)
    with pytest.raises(Unasked, match="pip install"):
        workspace.ask(AZURE_AT)
