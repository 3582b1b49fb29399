"""`[[entitlements]]`: read at each schedule, never taken for nothing when they cannot be."""

import sys
from pathlib import Path
from typing import Any

import pytest

from broker.errors import Exit
from tests.cli.conftest import Broker
from tests.cli.test_cli_schedule import HEADER, ROWS

CONFIG = """
[[queue]]
name = "files"
file = "queue.csv"
cluster = "c"
[[pool]]
name = "h100"
gpu = "h100"
default = true
[[pool.own]]
nodes = 3
gpus_per_node = 8
[[pool]]
name = "l4"
gpu = "l4"
[[entitlements]]
pool = "h100"
"""
ASSOC = "Cluster|Account|User|GrpTRES|\na|vision||gres/gpu=8|\na|nlp||gres/gpu:h100=16|\na|nlp|ben|gres/gpu=2|\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "queue.csv").write_text(HEADER + ROWS)
    (tmp_path / "assoc.txt").write_text(ASSOC)
    return tmp_path


def scheduled(broker: Broker, place: Path, config: str, *flags: object) -> tuple[int, dict[str, dict[str, Any]]]:
    path = place / "broker.toml"
    path.write_text(CONFIG + config)
    ran = broker("schedule", "--json", *flags, "--config", path)
    return ran.code, {pool["pool"]: pool for pool in ran.document["schedule"]["pools"]}


def shares(pool: dict[str, Any]) -> dict[str, int]:
    return {tenant["tenant"]: tenant["entitlement_gpus"] for tenant in pool["tenants"]}


def test_what_a_file_or_a_command_says_is_promised(broker: Broker, place: Path) -> None:
    code, pools = scheduled(broker, place, 'path = "assoc.txt"\n')
    assert (code, shares(pools["h100"])) == (0, {"vision": 8, "nlp": 16})
    shown = [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read(), end='')", str(place / "assoc.txt")]
    code, pools = scheduled(broker, place, f"command = {shown}\nformat = 'sacctmgr'\n")
    assert (code, shares(pools["h100"])) == (0, {"vision": 8, "nlp": 16})


def test_what_a_tenant_states_wins_and_its_other_terms_hold(broker: Broker, place: Path) -> None:
    stated = (
        '[[tenant]]\nname = "nlp"\nentitlements = { h100 = 4 }\n[[tenant]]\nname = "vision"\nmax_lent = { h100 = 2 }\n'
    )
    _, pools = scheduled(broker, place, f'path = "assoc.txt"\n{stated}')
    assert shares(pools["h100"]) == {"nlp": 4, "vision": 8}
    _, pools = scheduled(broker, place, f'path = "assoc.txt"\n{stated.replace("h100 = 4", "h100 = 0")}')
    assert shares(pools["h100"])["vision"] == 8
    assert not shares(pools["h100"]).get("nlp")


def test_several_sources_of_one_pool_add_up(broker: Broker, place: Path) -> None:
    _, pools = scheduled(broker, place, 'path = "assoc.txt"\n[[entitlements]]\npool = "h100"\npath = "assoc.txt"\n')
    assert shares(pools["h100"]) == {"vision": 16, "nlp": 32}


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('path = "none.txt"\n', "entitlements in none.txt are not known: "),
        ('path = "queue.csv"\n', "entitlements in queue.csv are not known: is neither"),
        ('command = ["false"]\n', "entitlements in false are not known: false failed (exit 1)"),
        ('path = "assoc.txt"\nformat = "clusterqueue"\n', "entitlements in assoc.txt are not known: "),
    ],
)
def test_what_cannot_be_read_leaves_its_pool_undecided_and_no_other(
    broker: Broker, place: Path, config: str, says: str
) -> None:
    code, pools = scheduled(broker, place, config + '[[tenant]]\nname = "vision"\nentitlements = { h100 = 8 }\n')
    assert code == Exit.PARTLY_DONE
    assert pools["h100"]["undecided"].startswith(says)
    assert "\n" not in pools["h100"]["undecided"]
    assert pools["h100"]["grants"] == []
    assert pools["l4"]["undecided"] == ""
    code, pools = scheduled(broker, place, config, place / "queue.csv")
    assert pools["h100"]["undecided"].startswith(says)


def test_a_source_that_promises_nothing_is_said(broker: Broker, place: Path) -> None:
    (place / "assoc.txt").write_text(ASSOC.splitlines(keepends=True)[0])
    _, pools = scheduled(broker, place, 'path = "assoc.txt"\n')
    assert "entitlements in assoc.txt promise nobody anything here" in pools["h100"]["notes"]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("", "entitlements[0]: has neither path nor command"),
        ('path = "a"\ncommand = ["b"]\n', "entitlements[0]: has both path and command"),
        ('path = "a"\nformat = "sacct"\n', "entitlements[0].format: "),
        ('path = "a"\n[[entitlements]]\npool = "h10"\npath = "a"\n', 'entitlements[1].pool: there is no pool "h10"'),
    ],
)
def test_mistakes_are_named(broker: Broker, place: Path, config: str, says: str) -> None:
    path = place / "broker.toml"
    path.write_text(CONFIG + config)
    ran = broker("schedule", "--config", path)
    assert ran.code == 1
    assert says in ran.err


def test_check_reads_them(broker: Broker, place: Path) -> None:
    path = place / "broker.toml"
    path.write_text(CONFIG + 'path = "assoc.txt"\n')
    assert "24 GPUs of 2 tenants in assoc.txt" in broker("check", "-v", "--config", path).out
    (place / "assoc.txt").unlink()
    ran = broker("check", "--config", path)
    assert ran.code != 0
    assert "entitlements in assoc.txt are not known" in ran.out
