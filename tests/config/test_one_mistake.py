"""One mistake is one line: what a stand-in for an unreadable value would contradict is not said as well."""

from pathlib import Path

import pytest

from broker.config import parse
from broker.errors import ConfigError
from tests.config.test_load import FULL


def problems(before: str, after: str) -> tuple[str, ...]:
    assert before in FULL
    with pytest.raises(ConfigError) as caught:
        parse(FULL.replace(before, after, 1), Path("broker.toml"), flags={}, env={})
    return caught.value.problems


COMMAND = 'command = ["squeue", "--json"]'


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (COMMAND, 'command = "squeue --json"', "queue[0].command: expected a list"),
        (COMMAND, "command = 3", "queue[0].command: expected a text or a list of texts, got 3"),
        (COMMAND, 'url = "slurm:6820"', "queue[0].url: expected an address"),
        (COMMAND, 'live = "kubernets"', 'did you mean "kubernetes"?'),
        (COMMAND, 'file = ""', "queue[0].file: is empty (path or paths of queue files"),
        (COMMAND, 'file = ["a.csv", " "]', "queue[0].file: holds an empty text (path or paths"),
        ('name = "h100"', 'name = " "', "pool[0].name: is empty (unique)"),
        ('tags = { team = "ml" }', 'tags = { team = "" }', '"team" is empty'),
        (COMMAND, 'comand = ["squeue"]', 'queue[0].comand: unknown key; did you mean "command"?'),
        ('name = "h100"', "name = 100", "pool[0].name: expected text"),
        ('name = "main"', "name = 1", "aws.account[0].name: expected text"),
        ("[purchase]", '[purchase]\nmax_price_age = "10"\nwarn_price_age = "400d"', "purchase.max_price_age"),
        ("[purchase]", '[purchase]\nminimum_hold = "2 weeks"\nend_ahead = "1s"', "purchase.minimum_hold"),
        ("[[aws.account]]", "[[aws.acount]]", 'aws.acount: unknown key; did you mean "account"?'),
    ],
)
def test_one_mistake_is_one_line(before: str, after: str, said: str) -> None:
    found = problems(before, after)
    assert len(found) == 1, found
    assert said in found[0]


def test_another_mistake_in_the_same_table_is_still_said() -> None:
    found = problems(COMMAND, 'timeout = "soon"')
    assert [each.split(":")[0] for each in found] == ["queue[0].timeout", "queue[0]"]


def test_what_is_no_toml_is_said_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("mode = \n", Path("broker.toml"), flags={}, env={})
    assert not caught.value.problems
    assert str(caught.value).count("at line 1") == 1
