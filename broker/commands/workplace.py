"""What a command works with: the configuration, the time, the state and the clouds, opened late and closed surely."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from broker.clock import Clock, FixedClock, WallClock
from broker.config import Config, at_endpoints, load, name_of
from broker.errors import InputError
from broker.model.place import ProviderName

if TYPE_CHECKING:
    from providers.base import Provider
    from state.store import Store


class Workplace:
    """`providers` and `store` cost time to load and are made when first asked for."""

    def __init__(self, config: Config, clock: Clock, closing: ExitStack, *, read_only: bool) -> None:
        self.config = config
        self.clock = clock
        self._closing = closing
        self._read_only = read_only

    @cached_property
    def store(self) -> "Store":
        from state.store import Store

        return self._closing.enter_context(Store.open(self.config.state, read_only=self._read_only))

    @cached_property
    def providers(self) -> "Mapping[ProviderName, Provider]":
        from providers.connect import connect

        return {name_of(settings): connect(settings, self.clock) for settings in self.config.providers}

    def set_clock_right(self) -> None:
        """By the clouds' own, before their time is compared with what is in the ledger. Raises GuardError."""
        from broker.observe.timekeeping import right_clock

        self.clock = right_clock(self.config.providers, self.clock)

    @property
    def gpu_models(self) -> tuple[str, ...]:
        """Those that the pools ask for."""
        return tuple(dict.fromkeys(model for pool in self.config.policy.pools for model in pool.gpu_models))

    @property
    def visibility_window(self) -> timedelta:
        return self.config.policy.purchase.visibility_window


@contextmanager
def workplace(path: Path, *, flags: Mapping[str, str], read_only: bool = False) -> Iterator[Workplace]:
    """With a sandbox world, its clouds are served for as long as the command runs."""
    config = load(path, flags=flags, env=os.environ)
    with ExitStack() as closing:
        clock: Clock
        if config.sandbox and config.sandbox.world:
            from providers.sandbox.local import embedded
            from providers.sandbox.world import read

            read(config.sandbox.world)
            sandbox = closing.enter_context(embedded(config.sandbox.world))
            config = at_endpoints(config, dict.fromkeys(ProviderName, sandbox.endpoint))
            clock = sandbox.clock
        else:
            clock = clock_of(config)
        yield Workplace(config, clock, closing, read_only=read_only)


def clock_of(config: Config) -> Clock:
    """The sandbox's time where the clouds are one, else the time of day."""
    if config.sandbox is None:
        return WallClock()
    if config.sandbox.world:
        return _saved_clock(config.sandbox.world)
    return _running_clock(config.sandbox.endpoints[0][1])


class _Clocked(msgspec.Struct):
    """The part of a saved world that says what time it is."""

    clock: msgspec.Raw


def _saved_clock(world: Path) -> Clock:
    from providers.sandbox.clock import ClockState, WorldClock
    from providers.sandbox.world import not_a_world, read

    clock, data = WorldClock(), read(world)
    try:
        clock.state = msgspec.json.decode(msgspec.json.decode(data, type=_Clocked).clock, type=ClockState)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise not_a_world(world, str(error)) from None
    return clock


class _Now(msgspec.Struct):
    now: datetime


def _running_clock(endpoint: str) -> Clock:
    from urllib.error import URLError
    from urllib.request import urlopen

    from providers.sandbox.control import PREFIX

    try:
        with urlopen(f"{endpoint}{PREFIX}health", timeout=10) as reply:
            return FixedClock(msgspec.json.decode(reply.read(), type=_Now).now)
    except (URLError, OSError, msgspec.MsgspecError):
        raise InputError(f"no sandbox answers at {endpoint}", next_step="Start it: broker sandbox --port ...") from None
