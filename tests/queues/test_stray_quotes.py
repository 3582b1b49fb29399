"""A quote that stands alone in a table makes one cell of many rows: they are missed, and not taken for nothing."""

import pytest

from broker.model.snapshot import Trust
from tests.queues.fuzzing import checked

HEADER = "id,submit,gpus,user,name"
ROWS = [f"{number},2026-03-04T08:00:00Z,8,ana,train" for number in range(6)]


@pytest.mark.parametrize("at", range(len(HEADER)))
def test_a_stray_quote_in_the_header_is_no_empty_queue(at: int) -> None:
    text = "\n".join([HEADER[:at] + '"' + HEADER[at:], *ROWS]) + "\n"
    for raw in (text, text[:-1] + '"\n'):
        found = checked("csv", raw.encode())
        assert found.trust is Trust.UNKNOWN or found.kept >= len(ROWS) - 1


@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 5), (1, 3), (4, 5)])
@pytest.mark.parametrize("opens", [',"ana,', ',ana,"train'])
def test_rows_between_two_stray_quotes_are_missed(first: int, last: int, opens: str) -> None:
    rows = list(ROWS)
    rows[first] = rows[first].replace(",ana,train" if "train" in opens else ",ana,", opens)
    rows[last] += '"'
    found = checked("csv", "\n".join([HEADER, *rows, ""]).encode())
    assert found.trust is not Trust.COMPLETE


def test_a_name_of_two_lines_is_a_name() -> None:
    raw = (HEADER + '\n7,2026-03-04T08:00:00Z,8,ana,"a, b\nand c"\n').encode()
    assert [job.name for job in checked("csv", raw).jobs] == ["a, b\nand c"]
