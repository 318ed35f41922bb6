"""Megatron-LM commands as people paste them: the plan, what is ignored, what contradicts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.costs.parse import read_pasted, read_plan
from nest_core.documents.errors import InputError

LAYERS = 98  # 96 blocks

SCRIPT = r"""
#!/bin/bash
# Runs a model of 175 billion parameters
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NNODES:-64}
TP=8
PP=16

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr localhost
)
GPT_MODEL_ARGS=(
    --num-layers 96 --hidden-size 12288
    --seq-length 2048
)
TRAINING_ARGS=(--micro-batch-size 2
    --global-batch-size 1536
    --adam-beta2 0.95
    --bf16
    --lr 6.0e-5 --split 949,50,1   # --pipeline-model-parallel-size 3
)
MODEL_PARALLEL_ARGS=(
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size ${PP}
    --num-layers-per-virtual-pipeline-stage 3
    --sequence-parallel
    --use-distributed-optimizer
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1)

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    ${MODEL_PARALLEL_ARGS[@]}
"""

COMMAND = (
    "CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc-per-node=8 --nnodes=64 pretrain_gpt.py \\\n"
    "  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 \\  \n"
    "  --num-virtual-stages-per-pipeline-rank 2 --micro-batch-size 2 \\\r\n"
    "  --global-batch-size 1536 --num-layers 96 --hidden-size 12288 --seq-length 2048 \\\n"
    "  --sequence-parallel --use-distributed-optimizer --bf16 --lr 6.0e-5 \\\n"
    "  --recompute-granularity full --recompute-method block --recompute-num-layers 3\n"
)


@pytest.mark.parametrize("text", [SCRIPT, COMMAND], ids=["script", "command"])
def test_a_whole_command_is_read(text):
    """Continuations, arrays, comments, variables and the launcher's own options."""
    found = read_pasted(text, LAYERS, 512)
    expected = read_plan(
        "dp=4,tp=8,pp=16,sp=true,zero=1,micro_batch=2,interleave=2,recompute=full", LAYERS, 512
    )
    assert found.plan == expected
    assert found.notes == ()
    assert "--lr" in found.ignored
    assert "--sequence-parallel" not in found.ignored
    assert found.unpriced == ()
    assert found.settings == {
        "workload.model.blocks": 96,
        "workload.model.hidden": 12288,
        "workload.precision": "bf16",
        "workload.sequence_length_tokens": 2048,
        "workload.global_batch_sequences": 1536,
    }


STRINGS = """
DISTRIBUTED_ARGS="
    --nproc_per_node 8 \\
    --nnodes 64 --node_rank $NODE_RANK
"
GPT_ARGS="--tensor-model-parallel-size ${1:-8} \\
    --pipeline-model-parallel-size ${PP:=16} --micro-batch-size 2 # 96 layers
"
GPT_ARGS="$GPT_ARGS --sequence-parallel"
GPT_ARGS+=" --use-distributed-optimizer"
NONE=""
"""
APPENDED = """
ARGS=(--nproc_per_node 8 --nnodes 64 --tensor-model-parallel-size 8)
ARGS+=(--pipeline-model-parallel-size 16 --micro-batch-size 2
    --sequence-parallel --use-distributed-optimizer)
"""


@pytest.mark.parametrize(
    "text",
    [
        STRINGS
        + "torchrun $DISTRIBUTED_ARGS pretrain_gpt.py $GPT_ARGS $NONE --bf16 2>&1 | tee log",
        STRINGS + 'cmd="torchrun $DISTRIBUTED_ARGS pretrain_gpt.py $GPT_ARGS"\neval $cmd',
        APPENDED + 'torchrun pretrain_gpt.py "${ARGS[@]}" > log.txt; echo done',
        APPENDED + "srun --ntasks-per-node=8 --container-image=nemo:24 python pretrain_gpt.py "
        "${ARGS[@]} --bf16;",
    ],
)
def test_flags_kept_in_variables_are_read(text):
    """What a shell would put in their place; a failure prices another plan without a word."""
    found = read_pasted(text, LAYERS, 512)
    expected = "dp=4,tp=8,pp=16,sp=true,zero=1,micro_batch=2"
    assert found.plan == read_plan(expected, LAYERS, 512)
    assert (found.notes, found.unpriced) == ((), ())


@pytest.mark.parametrize(
    "shell",
    [
        "ssh node1 '{}'",
        'pdsh -w node[1-8] "{}"',
        "srun -N8 bash -c '{}'",
        "ssh a \"ssh b '{}'\"",
        'sbatch -N 8 --wrap "{}"',
        "kubectl exec trainer-0 --namespace ml -- {}",
        "docker run --gpus all --rm --ipc=host --shm-size 64g -v /d:/d img {}",
    ],
)
def test_a_command_within_another_is_its_words(shell):
    """Degrees of quoted ones were dropped in silence; "-- torchrun may change time or memory"."""
    command = (
        "torchrun --nnodes=8 --nproc-per-node=8 pretrain_gpt.py --tensor-model-parallel-size 8"
        " --pipeline-model-parallel-size 4 --micro-batch-size 2"
    )
    read = read_pasted(shell.format(command), 34, 64)
    assert read.plan == read_plan("dp=2,tp=8,pp=4,micro_batch=2", 34, 64)
    assert read.unpriced == ()


@pytest.mark.parametrize("word", ["$GPT_ARGS", "${GPT_ARGS[@]}", '"$@"', "$MODEL_PARAMS"])
def test_a_variable_that_the_text_does_not_set_may_hold_anything(word):
    """So no verdict stands beside the plan, wherever the word is."""
    for text in (f"torchrun x.py {word} --lr 1", f"torchrun x.py --bf16 --lr 1e-4 {word}"):
        found = read_pasted(text, LAYERS, 512)
        assert found.unpriced == (word.strip('"'),)
    assert read_pasted("torchrun x.py --save $WHERE --data-path $DATA", 98, 8).unpriced == ()
    assert read_pasted('if [ -n "${KEY}" ]; then A=1; fi; torchrun x.py --lr 1', 98, 8).notes == ()


CONDITIONS = """
DTYPE=bf16
if [[ "$DTYPE" == "fp8" ]]; then
    ARGS+=("--fp8-format hybrid" --wandb-project x)
    ARGS+=(--tp-comm-overlap)
fi
if [ $TP -gt 1 ]
then
    SP="--sequence-parallel"
fi
torchrun x.py --tensor-model-parallel-size 2 $SP "${ARGS[@]}" --bf16
"""


def test_flags_under_a_condition_are_taken_and_said():
    """Two words in one pair of quotes are a flag and its value, as their writer meant."""
    found = read_pasted(CONDITIONS, LAYERS, 8)
    assert found.plan.point.sp
    assert found.settings["workload.precision"] == "fp8"
    assert found.notes == (
        "Taken as given, though under a condition: --fp8-format, --tp-comm-overlap, "
        "--sequence-parallel.",
    )
    assert found.unpriced == ()


def test_what_the_fabric_has_otherwise_is_noted():
    found = read_pasted(COMMAND, LAYERS, 1024)
    assert found.plan.point.dp == 4  # of the 512 ranks that the command starts
    assert "512 ranks; the fabric has 1,024" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("flags", "cuts"),
    [
        # Embedding and loss count as blocks: (96 + 2) / 7 layers each.
        ("--pipeline-model-parallel-size 7 --account-for-embedding-in-pipeline-split"
         " --account-for-loss-in-pipeline-split", (0, 14, 28, 42, 56, 70, 84, 98)),
        ("--pipeline-model-parallel-size 3 --decoder-first-pipeline-num-layers 20"
         " --decoder-last-pipeline-num-layers 36", (0, 21, 61, 98)),
        ("--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 40", (0, 41, 98)),
        ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*40|t*56L'",
         (0, 41, 98)),
        ("--pipeline-model-parallel-size 5 --pipeline-model-parallel-layout 'Et*9,(tt|)*3t*80|tL'",
         (0, 12, 14, 16, 96, 98)),
    ],
)  # fmt: skip
def test_uneven_stages(flags, cuts):
    """Each in Megatron-LM's own terms; blocks count from 1, embedding is layer 0."""
    assert read_plan(flags, LAYERS, 210).cuts == cuts


def test_uneven_ends_are_divided_into_chunks_round_by_round():
    """Stages of 40 and 56 blocks in two virtual stages each: 20, 28, 20, 28; ends at the ends."""
    plan = read_plan(
        "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 40 "
        "--decoder-last-pipeline-num-layers 56 --num-virtual-stages-per-pipeline-rank 2",
        LAYERS,
        2,
    )
    assert plan.cuts == (0, 21, 49, 69, 98)
    assert plan.virtual_stages(1) == ((21, 49), (69, 98))


@pytest.mark.parametrize("broken", ["\\\n", "\\  \n", "\\\r\n", "\\\t\n   "])
def test_a_value_may_stand_on_the_next_line(broken):
    text = f"--tensor-model-parallel-size {broken} 8 {broken} --sequence-parallel"
    assert read_plan(text, LAYERS, 64) == read_plan("tp=8,dp=8,sp=true", LAYERS, 64)


def test_a_layout_of_several_rounds_is_interleaved():
    """Part k of the string is virtual stage k: round by round, stage by stage."""
    plan = read_plan(
        "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Ett|(ttt|)*2tL'", 11, 2
    )
    assert (plan.point.interleave, plan.point.schedule) == (2, "interleaved")
    assert plan.cuts == (0, 3, 6, 9, 11)
    assert plan.virtual_stages(0) == ((0, 3), (6, 9))


REFUSED = [
    (
        "--tensor-model-parallel-size 4 --tensor-model-parallel-size 8",
        "must agree with --tensor-model-parallel-size 4 before it, but is 8",
    ),
    (
        "--recompute-activations --recompute-granularity full",
        "must give either --recompute-activations or --recompute-granularity full",
    ),
    (
        "--recompute-granularity selective --recompute-method uniform",
        "must give either --recompute-method or selective recomputation",
    ),
    ("--recompute-granularity everything", "must be selective or full, but is 'everything'"),
    (
        "--use-torch-fsdp2 --use-distributed-optimizer",
        "must give either --use-torch-fsdp2 or --use-distributed-optimizer",
    ),
    (
        "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
        "--num-layers-per-virtual-pipeline-stage 12",
        "must give either "
        "--num-virtual-stages-per-pipeline-rank or --num-layers-per-virtual-pipeline-stage",
    ),
    (
        "--pipeline-model-parallel-layout 'Et*96L' --decoder-first-pipeline-num-layers 3",
        "must give either --pipeline-model-parallel-layout or --decoder-first",
    ),
    ("--pipeline-model-parallel-layout 'Et*95L'", "must hold the model's 96 blocks, but is 95"),
    ("--pipeline-model-parallel-layout 'Et*96mL'", "must hold no multi-token prediction"),
    ("--pipeline-model-parallel-layout 't*96EL'", "must name the embedding E, blocks t and the"),
    ("--pipeline-model-parallel-layout 'Et*97L'", "must hold the model's 96 blocks, but is 97"),
    ("--pipeline-model-parallel-layout 't*96L'", "must name the embedding E, blocks t and the"),
    ("--pipeline-model-parallel-layout 'Et*96'", "must name the embedding E, blocks t and the"),
    ("--pipeline-model-parallel-layout 'Et*50,x,t*46L'", "must name the embedding E, blocks t"),
    (
        "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
        "--pipeline-model-parallel-layout 'Et*12|(t*12|)*6t*12L'",
        "must give either --num-virtual-stages-per-pipeline-rank or --pipeline-model-parallel-la",
    ),
    ("--pipeline-model-parallel-layout 'Et*99999*99999*99999L'", "must"),
    (
        "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*96L|'",
        "must leave a layer for every part",
    ),
    (
        "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*9|t*9|t*78L'",
        "must have a multiple of pp = 2 parts, but is 3",
    ),
    (
        "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 95",
        "must leave the other 3 stages equal parts of 96 blocks, but is '95'",
    ),
    (
        "--pipeline-model-parallel-size 5 --account-for-loss-in-pipeline-split",
        "must make 5 stages divide the counted layers, but is 97",
    ),
    (
        "--use-distributed-optimizer --num-distributed-optimizer-instances 3",
        "must divide dp x cp = 64, but is 3",
    ),
    ("--tensor-model-parallel-size $TP", "write the number in place of the variable"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_contradictions_are_named(text, message):
    with pytest.raises(InputError) as caught:
        read_plan(text, LAYERS, 64)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_modules_to_recompute_are_read():
    told = (
        "--recompute-granularity selective --recompute-modules moe_act core_attn --tp-comm-overlap"
    )
    found = read_pasted(told, LAYERS, 8)
    assert found.plan.recompute == ("core_attn+moe_act",)
    assert found.unpriced == ()
    alone = read_pasted("--recompute-activations --recompute-modules core_attn", LAYERS, 8)
    assert alone.plan.recompute == ("selective",)
    newer = read_pasted("--recompute-activations --recompute-modules mlp mlp_act", LAYERS, 8)
    assert newer.plan.recompute == ("mlp",)
    assert newer.unpriced == ("--recompute-modules mlp mlp_act",)
    idle = read_pasted("--recompute-modules mlp", LAYERS, 8)
    assert idle.plan.recompute == ("none",)
    assert idle.notes == ("--recompute-modules does nothing without selective recomputation.",)


def test_instances_of_the_distributed_optimizer_are_groups_of_zero():
    shared = "--context-parallel-size 2 --num-distributed-optimizer-instances 4"
    point = read_plan(f"--use-distributed-optimizer {shared}", LAYERS, 64).point
    assert (point.dp, point.zero, point.zero_group, point.instances) == (32, 1, 16, 4)
    idle = read_pasted(shared, LAYERS, 64)
    assert idle.plan.point.zero_group == 0
    assert idle.notes == (
        "--num-distributed-optimizer-instances does nothing without a sharded optimizer.",
    )
    alone = read_pasted(
        "--use-distributed-optimizer --num-distributed-optimizer-instances 64", LAYERS, 64
    )
    assert (alone.plan.point.zero, len(alone.notes)) == (0, 1)


def test_harmless_contradictions_are_notes():
    found = read_pasted("--sequence-parallel --recompute-method uniform", LAYERS, 8)
    assert not found.plan.point.sp
    assert len(found.notes) == 2


pieces = st.sampled_from(
    [
        "--pipeline-model-parallel-size",
        "--pipeline-model-parallel-layout",
        "2",
        "8",
        "Et*3|",
        "(t|)*",
        "L",
        "$PP",
        "${PP:-4}",
        "PP=4",
        "ARGS=(",
        ")",
        "\\\n",
        "#",
        "--lr",
        "--nnodes",
        "0",
        "'",
        "--decoder-last-pipeline-num-layers",
        "--num-virtual-stages-per-pipeline-rank",
        "--",
        "--account-for-embedding-in-pipeline-split",
        "--recompute-granularity",
        "full",
        "block",
    ]
)


def refusal(text: str) -> str:
    """Why it is no plan; empty if it is one."""
    try:
        read_pasted(text, 34, 64)
    except InputError as error:
        return str(error)
    return ""


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(st.lists(pieces, max_size=10).map(" ".join))
def test_any_command_is_a_plan_or_refused(text):
    """Nothing but `InputError` escapes, whatever is pasted."""
    assert "\n" not in refusal("--x " + text)
