"""Whether the ledger and what is derived from it say the same.

SQLite keeps no checksums: a bit that flips in a number is handed out as that number. But all that a decision rests on
is in the file twice, in the ledger and in a table derived from it. Nothing is written, and no table rebuilt: a long
ledger is gone through in seconds.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, Table

from broker.model.intent import Intent
from state import rows
from state.entries import Applied, Concluded, Entry, Holding, Intended, Used, Witnessed
from state.project import contents
from state.reads import entries
from state.rows import Row
from state.schema import APPLIED_PLAN, COUNT_STEP, INTENT, PROJECTIONS, RESERVATION, USE_STEP


def disagreements(connection: Connection) -> tuple[str, ...]:
    """One line for each table that is not what the ledger makes it. Raises what unreadable rows raise."""
    derived = _Derived(entries(connection))
    return tuple(
        f"{table.name}: {differing} rows are not what the ledger says"
        for table, found in zip(PROJECTIONS, contents(connection), strict=True)
        if (differing := len(set(found) ^ set(derived.rows(table))))
    )


class _Derived:
    """The tables as the ledger makes them, in memory."""

    def __init__(self, ledger: Iterable[Entry]) -> None:
        self._intents: dict[str, tuple[Intent, Row]] = {}
        self._held: dict[tuple[object, object], Row] = {}
        self._counted: dict[tuple[object, object], list[Row]] = {}
        self._listed: dict[str, list[Row]] = defaultdict(list)
        for entry in ledger:
            self._add(entry)

    def rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        found: dict[str, Iterable[Row]] = {
            INTENT.name: (row for _, row in self._intents.values()),
            RESERVATION.name: self._held.values(),
            COUNT_STEP.name: (step for steps in self._counted.values() for step in steps),
        }
        for row in found.get(table.name, self._listed[table.name]):
            yield tuple(row[column.name] for column in table.columns)

    def _add(self, entry: Entry) -> None:
        match entry.body:
            case Intended() as body:
                self._intents[body.intent.key] = body.intent, rows.intended(entry.seq, body)
            case Concluded(key=key, outcome=outcome, holding=holding):
                if key in self._intents:
                    intent, row = self._intents[key]
                    self._intents[key] = intent, row | rows.concluded(intent, outcome)
                if holding:
                    self._hold(entry, holding)
            case Witnessed(holding=holding):
                self._hold(entry, holding)
            case Used() as body:
                self._listed[USE_STEP.name].append(rows.used(entry.seq, body))
                self._hold(entry, body.holding)
            case Applied() as body:
                self._listed[APPLIED_PLAN.name].append(rows.applied(entry, body))

    def _hold(self, entry: Entry, holding: Holding) -> None:
        row = rows.held(entry.seq, holding)
        which = row["scope"], row["id"]
        self._held[which] = row
        self._counted[which] = rows.counted(holding)
