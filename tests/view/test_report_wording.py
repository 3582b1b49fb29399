"""The report says nothing that is not so: of one figure, of a short time, of use that nobody saw yet."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest

from broker.report import Bounds, Line, Report, Share
from broker.view.report import report_text
from broker.view.text import duration
from tests.view import values


def shown(hours: Decimal = Decimal(10), **line: object) -> str:
    made = values.cost()
    whole = msgspec.structs.replace(made.total, unpriced_instance_hours=Decimal(0), spent=one(9), used=one(9))
    changed = msgspec.structs.replace(whole, name="nlp", **line)
    static = msgspec.structs.replace(made.static, hours=hours)
    return text(msgspec.structs.replace(made, lines=(changed,), total=whole, complete=True, static=static))


def text(made: Report) -> str:
    assert all(isinstance(each, Line) for each in made.lines)
    return report_text(made)


def one(usd: int) -> Bounds:
    return Bounds(Decimal(usd), Decimal(usd))


def test_use_that_may_be_anything_is_not_known() -> None:
    assert "not known" in shown(used_share=Share(Decimal(0), Decimal(1)))
    assert "0% to 100%" not in shown(used_share=Share(Decimal(0), Decimal(1)))
    assert "23% to 28%" in shown(used_share=Share(Decimal("0.23"), Decimal("0.28")))


def test_two_figures_are_spoken_of_only_where_there_are_two() -> None:
    assert "Two figures" not in shown(used_share=Share(Decimal(0), Decimal(1)))
    assert "Two figures" in shown(spent=Bounds(Decimal(1), Decimal(2)))
    only_shares = shown(used_share=Share(Decimal("0.23"), Decimal("0.28")))
    assert "Two shares" in only_shares and "Two figures" not in only_shares


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=12), "12 seconds"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(minutes=59), "59 minutes"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(hours=36.5), "36.5 hours"),
        (timedelta(hours=1200), "1,200 hours"),
    ],
)
def test_a_length_of_time_is_in_words(length: timedelta, said: str) -> None:
    assert duration(length) == said
    assert f"held all the time, {said}, would" in shown(Decimal(length / timedelta(hours=1)))
