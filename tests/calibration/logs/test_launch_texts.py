"""Launch commands and configurations as settings, and those as columns."""

from __future__ import annotations

import json

import pytest

from nest_core.calibration.logs.launch import settings_in
from nest_core.calibration.logs.settings import columns_of, preset_of
from nest_core.documents.errors import InputError

SAME = {
    "Megatron-LM": "torchrun --nproc-per-node 8 --nnodes=4 pretrain_gpt.py --seq-length 4096 "
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --global-batch-size 64",
    "shell": "TP=4\ntorchrun --nproc-per-node 8 --nnodes 4 train.py \\\n"
    "  --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size 2 \\\n"
    "  --seq-length 4096 --global-batch-size 64",
    "Bridge": "num_nodes=4 gpus_per_node=8 model.tensor_model_parallel_size=4 "
    "+model.pipeline_model_parallel_size=2 model.seq_length=4096 train.global_batch_size=64",
    "YAML": "num_nodes: 4\ngpus_per_node: 8\nmodel:\n  tensor_model_parallel_size: 4\n"
    "  pipeline_model_parallel_size: 2\n  seq_length: 4096\nglobal_batch_size: 64",
    "torchtitan": "torchrun --nnodes 4 --nproc_per_node 8 -m torchtitan.train "
    "--parallelism.tensor_parallel_degree 4 --parallelism.pipeline-parallel-degree=2 "
    "--training.seq_len 4096 --training.global_batch_size 64",
    "TOML": "nnodes = 4\ngpus_per_node = 8\n[parallelism]\ntensor_parallel_degree = 4  # of 8\n"
    "pipeline_parallel_degree = 2\n[training]\nseq_len = 4096\nglobal_batch_size = 64",
    "MLPerf": "export DGXNNODES=4\nexport DGXNGPU=8\nexport TENSOR_MODEL_PARALLEL=4\n"
    "export PIPELINE_MODEL_PARALLEL=2\n: ${SEQ_LENGTH:=4096}\nexport GLOBAL_BATCH_SIZE=64",
}


@pytest.mark.parametrize("form", SAME)
def test_every_form_says_the_same(form):
    columns = columns_of(settings_in(SAME[form]))
    wanted = {"gpus": "32", "tp": "4", "pp": "2", "seq_len": "4096", "global_batch_seqs": "64"}
    assert wanted.items() <= columns.items()


@pytest.mark.parametrize(
    ("words", "precision"),
    [
        ("trainer.precision=bf16-mixed", "bf16"),
        ("trainer.precision=bf16", "bf16"),
        ("trainer.plugins.precision=16-mixed", "fp16-mixed"),
        ("trainer.precision=32", None),
    ],
)
def test_precisions_as_lightning_calls_them(words, precision):
    """NeMo's own key was not read, and its run "must state its precision"."""
    assert columns_of(settings_in(f"python train.py {words}")).get("precision") == precision


FSDP = {
    "accelerate": "accelerate launch --num_machines 4 --num_processes 32 --mixed_precision bf16 "
    "--fsdp_sharding_strategy FULL_SHARD --fsdp_activation_checkpointing true train.py "
    "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 2 "
    "--gradient_accumulation_steps 2 --max_seq_length 4096",
    "transformers": "torchrun --nnodes 4 --nproc-per-node 8 train.py --bf16 "
    '--fsdp "full_shard auto_wrap" --gradient_checkpointing --model_name_or_path Llama-3.1-8B '
    "--per_device_train_batch_size 2 --gradient_accumulation_steps 2 --max_seq_length 4096",
    "YAML": "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
    "  fsdp_reshard_after_forward: true\n  fsdp_activation_checkpointing: true\n"
    "mixed_precision: bf16\nnum_machines: 4\nnum_processes: 32\nmax_seq_length: 4096\n"
    "per_device_train_batch_size: 2\ngradient_accumulation_steps: 2\nmodel: llama3.1-8b\n",
    "torchtitan": "torchrun --nnodes 4 --nproc_per_node 8 -m torchtitan.train --module llama3 "
    "--config llama3_1_8b --training.local_batch_size 4 --training.seq_len 4096 "
    "--parallelism.data_parallel_shard_degree 32 --training.mixed_precision_param bfloat16 "
    "--activation_checkpoint.mode full",
    "TOML": 'nnodes = 4\ngpus_per_node = 8\n[model]\nname = "llama3.1"\nflavor = "8B"\n'
    '[training]\nlocal_batch_size = 4\nseq_len = 4096\n[activation_checkpoint]\nmode = "full"\n'
    "[parallelism]\ndata_parallel_shard_degree = 32\n",
}


@pytest.mark.parametrize("form", FSDP)
def test_commands_of_fsdp(form):
    """A failure: of what accelerate, transformers and torchtitan take, degrees alone were read."""
    settings = settings_in(FSDP[form])
    columns = columns_of(settings)
    assert preset_of(settings["model"]) == "llama3.1-8b"
    wanted = {"gpus": "32", "global_batch_seqs": "128", "seq_len": "4096", "recompute": "full"}
    assert wanted.items() <= columns.items()
    assert "zero3" in columns["dist_opt_or_zero"]
    assert columns["micro_batch"] == ("4" if form in ("torchtitan", "TOML") else "2")


@pytest.mark.parametrize(
    ("strategy", "sharded"),
    [("SHARD_GRAD_OP", "zero2"), ("NO_SHARD", "none"), ("HYBRID_SHARD", "zero3")],
)
def test_strategies_of_fsdp_are_zero_stages(strategy, sharded):
    assert sharded in columns_of({"fsdp_sharding_strategy": strategy})["dist_opt_or_zero"]


def test_json_of_deepspeed_keeps_its_groups():
    document = {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": "auto",
        "zero_optimization": {"stage": 2},
        "fp16": {"enabled": False},
        "bf16": {"enabled": True},
        "tensor_parallel": {"autotp_size": 4},
    }
    columns = columns_of(settings_in(json.dumps(document)))
    assert columns == {
        "global_batch_seqs": "64",
        "dist_opt_or_zero": "zero2",
        "precision": "bf16",
        "tp": "4",
    }


def test_replicas_and_shards_make_the_data_parallel_degree():
    columns = columns_of(
        settings_in("data_parallel_replicate_degree=2 data_parallel_shard_degree=8")
    )
    assert columns == {"dp": "16", "dist_opt_or_zero": "fsdp2(zero3)"}


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("llama3 8B", "llama3-8b"),
        ("llama31_405b", "llama3.1-405b"),
        ("Llama3 405B", "llama3.1-405b"),
        ("deepseek_v3 671B", "deepseek-v3"),
        ("qwen3 30B-A3B", "qwen3-30b-a3b"),
        ("gpt3", "gpt3-175b"),
        ("llama3 debugmodel", ""),
        ("", ""),
    ],
)
def test_names_of_models_lead_to_presets(name, preset):
    assert preset_of(name) == preset


@pytest.mark.parametrize("text", ['{"train_batch_size": ', "--data-path 'unclosed"])
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(InputError, match="--launch"):
        settings_in(text)
