"""One subscription's calls: reads are repeated, everything else is sent once, every failure is typed."""

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from azure.core.exceptions import AzureError
from azure.core.polling.base_polling import BadStatus
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from providers.azure.client import compute_client, credential_for
from providers.azure.errors import failed_operation, retry_after_s, translated
from providers.azure.polling import PatientPolling, StillRunning
from providers.base import Ambiguous, BrokenReply, Conflict, ProviderError, Throttled, Unreachable
from providers.settings import AzureSettings

T = TypeVar("T")

LONGEST_WAIT_S = 30.0
"""A read that is asked to wait for longer than this is given up, for a later run."""

GROUP_DELETE_ATTEMPTS = 7
"""With waits of up to 1, 2, 4 ... 30 s: about a minute."""


class Calls:
    """`sleep` takes seconds. In the sandbox nothing is waited for: its time stands still meanwhile."""

    def __init__(self, settings: AzureSettings, subscription: str, sleep: Callable[[float], None]) -> None:
        self._settings = settings
        self._subscription = subscription
        self._sleep = sleep
        self._patience_s = 0.0 if settings.sandbox else settings.timeout.total_seconds()
        self._pace_s = 0.01 if settings.sandbox else 1.0

    @cached_property
    def credential(self) -> Any:
        return credential_for(self._settings)

    @cached_property
    def client(self) -> Any:
        return compute_client(self._settings, self._subscription, self.credential)

    def once(self, operation: str, call: Callable[[Any], T]) -> T:
        """Sent once. Raises a ProviderError."""
        try:
            return call(self.client)
        except AzureError as error:
            raise translated(operation, error) from error
        except BadStatus as error:
            raise Ambiguous(operation, message=str(error)) from error
        except (StillRunning, ProviderError):
            raise
        except Exception as error:  # whatever the SDK's decoding stumbles over
            raise BrokenReply(operation, message=f"{type(error).__name__}: {error}") from error

    def read(self, operation: str, call: Callable[[Any], T]) -> T:
        """Repeated while the trouble looks passing. For what changes nothing, or nothing more when repeated."""
        retrying = Retrying(
            stop=stop_after_attempt(self._settings.read_attempts),
            retry=retry_if_exception(_passing),
            wait=self._wait,
            sleep=self._sleep,
            reraise=True,
        )
        answer: T = retrying(self.once, operation, call)
        return answer

    def listed(self, operation: str, pages: Callable[..., Any]) -> list[dict[str, Any]]:
        """Everything on all pages. `pages` is given the client and the options of its call.

        The SDK takes a page without its list for an empty one; here it is a broken reply.
        """

        def check(response: Any) -> None:
            body = response.http_response.json() if response.http_response.status_code == 200 else {"value": []}
            if not isinstance(body, dict) or not isinstance(body.get("value"), list):
                raise BrokenReply(operation, message="a page without its list")

        options = {"raw_response_hook": check}
        return self.read(operation, lambda client: [item.as_dict() for item in pages(client, options)])

    def operate(self, operation: str, begin: Callable[[Any, Any], Any]) -> Any | None:
        """Start a long-running operation, once, and wait: the resource it left, None while it is not over."""
        poller = self.once(operation, lambda client: begin(client, self._polling(operation)))
        return self._outcome(operation, poller)

    def operate_again(self, operation: str, begin: Callable[[Any, Any], Any]) -> Any | None:
        """The same for what is safe to repeat."""
        poller = self.read(operation, lambda client: begin(client, self._polling(operation)))
        return self._outcome(operation, poller)

    def past_conflicts(self, call: Callable[[], T]) -> T:
        """A group with nothing in it any more can refuse to go for some seconds: ask again for a minute."""
        retrying = Retrying(
            stop=stop_after_attempt(GROUP_DELETE_ATTEMPTS),
            retry=retry_if_exception(lambda error: isinstance(error, Conflict)),
            wait=wait_random_exponential(multiplier=self._pace_s, max=LONGEST_WAIT_S),
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(call)

    def _polling(self, operation: str) -> PatientPolling:
        return PatientPolling(self._patience_s, lambda look: self.read(operation, lambda _client: look()))

    def _outcome(self, operation: str, poller: Any) -> Any | None:
        """The request was accepted: trouble while looking says nothing about what became of it."""
        try:
            return poller.result()
        except StillRunning:
            return None
        except ProviderError as error:
            raise Ambiguous(operation, code=error.code, message=error.message, request_id=error.request_id) from error
        except AzureError as error:
            failure = translated(operation, error)
            if failed_operation(error) or failure.may_have_acted:
                raise failure from error
            raise Ambiguous(
                operation, code=failure.code, message=failure.message, request_id=failure.request_id
            ) from error
        except Exception as error:
            raise BrokenReply(operation, message=f"{type(error).__name__}: {error}") from error

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after_s(error) if isinstance(error, ProviderError) else None
        return asked if asked is not None else wait_random_exponential(multiplier=self._pace_s, max=8)(state)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def _passing(error: BaseException) -> bool:
    if not isinstance(error, Throttled | Ambiguous | BrokenReply | Unreachable):
        return False
    return (retry_after_s(error) or 0.0) <= LONGEST_WAIT_S
