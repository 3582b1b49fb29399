"""Trace files: every format, and what is done about bad rows."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from broker.backtest.readers import read_trace
from broker.errors import InputError, UsageError

HEADER = "job_id,tenant,user,submit_s,duration_s,gpus,gpu_type,status\n"


def write(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_unsorted_rows_are_sorted_and_bad_rows_counted(tmp_path: Path) -> None:
    rows = "b,v,,50,10,2,,\na,v,,20,5,1,,\na,v,,20,5,1,,\nc,v,,30,-1,1,,\nd,v,,30,nan,1,,\ne,v,,30,5,0,,\nf,v,,,5,1,,\n"
    trace = read_trace(write(tmp_path, HEADER + rows + "g,v,,60,7"))
    assert trace.ids == ("a", "b")
    assert trace.notes == {
        "left out: the same id again": 1,
        "left out: ends before it starts": 1,
        "left out: not finished, or no duration": 1,
        "left out: no GPUs": 1,
        "left out: the last line is cut off": 1,
        "left out: no submit time": 1,
        "sorted by submit time": 1,
    }


def test_figures_beyond_all_measure_are_left_out(tmp_path: Path) -> None:
    rows = "a,v,,1,1e300,1,,\nb,v,,2,5,1e300,,\nc,v,,3,5,1e18,,\nd,v,,4,5,1,,\n"
    trace = read_trace(write(tmp_path, HEADER + rows))
    assert trace.ids == ("d",)
    too_long, too_many = "left out: runs for more than ten years", "left out: asks for more than a billion GPUs"
    assert trace.notes == {too_long: 1, too_many: 2}


def test_gzip_and_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    text = "job_id,submit_s,duration_s,gpus,wait_s\na,1500000000000,60000,8,5000\n"
    path.write_bytes(gzip.compress(text.encode()))
    trace = read_trace(path)
    assert (trace.submit_s[0], trace.duration_s[0], trace.gpus[0], trace.wait_s[0]) == (1.5e9, 60.0, 8, 5.0)
    assert trace.notes == {"times read as milliseconds": 1}


@pytest.mark.parametrize(
    ("last", "kept", "says"),
    [
        ("b,v,,2,60,1", 1, "left out: the last line is cut off"),  # of 16 GPUs, maybe
        ("b,v,,2,60,1,,", 2, "kept: the last line has no end, it may be cut off"),
    ],
)
def test_a_last_line_that_may_be_cut_off_is_left_out_or_said(tmp_path: Path, last: str, kept: int, says: str) -> None:
    trace = read_trace(write(tmp_path, HEADER + "a,v,,1,60,8,,\n" + last))
    assert (len(trace), trace.notes) == (kept, {says: 1})


def test_times_before_zero_are_said(tmp_path: Path) -> None:
    assert read_trace(write(tmp_path, HEADER + "a,v,,-5,60,8,,\n")).notes == {
        "kept: submitted before the zero of time": 1
    }


def test_the_zone_of_times_without_one(tmp_path: Path) -> None:
    """A run through the night in which clocks are put forward is an hour shorter than they say."""
    text = (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "1,u1,vcA,8,40,1,COMPLETED,2020-03-29 01:00:00,2020-03-29 01:30:00,2020-03-29 03:30:00,7200,1800\n"
    )
    path = write(tmp_path, text)
    assert read_trace(path).duration_s[0] == 7200
    assert read_trace(path, timezone="Europe/Zurich").duration_s[0] == 3600
    with pytest.raises(UsageError, match='does not know the time zone "Mars"'):
        read_trace(path, timezone="Mars")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("job_id,submit_s,gpus\na,1,1\n", "duration_s"),
        (HEADER + "a,v,,1500000000000,1,1,,\nb,v,,1500000000,1,1,,\n", "mix"),
        (HEADER, "no usable job. Give one with a line for each job"),
        (HEADER + "a,v,,1,-1,1,,\n", "no usable job. Left out: ends before it starts: 1"),
        (HEADER + "a,v,,0,1,1,,\nb,v,,1600000000,1,1,,\n", "18,519 days between job a and job b"),
        ('[{"jobid": "a", "attem', "not complete JSON"),
    ],
)
def test_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        read_trace(write(tmp_path, text))
    assert "\n" not in str(error.value)


def test_cut_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "a,v,u,15,60,8,,\n" * 100).encode())[:-20])
    with pytest.raises(InputError):
        read_trace(path)


def test_helios(tmp_path: Path) -> None:
    text = (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "1,u1,vcA,8,40,1,COMPLETED,2020-04-02 01:00:00,2020-04-02 01:00:30,2020-04-02 02:00:30,3600,30\n"
        "2,u2,vcA,0,40,1,COMPLETED,2020-04-02 01:00:00,2020-04-02 01:00:30,2020-04-02 02:00:30,3600,30\n"
    )
    trace = read_trace(write(tmp_path, text))
    assert (trace.submit_s[0], trace.duration_s[0], trace.gpus[0], trace.wait_s[0]) == (3600, 3600, 8, 30)
    assert trace.notes == {"left out: asks for no GPU": 1}


def test_philly_attempts_add_up(tmp_path: Path) -> None:
    place = [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]
    attempts = [
        {"start_time": "2017-10-09 00:10:00", "end_time": "2017-10-09 00:20:00", "detail": place},
        {"start_time": "2017-10-09 01:00:00", "end_time": "2017-10-09 01:05:00", "detail": place[:1]},
    ]
    jobs = [
        {"jobid": "a", "vc": "v", "user": "u", "submitted_time": "2017-10-09 00:00:00", "attempts": attempts},
        {"jobid": "b", "vc": "v", "user": "u", "submitted_time": "2017-10-09 00:00:00", "attempts": []},
    ]
    trace = read_trace(write(tmp_path, json.dumps(jobs), "log.json"))
    assert (trace.duration_s.tolist(), trace.gpus.tolist(), trace.wait_s.tolist()) == ([900.0], [3], [600.0])
    assert trace.notes == {"left out: never ran, so that its GPUs are not known": 1}


def test_standard_workload_format(tmp_path: Path) -> None:
    done = "1 100 5 60 4 -1 -1 4 100 -1 1 7 1 1 2 -1 -1 -1"
    unfinished = "2 90 5 -1 4 -1 -1 4 100 -1 1 7 1 1 2 -1 -1 -1"
    text = f"; UnixStartTime: 0\n{done}\n{unfinished}\n3 9"
    trace = read_trace(write(tmp_path, text, "log.swf"))
    assert (trace.ids, trace.tenants, trace.users) == (("1",), ("2",), ("7",))
    assert np.array_equal(trace.wait_s, [5.0])
    assert trace.notes == {"left out: not finished, or no duration": 1, "left out: has not 18 columns: cut off?": 1}


def test_our_own_normal_form(tmp_path: Path) -> None:
    header = "id,tenant,user,submit,start,end,state,gpus\n"
    ended = "1,v,u,2026-03-04T01:00:00Z,2026-03-04T01:00:30Z,2026-03-04T01:02:30Z,done,8\n"
    running = "2,v,u,2026-03-04T01:00:00Z,2026-03-04T01:00:30Z,,running,8\n"
    trace = read_trace(write(tmp_path, header + ended + running))
    assert (trace.submit_s[0], trace.duration_s[0], trace.gpus[0], trace.wait_s[0]) == (3600, 120, 8, 30)
    assert trace.notes == {"left out: not finished, or no duration": 1}


def test_what_cannot_be_read_names_what_can(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Formats that are read: columns.*swf, helios, philly.*csv"):
        read_trace(write(tmp_path, "nothing of the kind\n"))
    with pytest.raises(InputError, match="Use one of columns"):
        read_trace(write(tmp_path, HEADER), "excel")
