"""Tables of training runs are read cell by cell, by stated rules."""

from __future__ import annotations

import csv

import pytest
from run_tables import MEASURED_COLUMNS, PLAIN, SUBSET, TABLES, as_csv

from nest_core.calibration.training import MeasuredOutcome, read_runs
from nest_core.calibration.training.predict import problem_of
from nest_core.calibration.training.reading import is_training
from nest_core.calibration.training.rows import DEFAULTS
from nest_core.documents.errors import InputError
from nest_core.hardware import load_accelerator


def test_a_plain_row(one):
    run = one().run
    assert (run.layers, run.heads, run.vocabulary, run.batch) == (36, 32, 51200, 64)
    assert (
        run.point.tp,
        run.point.pp,
        run.point.cp,
        run.point.ep,
        run.point.dp,
        run.point.micro_batch,
    ) == (4, 2, 1, 1, 2, 4)
    assert (run.intra_Bps, run.inter_Bps, run.per_node) == (300e9, 25e9, 8)
    assert (run.precision, run.optimizer, run.recompute, run.point.zero) == (
        "fp16",
        "adam",
        "full",
        0,
    )
    assert run.assumed == ()
    outcome = one().outcome
    assert (outcome.seconds, outcome.memory_bytes) == (1.5, 40e9)


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_the_subset_is_read_or_explained(name):
    text = (SUBSET / name).read_text()
    rows, unread = read_runs(text, name)
    assert len(rows) + len(unread) == len(list(csv.DictReader(text.splitlines())))
    assert all(row.reason for row in unread)
    assert len(rows) > 0.9 * (len(rows) + len(unread))


def test_the_megatron_tables_imply_their_cluster():
    text = (SUBSET / TABLES[1]).read_text()
    run = read_runs(text, "m.csv", "multi ")[0][0].run
    assert run.id == "multi row 1"
    assert (run.accelerator, run.precision, run.recompute) == ("A100-80GB", "fp16", "full")
    assert (run.point.schedule, run.per_node, run.vocabulary, run.point.zero) == (
        "1f1b",
        8,
        51200,
        0,
    )
    assert (run.attention, run.overlap) == ("unfused", (False, False, False))


@pytest.mark.parametrize(
    ("text", "precision", "optimizer"),
    [
        ("BF16", "bf16", "adam"),
        ("bf16-pure", "bf16", "adam_bf16"),
        ("bf16/fp16-mixed", "bf16", "adam"),
        ("FP8(current-scaling)", "fp8", "adam"),
        ("MXFP8", "fp8", "adam"),
        ("fp16-mixed", "fp16", "adam"),
    ],
)
def test_precisions(one, text, precision, optimizer):
    run = one(precision=text).run
    assert (run.precision, run.optimizer) == (precision, optimizer)


@pytest.mark.parametrize(
    ("text", "zero", "framework"),
    [
        ("none", 0, "megatron"),
        ("", 0, "megatron"),
        ("distributed_optimizer", 1, "megatron"),
        ("zero1", 1, "megatron"),
        ("zero3", 3, "deepspeed"),
        ("fsdp_full_shard(zero3)", 3, "fsdp"),
        ("fsdp_shard_grad_op(zero2)", 2, "fsdp"),
        ("megatron_fsdp", 3, "fsdp"),
        ("fsdp(zero3) shard=128", 3, "fsdp"),
    ],
)
def test_sharding(one, text, zero, framework):
    run = one(dist_opt_or_zero=text).run
    assert (run.point.zero, run.framework) == (zero, framework)


@pytest.mark.parametrize(
    ("cells", "attention"),
    [
        ({}, "unfused"),
        ({"precision": "bf16/fp16-mixed"}, "unfused"),
        ({"notes": "flash attn, ALiBi"}, "flash"),
        ({"dist_opt_or_zero": "distributed_optimizer", "precision": "bf16"}, "flash"),
        ({"accelerator": "H100-80GB", "precision": "bf16"}, "flash"),
        ({"dist_opt_or_zero": "fsdp2(zero3)", "precision": "bf16"}, "flash"),
    ],
)
def test_kernels_of_attention_follow_from_the_software(one, cells, attention):
    assert one(**cells).run.attention == attention


@pytest.mark.parametrize(
    ("notes", "overlap"),
    [
        ("BF16 grad reduce; DP/PP/TP overlap on; weak scaling", (True, True, True)),
        ("BF16 grad reduce; DP/PP overlap on; weak scaling", (False, True, True)),
        ("4 microbatches; no TP/PP/DP overlap; TE fused CE", (False, False, False)),
        ("SP, no TP/PP overlap in yaml, DP overlap on", (False, False, True)),
        ("vanilla TP; torch.compile; FSDP=32", (False, True, True)),
        ("async TP (decomposed AG/RS overlap); torch.compile", (True, True, True)),
        ("", (True, True, True)),  # as a scenario of these devices
    ],
)
def test_overlap_is_what_the_notes_say(one, notes, overlap):
    cells = {"accelerator": "H100-80GB", "precision": "bf16", "notes": notes}
    assert one(dist_opt_or_zero="distributed_optimizer", **cells).run.overlap == overlap


def test_notes_give_facts_of_the_configuration(one):
    moe = {"experts": "8", "topk": "2", "ep": "2"}
    run = one(notes="MoE force-balanced, dropless; head_dim 128 (q proj 4096 wide)", **moe).run
    assert (run.fact("routing"), run.head_dim) == ("dropless", 128)
    assert one(notes="schedule=ZB-2p; 14.8 samples/GPU/s").run.point.schedule == "zb_2p"
    assert one(notes="schedule=ZB-V").run.point.schedule == "zero-bubble"
    interleaved = one(notes="T5 Interleaved 1F1B", vp_interleave="").run
    assert (interleaved.point.schedule, interleaved.point.interleave) == ("interleaved", 2)
    assert one(notes="BF16 grad reduce").run.gradient_bytes == 2
    assert one(precision="bf16-mixed(fp32 grad accum)").run.gradient_bytes == 4
    assert one(notes="1 dense + 3 MoE layers, MLA").run.dense_layers == 1


@pytest.mark.parametrize(
    ("notes", "dispatch", "beside"),
    [
        ("TE + DeepEP; fake-balanced gate", "once_per_node", False),
        ("flex/HybridEP, moe_a2a_overlap", "hybrid", True),
        ("MoE force-balanced, dropless", None, False),
    ],
)
def test_how_experts_are_reached_is_what_the_notes_say(one, notes, dispatch, beside):
    """Nothing but the notes tells; a plain all-to-all is the rest."""
    run = one(notes=notes, experts="8", topk="2", ep="2").run
    assert run.fact("dispatch") == dispatch
    priced = problem_of(run, load_accelerator("h100-80gb"))
    assert (priced.dispatch is None) == (dispatch is None)
    assert dispatch is None or priced.dispatch.by_host == (dispatch == "once_per_node")
    assert priced.overlap.experts == beside


@pytest.mark.parametrize(
    ("cells", "reduces"),
    [
        ({}, None),
        ({"notes": "BF16 grad reduce; SHARP on"}, "yes"),
        ({"notes": "no SHARP; DP overlap on"}, None),
        ({"notes": "SHARP: no"}, None),
        ({"sharp": "threshold set"}, "yes"),
        ({"sharp": "n/a", "notes": "SHARP"}, None),
        ({"notes": "a sharper loss"}, None),
    ],
)
def test_switches_reduce_where_a_row_says_so(one, cells, reduces):
    run = one(accelerator="H100-80GB", precision="bf16", **cells).run
    assert run.fact("in-network reduction") == reduces
    curve = problem_of(run, load_accelerator("h100-80gb")).software.between
    assert (curve.name == "network-infiniband-sharp") is bool(reduces)


def test_times_and_memory_are_measured_apart(one):
    assert one(mem_GB_per_gpu="").outcome == MeasuredOutcome(1.5)
    assert one(iter_time_s="", mem_GB_per_gpu="40").outcome == MeasuredOutcome(None, 40e9)
    assert one(iter_time_s="0", mem_GB_per_gpu="-3").outcome == MeasuredOutcome()
    assert one(iter_time_s="soon").outcome.seconds is None
    text = (SUBSET / TABLES[1]).read_text()
    first = next(csv.DictReader(text.splitlines()))
    found = read_runs(text, "m.csv")[0][0].outcome.seconds
    assert found == pytest.approx(float(first["iteration_time_ms"]) / 1e3)


def test_memory_is_counted_as_the_source_counts(one):
    torch = one(notes="mem = max torch allocated GiB over ranks (reserved 62.53 GiB)").outcome
    assert (torch.memory_bytes, torch.memory_kind) == (40 * 2**30, "allocated")
    assert one(notes="mem = nvidia-smi on first/last node").outcome.memory_kind == "device"
    assert one(notes="reserved by the allocator").outcome.memory_kind == "reserved"
    assert one(source="pytorch/torchtitan").outcome.memory_kind == "reserved"
    assert one(notes="peak of the first step").outcome.memory_kind == "unstated"
    on_first = one(notes="memory: GiB allocated at most by tensors on rank 0 (first stage)").outcome
    assert (on_first.memory_kind, on_first.memory_stage) == ("allocated", "first")
    assert torch.memory_stage == "fullest"


def test_empty_cells_take_the_stated_defaults(one):
    empty = dict.fromkeys(DEFAULTS, "")
    run = one(**empty, notes="").run
    assert (run.kv_heads, run.ffn, run.vocabulary, run.gated) == (32, 16384, 51200, False)
    assert (
        run.point.cp,
        run.point.ep,
        run.point.dp,
        run.point.interleave,
        run.point.micro_batch,
    ) == (1, 1, 2, 1, 1)
    assert (run.per_node, run.intra_Bps, run.inter_Bps) == (0, 0.0, 0.0)
    assert (run.recompute, run.point.sp) == ("", False)
    assert set(run.assumed) == set(DEFAULTS)
    experts = one(ep="", experts="64", topk="2", gpus="64", dp="8").run
    assert experts.point.ep == 8


def test_nan_is_an_empty_cell(one):
    assert one(gpus_per_node="nan").run.per_node == 0
    assert one(experts="NaN", topk="nan").run.experts == 1


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"seq_len": ""}, "states no seq_len"),
        ({"hidden": "wide"}, "states hidden as wide, which is not such a number"),
        ({"heads": "3.5"}, "states heads as 3.5"),
        ({"layers": "-2"}, "states layers as -2"),
        ({"layers": "9999"}, "states layers as 9999"),
        ({"gpus": "17"}, "has tp x pp x cp x dp = 4 x 2 x 1 x 2, which are not its 17 devices"),
        ({"precision": "int4"}, "states precision as 'int4'"),
        ({"dist_opt_or_zero": "magic"}, "states dist_opt_or_zero as 'magic'"),
        ({"experts": "4", "topk": "8"}, "routes to 8 of 4 experts"),
        ({"experts": "4", "topk": ""}, "states no topk"),
        ({"seq_parallel": "2"}, "states seq_parallel as 2"),
        ({"inter_bw_GBps_per_gpu": "-25"}, "which is not positive"),
        ({"intra_bw_GBps": "inf"}, "states intra_bw_GBps as inf"),
    ],
)
def test_a_row_that_cannot_be_read_says_why(why, cells, reason):
    assert reason in why(**cells)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have the columns of train_measurements.csv"),
        ("a,b\n1,2\n", "must have the columns of train_measurements.csv"),
        ("id,id\n1,2\n", "must name every column once"),
        (as_csv(PLAIN) + "x\n" * 10_000, "at most 10,000"),
    ],
)
def test_a_file_that_is_no_table_is_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        read_runs(text, "t.csv")


def test_short_long_and_marked_files_are_read(one):
    text = "\ufeff" + as_csv(PLAIN)
    assert read_runs(text, "t.csv")[0][0] == one()
    header, row = as_csv(PLAIN).splitlines()
    assert read_runs(f"{header}\n{row},more,cells\n", "t.csv")[0][0].run.id == "A"
    short, unread = read_runs(f"{header}\nB,here,GPT\n", "t.csv")
    assert not short
    assert unread[0].id == "B"


def test_tables_are_told_by_their_columns():
    assert is_training(list(PLAIN))
    assert is_training(PLAIN.keys() - set(MEASURED_COLUMNS))
    assert not is_training(["id", "accelerator", "collective", "gpus", "nodes", "time_us"])


def test_an_unknown_recomputation_is_not_taken_for_none():
    """A typo must not be priced as another configuration."""
    rows, unread = read_runs(as_csv({**PLAIN, "recompute": "foo"}), "runs.csv")
    assert not rows
    assert unread[0].reason == "states recompute as 'foo', which is none known"


@pytest.mark.parametrize(
    ("cells", "micro_batch"),
    [
        ({"pp": "4", "dp": "1", "notes": "1F1B"}, 16),  # a replica's 64 sequences in four
        ({"pp": "4", "dp": "1", "notes": "Interleaved 1F1B", "vp_interleave": "2"}, 8),
        ({"pp": "1", "dp": "4"}, 1),
        ({"pp": "4", "dp": "1", "global_batch_seqs": "62"}, 1),  # does not divide
        ({"pp": "4", "dp": "1", "dist_opt_or_zero": "none"}, 1),  # not torchtitan
    ],
)
def test_torchtitan_cuts_a_batch_into_as_many_micro_batches_as_stages(one, cells, micro_batch):
    run = one(**{"micro_batch": "", "dist_opt_or_zero": "fsdp2(zero3)", **cells}).run
    assert run.point.micro_batch == micro_batch
    assert "micro_batch" in run.assumed
