import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.errors import PlanError
from broker.model.plan import Plan
from state.plans import load, save
from tests.apply.cloud import buy, give_back, plan, resize
from tests.state.worlds import held

PLAN = plan(buy("k1", count=3), give_back("k2", held()), resize("k3", held("res-2"), 5))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(PLAN, tmp_path / "plan.json")
    return tmp_path / "plan.json"


def test_a_saved_plan_comes_back_as_it_was(path: Path) -> None:
    assert load(path) == PLAN


def test_another_layout_is_the_same_plan(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4, sort_keys=True))
    assert load(path) == PLAN


def edited(path: Path, where: list[str | int], value: object) -> None:
    document = json.loads(path.read_text())
    place = document
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = value
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["plan", "actions", 0, "request", "count"], 300),
        (["plan", "expires"], "2036-01-01T00:00:00Z"),
        (["plan", "brand_new"], 1),
        (["digest"], "0" * 64),
        (["plan", "actions"], []),
    ],
)
def test_an_edited_plan_is_refused(path: Path, where: list[str | int], value: object) -> None:
    edited(path, where, value)
    with pytest.raises(PlanError, match="edited"):
        load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(at=st.floats(0, 0.999))
def test_a_plan_that_breaks_off_anywhere_is_refused(path: Path, at: float) -> None:
    whole = path.read_bytes()
    cut = path.with_name("cut.json")
    cut.write_bytes(whole[: int(len(whole.rstrip()) * at)])
    with pytest.raises(PlanError, match=r"cut off|not a"):
        load(cut)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[]", "not a saved plan"),
        (b"{}", "not a saved plan"),
        (b"\xff\xfe\x00", "cut off or is not a plan"),
        (b'{"format_version": 99, "digest": "", "plan": {}}', "format 99"),
    ],
)
def test_what_is_no_plan_is_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "p.json").write_bytes(content)
    with pytest.raises(PlanError, match=words) as error:
        load(tmp_path / "p.json")
    assert "\n" not in str(error.value) and "broker plan" in str(error.value)


def test_a_missing_plan_and_a_place_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no plan"):
        load(tmp_path / "none.json")
    with pytest.raises(PlanError, match="cannot write"):
        save(PLAN, tmp_path / "no" / "plan.json")
    assert isinstance(PLAN, Plan) and list(tmp_path.iterdir()) == []


def test_a_mistyped_name_costs_no_file(path: Path, tmp_path: Path) -> None:
    """A plan is replaced, also one that breaks off; nothing else is."""
    path.write_bytes(path.read_bytes()[:300])
    save(PLAN, path)
    assert load(path) == PLAN
    queue = tmp_path / "queue.csv"
    queue.write_text("id,gpus\n1,8\n")
    with pytest.raises(PlanError, match=r"queue\.csv is there already and is no saved plan"):
        save(PLAN, queue)
    assert queue.read_text() == "id,gpus\n1,8\n"
    with pytest.raises(PlanError, match="it is a folder"):
        save(PLAN, Path())
