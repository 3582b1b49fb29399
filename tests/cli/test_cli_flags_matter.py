"""Flags of which nothing else in the tests tells whether they are there."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
from botocore.exceptions import ClientError

from broker.commands import local_clouds, planning
from broker.model.plan import Action, Plan, Reserve, Reversibility
from broker.purchase.decide import decide
from providers.sandbox.local import Sandbox
from state import plans
from tests.cli.conftest import Broker, purchases

OTHER = "fedcba987654"


def test_colour_is_left_out_on_request(broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b[" in broker("plan", "-c", demo).out
    for flags in (("plan", "--no-color"), ("--no-color", "plan")):
        assert "\x1b[" not in broker(*flags, "-c", demo).out


def irreversible(plan: Plan) -> Plan:
    """The same purchases, as a cloud would sell them that takes nothing back."""

    def marked(action: Action) -> Action:
        if not isinstance(action, Reserve):
            return action
        return msgspec.structs.replace(action, reversibility=Reversibility.IRREVERSIBLE)

    return msgspec.structs.replace(plan, actions=tuple(marked(action) for action in plan.actions))


def test_apply_buys_what_cannot_be_undone_only_where_that_is_allowed(broker: Broker, demo: Path) -> None:
    assert broker("plan", "-c", demo, "--out", "p.json").code == 0
    plans.save(irreversible(plans.load(Path("p.json"))), Path("p.json"))

    refused = broker("apply", "p.json", "--yes", "-c", demo)

    assert (refused.code, purchases(demo)) == (5, 0)
    assert re.search(r"cannot be undone and costs \$[\d.,]+ in all", refused.out)
    assert broker("apply", "p.json", "--yes", "--force", "allow_irreversible", "-c", demo).code == 1, (
        "no guard to force"
    )
    assert purchases(demo) == 0
    assert broker("apply", "p.json", "--yes", "--allow-irreversible", "-c", demo).code == 0
    assert purchases(demo) > 0


def test_run_buys_what_cannot_be_undone_only_where_that_is_allowed(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "decide", lambda snapshot, policy: irreversible(decide(snapshot, policy)))
    assert broker("run", "-c", demo).code == 5
    assert broker("run", "--dry-run", "-c", demo).code == 5
    assert broker("run", "--dry-run", "--allow-irreversible", "-c", demo).code == 0
    assert purchases(demo) == 0
    assert broker("run", "--allow-irreversible", "-c", demo).code == 0
    assert purchases(demo) > 0


def naive(folder: Path) -> Path:
    """Finished jobs whose times carry no zone."""
    file = folder / "naive.csv"
    rows = ["id,user,submit,start,end,state,gpus"]
    rows += [
        f"{day},ana,2026-07-{day:02}T12:00,2026-07-{day:02}T12:10,2026-07-{day:02}T15:10,done,8" for day in range(1, 29)
    ]
    file.write_text("\n".join(rows) + "\n")
    return file


def imported(broker: Broker, demo: Path, *flags: object) -> list[dict[str, str]]:
    for part in demo.parent.glob("state.history.db*"):
        part.unlink()
    ran = broker("history", "import", naive(demo.parent), *flags, "-c", demo)
    assert ran.code == 0, ran
    assert broker("history", "export", "out.csv", "-c", demo).code == 0
    with Path("out.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_times_without_a_zone_are_those_of_the_zone_that_is_given(broker: Broker, demo: Path) -> None:
    """Zurich in July is two hours ahead of UTC."""
    file = naive(demo.parent)
    assert imported(broker, demo, "--tz", "Europe/Zurich")[0]["submit"].startswith("2026-07-01T10:00")
    assert imported(broker, demo, "--tz", "UTC")[0]["submit"].startswith("2026-07-01T12:00")
    file.write_text(
        file.read_text()
        .replace("2026-07-01T15:10,done", ",running")
        .replace("2026-07-01T12:10,,", "2026-07-01T12:10,,")
    )
    explained = [broker("jobs", file, "--tz", zone, "--explain", "1", "-c", demo).out for zone in ("UTC", "Asia/Tokyo")]
    assert "2026-07-01 12:00" in explained[0].replace("T", " ") and "2026-07-01 03:00" in explained[1].replace("T", " ")
    assert broker("forecast", "--history", naive(demo.parent), "--tz", "Mars/Olympus", "-c", demo).code == 1
    assert broker("forecast", "--history", naive(demo.parent), "--tz", "UTC", "-c", demo).code == 0


def test_a_format_that_is_named_is_not_guessed(broker: Broker, demo: Path) -> None:
    file = naive(demo.parent)
    assert broker("forecast", "--history", file, "--tz", "UTC", "--format", "csv", "-c", demo).code == 0
    wrong = broker("forecast", "--history", file, "--tz", "UTC", "--format", "jsonl", "-c", demo)
    assert (wrong.code, str(file.name) in wrong.err) == (1, True)
    assert broker("history", "import", file, "--tz", "UTC", "--format", "jsonl", "-c", demo).code != 0
    assert broker("jobs", file, "--tz", "UTC", "--format", "jsonl", "-c", demo).code == 1


def test_jobs_that_name_no_cluster_or_tenant_get_those_that_are_given(broker: Broker, demo: Path) -> None:
    (plain, *_) = imported(broker, demo, "--tz", "UTC")
    (named, *_) = imported(broker, demo, "--tz", "UTC", "--cluster", "alps", "--tenant", "vision")
    assert (plain["cluster"], plain["tenant"]) != ("alps", "vision")
    assert (named["cluster"], named["tenant"]) == ("alps", "vision")


def test_names_are_hidden_on_request(broker: Broker, demo: Path) -> None:
    assert imported(broker, demo, "--tz", "UTC")[0]["user"] == "ana"
    hidden = {row["user"] for row in imported(broker, demo, "--tz", "UTC", "--hash-names")}
    assert len(hidden) == 1 and "ana" not in hidden


Served = Callable[..., Any]


@pytest.fixture
def served(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Served:
    """`served("--seed", 1)`: what buying one machine comes to while `broker sandbox` serves: its id, or the error."""

    def run_it(*flags: object) -> Any:
        came_to: list[str] = []
        monkeypatch.setattr(local_clouds.Clouds, "wait", lambda clouds: came_to.append(buy_one(clouds.endpoint)))
        still = () if "--speed" in flags else ("--speed", 0)
        ran = broker("sandbox", *still, *flags)
        assert ran.code == 0, ran
        return came_to[0]

    return run_it


def buy_one(endpoint: str) -> str:
    ec2 = boto3.client(
        "ec2",
        region_name="us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
    )
    try:
        made = ec2.create_capacity_reservation(
            InstanceType="p5.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=1
        )
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return str(made["CapacityReservation"]["CapacityReservationId"])


def test_the_same_seed_gives_the_same_clouds(served: Served) -> None:
    first, again, other = (served("--busy", 0, "--seed", seed) for seed in (1, 1, 2))
    assert first.startswith("cr-")
    assert first == again != other


def test_other_tenants_leave_all_or_nothing(served: Served) -> None:
    assert served("--busy", 0).startswith("cr-")
    assert served("--busy", 1) == "InsufficientInstanceCapacity"


def test_the_clouds_are_kept_where_that_is_asked_for(served: Served, tmp_path: Path) -> None:
    kept = served("--busy", 0, "--world", tmp_path / "w.json")
    assert [holding.id for holding in Sandbox(path=tmp_path / "w.json").market.holdings()] == [kept]
    served("--busy", 0)
    second = served("--world", tmp_path / "w.json")
    assert [holding.id for holding in Sandbox(path=tmp_path / "w.json").market.holdings()] == [kept, second]


def test_what_a_world_was_made_with_is_not_asked_for_again_in_vain(
    broker: Broker, served: Served, tmp_path: Path
) -> None:
    world = tmp_path / "w.json"
    served("--busy", 0, "--seed", 5, "--world", world)
    for flag, value in (("--seed", 5), ("--busy", 1)):
        ran = broker("sandbox", flag, value, "--world", world)
        assert (ran.code, flag in ran.err) == (1, True)
    served("--speed", 60, "--world", world)
    assert Sandbox(path=world).clock.state.speed == 60


def test_column_says_what_a_file_calls_a_field(broker: Broker, demo: Path) -> None:
    file = demo.parent / "sheet.csv"
    file.write_text("Auftrag;Zahl;Wann\n7;8;04.03.2026 08:00\n")
    columns = ("--column", "id=Auftrag", "--column", "gpus=Zahl", "--column", "submit=Wann")
    ran = broker("jobs", file, "--tz", "UTC", *columns, "-c", demo)
    assert (ran.code, "1 kept" in ran.out) == (0, True)
    unnamed = broker("jobs", file, "--tz", "UTC", "-c", demo)
    assert unnamed.code == 1 and '--column gpus="GPU count"' in unnamed.out
    assert '--column gpus="GPU count"' in broker("jobs", file, "--column", "gpus", "-c", demo).err


@pytest.mark.parametrize(
    "command", [("status", "cr-1", "--unused"), ("jobs", "--quarantine", "--explain", "1"),
                ("jobs", "--confirm", "queue", "--quarantine"), ("report", "--plan", "p.json", "--since", "7d")]
)  # fmt: skip
def test_flags_of_which_one_would_do_nothing_are_an_error(broker: Broker, demo: Path, command: tuple[str, ...]) -> None:
    ran = broker(*command, "-c", demo)
    assert (ran.code, ran.out) == (1, "")
    assert any(word in ran.err for word in command if word.startswith("--"))


def test_the_lineage_that_is_named_is_adopted_where_there_are_two(broker: Broker, demo: Path) -> None:
    assert broker("run", "-c", demo).code == 0
    lineage = broker("status", "-c", demo, "--json").document["status"]["lineage"]
    ours = {each["reservation"]["id"] for each in broker("status", "-c", demo, "--json").document["status"]["held"]}
    theirs = a_purchase_of_another(demo)
    state_is_lost(demo)

    unsaid = broker("state", "adopt", "-c", demo)
    assert unsaid.code == 1
    assert lineage in unsaid.err and OTHER in unsaid.err
    slip = broker("state", "adopt", "--lineage", lineage[::-1], "-c", demo)
    assert (slip.code, f"! nothing bears the lineage {lineage[::-1]}; there is: " in slip.out) == (3, True)
    assert lineage in slip.out and OTHER in slip.out
    state_is_lost(demo)
    assert broker("state", "adopt", "--lineage", OTHER, "-c", demo).code == 0
    assert adopted(broker, demo) == (OTHER, {theirs})
    state_is_lost(demo)
    assert broker("state", "adopt", "--lineage", lineage, "-c", demo).code == 0
    assert adopted(broker, demo) == (lineage, ours)


def test_a_lineage_of_which_nothing_shows_yet_is_taken_up_where_nothing_else_shows(broker: Broker, demo: Path) -> None:
    """What was bought a moment before the loss may become visible later: then it must have an owner."""
    state_is_lost(demo)
    assert broker("state", "adopt", "-c", demo).code == 1
    assert broker("state", "adopt", "--lineage", OTHER, "-c", demo).code == 0
    assert adopted(broker, demo) == (OTHER, set())


def adopted(broker: Broker, demo: Path) -> tuple[str, set[str]]:
    status = broker("status", "-c", demo, "--json").document["status"]
    return status["lineage"], {each["reservation"]["id"] for each in status["held"]}


def state_is_lost(demo: Path) -> None:
    for part in demo.parent.glob("state.db*"):
        part.unlink()


def a_purchase_of_another(demo: Path) -> str:
    world = demo.parent / "world.json"
    sandbox = Sandbox(path=world)
    held = next(each for each in sandbox.market.holdings() if each.provider == "aws")
    tags = {"broker:lineage": OTHER, "broker:key": "k1"}
    id = sandbox.market.new_id("cr-", 17)
    sandbox.market.reserve(held.pool, held.account, 1, id=id, tags=tags, details=held.details)
    sandbox.save(world)
    return id
