"""The clients, and how a call is made: reads are tried again, a purchase is sent once.

Each thread has its own clients, because a session of theirs is not meant for several; credentials are shared.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import google.auth
import google.auth.credentials
import google.auth.exceptions
import tenacity
from google.api_core.client_options import ClientOptions
from google.cloud import compute_v1

from providers.base import Ambiguous, BrokenReply, ProviderError, Throttled, Unreachable
from providers.gcp import failures
from providers.settings import GcpSettings

_T = TypeVar("_T")
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_PASSING = (Throttled, Ambiguous, Unreachable, BrokenReply)
_LONGEST_PAUSE_S = 30.0


class Wire:
    """`sleep` waits for some seconds between tries. Everything it raises is a ProviderError."""

    def __init__(self, settings: GcpSettings, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._sleep = sleep
        self._timeout_s = settings.timeout.total_seconds()
        self._local = threading.local()
        self._lock = threading.Lock()
        self._shared: google.auth.credentials.Credentials | None = None

    @property
    def reservations(self) -> Any:
        return self._client(compute_v1.ReservationsClient)

    @property
    def operations(self) -> Any:
        return self._client(compute_v1.ZoneOperationsClient)

    @property
    def machine_types(self) -> Any:
        return self._client(compute_v1.MachineTypesClient)

    @property
    def regions(self) -> Any:
        return self._client(compute_v1.RegionsClient)

    @property
    def projects(self) -> Any:
        return self._client(compute_v1.ProjectsClient)

    def send(self, operation: str, method: Callable[..., _T], request: Any, request_id: str = "") -> _T:
        """Once. The SDK's own retries are off."""
        try:
            reply: _T = method(request=request, retry=None, timeout=self._timeout_s)
        except Exception as error:  # whatever comes out after a request went in must not be taken for "not bought"
            raise failures.of_call(operation, error, request_id) from error
        return reply

    def repeat(self, operation: str, method: Callable[..., _T], request: Any, request_id: str = "") -> _T:
        """As `send`, tried again while the failure may pass: for reads, and for what is safe to do twice."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_PASSING),
            stop=tenacity.stop_after_attempt(self._settings.read_attempts) | tenacity.stop_after_delay(self._timeout_s),
            wait=_pause,
            sleep=self._sleep,
            reraise=True,
        )
        reply: _T = retrying(self.send, operation, method, request, request_id)
        return reply

    def principal(self) -> str:
        """Who the credentials say they are, where they do."""
        credentials = self._credentials("credentials")
        return str(getattr(credentials, "service_account_email", "") or type(credentials).__name__)

    def _client(self, kind: type[Any]) -> Any:
        clients: dict[type[Any], Any] = self._local.__dict__.setdefault("clients", {})
        if kind not in clients:
            options = ClientOptions(api_endpoint=self._settings.endpoint) if self._settings.endpoint else None
            clients[kind] = kind(credentials=self._credentials(kind.__name__), transport="rest", client_options=options)
        return clients[kind]

    def _credentials(self, operation: str) -> google.auth.credentials.Credentials:
        with self._lock:
            if self._shared is None:
                self._shared = self._sign_in(operation)
            return self._shared

    def _sign_in(self, operation: str) -> google.auth.credentials.Credentials:
        """Made-up credentials in the sandbox, else the SDK's default chain."""
        if self._settings.sandbox:
            return google.auth.credentials.AnonymousCredentials()
        try:
            credentials, _ = google.auth.default(scopes=[_SCOPE])
        except google.auth.exceptions.GoogleAuthError as error:
            raise failures.of_call(operation, error) from error
        return credentials


def _pause(state: tenacity.RetryCallState) -> float:
    """Longer each time and jittered, and at least what the cloud asks for."""
    jittered: float = tenacity.wait_random_exponential(multiplier=0.4, max=5.0)(state)
    error = state.outcome.exception() if state.outcome else None
    return max(jittered, min(_retry_after_s(error), _LONGEST_PAUSE_S))


def _retry_after_s(error: BaseException | None) -> float:
    if not isinstance(error, ProviderError):
        return 0.0
    response = getattr(error.__cause__, "response", None)
    try:
        return float(response.headers["Retry-After"]) if response is not None else 0.0
    except (KeyError, TypeError, ValueError):
        return 0.0
