"""Whatever `check -v` shows of a key, the file accepts, and it means the same there."""

import tomllib
from collections.abc import Iterator
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config import parse, values
from broker.config.schema import TOP, Key, Required, Section
from broker.config.writing import toml
from tests.config.test_load import FULL

SOME_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip()))
LENGTHS = st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from("smhdw")), min_size=1, max_size=3)
PARTS = st.decimals(0, 10**9, places=3).map(lambda amount: f"{amount}s")
DURATIONS = LENGTHS.map(lambda parts: "".join(f"{amount}{unit}" for amount, unit in parts)) | PARTS
UNITS = st.sampled_from(["B", "KB", "MB", "GB", "KiB", "MiB", "GiB"])
RAW: dict[values.Parser, st.SearchStrategy[Any]] = {
    values.text: SOME_TEXT,
    values.texts: SOME_TEXT | st.lists(SOME_TEXT),
    values.some_texts: SOME_TEXT | st.lists(SOME_TEXT, min_size=1),
    values.command: st.lists(SOME_TEXT, min_size=1),
    values.url: st.sampled_from(["http://slurm:6820/slurm/jobs", "https://a.example/x?y=%20z"]),
    values.flag: st.booleans(),
    values.count: st.integers(0),
    values.positive: st.integers(1),
    values.number: st.integers(0, 10**300) | st.decimals(0, 10**12),
    values.part: st.decimals(0, 1),
    values.usd: st.integers(0) | st.decimals(0, 10**15) | st.just("$1200.50 USD"),
    values.duration: DURATIONS,
    values.some_time: DURATIONS.filter(lambda text: bool(values.duration(text))),
    values.size: st.tuples(st.integers(0), UNITS).map(lambda parts: f"{parts[0]}{parts[1]}"),
    values.timezone: st.sampled_from(["UTC", "Europe/Zurich"]),
    values.instant: st.integers(0, 10**11) | st.datetimes(timezones=st.just(UTC)).map(str),
    values.loopback: st.sampled_from(["http://127.0.0.1:8080", "http://localhost:1/"]),
}


def keys(section: Section = TOP) -> Iterator[Key]:
    yield from section.keys
    for inner in section.inner:
        yield from keys(inner)


def raw_of(key: Key) -> st.SearchStrategy[Any]:
    """Whatever its parser accepts."""
    about = key.parse.__doc__ or ""
    if key.parse in RAW:
        return RAW[key.parse]
    if about.startswith("one of "):
        return st.sampled_from([name.strip("` ") for name in about.removeprefix("one of ").split(",")])
    assert about.startswith("table of names"), about
    return st.dictionaries(SOME_TEXT, st.integers(0) if "numbers" in about else SOME_TEXT)


def read_back(key: Key, shown: str) -> Any:
    return key.parse(tomllib.loads(f"key = {shown}", parse_float=Decimal)["key"])


@pytest.mark.parametrize("key", list(keys()), ids=lambda key: key.name)
@given(data=st.data())
def test_what_is_shown_of_a_value_is_read_back_as_that_value(key: Key, data: st.DataObject) -> None:
    value = key.parse(data.draw(raw_of(key)))
    shown = toml(value, key.parse)
    assert value == () if not shown else read_back(key, shown) == value


@pytest.mark.parametrize(
    "key", [key for key in keys() if not isinstance(key.default, Required)], ids=lambda key: key.name
)
def test_so_is_what_is_shown_of_a_default(key: Key) -> None:
    shown = toml(key.default, key.parse)
    assert not shown or read_back(key, shown) == key.default


def test_a_whole_file_can_be_written_anew_from_what_is_shown() -> None:
    config = parse(FULL, Path("broker.toml"), flags={}, env={})
    for setting in config.settings:
        if setting.toml:
            tomllib.loads(f"key = {setting.toml}")
    shown = {setting.key: setting.toml for setting in config.settings}
    assert shown["queue[0].max_size"] == '"10MiB"'
    assert shown["queue[0].command"] == '["squeue", "--json"]'
    assert shown["purchase.tags"] == '{ team = "ml" }'
    assert shown["pool[0].max_gpus"] == "64"
    assert shown["queue[0].max_age"] == '"90m"'
