import pytest

from broker.queues import scontrol
from broker.queues.parsed import Unreadable
from tests.queues import fixtures

LINES, ONE_LINE = fixtures.of_format("scontrol")


def test_both_ways_of_printing_say_the_same() -> None:
    many, one = (scontrol.read(path.read_text(), fixtures.context()) for path in (LINES, ONE_LINE))
    assert [job.id for job in many.jobs] == [job.id for job in one.jobs]
    assert (many.rows, many.dropped, many.quarantined) == (one.rows, one.dropped, one.quarantined)


def test_a_queue_without_jobs_is_empty_and_whole() -> None:
    parsed = scontrol.read("No jobs in the system\n", fixtures.context())
    assert parsed.whole and not parsed.rows


def test_an_error_is_no_empty_queue() -> None:
    said = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    with pytest.raises(Unreadable, match="Unable to contact"):
        scontrol.read(said, fixtures.context())


def test_a_record_that_is_cut_off_is_set_aside_and_the_rest_is_partial() -> None:
    text = LINES.read_text()
    parsed = scontrol.read(text[: text.index("NumNodes", 5000)], fixtures.context())
    assert not parsed.whole
    assert any("cut off" in reason for reason in parsed.quarantined)


def test_a_name_cannot_pass_for_a_state() -> None:
    parsed = scontrol.read(ONE_LINE.read_text(), fixtures.context())
    assert "419" not in {job.id for job in parsed.jobs}
    assert parsed.quarantined["names JobState twice, with two values"] == 1


def test_lines_of_no_job_make_the_source_partial() -> None:
    assert not scontrol.read(ONE_LINE.read_text() + "scontrol: error: went away\n", fixtures.context()).whole
