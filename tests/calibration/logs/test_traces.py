"""Traces: what is exposed is counted moment by moment, and read to the nanosecond."""

from __future__ import annotations

import json
import random

import pytest

from nest_core.api.simulate import diff
from nest_core.calibration.logs.traces import TERMS, read_trace
from nest_core.documents.errors import InputError
from nest_studio.cli import run

SCENARIO, PLAN = "llama2-7b-64-h100", "dp=8,tp=2,pp=4,sp=true,zero=1"
NAMES = {
    "compute": "void cutlass::Kernel<gemm>(Params)",
    "all_reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "reduce_scatter": "ncclSymkDevKernel_AllGather_LLMC(ncclSymkDevWorkArgs4K)",
    "send_receive": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "other": "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "copies": "Memcpy DtoH (Device -> Pinned)",
}


def event(term, begins_ns, taken_ns, stream=7):
    """One as Kineto writes it, times in microseconds."""
    kind = "gpu_memcpy" if term == "copies" else "kernel"
    return (
        f'{{"ph": "X", "cat": "{kind}", "name": "{NAMES[term]}", "pid": 0, "tid": {stream},'
        f' "ts": {begins_ns // 1000}.{begins_ns % 1000:03d},'
        f' "dur": {taken_ns // 1000}.{taken_ns % 1000:03d}, "args": {{"stream": {stream}}}}}'
    )


def step(number, begins_ns, taken_ns, kind="gpu_user_annotation"):
    return (
        f'{{"ph": "X", "cat": "{kind}", "name": "ProfilerStep#{number}", "pid": 0, "tid": 1,'
        f' "ts": {begins_ns / 1000:.3f}, "dur": {taken_ns / 1000:.3f}}}'
    )


def written(folder, events, rank=0, ranks=64, name="rank.pt.trace.json"):
    told = f'"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {ranks}}},'
    file = folder / name
    file.write_text(
        '{\n  "schemaVersion": 1,\n' + (told if ranks else "") + '\n  "baseTimeNanoseconds": 17,'
        '\n  "traceEvents": [\n' + ",\n".join(events) + '\n  ],\n  "traceName": "x"\n}'
    )
    return file


def linked(folder, kernels, name="et_plus.3.json"):
    """As Chakra writes them, each with the time of its launch."""
    nodes = [{"id": 1, "name": "aten::mm", "ctrl_deps": 0, "ts": 5.5, "exclusive_dur": 900.25}]
    nodes += [
        {
            "id": 2 + number,
            "name": NAMES[term],
            "cat": "gpu_memcpy" if term == "copies" else "kernel",
            "ts": launched_ns / 1000,
            "inclusive_dur": taken_ns / 1000,
            "exclusive_dur": taken_ns / 1000,
            "stream": stream,
        }
        for number, (term, launched_ns, taken_ns, stream) in enumerate(kernels)
    ]
    file = folder / name
    file.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}))
    return file


@pytest.mark.parametrize("seed", range(12))
def test_both_readings_of_a_run_are_one(tmp_path, seed):
    """Streams take what is launched on them in turn; one file has the starts, one the launches."""
    draw = random.Random(seed)
    kernels, events, busy_until, clock = [], [], {}, 1000
    for _ in range(200):
        clock += draw.choice([1, 2, 300, 2000])
        term, taken, stream = draw.choice(list(NAMES)), draw.randint(1, 1900), draw.randint(7, 9)
        begins = max(clock, busy_until.get(stream, 0))
        busy_until[stream] = begins + taken
        kernels.append((term, clock, taken, stream))
        events.append(event(term, begins, taken, stream))
    draw.shuffle(kernels)
    ran, played = read_trace(written(tmp_path, events)), read_trace(linked(tmp_path, kernels))
    assert played.seconds == pytest.approx(ran.seconds, abs=1e-15)
    assert played.hidden_share == pytest.approx(ran.hidden_share)
    assert ran.seconds["idle"] > 0
    assert ran.hidden_share > 0
    assert (played.rank, played.steps) == (3, 0)


def test_kernels_launched_ahead_leave_nothing_idle_in_a_chakra_trace(tmp_path):
    """Launched every 0.4 us, they run for 1.9 us, and an all-reduce of 1 ms runs beside them."""
    kernels = [("compute", 1_000 + 400 * n, 1_900, 7) for n in range(1000)]
    trace = read_trace(linked(tmp_path, [*kernels, ("all_reduce", 2_000, 1_000_900, 20)]))
    assert trace.seconds["compute"] == pytest.approx(1.9e-3, rel=1e-12)
    assert trace.seconds["idle"] == trace.seconds["all_reduce"] == 0.0
    assert trace.hidden_share == 1.0


@pytest.mark.parametrize("seed", range(12))
def test_every_nanosecond_belongs_to_one_part(tmp_path, seed):
    draw = random.Random(seed)
    first, last, steps = 1000, 1000 + 3 * 400, 3
    spans = [
        (draw.choice(list(NAMES)), draw.randint(0, 2000), draw.randint(0, 300)) for _ in range(40)
    ]
    events = [event(*span, stream=draw.randint(7, 30)) for span in spans]
    events += [step(k, 1000 + 400 * k, 400) for k in range(steps)]
    events += [step(0, 0, 99_000, "user_annotation"), '{"ph": "i", "name": "x", "ts": 1}']
    draw.shuffle(events)
    found = read_trace(written(tmp_path, events))
    wanted = dict.fromkeys(TERMS, 0)
    for moment in range(first, last):
        running = {term for term, begins, taken in spans if begins <= moment < begins + taken}
        wanted[next((term for term in TERMS if term in running), "idle")] += 1
    assert found.seconds == pytest.approx(
        {term: count / steps / 1e9 for term, count in wanted.items()}, abs=1e-15
    )
    assert (found.rank, found.ranks, found.steps) == (0, 64, 3)


def test_times_since_the_epoch_keep_their_nanoseconds(tmp_path):
    """As doubles microseconds since 1970 are a quarter of one apart."""
    since = 1_790_000_000_123_456_789
    found = read_trace(
        written(tmp_path, [event("compute", since, 1), event("copies", since + 3, 2)])
    )
    assert found.steps == 0
    assert found.seconds["compute"] == pytest.approx(1e-9)
    assert found.seconds["idle"] == pytest.approx(2e-9)
    assert found.seconds["copies"] == pytest.approx(2e-9)


def test_short_kernels_without_a_gap_leave_nothing_idle_and_hide_what_runs_beside(tmp_path):
    """1.9 us each, end to end, and an all-reduce of 1 ms beside them: no rounding, no gap."""
    begins = 1_695_000_000_000_000_300
    kernels = [event("compute", begins + 1900 * n, 1900) for n in range(1000)]
    reduces = event("all_reduce", begins + 450_100, 1_000_900, stream=20)
    trace = read_trace(written(tmp_path, [*kernels, reduces]))
    assert trace.seconds["idle"] == 0.0
    assert trace.seconds["all_reduce"] == 0.0
    assert trace.seconds["compute"] == pytest.approx(1.9e-3, rel=1e-12)
    assert trace.hidden_share == 1.0
    late = event("all_reduce", begins + 1_899_000, 2000, stream=20)  # 1 us beside, 1 us after
    half = read_trace(written(tmp_path, [*kernels, late]))
    assert half.hidden_share == 0.5
    assert half.seconds["all_reduce"] == pytest.approx(1e-6, rel=1e-9)
    assert read_trace(written(tmp_path, kernels)).hidden_share is None


def test_a_trace_of_many_blocks_is_read_event_by_event(tmp_path):
    count = 30_000
    file = written(tmp_path, [event("compute", 10 * k, 5) for k in range(count)])
    assert file.stat().st_size > 3 << 20
    found = read_trace(file)
    assert found.seconds["compute"] == pytest.approx(count * 5e-9)
    assert found.seconds["idle"] == pytest.approx((count - 1) * 5e-9)
    one_line = tmp_path / "line.json"
    one_line.write_text(file.read_text().replace("\n", ""))
    assert read_trace(one_line).seconds == found.seconds


def test_traces_stand_beside_the_simulated_iteration_of_their_stage(tmp_path, capsys):
    """Ranks 0 and 63 are of the first and of the last stage."""
    files = [
        written(tmp_path, [event("compute", 0, 2_000_000_000)], 0, name="a.json"),
        written(tmp_path, [event("send_receive", 0, 1_000_000_000)], 63, name="b.json"),
    ]
    found = diff(SCENARIO, files, PLAN)
    assert [stage for _, stage, _ in found.traces] == [0, 3]
    for _, _, does in found.traces:
        assert sum(does.values()) == pytest.approx(found.iteration_s)
        assert does["compute"] > 0.5 * found.iteration_s
        assert does["send_receive"] > 0
        assert does["reduce_scatter"] > 0
        assert not does["other"]
    rows = {(row["stage"], row["term"]): row for row in found.rows()}
    assert rows[0, "compute"]["measured_s"] == pytest.approx(2)
    assert rows[3, "send_receive"]["measured_s"] == pytest.approx(1)
    assert rows[3, "compute"]["measured_s"] == 0
    words = ["diff", SCENARIO, *map(str, files), "--plan", PLAN]
    assert run([*words, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["measured_iteration_time_s"] == pytest.approx(1.5)
    assert fields["rows"] == found.rows()
    assert run(words) == 0
    text = capsys.readouterr().out
    assert "A step of 2 traces takes 1.50 s, simulated " in text
    assert "without ProfilerStep marks" in text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello\n", "what chakra_trace_link makes of one, but is 'other text'"),
        ("[1, 2]", "must be a trace of PyTorch's profiler"),
        (
            '{"traceEvents": [{"ph": "X", "cat": "kernel"',
            "must be whole, but is 'a trace that is cut",
        ),
        (
            '{"nodes": [{"id": 1, "name": "aten::mm", "ctrl_deps": 0}]}',
            "must hold kernels of a dev",
        ),
        ('{"traceEvents": []}', "must hold kernels of a device with their durations"),
        ('{"traceEvents": [{"ph": "B", "cat": "kernel", "ts": 1, "name": "k"}]}', "with their dur"),
        (
            '{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": "x", "dur": 1, "name": "k"}]}',
            "dur",
        ),
        ("\x1f\x8b\x08\x00", "gzip"),
        (
            "\x0a\x05\x00",
            "must be text, but is 'binary': name the text that the job or its profiler",
        ),
    ],
)
def test_what_is_no_trace_is_one_sentence(tmp_path, text, sentence):
    file = tmp_path / "trace.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=sentence):
        read_trace(file)


@pytest.mark.parametrize(
    ("name", "value"), [("et_plus.64.json", "rank 64 of any"), ("et_plus.json", "without a rank")]
)
def test_a_chakra_trace_of_no_rank_of_the_plan_is_one_sentence(tmp_path, name, value, capsys):
    file = linked(tmp_path, [("compute", 1_000, 1_900, 7)], name)
    assert run(["diff", SCENARIO, str(file), "--plan", PLAN]) == 2
    error = capsys.readouterr().err
    assert f"the last number of the file's name), but is '{value}': give the plan" in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(("rank", "ranks"), [(64, 128), (0, 8), (0, 0)])
def test_a_trace_of_other_ranks_is_one_sentence(tmp_path, rank, ranks, capsys):
    file = written(tmp_path, [event("compute", 0, 5)], rank, ranks)
    assert run(["diff", SCENARIO, str(file), "--plan", PLAN]) == 2
    error = capsys.readouterr().err
    assert "must be of one of the plan's 64 ranks and say of which" in error
    assert len(error.strip().splitlines()) == 1
