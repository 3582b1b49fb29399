"""The sandbox as one object: start it, point clients at it, set its clock and its faults, save and load it."""

import contextlib
import fcntl
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from broker import regular
from broker.errors import InputError
from broker.model.place import ProviderName
from providers.sandbox.catalogue import Catalogue
from providers.sandbox.clock import DEFAULT_START, WorldClock
from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.market import Market
from providers.sandbox.record import Record
from providers.sandbox.server import Server
from providers.sandbox.world import World

AWS_ACCOUNT = "123456789012"
AWS_ACCESS_KEY = "sandbox"
AWS_SECRET_KEY = "sandbox"  # noqa: S105 - the sandbox checks no signature


class Sandbox:
    """A world and its server; a context manager. The same seed and calls give the same world.

    `busy` is the share of time for which background tenants are there. `speed` 0 stands still. With `path`, the world
    is read from there if the file exists and written back after each call that had an effect and at the end, so that
    a process that is killed loses nothing that a cloud would have kept.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        start: datetime = DEFAULT_START,
        speed: float = 0.0,
        busy: float = 0.0,
        port: int = 0,
        catalogue: Catalogue | None = None,
        path: Path | None = None,
    ) -> None:
        self.world = World(seed=seed, start=start, speed=speed, busy=busy, catalogue=catalogue)
        self.path = path
        if path is not None and path.exists():
            self.world.load(path)
        self.world.keep_in = path
        self._server = Server(self.world, port)

    def start(self) -> str:
        """The endpoint that all three clouds' clients are pointed at."""
        return self._server.start()

    def stop(self) -> None:
        self._server.stop()
        if self.path is not None:
            self.world.save(self.path)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        return self._server.endpoint

    @property
    def clock(self) -> WorldClock:
        return self.world.clock

    @property
    def market(self) -> Market:
        return self.world.market

    @property
    def record(self) -> Record:
        return self.world.record

    def advance(self, by: timedelta) -> datetime:
        """Let time pass, and let it do what it does."""
        with self.world.lock:
            now = self.world.clock.advance(by)
            self.world.market.settle()
            return now

    def fault(self, kind: FaultKind, operation: str = "*", provider: ProviderName | None = None, **rest: Any) -> int:
        """Add a rule, and give its id; `rest` are the other fields of `faults.Rule`."""
        with self.world.lock:
            return self.world.faults.add(Rule(kind=kind, operation=operation, provider=provider, **rest))

    def page_size(self, provider: ProviderName, size: int) -> None:
        """How many things a page of that cloud's lists holds at most."""
        with self.world.lock:
            self.world.memory[provider]["page_size"] = size

    def save(self, path: Path) -> None:
        self.world.save(path)

    def load(self, path: Path) -> None:
        self.world.load(path)

    def env(self) -> dict[str, str]:
        """What points boto3 and the AWS command line here. The Google and Azure SDKs read no such variables."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": AWS_ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": AWS_SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def code_lines(self) -> dict[str, str]:
        """How each SDK is pointed here, as Python to paste."""
        return {name: text.replace("ENDPOINT", self.endpoint) for name, text in _CODE.items()}


@contextlib.contextmanager
def embedded(path: Path, *, seed: int = 0) -> Iterator[Sandbox]:
    """The world in the file (a new one of that seed if there is none), for as long as one command runs.

    Others that want the same file wait. Raises InputError where it cannot be read or written.
    """
    with world_held(path):
        sandbox = Sandbox(path=path, seed=seed)
        sandbox.world.may_be_saved(path)
        with sandbox:
            yield sandbox


@contextlib.contextmanager
def world_held(path: Path, *, by: str = "") -> Iterator[None]:
    """The world's file is ours alone. `by` names a holder that may stay for long: for it nobody waits.

    Raises InputError where such a one holds it, or where the lock beside it cannot be written.
    """
    with _lock_file(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _wait(handle, path)
        _sign(handle, path, by)
        yield
        handle.truncate(0)


def _lock_file(path: Path) -> TextIO:
    try:
        place = path.with_name(f"{path.name}.lock")
        regular.require(place)
        return place.open("a+", encoding="utf-8")
    except OSError as error:
        raise _unlocked(path, error) from error


def _sign(handle: TextIO, path: Path, by: str) -> None:
    try:
        handle.truncate(0)
        handle.write(by)
        handle.flush()
    except OSError as error:
        raise _unlocked(path, error) from error


def _unlocked(path: Path, error: OSError) -> InputError:
    what = f"cannot lock the sandbox's world {path}: {error.strerror}"
    return InputError(what, next_step="Make its folder writable: commands that ask the clouds write there")


def _wait(handle: TextIO, path: Path) -> None:
    handle.seek(0)
    holder = handle.read()
    if holder:
        raise InputError(f"{path} is in use by {holder}", next_step="Stop that one, or point [sandbox] at its address")
    fcntl.flock(handle, fcntl.LOCK_EX)


_CODE = {
    "boto3": """\
import boto3
ec2 = boto3.client("ec2", region_name="us-east-1", endpoint_url="ENDPOINT",
                   aws_access_key_id="sandbox", aws_secret_access_key="sandbox")
""",
    "google-cloud-compute": """\
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1
reservations = compute_v1.ReservationsClient(
    credentials=AnonymousCredentials(), client_options={"api_endpoint": "ENDPOINT"})
operations = compute_v1.ZoneOperationsClient(  # poll with this one: op.result() would ask the real cloud
    credentials=AnonymousCredentials(), client_options={"api_endpoint": "ENDPOINT"})
""",
    "azure-mgmt-compute": """\
from azure.core.credentials import AccessToken
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient
class Anyone:
    def get_token(self, *scopes, **options):
        return AccessToken("sandbox", 4102444800)
compute = ComputeManagementClient(
    Anyone(), "00000000-0000-0000-0000-000000000000", base_url="ENDPOINT",
    authentication_policy=SansIOHTTPPolicy(), polling_interval=0)
""",
}
