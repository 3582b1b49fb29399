"""Sources that are asked through their own client, against small servers on this machine."""

import json
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from broker.config import QueueSource
from broker.config.schema import LIVE as CONFIGURABLE
from broker.model.job import JobState
from broker.model.snapshot import Trust
from broker.queues.live import LIVE
from broker.queues.read import read_source
from broker.queues.registry import FORMATS
from tests.queues.test_kubernetes import batch_job, owned_by, pod_spec, thing, workload
from tests.queues.test_read import CLOCK

pytest.importorskip("kubernetes")
TOKEN = "let-me-in"


class Cluster:
    """Speaks the list calls of an API server: groups, pages, and what it is told to refuse."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {}
        self.refuse: dict[str, int] = {}
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.page = 2
        self.expire = 0

    def answer(self, path: str, query: dict[str, list[str]], token: str) -> tuple[int, Any]:
        self.asked.append((path, query))
        if token != f"Bearer {TOKEN}":
            return 401, {"kind": "Status", "status": "Failure", "reason": "Unauthorized"}
        if path in self.refuse:
            return self.refuse[path], {"kind": "Status", "status": "Failure"}
        if path == "/apis":
            return 200, {"kind": "APIGroupList", "groups": self._groups()}
        if path not in self.objects:
            return 404, {"kind": "Status", "status": "Failure"}
        return self._page(path, query)

    def _groups(self) -> list[dict[str, Any]]:
        versions = {"/".join(path.split("/")[2:4]) for path in self.objects if path.startswith("/apis/")}
        return [
            {"name": version.partition("/")[0], "preferredVersion": {"groupVersion": version}}
            for version in sorted(versions)
        ]

    def _page(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        start, every = int(query.get("continue", ["0"])[0]), self.objects[path]
        if start and self.expire:
            self.expire -= 1
            return 410, {"kind": "Status", "status": "Failure", "reason": "Expired"}
        rest = [{k: v for k, v in each.items() if k not in ("kind", "apiVersion")} for each in every]
        meta = {"continue": str(start + self.page)} if start + self.page < len(every) else {}
        kind, version = (every[0]["kind"], every[0]["apiVersion"]) if every else ("Thing", "v1")
        return 200, {
            "kind": f"{kind}List",
            "apiVersion": version,
            "metadata": meta,
            "items": rest[start : start + self.page],
        }


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    found = Cluster()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            status, document = found.answer(parts.path, parse_qs(parts.query), self.headers.get("authorization", ""))
            body = json.dumps(document).encode() if not isinstance(document, bytes) else document
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    yield found
    server.shutdown()
    server.server_close()


def asked(name: str = "kubernetes", at: str = "", seconds: float = 30, **fields: Any) -> Any:
    source = QueueSource(name="q", live=name, at=at, timeout=timedelta(seconds=seconds), **fields)
    return read_source(source, CLOCK)


def filled(cluster: Cluster) -> None:
    job = batch_job(parallelism=2)
    pods = [owned_by(thing("v1", "Pod", pod_spec(), {"phase": "Pending"}), job, f"p{n}") for n in range(5)]
    cluster.objects = {
        "/apis/batch/v1/jobs": [job],
        "/apis/kueue.x-k8s.io/v1beta2/workloads": [owned_by(workload(), job)],
        "/api/v1/pods": pods,
    }


def test_what_can_be_asked_can_be_configured_and_read() -> None:
    assert CONFIGURABLE == LIVE and set(LIVE) <= set(FORMATS)


def test_a_cluster_is_listed_page_by_page_and_each_work_counts_once(cluster: Cluster) -> None:
    filled(cluster)
    view = asked(at="here")
    assert view.trust is Trust.COMPLETE, view.problems
    assert [(job.gpus, job.state) for job in view.jobs] == [(16, JobState.PENDING)]
    assert (view.rows, view.merged) == (7, 6)
    pages = [query for path, query in cluster.asked if path == "/api/v1/pods"]
    assert [query.get("continue") for query in pages] == [None, ["2"], ["4"]]
    assert all("Succeeded" in query["fieldSelector"][0] for query in pages)


def test_a_cluster_without_any_job_is_empty_and_complete(cluster: Cluster) -> None:
    cluster.objects = {"/api/v1/pods": []}
    assert (asked().trust, asked().rows) == (Trust.COMPLETE, 0)


def test_a_listing_that_expired_is_begun_anew(cluster: Cluster) -> None:
    filled(cluster)
    cluster.expire = 1
    assert asked().rows == 7
    cluster.expire = 2
    view = asked()
    assert view.trust is Trust.UNKNOWN and "410" in view.problems[0]


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [("/api/v1/pods", 403, "grant get and list"), ("/apis", 401, "credentials"), ("/apis", 500, "HTTP 500"),
     ("/apis/batch/v1/jobs", 302, "HTTP 302")],
)  # fmt: skip
def test_a_refusal_is_unknown_and_one_line(cluster: Cluster, path: str, status: int, why: str) -> None:
    filled(cluster)
    cluster.refuse = {path: status}
    view = asked()
    assert view.trust is Trust.UNKNOWN and why in view.problems[0] and "\n" not in view.problems[0]
    assert sys.executable not in view.problems[0]


def test_side_information_that_may_not_be_listed_is_done_without(cluster: Cluster) -> None:
    filled(cluster)
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.objects[path], cluster.refuse = [], {path: 403}
    assert asked().trust is Trust.COMPLETE


def test_a_web_page_in_place_of_the_list(cluster: Cluster) -> None:
    cluster.answer = lambda *_: (200, b"<html>login</html>")  # type: ignore[method-assign]
    assert "login or proxy" in asked().problems[0]


def test_more_than_the_limit_is_not_read(cluster: Cluster) -> None:
    filled(cluster)
    assert "max_size" in asked(max_bytes=100).problems[0]


def test_a_server_that_hangs_is_not_waited_for(cluster: Cluster) -> None:
    stop = threading.Event()

    def slow(*_: Any) -> tuple[int, Any]:
        stop.wait(20)
        return 200, {}

    cluster.answer = slow  # type: ignore[method-assign,assignment]
    view = asked(seconds=2)
    stop.set()
    assert "did not end within 2 s" in view.problems[0]


def test_a_context_that_is_not_there(cluster: Cluster) -> None:
    assert "context nowhere" in asked(at="nowhere").problems[0]


def test_a_cluster_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "no kubeconfig" in asked().problems[0]


def test_without_the_client_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from broker.queues.live import Unasked
    from broker.queues.live import cluster as asker

    monkeypatch.setitem(sys.modules, "kubernetes.config", None)
    with pytest.raises(Unasked, match="pip install"):
        asker.ask("")
