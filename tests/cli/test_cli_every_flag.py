"""Each flag that the command line documents is given in some test: one that does nothing is not noticed otherwise."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from broker.cli.app import app

TESTS = Path(__file__).parents[1]
OF_EVERY_COMMAND = {"config", "state", "json", "quiet", "verbose", "no_color"}


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Those that can be called, and the app itself, whose flags every command has."""
    command = command or get_command(app)
    below = getattr(command, "commands", {})
    if not path or not below:
        yield path, command
    for name, sub in below.items():
        yield from commands(sub, (*path, name))


OPTIONS = {
    (path, tuple(parameter.opts))
    for path, command in commands()
    for parameter in command.params
    if parameter.param_type_name == "option" and (not path or parameter.name not in OF_EVERY_COMMAND)
    if parameter.name not in {"help", "install_completion", "show_completion"}
}


def words_of(path: Path) -> set[str]:
    """Every word of every text in a test file, `--flag=value` as its flag; what a docstring says does not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said)
    words = {word for text in texts if isinstance(text, str) for word in text.split()}
    return words | {word.partition("=")[0] for word in words}


@pytest.fixture(scope="module")
def files() -> list[set[str]]:
    return [words_of(path) for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)]


@pytest.mark.parametrize(("path", "names"), sorted(OPTIONS), ids=lambda part: " ".join(part) or "broker")
def test_the_flag_is_given_in_a_test_of_its_command(
    files: list[set[str]], path: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert any(set(path) <= words and words.intersection(names) for words in files)
