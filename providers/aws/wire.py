"""The clients, and how a call is made: reads are tried again, a purchase is sent once.

botocore's own retries are off for every client, so that what is tried again, and how often, is decided here.
"""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import tenacity
from botocore import xform_name
from botocore.config import Config
from botocore.credentials import DeferredRefreshableCredentials, create_assume_role_refresher
from botocore.session import Session

from broker.clock import Clock
from broker.model.place import Scope
from providers.aws import failures
from providers.base import Ambiguous, BrokenReply, Throttled, Unreachable
from providers.settings import AwsSettings

_PASSING = (Throttled, Ambiguous, Unreachable, BrokenReply)
_LONGEST_PAUSE_S = 30.0
_CONNECT_S = 10.0
_COOL_DOWN = timedelta(minutes=1)
_SESSION_NAME = "gpu-capacity-broker"
SANDBOX_KEY = "sandbox"
"""What signs requests to the sandbox, which checks no signature."""


class Wire:
    """Safe to use from several threads. Everything it raises is a ProviderError.

    After a scope has been throttled to the last attempt, a call there is tried once only for the next minute:
    hammering an account that is over its limit keeps it over.
    """

    def __init__(self, settings: AwsSettings, clock: Clock, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._accounts = {account.name: account for account in settings.accounts}
        self._lock = threading.RLock()
        self._sessions: dict[str, Any] = {}
        self._clients: dict[tuple[str, str, str], Any] = {}
        self._throttled: dict[Scope, datetime] = {}
        self._config = Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=min(_CONNECT_S, settings.timeout.total_seconds()),
            read_timeout=settings.timeout.total_seconds(),
            max_pool_connections=20,
            user_agent_extra=_SESSION_NAME,
        )

    def send(self, scope: Scope, operation: str, service: str = "ec2", **parameters: Any) -> dict[str, Any]:
        """Once. `operation` is the API's name (`CreateCapacityReservation`), parameters are the API's own."""
        method = getattr(self._client(scope, service, operation), xform_name(operation))
        try:
            reply: dict[str, Any] = method(**parameters)
        except Exception as error:  # whatever comes out after a request went in must not be taken for "not bought"
            raise failures.of_call(operation, error) from error
        return reply

    def repeat(self, scope: Scope, operation: str, service: str = "ec2", **parameters: Any) -> dict[str, Any]:
        """As `send`, tried again while the failure may pass: for reads, and for what is safe to do twice."""
        now = self._clock.now()
        attempts = 1 if now < self._throttled.get(scope, now) else self._settings.read_attempts
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_PASSING),
            stop=tenacity.stop_after_attempt(attempts),
            wait=_pause,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            reply: dict[str, Any] = retrying(self.send, scope, operation, service, **parameters)
        except Throttled:
            self._throttled[scope] = now + _COOL_DOWN
            raise
        return reply

    def pages(self, scope: Scope, operation: str, service: str = "ec2", **parameters: Any) -> Iterator[dict[str, Any]]:
        """Every page, each tried again by itself. Raises rather than stop early."""
        token: str | None = None
        seen: set[str] = set()
        while True:
            asked = {**parameters, "NextToken": token} if token else parameters
            reply = self.repeat(scope, operation, service, **asked)
            yield reply
            token = reply.get("NextToken")
            if not token:
                return
            if token in seen:
                raise BrokenReply(operation, code="NextToken", message="the list leads back to a page already read")
            seen.add(token)

    def _client(self, scope: Scope, service: str, operation: str) -> Any:
        key = (service, scope.account, scope.region)
        with self._lock:
            if key not in self._clients:
                try:
                    self._clients[key] = self._made(scope, service)
                except Exception as error:
                    raise failures.not_sent(failures.of_call(operation, error)) from error
            return self._clients[key]

    def _made(self, scope: Scope, service: str) -> Any:
        return self._new_client(self._session(scope.account), service, scope.region)

    def _new_client(self, session: Any, service: str, region: str) -> Any:
        return session.create_client(
            service, region_name=region, endpoint_url=self._settings.endpoint, config=self._config
        )

    def _session(self, name: str) -> Any:
        """One a configured account: made-up credentials in the sandbox, else the SDK's default chain; then its role."""
        if name not in self._sessions:
            account = self._accounts[name]
            session = _new_session(None if self._settings.sandbox else account.profile)
            if self._settings.sandbox:
                session.set_credentials(SANDBOX_KEY, SANDBOX_KEY)
            self._sessions[name] = session
            if account.role_arn is not None:
                self._sessions[name] = self._in_role(session, account.role_arn, account.regions[0])
        return self._sessions[name]

    def _in_role(self, source: Any, role_arn: str, region: str) -> Any:
        """A session whose credentials are the role's, fetched when first needed and again before they expire."""
        client = self._new_client(source, "sts", region)
        fetch = create_assume_role_refresher(client, {"RoleArn": role_arn, "RoleSessionName": _SESSION_NAME})
        session = _new_session()
        # botocore has no public setter for credentials that refresh themselves.
        session._credentials = DeferredRefreshableCredentials(fetch, "assume-role")
        return session


def _new_session(profile: str | None = None) -> Any:
    """Sessions share what is read from botocore's service models: EC2's alone takes a fifth of a second."""
    session = Session(profile=profile)
    session.register_component("data_loader", _loader())
    return session


@cache
def _loader() -> Any:
    return Session().get_component("data_loader")


def _pause(state: tenacity.RetryCallState) -> float:
    """Longer each time and jittered, and at least what the cloud asks for."""
    jittered: float = tenacity.wait_random_exponential(multiplier=0.4, max=5.0)(state)
    error = state.outcome.exception() if state.outcome else None
    return max(jittered, min(failures.retry_after_s(error), _LONGEST_PAUSE_S))
