"""Lists of records, read and written as the record arrays of a compiled replay, so that one driver serves both."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class Record:
    """One record: `record["name"]`."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def __getitem__(self, name: str) -> Any:
        return getattr(self._record, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._record, name, value)


class Records:
    """A list of records: `records[3]["name"]`, and `records["name"][indices]` as arrays."""

    def __init__(self, records: Sequence[Any]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, at: Any) -> Any:
        return Column(self._records, at) if isinstance(at, str) else Record(self._records[at])


class Column:
    def __init__(self, records: Sequence[Any], name: str) -> None:
        self._records, self._name = records, name
        self._type = np.float64 if records and isinstance(getattr(records[0], name), float) else np.int64

    def __getitem__(self, at: Any) -> Any:
        return self._array([self._records[j] for j in at.tolist()])

    def __setitem__(self, at: Any, values: Any) -> None:
        for j, value in zip(at.tolist(), values.tolist(), strict=True):
            setattr(self._records[j], self._name, value)

    def copy(self) -> Any:
        return self._array(self._records)

    def _array(self, records: Sequence[Any]) -> Any:
        return np.array([getattr(record, self._name) for record in records], dtype=self._type)
