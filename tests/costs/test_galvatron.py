"""Strategy files of Galvatron: read as the plan that they are, or refused in a sentence."""

import json
from pathlib import Path

import pytest

import nest_core as nest
from nest_core.costs.parse import parse_plan, read_given, read_pasted, read_plan
from nest_core.documents.errors import InputError

DATA = Path(__file__).parent.parent / "data" / "galvatron"
UNIFORM, TENSOR, LAYERWISE = (
    DATA / f"{name}.json" for name in ("uniform_64_gpus", "tensor_64_gpus", "layerwise_8_gpus")
)


def changed(file: Path, **fields: object) -> str:
    """Return a file's text with other values; None leaves a field out."""
    document = json.loads(file.read_text()) | fields
    return json.dumps({name: value for name, value in document.items() if value is not None})


def layers(*runs: tuple[int, int]) -> str:
    """Return values for so many layers each, as its files have them."""
    return ",".join(str(value) for value, count in runs for _ in range(count))


def test_a_searched_file_is_the_plan_that_it_names():
    plan = read_plan(str(UNIFORM), 34, 64)
    assert plan == read_plan("dp=32,pp=2,micro_batch=1,cuts=0-17-34", 34, 64)
    assert read_pasted(UNIFORM.read_text(), 34, 64).plan == plan
    tensor = read_plan(str(TENSOR), 34, 64)
    assert tensor == read_plan("dp=8,tp=4,pp=2,sp=true,micro_batch=1", 34, 64)
    assert tensor.point.layout.order == ("tp", "cp", "dp", "pp")


def test_embedding_and_sequence_parallelism_are_told_where_they_are_assumed():
    """A failure: a price of something else without a word."""
    (ends,) = read_given(str(UNIFORM), 34, 64).notes
    assert "not with vtp 1, vsp 0, embed_sdp 1" in ends
    (sequence,) = read_given(str(TENSOR), 34, 64).notes
    assert sequence.startswith("Sequence parallelism is on")
    alone = changed(UNIFORM, embed_sdp=1, dp_types_enc=layers((1, 32)))
    assert read_pasted(alone, 34, 64).notes == ()


def test_recomputation_and_zero_are_those_of_each_stage():
    text = changed(
        UNIFORM,
        pp_deg=4,
        pp_division="8,9,8,7",
        default_dp_type="zero2",
        dp_types_enc=layers((1, 8), (0, 24)),
        checkpoint=layers((1, 8), (0, 4), (1, 5), (0, 15)),
    )
    plan = read_pasted(text, 34, 64).plan
    assert plan.recompute == ("full", "block:5", "none", "none")
    assert [strategy.zero for strategy in plan.strategies] == [3, 2, 2, 2]
    assert plan.cuts == (0, 9, 18, 26, 34)
    assert (plan.point.dp, plan.point.micro_batch) == (16, 2)


def test_what_is_left_out_is_as_in_its_own_reader():
    """`get_hybrid_parallel_configs_api`: GPipe, and what does not divide on the last stage."""
    text = changed(
        UNIFORM, pp_deg=3, pp_division=None, pipeline_type=None, checkpoint=None, use_sp=None
    )
    plan = read_pasted(text, 34, 96).plan
    assert plan.cuts == (0, 11, 21, 34)
    assert plan.point.schedule == "gpipe"
    assert plan.recompute == ("none",) * 3
    assert read_pasted(changed(UNIFORM, pp_deg=1, pp_division="32", pipeline_type="gpipe",
                               chunks=8), 34, 64).plan.point.schedule == "1f1b"  # fmt: skip


def test_tensor_groups_may_be_spread():
    """Flag 0: neighbours are replicas, and a tensor group's ranks lie a replica count apart."""
    spread = read_pasted(changed(TENSOR, tp_consecutive_flags=layers((0, 32))), 34, 64).plan
    assert spread.point.order == ("dp", "cp", "tp", "pp")
    alone = changed(UNIFORM, tp_consecutive_flags=layers((0, 32)))
    assert read_pasted(alone, 34, 64).plan == read_plan(str(UNIFORM), 34, 64)


@pytest.mark.parametrize(
    ("file", "fields", "message"),
    [
        (UNIFORM, {"tp_sizes_enc": layers((1, 30))}, "must hold 32 numbers"),
        (UNIFORM, {"pp_division": "16,18"}, "must divide the model's 32 blocks"),
        (UNIFORM, {"pp_division": "0,32"}, "must divide the model's 32 blocks"),
        (UNIFORM, {"pp_division": "32"}, "pp_division must hold 2 numbers"),
        (LAYERWISE, {}, "tp_sizes_enc must be the same for all layers of a plan .* is '1,2'"),
        (UNIFORM, {"dp_types_enc": layers((0, 31), (1, 1))}, "for all layers of a stage"),
        (TENSOR, {"tp_consecutive_flags": layers((0, 9), (1, 23))}, "tp_consecutive_flags must be"),
        (TENSOR, {"use_sp": layers((1, 32))}, "use_sp must be 0, for Ulysses has no price"),
        (UNIFORM, {"pp_deg": 3}, "pp_division must hold 3 numbers"),
        (UNIFORM, {"pp_deg": 3, "pp_division": "8,8,16"}, "must divide the 64 devices"),
        (UNIFORM, {"tp_sizes_enc": layers((0, 32))}, "must divide the 64 devices, but is 0"),
        (UNIFORM, {"chunks": 3}, "chunks times 32 replicas must divide global_bsz = 512"),
        (UNIFORM, {"chunks": 0}, "chunks must be at least 1"),
        (UNIFORM, {"chunks": None}, "chunks must be whole numbers .* but is None"),
        (UNIFORM, {"checkpoint": layers((2, 32))}, "checkpoint must not exceed 1, but is 2"),
        (UNIFORM, {"tp_sizes_enc": [1] * 32}, "tp_sizes_enc must be whole numbers joined"),
        (UNIFORM, {"pipeline_type": "dualpipe"}, "must be one of gpipe, pipedream_flush"),
        (UNIFORM, {"default_dp_type": ["ddp"]}, "must be one of ddp, zero2, zero3"),
        (UNIFORM, {"pp_deg": True}, "pp_deg must be whole numbers .* but is True"),
    ],
)  # fmt: skip
def test_what_no_plan_can_say_is_refused_in_a_sentence(file, fields, message):
    with pytest.raises(InputError, match=rf"galvatron\..*{message}") as caught:
        read_pasted(changed(file, **fields), 34, 64)
    assert "\n" not in str(caught.value)


def test_its_price_stands_beside_the_best_plan():
    """`price --plan FILE`: why it loses, and whose batch it is."""
    sets = {"workload.sequence_length_tokens": 2048, "workload.global_batch_sequences": 512}
    scenario = nest.load("llama2-7b-64-h100", sets)
    priced = nest.price(scenario, UNIFORM)
    assert priced.given.plan == parse_plan({"dp": 32, "pp": 2, "cuts": [0, 17, 34]}, 34)
    assert "longer than our plan" in str(priced)
    with pytest.raises(InputError, match="must train what is planned, global_batch_sequences 1024"):
        nest.price("llama2-7b-64-h100", UNIFORM)
