"""Plots and pages that need nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from broker.errors import UsageError
from broker.plots import Axis, plot, steps
from broker.webpage import may_be_saved, page, save, table


def test_points_lie_within_the_plot_the_low_ones_lower() -> None:
    drawn = plot("Spent", [("a<b", [0, 1, 2], [5, 10, 0])], Axis(), Axis())
    points = [tuple(map(float, each.split(","))) for each in re.findall(r"[\d.]+,[\d.]+", drawn)]
    assert points == [(60.0, 145.0), (345.0, 10.0), (630.0, 280.0)]
    assert "a&lt;b" in drawn and "a<b" not in drawn


@pytest.mark.parametrize("axis", [Axis(), Axis(log=True), Axis(from_zero=True)])
@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [1e-12, 1e12], [7.0, 7.0, 7.0]])
def test_no_values_make_a_plot_that_cannot_be_drawn(axis: Axis, values: list[float]) -> None:
    drawn = plot("x", [("line", list(range(len(values))), values)], Axis(), axis)
    assert "nan" not in drawn and "inf" not in drawn
    assert ("<circle" in drawn) == (len(values) == 1)


def test_an_axis_of_one_value_has_one_tick_and_one_from_zero_begins_there() -> None:
    assert plot("x", [("line", [0, 1], [7, 7])], Axis(), Axis()).count(">7<") == 1
    assert ">0<" in plot("x", [("line", [5, 6], [7, 8])], Axis(), Axis(from_zero=True))


def test_without_lines_there_is_no_plot() -> None:
    assert plot("x", [], Axis(), Axis()) == ""


def test_steps_hold_each_value_until_the_next_instant() -> None:
    assert steps([0, 2, 3], [5, 7, 9]) == ([0, 2, 2, 3], [5, 5, 7, 7])
    assert steps([], []) == ([], [])
    assert steps([1], [2]) == ([1], [2])


def test_cells_are_text_and_numbers_stand_to_the_right() -> None:
    made = table(["tenant", "spent"], [["<b>", "$1.00"]], right=frozenset({1}))
    assert "&lt;b&gt;" in made and "<td class='n'>$1.00</td>" in made


def test_a_page_replaces_a_page_and_no_other_file(tmp_path: Path) -> None:
    target, config = tmp_path / "p.html", tmp_path / "broker.toml"
    for title in ("one", "two"):
        may_be_saved(target)
        save(target, page(title, ["<p>x</p>"]))
    assert "<title>two</title>" in target.read_text()
    config.write_text("mode = 'act'")
    for ask in (may_be_saved, lambda path: save(path, page("x", []))):
        with pytest.raises(UsageError, match="is no page"):
            ask(config)
    assert config.read_text() == "mode = 'act'"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broker.toml", "p.html"]


@pytest.mark.parametrize("where", ["nowhere/p.html", "."])
def test_what_cannot_be_written_is_said_before_and_after(tmp_path: Path, where: str) -> None:
    for ask in (may_be_saved, lambda path: save(path, page("x", []))):
        if ask is may_be_saved and where == ".":
            continue
        with pytest.raises(UsageError, match="cannot write"):
            ask(tmp_path / where)
    assert list(tmp_path.iterdir()) == []
