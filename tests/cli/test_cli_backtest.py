"""`broker backtest`: each flag becomes what it says, and what cannot be is one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.backtest import command
from broker.backtest.command import Options
from broker.errors import InputError
from tests.cli.conftest import Broker

HEADER = "job_id,tenant,user,submit_s,duration_s,gpus,wait_s\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Options]]:
    """What the command would have replayed."""
    found: list[Options] = []

    def replay(options: Options) -> Any:
        found.append(options)
        raise InputError("not replayed", next_step="nothing")

    monkeypatch.setattr(command, "backtest", replay)
    yield found


@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        ("--format swf", "format", "swf"),
        ("--synthetic 7", "synthetic_seed", 7),
        ("--tz Europe/Zurich", "timezone", "Europe/Zurich"),
        ("--elastic-power 0.5", "speed_power", 0.5),
        ("--tolerance 0.2", "tolerance", 0.2),
        ("--preemptions 1", "most_preemptions", 1),
        ("--entitlement nlp=64 --entitlement vision=8", "entitlements", {"nlp": 64, "vision": 8}),
        ("--entitlement-quantile 0.8", "entitlement_quantile", 0.8),
        ("--reclaim 30", "reclaim_s", 30.0),
        ("--restore 60", "restore_s", 60.0),
        ("--lead 900", "lead_s", 900.0),
        ("--failure 0.25", "failure", 0.25),
        ("--elastic 4", "elastic", 4),
        ("--unstoppable 0.2", "unstoppable", 0.2),
        ("--reclaim-of nlp=30 --reclaim-of nlp/ada=90", "reclaim_of", {"nlp": 30.0, "nlp/ada": 90.0}),
        ("--gpus-per-node 8", "node_gpus", 8),
        ("--firm-misses 0.05", "firm_share", 0.05),
        ("--fixed", "fixed_capacity", True),
        ("--ablations", "ablations", True),
        ("--frontier", "frontier", True),
        ("--seeds 3", "seeds", 3),
        ("--jobs 2", "jobs", 2),
        ("--forecast learned", "knobs.quantile", 0.85),
        ("--claims-quantile 0.9", "knobs.claims_quantile", 0.9),
        ("--durations learned", "knobs.durations", "learned"),
        ("--quantile 0.7", "knobs.quantile", 0.7),
        ("--horizon 5", "knobs.hours", 5),
        ("--days 3.5", "knobs.days", 3.5),
        ("--share 0.6", "knobs.share", 0.6),
        ("--term 86400", "knobs.term_s", 86400.0),
        ("--misses 0.01", "knobs.alpha", 0.01),
        ("--fixed", "knobs.alpha", 0.001),
        ("--fixed --misses 0.01", "knobs.alpha", 0.01),
        ("--hold-back 0.1", "knobs.hold_share", 0.1),
        ("--every 6", "every_h", 6),
        ("--insurance 0.25 5 0", "knobs.quantile", 0.5),
    ],
)
def test_each_flag_becomes_what_it_says(
    broker: Broker, asked: list[Options], flag: str, field: str, value: object
) -> None:
    assert broker("backtest", *flag.split()).code == 1
    broker("backtest")
    found, default = (_at(options, field) for options in asked)
    assert found == value
    assert found != default


def _at(options: Options, field: str) -> object:
    outer, _, inner = field.partition(".")
    value: object = getattr(options, outer)
    return getattr(value, inner) if inner else value


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--insurance 0.25 5 0 --quantile 0.9", "sets the quantile"),
        ("--hold-back 0.1 --misses 0.01", "Give one of --hold-back and --misses"),
        ("--insurance 2 5 0", "from 0 to 1"),
        ("--forecast magic", "rolling or learned"),
        ("--durations magic", "none or learned"),
        ("--entitlement nlp", "nlp=64"),
        ("--entitlement nlp=4 --entitlement nlp=5", "both 4 and 5"),
        ("--reclaim-of nlp=4 --reclaim-of nlp=5", "both 4 and 5"),
        ("--lead inf", "--lead"),
        ("--reclaim inf", "--reclaim"),
        ("--restore inf", "--restore"),
        ("--term inf", "--term"),
        ("--days inf", "--days"),
        ("--share inf", "--share"),
        ("--tolerance inf", "--tolerance"),
        ("--insurance 0.1 inf 0", "insurance"),
        ("trace.csv --synthetic 1", "Give one of --synthetic and TRACE"),
        ("--reclaim-of nlp", "nlp/ada=300"),
        ("--reclaim-of nlp=-1", "nlp/ada=300"),
        ("--synthetic 1 --reclaim-of nobody=5", "no job is of it"),
        ("--gpus-per-node 6 --synthetic 1", "cannot be cut into cells"),
        ("--gpus-per-node 8 --firm-misses 0.05 --synthetic 1", "Leave out --firm-misses"),
    ],
)
def test_what_cannot_be_is_one_line(broker: Broker, flags: str, says: str) -> None:
    ran = broker("backtest", *flags.split())
    assert ran.code == 1
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_analysis_follows_the_table_and_a_page_that_cannot_be_written_is_one_line(
    broker: Broker, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + "".join(f"{i},t{i % 2},u,{i * 400},3000,2,0\n" for i in range(60)))
    ran = broker("backtest", trace, "--analyse", "--html", tmp_path / "page.html")
    assert ran.code == 0
    assert ran.out.index("naive_fifo") < ran.out.index("could be lent")
    found = json.loads(broker("backtest", trace, "--analyse", "--json").out)["analysis"]
    assert {tenant["tenant"] for tenant in found["tenants"]} == {"t0", "t1"}
    assert len(found["hours"]["used"]) == 7
    assert (tmp_path / "page.html").read_text().count("<svg") == 4
    refused = broker("backtest", trace, "--html", tmp_path / "nowhere" / "page.html")
    assert refused.code == 1
    assert "--html" in refused.err and refused.err.count("\n") == 1
