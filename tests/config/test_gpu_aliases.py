from pathlib import Path

import pytest

from broker.config import load
from broker.errors import ConfigError

BASE = 'mode = "observe"\n[gpu_aliases]\nBig = "H100"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "broker.toml"
    path.write_text(text)
    return path


def test_every_queue_knows_them_in_canonical_names(tmp_path: Path) -> None:
    config = load(written(tmp_path, BASE + '[[queue]]\nname = "q"\nfile = "q.csv"\n'))
    assert config.queues[0].gpu_aliases == (("big", "h100"),)


def test_what_they_mean_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load(written(tmp_path, BASE.replace("H100", "H10O") + '[[queue]]\nname = "q"\nfile = "q.csv"\n'))
    assert any("gpu_aliases.Big" in problem for problem in error.value.problems)
