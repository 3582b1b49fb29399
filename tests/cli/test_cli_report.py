"""What the report says of money when something about it is not known any more."""

import csv
import re
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest

from broker.clock import WallClock
from providers.prices import table
from tests.cli.conftest import Broker


def test_old_figures_stand_after_a_machine_type_left_the_catalogue(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid was written down when it was decided, with its source."""
    assert broker("plan", "-c", demo, "--out", "p.json").code == 0
    assert broker("apply", "p.json", "-c", demo, "--yes").code == 0
    before = broker("report", "-c", demo, "--format", "csv", "--by", "reservation").out
    monkeypatch.setattr(table, "_listed", dict)
    monkeypatch.setattr("providers.prices.shapes.shape_of", lambda *_: None)

    after = broker("report", "-c", demo, "--format", "csv", "--by", "reservation", "--strict")

    assert after.code == 0
    assert [row[0] for row in csv.reader(StringIO(after.out))] == [row[0] for row in csv.reader(StringIO(before))]
    assert broker("status", "-c", demo).code == 0
    assert "already applied" in broker("apply", "p.json", "-c", demo, "--yes").out


def test_a_missing_price_makes_the_figures_incomplete_and_a_strict_report_fail(broker: Broker, demo: Path) -> None:
    """What was adopted without a state file was bought at a price that nobody wrote down."""
    assert broker("run", "-c", demo).code == 0
    assert broker("report", "-c", demo, "--strict").code == 0
    for part in demo.parent.glob("state.db*"):
        part.unlink()
    assert broker("state", "adopt", "-c", demo).code == 0

    status = broker("status", "-c", demo)
    assert "2 reservations held, at least $0.00/h, 2 without a price" in status.out
    rate = broker("status", "-c", demo, "--json").document["rate"]
    assert (rate["usd_per_hour"], rate["unpriced"]) == (None, 2)
    plan = broker("plan", "-c", demo).out
    assert "at least $0.00 spent (2 without a price)" in plan
    observed = broker("plan", "-c", demo, "--json").document["observed"]
    assert (observed["month_spent_usd"], observed["month_unpriced"]) == (None, 2)
    report = broker("report", "-c", demo, "--json").document["report"]
    assert (report["total"]["committed"], report["total"]["spent"]["high"]) == (None, None)
    assert "at least $0.00" in broker("report", "-c", demo).out
    assert (report["complete"], float(report["total"]["unpriced_instance_hours"]) > 0) == (False, True)
    for how in ("table", "json", "csv", "md"):
        assert broker("report", "-c", demo, "--format", how).code == 0
        strict = broker("report", "-c", demo, "--format", how, "--strict")
        assert (strict.code, "not complete" in strict.err) == (3, True)


def test_the_parts_of_a_price_are_shown_wherever_it_decides(broker: Broker, demo: Path) -> None:
    """The user knows host and GPUs apart; the file stands first, and what was bought costs the sum."""
    file = demo.parent / "own.csv"
    lines = ["provider,region,machine_type,usd_per_hour,source,as_of,part,quantity"]
    today = f"{WallClock().now():%Y-%m-%d}"
    lines += [f"gcp,*,a3-highgpu-8g,{usd},bill,{today},{part}" for usd, part in (("2.5", "host,1"), ("1.25", "H100,8"))]
    file.write_text("\n".join(lines) + "\n")
    demo.write_text(demo.read_text().replace('mode = "act"', 'mode = "act"\nprices = "own.csv"'))
    shown = "host $2.50 + H100 $10.00"

    listed = [line for line in broker("offers", "-c", demo).out.splitlines() if line.startswith("a3-highgpu-8g")]
    plan = broker("plan", "-c", demo, "--pool", "h100", "--out", "p.json").out

    assert listed and all("$12.50" in line and shown in line for line in listed)
    assert "host $2.50/h + H100 $10.00/h" in plan
    assert "host $2.50/h + H100 $10.00/h" in broker("report", "--plan", "p.json", "-c", demo).out
    assert broker("apply", "p.json", "-c", demo, "--yes").code == 0
    held = broker("status", "-c", demo, "--json").document["status"]["held"]
    rates = {Decimal(each["usd_per_hour"]) / each["reservation"]["count"] for each in held}
    assert rates == {Decimal("12.5")}


def test_the_page_has_the_figures_of_every_table_and_needs_no_other_file(broker: Broker, demo: Path) -> None:
    assert broker("run", "-c", demo).code == 0
    table = broker("report", "-c", demo, "--html", "cost.html")
    assert table.code == 0
    page = Path("cost.html").read_text()
    figures = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    for group in ("tenant", "pool", "provider", "reservation"):
        assert f"<h2>By {group}</h2>" in page
        rows = list(csv.DictReader(StringIO(broker("report", "-c", demo, "--by", group, "--format", "csv").out)))
        assert rows and all(row[group] in figures for row in rows)
    committed = {each for line in table.out.splitlines() for each in re.findall(r"\$[\d,]+\.\d\d$", line.rstrip())}
    assert committed and committed <= set(figures)
    assert page.count("<svg") == 2 and "Held and used" in page
    assert "Nothing was held from" in page, "the plots do not show the week before the first purchase"
    assert not re.search(r"http|src=|href=|<script|\bnan\b|@import|url\(", page)


@pytest.mark.parametrize("name", ["broker.toml", "queue.csv"])
def test_the_page_replaces_no_other_file(broker: Broker, demo: Path, name: str) -> None:
    before = (demo.parent / name).read_text()
    ran = broker("report", "-c", demo, "--html", demo.parent / name)
    assert (ran.code, ran.out) == (1, "")
    assert "is no page. Give another --html" in ran.err
    assert (demo.parent / name).read_text() == before


def test_a_page_is_of_what_was_done_and_not_of_a_plan(broker: Broker, demo: Path) -> None:
    assert broker("plan", "-c", demo, "--out", "p.json").code == 0
    assert "do not go together" in broker("report", "-c", demo, "--plan", "p.json", "--html", "x.html").err
    assert not Path("x.html").exists()


def test_a_state_that_holds_nothing_has_a_page_too(broker: Broker, demo: Path) -> None:
    assert broker("report", "-c", demo, "--html", "cost.html").code == 0
    assert "By tenant" in Path("cost.html").read_text()


@pytest.mark.parametrize("since", ["0h", "5w"])
def test_a_window_may_be_empty_or_long_and_not_of_the_future(broker: Broker, demo: Path, since: str) -> None:
    assert broker("run", "-c", demo).code == 0
    assert broker("report", "-c", demo, "--since", since, "--html", "cost.html").code == 0
    assert not re.search(r"\b(nan|inf)\b", Path("cost.html").read_text())
    ran = broker("report", "-c", demo, "--since", "2999-01-01T00:00:00Z")
    assert (ran.code, ran.out) == (1, "")
    assert "has not come yet" in ran.err
