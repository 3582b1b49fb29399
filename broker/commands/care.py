"""Caring for the state file: its lock, a copy of it, and a new one when it is lost."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from broker.apply.adopt import Adoption, adopt, choose
from broker.commands.workplace import Workplace
from broker.config import load
from broker.errors import Exit, UsageError
from broker.model.place import Scope
from broker.model.snapshot import ScopeView, Trust
from providers.base import Provider, ProviderError
from state.lock import Holder, Lock, break_lock, holder, lock_path
from state.store import Store
from state.upkeep import backup, faults


class LockState(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    holder: Holder | None
    forgotten: bool


def unlock(path: Path, *, flags: Mapping[str, str], force: bool) -> LockState:
    """Raises LockedError where a process of this host holds it: that one ends by itself or is stopped."""
    state = load(path, flags=flags, env=os.environ).state
    if not force:
        return LockState(path=lock_path(state), holder=holder(lock_path(state)), forgotten=False)
    was = break_lock(state)
    return LockState(path=lock_path(state), holder=was, forgotten=was is not None)


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """`faults` are what is wrong with the state itself, and so with the copy."""

    target: Path
    faults: tuple[str, ...]

    @property
    def exit_code(self) -> Exit:
        return Exit.ERROR if self.faults else Exit.OK


def back_up(path: Path, target: Path, *, flags: Mapping[str, str]) -> Backup:
    state = load(path, flags=flags, env=os.environ).state
    wrong = faults(state)
    return Backup(target=backup(state, target), faults=wrong)


def adopt_all(place: Workplace, lineage: str | None) -> Adoption:
    """Raises UsageError where there is a state, StateError where nothing or too much is found."""
    state = place.config.state
    if state.exists():
        raise UsageError(
            f"{state} exists: nothing is lost", next_step="Move it away first if it is damaged, then adopt again"
        )
    place.set_clock_right()
    now = place.clock.now()
    with Lock(state, command="broker state adopt", now=now, timeout=place.config.lock_timeout):
        views = [
            _listed(provider, scope, place) for provider in place.providers.values() for scope in provider.scopes()
        ]
        chosen = choose(views, lineage)
        with Store.restore(state, now=now, lineage=chosen) as store:
            return adopt(store, views, now, window=place.visibility_window)


def _listed(provider: Provider, scope: Scope, place: Workplace) -> ScopeView:
    at = place.clock.now()
    try:
        found = provider.reservations(scope)
    except ProviderError as error:
        problem = f"{scope}: reservations are not known: {error}"
        return ScopeView(scope=scope, trust=Trust.UNKNOWN, reservations_at=None, problems=(problem,))
    return ScopeView(scope=scope, trust=Trust.COMPLETE, reservations_at=at, reservations=found)


def exit_code(adoption: Adoption) -> Exit:
    return Exit.PARTLY_DONE if adoption.unread or adoption.doubt else Exit.OK
