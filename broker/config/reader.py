"""Reads raw tables by their section; collects every mistake and the origin of every value."""

from collections.abc import Mapping
from typing import Any

from broker.config.schema import Key, Required, Section
from broker.config.types import Origin, Setting
from broker.config.values import Empty, Wrong, nearest
from broker.config.writing import plain, toml


class Override(tuple[Any, Origin, str]):
    """(raw value, origin, what the user typed: a flag or a variable)."""

    __slots__ = ()


class Reader:
    """`overrides` are by full key path, such as `guards.max_usd_per_hour`; `unread` are the paths of values that could
    not be read, and that have a line in `problems` already.
    """

    def __init__(self, overrides: Mapping[str, Override]) -> None:
        self.problems: list[str] = []
        self.settings: list[Setting] = []
        self.unread: list[str] = []
        self._overrides = overrides

    def problem(self, path: str, sentence: str) -> None:
        self.problems.append(f"{path}: {sentence}")

    def doubted(self, path: str) -> bool:
        """Whether the value there, or one within that table, could not be read: a default stands in for it."""
        return any(wrong == path or wrong.startswith((f"{path}.", f"{path}[")) for wrong in self.unread)

    def one(self, section: Section, raw: Any, path: str) -> dict[str, Any]:
        """The fields of one table: wrong and missing ones hold their default or stand-in."""
        table = self._table(raw, path)
        self._unknown_keys(section, table, path)
        return {key.field or key.name: self._value(key, table, _join(path, key.name)) for key in section.keys}

    def many(self, section: Section, parent: Any, path: str) -> list[tuple[str, Any, dict[str, Any]]]:
        """(path, raw table, fields) of each table of a list; one table stands for a list of one."""
        raw = parent.get(section.name, []) if isinstance(parent, dict) else []
        where = _join(path, section.name)
        if isinstance(raw, dict):
            raw = [raw]
        if not isinstance(raw, list):
            self.problem(where, f"expected tables; write [[{where}]]")
            return []
        paths = [f"{where}[{index}]" for index in range(len(raw))]
        return [(at, table, self.one(section, table, at)) for at, table in zip(paths, raw, strict=True)]

    def _table(self, raw: Any, path: str) -> dict[str, Any]:
        if isinstance(raw, dict):
            return raw
        self.problem(path, f"expected a table; write [{path}]")
        return {}

    def _unknown_keys(self, section: Section, table: dict[str, Any], path: str) -> None:
        known = [key.name for key in section.keys] + [inner.name for inner in section.inner]
        for name in table:
            if name not in known:
                meant = nearest(name, known)
                self.problem(_join(path, name), f"unknown key{meant or '; known: ' + ', '.join(known)}")
                self.unread += [_join(path, each) for each in known if f'"{each}"' in meant]

    def _value(self, key: Key, table: dict[str, Any], path: str) -> Any:
        raw, origin, typed = self._overrides.get(path, (table.get(key.name), Origin.FILE, path))
        if raw is None:
            return self._absent(key, path)
        try:
            value = key.parse(raw)
        except Wrong as wrong:
            self.problem(typed, f"{wrong} ({key.meaning})" if isinstance(wrong, Empty) else str(wrong))
            self.unread.append(path)
            return _fallback(key)
        self._note(key, path, value, origin)
        return value

    def _absent(self, key: Key, path: str) -> Any:
        if isinstance(key.default, Required):
            self.problem(path, f"is missing ({key.meaning})")
            self.unread.append(path)
        else:
            self._note(key, path, key.default, Origin.DEFAULT)
        return _fallback(key)

    def _note(self, key: Key, path: str, value: Any, origin: Origin) -> None:
        self.settings.append(Setting(path, plain(value, key.parse), origin, toml(value, key.parse)))


def _fallback(key: Key) -> Any:
    return key.default.stand_in if isinstance(key.default, Required) else key.default


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
