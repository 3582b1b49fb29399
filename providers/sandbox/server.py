"""The sandbox's HTTP server: loopback only, one thread a connection, HTTP/1.1 with keep-alive."""

import socket
import struct
import threading
import traceback
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from providers.sandbox.control import PREFIX, control
from providers.sandbox.dispatch import Broken, Dispatch
from providers.sandbox.wire import Request, Response
from providers.sandbox.world import World

LOOPBACK = "127.0.0.1"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Server:
    """`start` binds to the loopback (port 0: any free one) and returns once requests are answered."""

    def __init__(self, world: World, port: int = 0) -> None:
        self.world = world
        self._port = port
        self._http: _Http | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> str:
        """The endpoint, `http://127.0.0.1:PORT`. Raises OSError where the port is taken."""
        self._http = _Http(self.world, self._port)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self.endpoint

    @property
    def endpoint(self) -> str:
        if self._http is None:
            raise RuntimeError("the sandbox is not running")
        return f"http://{LOOPBACK}:{self._http.server_port}"

    def stop(self) -> None:
        """Open connections are closed; repeatable."""
        if self._http is None or self._thread is None:
            return
        self._http.shutdown()
        self._http.close_connections()
        self._http.server_close()
        self._thread.join()
        self._http = self._thread = None


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, world: World, port: int) -> None:
        self.world = world
        self.dispatch = Dispatch(world)
        self._connections: set[socket.socket] = set()
        super().__init__((LOOPBACK, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in list(self._connections):
            self.shutdown_request(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else was answered with a 500 already."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Http

    def _answer(self) -> None:
        request = self._request()
        try:
            reply = self._reply(request)
        except Exception:
            # A bug of the sandbox must not look like a cloud's behaviour.
            reply = Response.of_json({"error": "the sandbox failed", "traceback": traceback.format_exc()}, 501)
        if isinstance(reply, Broken):
            self._break_off(reply)
        else:
            self._send(reply)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the base class looks for these

    def do_HEAD(self) -> None:
        """The time by the world's clock, as every cloud tells it; no call is recorded."""
        at = format_datetime(self.server.world.clock.now(), usegmt=True)
        self.wfile.write(f"HTTP/1.1 404 Not Found\r\nDate: {at}\r\nContent-Length: 0\r\n\r\n".encode("latin-1"))
        self.wfile.flush()

    def _request(self) -> Request:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request.parse(self.command, self.path, headers, body, f"http://{LOOPBACK}:{self.server.server_port}")

    def _reply(self, request: Request) -> Response | Broken:
        if request.path.startswith(PREFIX):
            return control(request, self.server.world)
        return self.server.dispatch.answer(request)

    def _send(self, response: Response) -> None:
        reason = HTTPStatus(response.status).phrase
        lines = [f"HTTP/1.1 {response.status} {reason}"]
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        lines += [f"Content-Length: {len(response.body)}", "", ""]
        self.wfile.write("\r\n".join(lines).encode("latin-1") + response.body)
        self.wfile.flush()

    def _break_off(self, how: Broken) -> None:
        self.close_connection = True
        if how is Broken.RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """The record is the log."""
