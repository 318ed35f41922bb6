"""'Why not mine?': the command's job is compared, and what has no price withholds the verdict."""

from __future__ import annotations

import json

import pytest

from nest_core.costs import price
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.interop.exporters.megatron import export_megatron
from nest_core.interop.exporters.values import ExportRefused
from nest_core.planner import search
from nest_core.report import explain
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_studio.cli import run

NAME = "llama2-7b-64-h100"
PLAN = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --use-distributed-optimizer"
SAME = (
    " --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008"
    " --kv-channels 128 --seq-length 4096 --global-batch-size 1024 --bf16 --optimizer adam"
    " --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear"
    " --untie-embeddings-and-output-weights --attention-backend flash --overlap-grad-reduce"
    " --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --weight-decay 0.1 --clip-grad 1.0"
    " --adam-beta1 0.9 --train-iters 500 --eval-iters 0 --log-interval 1 --save out"
    " --data-path corpus --tokenizer-type Llama2Tokenizer --split 99,1,0 --num-workers 2"
    " --master_addr node0 --master_port 6000 --node_rank 0"
)
OTHER = {
    "--seq-length 8192": {"workload.sequence_length_tokens": 8192},
    "--global-batch-size 512": {"workload.global_batch_sequences": 512},
    "--fp16": {"workload.precision": "fp16"},
    "--bf16 --fp8-format hybrid": {"workload.precision": "fp8"},
    "--optimizer sgd": {"workload.optimizer": "sgd"},
    "--attention-backend unfused": {"workload.attention": "unfused"},
    "--grad-reduce-in-bf16": {"workload.gradient_bytes": 2},
    "--num-layers 40 --hidden-size 5120 --num-attention-heads 40": {
        "workload.model.blocks": 40, "workload.model.hidden": 5120, "workload.model.heads": 40,
    },
    "--group-query-attention --num-query-groups 8": {"workload.model.kv_heads": 8},
    "--cp-comm-type all_gather": {"workload.context": "all_gather"},
    "--fp8-format hybrid --fp8-amax-history-len 1024 --bf16": {"workload.precision": "fp8"},
    "--exp-avg-dtype fp8 --optimizer adam": {"workload.optimizer": "adam_8bit"},
    "--vocab-size 128256": {"workload.model.vocabulary": 128256},
    "--padded-vocab-size 151936": {"workload.model.vocabulary": 151936},
}  # fmt: skip
UNPRICED = (
    "--recompute-granularity selective --recompute-modules mlp_act pre_mlp",
    "--fine-grained-activation-offloading --offload-modules core_attn",
    "--cpu-offloading --cpu-offloading-num-layers 4",
    "--fp8-format hybrid --fp8-recipe blockwise",
    "--exp-avg-dtype bf16",
    "--cp-comm-type a2a",
    "--use-torch-optimizer-for-cpu-offload",
    "--no-overlap-p2p-communication",
    "--a-flag-of-tomorrow 3",
    "--no-gradient-accumulation-fusion",
    "--timing-log-level 2",
    "--window-size 127,0 --window-attn-skip-freq 2",
)
ROUTED = {"": 0, "[0]+": 1, "[0]*3+": 3}


def asked(capsys, *arguments):
    code = run(["price", NAME, "--json", "--plan", *arguments])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code == 0 else said.err


def test_a_command_for_the_scenario_has_a_verdict(capsys):
    code, fields = asked(capsys, PLAN + SAME)
    assert code == 0
    assert fields["difference"] is not None
    assert (fields["withheld"], fields["unpriced"]) == (None, [])
    assert {"--lr", "--data-path", "--master_addr".replace("_", "-")} <= set(fields["ignored"])


@pytest.mark.parametrize("flags", OTHER)
def test_a_command_for_another_job_is_refused_and_can_be_taken_over(flags, capsys):
    """One sentence with every difference; with the settings that it gives it is priced."""
    code, error = asked(capsys, f"{PLAN} {flags}")
    assert code == 2
    assert error.count("\n") == 1
    for key, value in OTHER[flags].items():
        assert f"--set {key}={json.dumps(value)}" in error
    with pytest.raises(explain.OtherJob) as caught:
        explain.price_pasted(load_scenario(NAME), f"{PLAN} {flags}")
    assert caught.value.settings == OTHER[flags]
    document, folder = scenario_document(NAME)
    sizes = {"workload.model.head_dim": 128, "workload.model.kv_heads": 40}
    taken = OTHER[flags] | (sizes if "workload.model.heads" in OTHER[flags] else {})
    taken_over = Scenario(document, taken, folder).values
    assert explain.price_pasted(taken_over, f"{PLAN} {flags}").pasted.settings


@pytest.mark.sampled(8)
@pytest.mark.parametrize("flags", UNPRICED)
def test_a_flag_without_a_price_withholds_the_verdict(flags, capsys):
    """It is not called ignored, and no difference stands beside the figures."""
    sets = ["--set", 'workload.precision="fp8"'] if "fp8" in flags else []
    code, fields = asked(capsys, f"{PLAN} {flags}", *sets)
    assert code == 0
    assert fields["difference"] is None
    assert fields["why_not"] is None
    assert fields["withheld"].startswith("No verdict: --")
    assert not {word for word in flags.split() if word in fields["ignored"]} - {"--fp8-format"}
    run(["price", NAME, "--plan", f"{PLAN} {flags}", *sets])
    assert capsys.readouterr().out.startswith("No verdict: --")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", preset_names("scenarios"))
def test_our_own_export_is_a_command_for_the_same_job(name):
    """What `export` writes is read back as the plan it was written from, with a verdict."""
    whole = load_scenario(name, ['search.stage_strategies="uniform"'])
    best = search(whole.problem(), whole.space).best
    try:
        script = export_megatron(whole, best).files["launch.sh"]
    except ExportRefused as reason:
        pytest.skip(str(reason))
    mine = explain.price_pasted(whole, script)
    assert explain.withheld(mine.pasted) is None
    assert mine.report == price(whole.problem(), best.plan)


@pytest.mark.parametrize(("vocabulary", "told"), [(32000, 32000), (32000, 31999), (50257, 50304)])
def test_a_vocabulary_counts_as_padded(vocabulary, told):
    here = load_scenario(NAME, [f"workload.model.vocabulary={vocabulary}"])
    mine = explain.price_pasted(
        here, f"{PLAN} --vocab-size {told} --make-vocab-size-divisible-by 128"
    )
    assert explain.withheld(mine.pasted) is None


@pytest.mark.parametrize("dense", ROUTED)
def test_leading_dense_blocks_are_read(dense):
    """Lists as Python writes them; `1` alone, as in `[1]*30`, leaves no block dense."""
    for text in (f"({dense}[1]*30)", f"'{dense}[1]*30'", *(() if dense else ("1",))):
        with pytest.raises(explain.OtherJob) as caught:
            explain.price_pasted(
                load_scenario(NAME, ['workload.model="kimi-k2"', "workload.model.dense_blocks=9"]),
                f"--tensor-model-parallel-size 2 --moe-layer-freq {text}",
            )
        assert caught.value.settings == {"workload.model.dense_blocks": ROUTED[dense]}


@pytest.mark.parametrize(
    ("model", "flag"),
    [
        ("gpt3-1.3b", "--swiglu"),
        ("llama2-7b", "--squared-relu"),
        ("nemotron4-15b", "--quick-geglu"),
    ],
)
def test_mlps_of_another_kind_are_another_model(model, flag):
    here = load_scenario(
        NAME, [f'workload.model="{model}"', "workload.sequence_length_tokens=2048"]
    )
    with pytest.raises(InputError, match=r"must train what is planned, \w+ MLPs, but is "):
        explain.price_pasted(here, f"--tensor-model-parallel-size 2 {flag}")
    assert explain.price_pasted(here, "--tensor-model-parallel-size 2").report


def test_a_whole_command_says_megatrons_defaults_too():
    """Without --bf16 it trains in fp32, without --swiglu plain MLPs; a part of one says neither."""
    here = load_scenario(NAME)
    model = here.model
    whole = (
        f"{PLAN} --num-layers {model.blocks} --hidden-size {model.hidden} "
        f"--num-attention-heads {model.heads} --micro-batch-size 1"
    )
    assert explain.price_pasted(here, f"{whole} --bf16 --swiglu").report
    with pytest.raises(explain.OtherJob, match=r"precision bf16, but is .precision fp32"):
        explain.price_pasted(here, f"{whole} --swiglu")
    with pytest.raises(InputError, match=r"gated MLPs, but is .plain MLPs"):
        explain.price_pasted(here, f"{whole} --bf16")
    assert explain.price_pasted(here, whole.replace("--micro-batch-size 1", "")).report


def test_flags_that_say_two_things_are_refused():
    with pytest.raises(InputError, match="--fp16 must agree with --bf16 before it"):
        explain.price_pasted(load_scenario(NAME), f"{PLAN} --bf16 --fp16")
    with pytest.raises(InputError, match="--seq-length must be given once"):
        explain.price_pasted(load_scenario(NAME), f"{PLAN} --seq-length 4096 --seq-length 2048")
