"""Logs that are none, or of another run than is said: one sentence each, whatever is in them."""

from __future__ import annotations

import random

import pytest
from printed_logs import bridge, deepspeed, dump, iteration, megatron, mllog, nemo, text, torchtitan

from nest_core.calibration.logs import RunFacts, read_run_log
from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier

COMMAND = (
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --nnodes 4 --nproc-per-node 8 "
    "--micro-batch-size 1 --bf16 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--ffn-hidden-size 14336 --seq-length 8192"
)


@pytest.fixture
def refused(tmp_path):
    """``refused(content, launch)``: why a log is not read."""

    def sentence(content, launch="", fabric=None, **columns):
        path = tmp_path / "run.log"
        path.write_bytes(content if isinstance(content, bytes) else text(content).encode())
        columns = {"accelerator": "H100", **columns}
        with pytest.raises(InputError) as error:
            read_run_log(path, RunFacts(launch, columns, fabric=fabric))
        said = str(error.value)
        assert said.endswith(".")
        assert ". " not in said
        assert "\n" not in said
        return said

    return sentence


@pytest.mark.parametrize(
    ("lines", "launch", "said"),
    [
        (megatron([9.0, 8.0]), "", "steps after warm-up"),
        (dump(), "", "without one, after the start of Megatron-LM"),
        (megatron()[:20], "", "without one, after the start of Megatron-LM"),
        (["epoch 1 loss 3.2", "all done"], "", "without any"),
        (
            [*megatron(), *megatron(tensor_model_parallel_size=8)],
            "",
            "2 runs that differ in tensor_model",
        ),
        ([*mllog(), *mllog(start_ms=1_790_000_900_000)], "bf16=true", "one run"),
        ([*torchtitan(), *torchtitan(mesh=[("dp_shard", 32)])], "", "2 runs that differ in"),
        ([*megatron(), *torchtitan()], "", "printed by Megatron-LM and torchtitan"),
        (deepspeed()[:5] + deepspeed()[9:], "seq_len=4096", "global batch size"),
        (
            [line for line in deepspeed() if "zero_" not in line],
            "deepspeed --num_nodes 4 --num_gpus 8 train.py --max_seq_length 4096 "
            "--deepspeed_config conf/ds.json",
            "its ZeRO stage, but is 'in conf/ds.json, which is not read'",
        ),
        (nemo(), "seq_length=8192", "sizes of its model"),
        (mllog(plan=False), "bf16=true", "its plan"),
        (mllog(), "", "its precision"),
        (deepspeed(), "", "its sequence length"),
        (megatron(world_size=36), "", "divides"),
        (megatron(world_size=64), "", "which are not its 64 devices"),
        (megatron(micro_batch_size=3), "", "whole micro-batches"),
        (megatron(global_batch_size=256), "", "steps of its batch of 256"),
        (megatron(num_layers="many"), "", "whole number"),
        (megatron(recompute_granularity="selective", recompute_modules=["ffn"]), "", "modules"),
        (megatron(), "--tensor-model-parallel-size 2", "must agree with run.log on tp"),
        (bridge(), COMMAND.replace("bf16", "fp32"), "its precision"),
        ([iteration(at, 5.5, unit="us") for at in range(1, 20)], "", "times in ms or s"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_log_that_says_too_little_or_two_things(refused, lines, launch, said):
    assert said in refused(lines, launch)


def test_what_is_no_log(refused):
    assert "empty" in refused(b"")
    assert "binary" in refused(b"\x7fELF\x00\x00\x01" * 50)
    assert "gzip" in refused(b"\x1f\x8b" + b"packed" * 9)


def test_another_machine_than_is_given(refused):
    assert "H100 80GB HBM3" in refused(torchtitan(), accelerator="A100")
    two_nodes = Hierarchical("two", (Tier("node", 8, 450e9, 1e-6), Tier("network", 2, 50e9, 5e-6)))
    assert "16 devices of --on" in refused(megatron(), fabric=two_nodes)
    assert "preset" in refused(megatron(), accelerator="Abacus")


def test_without_an_accelerator_one_is_asked_for(refused):
    assert "name it with --accelerator" in refused(megatron(), accelerator="")


LOGS = {
    "Megatron-LM": (megatron, ""),
    "Megatron-Bridge": (bridge, COMMAND),
    "NeMo": (nemo, COMMAND),
    "torchtitan": (torchtitan, ""),
    "DeepSpeed": (deepspeed, COMMAND.replace("4 ", "1 ").replace("size 2", "size 1")),
    "MLPerf": (mllog, "bf16=true"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("framework", LOGS)
def test_whatever_is_broken_in_a_log_is_an_answer_or_a_sentence(tmp_path, framework, seed):
    random.seed(seed)
    printed, launch = LOGS[framework]
    whole = text(printed()).encode()
    path = tmp_path / "run.log"
    for turn in range(40):
        content = bytearray(whole[: random.randrange(len(whole))] if turn % 2 else whole)
        for _ in range(random.randrange(12) if content else 0):
            at = random.randrange(len(content) or 1)
            match random.randrange(3):
                case 0:
                    content[at : at + 1] = bytes([random.randrange(256)])
                case 1:
                    del content[at : at + random.randrange(60)]
                case _:
                    start = random.randrange(len(whole))
                    content[at:at] = whole[start : start + random.randrange(300)]
        path.write_bytes(content)
        sentence, seconds = "", 1.0
        try:
            seconds = read_run_log(path, RunFacts(launch, {"accelerator": "H100"})).outcome.seconds
        except InputError as error:
            sentence = str(error)
        assert "\n" not in sentence
        assert seconds > 0
