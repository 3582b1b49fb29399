"""What is particular to logs and tables of other people."""

import importlib.util
from datetime import UTC, datetime

import pytest

from broker.queues import encoding, helios, parquet_jobs, philly, swf
from broker.queues.parsed import Unreadable
from tests.queues import fixtures

LINE = "1 0 5 3600 32 -1 -1 32 7200 -1 1 7 1 1 2 1 -1 -1\n"


def test_swf_needs_to_know_how_many_processors_go_with_a_gpu() -> None:
    with pytest.raises(Unreadable, match="procs_per_gpu"):
        swf.read(LINE, fixtures.context()._replace(procs_per_gpu=0))


def test_swf_needs_to_know_when_it_began() -> None:
    for start in ("", "; UnixStartTime: 0\n", "; UnixStartTime: 999999999999\n"):
        with pytest.raises(Unreadable, match="began"):
            swf.read(start + LINE, fixtures.context())
    at = datetime(2026, 3, 4, tzinfo=UTC)
    (job,) = swf.read(LINE, fixtures.context()._replace(epoch=at)).jobs
    assert (job.submit, job.gpus) == (at, 4)


def test_swf_without_jobs_is_no_empty_queue() -> None:
    with pytest.raises(Unreadable, match="holds no line"):
        swf.read("; UnixStartTime: 1772607600\n", fixtures.context())


def test_helios_waiting_time_is_no_queue_and_times_need_a_zone() -> None:
    text = fixtures.of_format("helios")[0].read_text()
    assert {job.queue for job in helios.read(text, fixtures.context()).jobs} == {None}
    parsed = helios.read(text, fixtures.context()._replace(zone=None))
    assert not parsed.jobs and parsed.quarantined


def test_philly_that_is_cut_off_is_refused() -> None:
    text = fixtures.of_format("philly")[0].read_text()
    with pytest.raises(Unreadable, match="cut off"):
        philly.read(text[:-10], fixtures.context())


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is there")
def test_parquet_says_what_it_needs() -> None:
    with pytest.raises(Unreadable, match=r"needs pyarrow: pip install 'gpu-capacity-broker\[parquet\]'"):
        encoding.text(fixtures.of_format("parquet")[0].read_bytes(), 1 << 20)


def test_parquet_that_is_broken_or_too_large_is_refused() -> None:
    pytest.importorskip("pyarrow")
    raw = fixtures.of_format("parquet")[0].read_bytes()
    with pytest.raises(Unreadable, match="broken Parquet"):
        parquet_jobs.lines(raw[:-20], 1 << 20)
    with pytest.raises(Unreadable, match="unpacked"):
        parquet_jobs.lines(raw, 10)


def test_text_is_not_taken_for_parquet() -> None:
    with pytest.raises(Unreadable, match="is not Parquet"):
        parquet_jobs.read("{}", fixtures.context())
