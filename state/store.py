"""The state of one broker: a ledger of what it meant, did and saw, in one SQLite file.

`Store.open` is cheap: SQLAlchemy costs 0.12 s of CPU to import and is loaded with this module, so a command imports
this module only when it needs the state. Alembic is loaded only when the schema version differs.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from broker.errors import StateError
from broker.model.intent import Intent, Outcome
from broker.model.ledger import CountStep, Heartbeat, UseStep
from broker.model.place import Scope
from broker.model.plan import Plan
from broker.model.reservation import Reservation
from broker.model.snapshot import Cooling, Idle, ScopeView, Spend
from providers.base import VISIBILITY_WINDOW
from state import reads
from state.conclude import allowed, holding_after, tells_more
from state.database import engine_for, in_plain_words, make_file
from state.encode import from_us, to_text, to_us
from state.entries import Applied, Concluded, Entry, Gap, Intended, Kind, Used
from state.lag import made_whole
from state.mark import mark, marked
from state.project import contents, rebuild
from state.schema import ENTRY, HEARTBEAT, META, METADATA, VERSION
from state.spend import month_spend
from state.witness import Look, changes, confirms, ours, use_of
from state.write import append, looked, watch

T = TypeVar("T")
COOLDOWN = timedelta(minutes=30)


class Store:
    """Threads may share it: they take turns. Every write is one committed transaction, on disk when it returns."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._turn = RLock()
        self._engine = engine_for(path, read_only=read_only)
        self._writer = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        self.lineage = ""

    @classmethod
    def create(cls, path: Path, *, now: datetime) -> "Store":
        """A new state with a lineage of its own. Raises StateError if the file exists."""
        return cls._made(path, now, secrets.token_hex(6))

    @classmethod
    def restore(cls, path: Path, *, now: datetime, lineage: str) -> "Store":
        """A new, empty state that takes up a lineage whose file was lost; `adopt` fills it."""
        return cls._made(path, now, lineage)

    @classmethod
    def _made(cls, path: Path, now: datetime, lineage: str) -> "Store":
        make_file(path)
        store = cls(path, read_only=False)
        with store._write() as connection:
            METADATA.create_all(connection)
            row = {"one": 1, "schema_version": VERSION, "lineage": lineage, "created": to_us(now)}
            connection.execute(insert(META).values(row))
        store.lineage = lineage
        return store

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "Store":
        """Raises StateError: missing, damaged, not writable, of a newer version."""
        if not path.exists():
            raise StateError(
                f"there is no state file {path}",
                next_step="Make one: broker init. If there was one, broker state adopt finds what it had bought",
            )
        store = cls(path, read_only=read_only)
        store._identify()
        return store

    def _identify(self) -> None:
        version, self.lineage = self._ask(_identity)
        self._refuse_strange_name(version)
        if version > VERSION:
            raise StateError(
                f"{self.path} is of schema version {version}, newer than this broker knows ({VERSION})",
                next_step="Upgrade the broker; nothing was changed",
            )
        if version < VERSION:
            self._migrate(version)

    def _refuse_strange_name(self, version: int) -> None:
        """Under a lineage in which a bit has flipped nothing that was bought would be ours, and all bought again."""
        sent = None if version > VERSION else self._ask(reads.bought_as)
        if sent not in (None, self.lineage):
            raise StateError(
                f"{self.path} is damaged: it says that it is {self.lineage}, and its ledger that it is {sent}",
                next_step="Restore a backup, or make a new one with: broker state adopt",
            )

    def _migrate(self, version: int) -> None:
        if self.read_only:
            raise StateError(
                f"{self.path} is of schema version {version}, this broker's is {VERSION}",
                next_step="Upgrade it: broker run, or broker apply",
            )
        from state.migrate import migrate

        with self._turn, in_plain_words(self.path):
            migrate(self.path, self._writer, version)

    def projections_agree(self) -> bool:
        """Whether rebuilding from the ledger would change nothing. Nothing is changed."""
        with self._write() as connection:
            before = contents(connection)
            rebuild(connection, tuple(reads.entries(connection)))
            after = contents(connection)
            connection.rollback()
        return before == after

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reads

    @property
    def serial(self) -> int:
        """Advances when something that a plan rests on changes: a decision, or supply that moved without us."""
        return self._ask(reads.serial)

    @property
    def quiet_until(self) -> datetime | None:
        """Before this nothing is bought: a purchase that this file does not know of may not be visible yet."""
        us = self._ask(lambda connection: connection.execute(select(META.c.quiet_until)).scalar())
        return None if us is None else from_us(us)

    def seen_since(self, scope: Scope, at: datetime) -> bool:
        """Whether a look that began no earlier showed all of the scope."""
        began = self._ask(lambda connection: reads.looked(connection, scope))
        return began is not None and began >= at

    def intents(self, *, open_only: bool = False) -> tuple[Intent, ...]:
        return self._ask(reads.open_intents if open_only else reads.all_intents)

    def live_intents(self) -> tuple[Intent, ...]:
        """The open ones and those whose reservation still lives: what a snapshot holds."""
        return self._ask(reads.live_intents)

    def has_intent(self, key: str) -> bool:
        return self._ask(lambda connection: reads.has_intent(connection, key))

    def reservations(self) -> tuple[Reservation, ...]:
        """Ours as last known, gone ones included; then those of others as last listed."""
        return self._ask(lambda connection: (*reads.held(connection), *reads.watched(connection)))

    def cooling(self, now: datetime, cooldown: timedelta = COOLDOWN) -> tuple[Cooling, ...]:
        """Offers that were refused or unfilled less than `cooldown` ago."""
        return self._ask(lambda connection: reads.cooling(connection, now, cooldown))

    def idle(self) -> tuple[Idle, ...]:
        return self._ask(reads.idle)

    def spend(self, now: datetime) -> Spend:
        """Upper bound of this calendar month (UTC) so far; `*` is what no tenant is known for."""
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        steps = self.count_steps(month)
        return month_spend(steps, self.intents(), month, now)

    def count_steps(self, since: datetime | None = None) -> tuple[CountStep, ...]:
        return self._ask(lambda connection: reads.count_steps(connection, since))

    def use_steps(self, since: datetime | None = None) -> tuple[UseStep, ...]:
        return self._ask(lambda connection: reads.use_steps(connection, since))

    def heartbeat(self) -> Heartbeat | None:
        return self._ask(reads.heartbeat)

    def applied(self, plan_id: str) -> datetime | None:
        """When the plan was applied to its end; None if it was not."""
        return self._ask(lambda connection: reads.applied_at(connection, plan_id))

    def entries(
        self, *, reservation_id: str | None = None, key: str | None = None, since: datetime | None = None
    ) -> tuple[Entry, ...]:
        """The ledger in order, narrowed by what is given."""
        where: list[ColumnElement[bool]] = []
        if reservation_id is not None:
            where.append(ENTRY.c.reservation_id == reservation_id)
        if key is not None:
            where.append(ENTRY.c.key == key)
        if since is not None:
            where.append(ENTRY.c.at >= to_us(since))
        return self._ask(lambda connection: tuple(reads.entries(connection, where)))

    def was_replaced(self) -> bool:
        """Whether an older copy was put in this file's place: more was intended under this path than it knows of."""
        newest = self._ask(lambda connection: connection.execute(select(func.max(ENTRY.c.seq))).scalar())
        return marked(self.path) > (newest or 0)

    # Writes

    def intend(self, intent: Intent) -> None:
        """Commit what is about to be sent. Raises StateError if its key was ever intended before."""
        with self._turn:
            mark(self.path, self._intended(intent).seq)

    def _intended(self, intent: Intent) -> Entry:
        with self._write() as connection:
            if reads.has_intent(connection, intent.key):
                raise StateError(f"action {intent.key} was sent before", next_step="Make a new plan: broker plan")
            return append(connection, intent.sent, Kind.INTENT, Intended(intent=intent), run_id=intent.run_id)

    def conclude(self, key: str, outcome: Outcome, *, reservation: Reservation | None = None) -> bool:
        """Commit how it ended, with the reservation as it is now. Nothing is written, False returned, if not news."""
        with self._write() as connection:
            intent = reads.intent_of(connection, key)
            if not allowed(intent.status, outcome.status) or not tells_more(intent, outcome):
                return False
            scope = intent.request.place.scope
            known = reads.holdings(connection, scope).get(reservation.id) if reservation else None
            holding = holding_after(intent, outcome, reservation, known, reads.open_intents(connection))
            body = Concluded(key=key, outcome=outcome, holding=holding)
            append(connection, outcome.at, Kind.OUTCOME, body, run_id=intent.run_id)
            if holding and not known and reservation:
                used = Used(step=use_of(holding.reservation, outcome.at), holding=holding)
                append(connection, outcome.at, Kind.USE, used, run_id=intent.run_id)
            return True

    def witness(
        self,
        views: Iterable[ScopeView],
        now: datetime,
        *,
        window: timedelta = VISIBILITY_WINDOW,
        run_id: str = "",
    ) -> tuple[Entry, ...]:
        """Record what listings showed, and return what was news; the ledger grows only by news.

        Purchases of ours that the ledger did not know are adopted. Only a complete listing can show that something
        is gone.
        """
        with self._write() as connection:
            return tuple(entry for view in views for entry in self._seen(connection, view, now, window, run_id))

    def _seen(
        self, connection: Connection, view: ScopeView, now: datetime, window: timedelta, run_id: str
    ) -> list[Entry]:
        look = Look.of(view, now, window)
        if look is None:
            return []
        known, listed = reads.holdings(connection, view.scope), ours(view, self.lineage)
        intents = {i.key: i for i in reads.all_intents(connection)} if any(r.id not in known for r in listed) else {}
        news = [
            append(connection, now, kind, body, run_id=run_id) for kind, body in changes(listed, known, intents, look)
        ]
        watch(connection, view, self.lineage)
        if confirms(listed, known, look):
            looked(connection, view.scope, look.began)
        return news

    def made_whole(
        self, views: Iterable[ScopeView], now: datetime, *, window: timedelta = VISIBILITY_WINDOW
    ) -> tuple[ScopeView, ...]:
        """Listings with our own changes of the last `window` in them, which the clouds may not show yet.

        Deciding rests on these, never on the bare listings. Nothing is written.
        """
        return self._ask(
            lambda connection: tuple(
                made_whole(view, reads.holdings(connection, view.scope), Look.of(view, now, window)) for view in views
            )
        )

    def record_applied(self, plan: Plan, now: datetime) -> None:
        """Commit that the plan ran to its end. A plan without changes leaves no trace."""
        if plan.changes and self.applied(plan.id) is None:
            with self._write() as connection:
                body = Applied(plan_id=plan.id, serial=plan.serial, actions=len(plan.changes))
                append(connection, now, Kind.APPLIED, body)

    def record_gap(self, gap: Gap) -> None:
        with self._write() as connection:
            append(connection, gap.until, Kind.GAP, gap)

    def be_quiet(self, until: datetime) -> None:
        """Nothing is bought before `until`."""
        with self._write() as connection:
            connection.execute(update(META).values(quiet_until=to_us(until)))
            newest = connection.execute(select(func.max(ENTRY.c.seq))).scalar()
        mark(self.path, newest or 0)

    def beat(self, heartbeat: Heartbeat) -> None:
        """Overwrite the one row that says when a run last observed."""
        with self._write() as connection:
            connection.execute(delete(HEARTBEAT))
            connection.execute(insert(HEARTBEAT).values(one=1, body=to_text(heartbeat)))

    def rebuild(self) -> None:
        """The projections anew, from the ledger alone."""
        with self._write() as connection:
            rebuild(connection, tuple(reads.entries(connection)))

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._turn, in_plain_words(self.path), self._writer.begin() as connection:
            yield connection

    def _ask(self, question: Callable[[Connection], T]) -> T:
        with self._turn, in_plain_words(self.path), self._engine.begin() as connection:
            return question(connection)


def _identity(connection: Connection) -> tuple[int, str]:
    row = connection.execute(select(META.c.schema_version, META.c.lineage)).one()
    return row.schema_version, row.lineage
