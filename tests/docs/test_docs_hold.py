"""Documents and help are held to the code: commands, flags, exit codes and links that they name are there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from broker.cli.app import app
from broker.errors import Exit

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "docs/crontab.example",
]
ROOT_COMMAND: Any = get_command(app)
INVOCATION = re.compile(r"(?:^|[`\s|&;])broker ((?:[a-z-]+|\[?-)[^`|&;>#\n]*)", re.MULTILINE)


def commands(command: Any = ROOT_COMMAND, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, sub in getattr(command, "commands", {}).items():
        yield (*path, name), sub
        yield from commands(sub, (*path, name))


COMMANDS = dict(commands())


def flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts} | {"--help", "-h"}


def resolved(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and what is left of them."""
    path: tuple[str, ...] = ()
    while words and (*path, words[0]) in COMMANDS:
        path, words = (*path, words[0]), words[1:]
    return COMMANDS.get(path, ROOT_COMMAND), words


def wrong_in(text: str) -> Iterator[str]:
    """Commands and flags that `text` names and the code does not have."""
    for said in INVOCATION.findall(text):
        words = shlex.split(said.replace("[", " ").replace("]", " ").replace("...", ""), comments=True)
        command, rest = resolved(words)
        if command is ROOT_COMMAND and rest and rest[0].isalpha():
            yield f"broker {said}"
        yield from (f"{flag} in: broker {said}" for flag in rest if flag.startswith("-") and flag not in flags(command))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_only_commands_and_flags_that_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert list(wrong_in("\n".join(_code(text)))) == []


def _code(text: str) -> list[str]:
    """Blocks and inline code only: prose may say "broker" of the thing itself."""
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    inline = re.findall(r"`(broker [^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [*blocks, *inline]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_flags_that_are_named_alone_are_flags_of_some_command(document: Path) -> None:
    """`--mode` in a table promises as much as it does behind the command's name."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = {flag for flag in re.findall(r"`(--[a-z][a-z-]*)", text) if flag not in OF_OTHER_PROGRAMS}
    known = set().union(*(flags(command) for command in (ROOT_COMMAND, *COMMANDS.values())))
    assert named - known == set()


OF_OTHER_PROGRAMS = {"--output-watch-events", "--requeue"}
"""Of kubectl and of sbatch."""


def test_the_check_itself_finds_what_is_wrong() -> None:
    assert list(wrong_in("broker plan --ouput p.json")) == ["--ouput in: broker plan --ouput p.json"]
    assert list(wrong_in("broker buy now")) == ["broker buy now"]


def test_the_crontab_names_what_exists() -> None:
    text = (ROOT / "docs/crontab.example").read_text(encoding="utf-8")
    assert list(wrong_in("\n".join(line for line in text.splitlines() if not line.startswith("#")))) == []


@pytest.mark.parametrize("path", sorted(COMMANDS), ids=" ".join)
def test_every_command_has_help_and_two_examples_that_hold(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
    assert len(examples) == 2
    for example in examples:
        assert f"broker {' '.join(path)}" in example
        assert list(wrong_in(example)) == []


def test_every_option_is_explained() -> None:
    silent = [
        (" ".join(path), parameter.name)
        for path, command in COMMANDS.items()
        for parameter in command.params
        if not getattr(parameter, "help", "") and parameter.name != "help"
    ]
    assert silent == []


def test_the_readme_lists_every_command_and_exit_code() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in COMMANDS:
        if len(path) == 1:
            assert f"| `broker {path[0]}" in text, path
        else:
            assert re.search(rf"`broker {path[0]} [a-z/]*\b{path[1]}\b", text), path
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [int(code) for code in Exit]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []
