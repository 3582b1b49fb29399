"""A configuration that is not where it is looked for."""

from pathlib import Path

import pytest

from broker.config import load
from broker.errors import ConfigError


def test_a_mistyped_name_is_answered_with_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "site.toml").touch()
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "sit.toml", flags={}, env={})
    assert "site.toml" in caught.value.next_step


def test_a_first_use_is_answered_with_init(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "broker.toml", flags={}, env={})
    assert caught.value.next_step == "Make one: broker init"
