"""Tags that a configured cloud would refuse are refused before anything is bought, all of them at once."""

from pathlib import Path

import pytest

from broker.config import parse
from broker.errors import ConfigError

CLOUDS = {
    "aws": '[[aws.account]]\nname = "main"\nregions = ["us-east-1"]\n',
    "gcp": '[[gcp.project]]\nproject = "p"\nregions = ["us-central1"]\n',
    "azure": '[[azure.subscription]]\nsubscription = "s"\nregions = ["eastus"]\nresource_group = "g"\n',
}


def problems(tags: dict[str, str], *clouds: str) -> tuple[str, ...]:
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in tags.items())
    text = f"[purchase.tags]\n{lines}" + "".join(CLOUDS[cloud] for cloud in clouds)
    try:
        parse(text.replace("\\", "\\\\"), Path("broker.toml"), flags={}, env={})
    except ConfigError as error:
        return error.problems
    return ()


@pytest.mark.parametrize(
    ("cloud", "tags", "said"),
    [
        ("aws", {"broker:key": "x"}, '"broker:key" begins with broker:'),
        ("gcp", {"Broker:Team": "x"}, '"Broker:Team" begins with broker:'),
        ("aws", {"AWS:team": "x"}, "has a name that begins with aws:"),
        ("aws", {"team": "aws:x"}, "has a value that begins with aws:"),
        ("aws", {"n" * 128: "x"}, "a name of 128 characters; AWS takes 127"),
        ("aws", {"team": "v" * 257}, "a value of 257 characters; AWS takes 256"),
        ("azure", {"n" * 513: "x"}, "a name of 513 characters; Azure takes 512"),
        ("azure", {"team": "v" * 257}, "a value of 257 characters; Azure takes 256"),
        ("azure", {"a/b?": "x"}, '"a/b?" holds /?, which Azure allows'),
        ("azure", {"Windows-team": "x"}, "begins with a word that Azure keeps"),
        ("azure", {"team": "x", "Team": "y"}, '"team" is there 2 times'),
        ("gcp", {"key": "x"}, '"key" is what the broker calls its own mark'),
        ("gcp", {"team": "é" * 400}, "characters on Google Cloud"),
        ("aws", {f"t{n}": "x" for n in range(49)}, "are 49; AWS takes 50 on a resource, and 2 are the broker's own"),
        ("azure", {f"t{n}": "x" for n in range(48)}, "are 48; Azure takes 50"),
    ],
)
def test_what_a_cloud_would_refuse_is_one_mistake(cloud: str, tags: dict[str, str], said: str) -> None:
    found = problems(tags, cloud)
    assert len(found) == 1, found
    assert found[0].startswith("purchase.tags: ") and said in found[0]


@pytest.mark.parametrize(
    ("cloud", "tags"),
    [
        ("aws", {f"t{n}": "x" for n in range(48)}),
        ("azure", {f"t{n}": "x" for n in range(47)}),
        ("aws", {"n" * 127: "v" * 256, "a/b?<%": "x", "azure": "x", "key": "x", "Key": "y"}),
        ("azure", {"n" * 512: "v" * 256, "aws:team": "aws:x", "key": "x", "a:b": "x"}),
        ("gcp", {"aws:team": "a b=c", "windows": "x", "Key": "x"}),
    ],
)
def test_what_a_cloud_takes_passes(cloud: str, tags: dict[str, str]) -> None:
    assert problems(tags, cloud) == ()


def test_only_configured_clouds_count_and_all_mistakes_come_at_once() -> None:
    tags = {"aws:a": "x", "azure-b": "x", "broker:c": "x"}
    assert len(problems(tags)) == 1
    assert len(problems(tags, "aws", "gcp", "azure")) == 3
