"""The help speaks the user's words: an option's value is called by what it is, not by a type of Python's."""

import re

import pytest

from tests.cli.conftest import Broker
from tests.cli.test_cli_every_flag import commands

PATHS = [path for path, _ in commands()]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: " ".join(path) or "broker")
def test_each_value_of_an_option_has_a_name(broker: Broker, path: tuple[str, ...]) -> None:
    options = [line for line in broker(*path, "--help").out.splitlines() if re.match(r"\s+-", line)]
    assert len(options) > 4
    assert [line for line in options if re.search(r"<(?!\w+(\|\w+)+>)", line.partition("  [")[0])] == []


def test_some_are_called_by_what_they_are(broker: Broker) -> None:
    assert "--pool NAME" in broker("plan", "--help").out
    assert "--html FILE" in broker("backtest", "--help").out
    assert "--reclaim-of CLASS=SECONDS" in broker("backtest", "--help").out
