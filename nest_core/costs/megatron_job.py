"""What a Megatron-LM command trains, and which of its flags have no price here.

A command says more than a plan. Flags that name what is trained and by which software are
returned as a scenario's keys, so that a command for another job than the scenario's is refused
rather than priced as if it were this one. Flags that change nothing in a steady iteration are
ignored. Every other flag may move time or memory, and no verdict stands beside it: not knowing a
flag is no reason to leave it out of account.

Flags and their meaning: ``megatron/training/arguments.py`` of NVIDIA/Megatron-LM (Megatron Core
0.12 to 0.16).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nest_core.documents.errors import InputError, require

__all__ = ["REQUIRED", "JobFlags", "Setting", "hidden_traffic", "read_job", "yes"]

Setting = str | int | float | bool
Words = Mapping[str, tuple[str, ...]]

REQUIRED = frozenset({"num_layers", "hidden_size", "num_attention_heads", "micro_batch_size"})
"""Settings without which Megatron-LM does not start: a text that lacks one is a part only."""

_SIZES = {
    "--num-layers": "workload.model.blocks",
    "--hidden-size": "workload.model.hidden",
    "--num-attention-heads": "workload.model.heads",
    "--num-query-groups": "workload.model.kv_heads",
    "--kv-channels": "workload.model.head_dim",
    "--ffn-hidden-size": "workload.model.ffn",
    "--num-experts": "workload.model.experts",
    "--moe-router-topk": "workload.model.top_k",
    "--moe-router-num-groups": "workload.model.expert_groups",
    "--moe-router-group-topk": "workload.model.top_groups",
    "--moe-ffn-hidden-size": "workload.model.expert_ffn",
    "--moe-shared-expert-intermediate-size": "workload.model.shared_ffn",
    "--q-lora-rank": "workload.model.q_rank",
    "--kv-lora-rank": "workload.model.kv_rank",
    "--qk-head-dim": "workload.model.head_dim",
    "--qk-pos-emb-head-dim": "workload.model.rope_dim",
    "--v-head-dim": "workload.model.value_dim",
    "--vocab-size": "workload.model.vocabulary",
    "--padded-vocab-size": "workload.model.vocabulary",
    "--seq-length": "workload.sequence_length_tokens",
    "--encoder-seq-length": "workload.sequence_length_tokens",
    "--global-batch-size": "workload.global_batch_sequences",
}
_CHOICES: Mapping[str, Mapping[str, tuple[str, Setting] | None]] = {
    "--optimizer": {"adam": ("workload.optimizer", "adam"), "sgd": ("workload.optimizer", "sgd")},
    "--exp-avg-dtype": {
        "fp32": ("workload.optimizer", "adam"),
        "fp8": ("workload.optimizer", "adam_8bit"),
    },
    "--exp-avg-sq-dtype": {
        "fp32": ("workload.optimizer", "adam"),
        "fp8": ("workload.optimizer", "adam_8bit"),
    },
    "--main-params-dtype": {"fp32": None},
    "--main-grads-dtype": {
        "fp32": ("workload.gradient_bytes", 4),
        "bf16": ("workload.gradient_bytes", 2),
    },
    "--attention-backend": {
        "flash": ("workload.attention", "flash"),
        "fused": ("workload.attention", "flash"),
        "unfused": ("workload.attention", "unfused"),
        "auto": None,
    },
    "--cp-comm-type": {
        "p2p": ("workload.context", "ring"),
        "all_gather": ("workload.context", "all_gather"),
    },
    "--moe-token-dispatcher-type": {"alltoall": ("workload.dispatch", "all_to_all")},
    "--moe-layer-freq": {"1": ("workload.model.dense_blocks", 0)},
    "--fp8-format": {
        "hybrid": ("workload.precision", "fp8"),
        "e4m3": ("workload.precision", "fp8"),
    },
    "--fp8-recipe": {"delayed": None, "tensorwise": None},
    "--transformer-impl": {"transformer_engine": None},
    "--distributed-backend": {"nccl": None},
    "--timing-log-level": {"0": None},
}
"""By flag and value the setting it is; None: what the costs assume anyway."""

_SWITCHES: Mapping[str, tuple[str, Setting]] = {
    "--bf16": ("workload.precision", "bf16"),
    "--fp16": ("workload.precision", "fp16"),
    "--use-flash-attn": ("workload.attention", "flash"),
    "--grad-reduce-in-bf16": ("workload.gradient_bytes", 2),
    "--accumulate-allreduce-grads-in-fp32": ("workload.gradient_bytes", 4),
    "--swiglu": ("workload.model.gated", True),
    "--quick-geglu": ("workload.model.gated", True),
    "--squared-relu": ("workload.model.gated", False),
    "--untie-embeddings-and-output-weights": ("workload.model.tied", False),
    "--overlap-grad-reduce": ("workload.overlap", "fitted"),
    "--overlap-param-gather": ("workload.overlap", "fitted"),
    "--tp-comm-overlap": ("workload.overlap", "fitted"),
    "--overlap-moe-expert-parallel-comm": ("workload.expert_overlap", True),
    "--delay-wgrad-compute": ("workload.expert_overlap", True),  # which it is a part of
}
_UNSAID: Mapping[str, Setting] = {"workload.precision": "fp32", "workload.model.gated": False}
"""What Megatron-LM takes where a whole command does not say otherwise."""
_UNSAID_OF_EXPERTS: Mapping[str, Setting] = {"workload.expert_overlap": False}
_BACKENDS = {"deepep": "once_per_node", "hybridep": "hybrid"}
"""What ``--moe-token-dispatcher-type flex`` dispatches by, the first where it does not say."""
_REFINED = ("fp8", "adam_8bit")
"""Said beside a coarser word: fp8 products stand beside bf16, 8-bit states beside adam."""

_DENSE_FIRST = re.compile(r"\(?(?:(\[0\])(?:\*(\d{1,5}))?\+)?\[1\](?:\*\d{1,5})?\)?")
"""A layer frequency that puts dense blocks, or none, before all with experts."""

_HARMLESS = re.compile(
    r"""--(
    # data and tokenizer
    (train|valid|test|per-split)?-?data-(path|cache-path|args-path|args) | mock-data | split
    | (legacy-)?tokenizer(-.*)? | vocab-(file|extra-ids) | merge-file | make-vocab-size-divisible-by
    | num-workers | num-dataset-builder-threads | dataloader-type | no-mmap-bin-files
    | (no-)?create-attention-mask-in-dataloader | eod-mask-loss
    # the learning rate's course, and what the optimizer is told
    | (min-|decoupled-)*lr(-.*)? | (start-|end-)?weight-decay(-.*)? | clip-grad | adam-.* | sgd-.*
    | (initial-|min-)?loss-scale(-window)? | hysteresis | init-method-.* | seed
    | use-cpu-initialization | mscale(-all-dim)? | fp8-(amax-.*|margin)
    | train-(iters|samples) | (override|use-checkpoint)-opt-param-scheduler
    | use-precision-aware-optimizer
    # between iterations
    | eval-.* | log-.* | logging-level | timing-log-option | tensorboard-.* | wandb-.*
    | no-log-.* | (no-)?load(-.*)?
    | no-load-.* | (no-)?save(-.*)? | (no-)?ckpt-.* | use-dist-ckpt.* | dist-ckpt-.*
    | auto-detect-ckpt-format | async-save | finetune | exit-.* | manual-gc.* | rerun-mode
    # the launcher
    | node-rank | master-(addr|port) | rdzv-.* | standalone | max-restarts | tee | redirects | role
    | start-method | local-(rank|ranks)-.* | no-python | module | run-path | distributed-timeout-.*
    | nodes | ntasks(-per-node)? | gpus(-per-(node|task))? | cpus-per-task | gres | mem | exclusive
    | partition | account | time | job-name | output | error | export | label | mpi | cpu-bind
    | kill-on-bad-exit | wait | (no-)?container-.* | wrap
    # containers, and the lone -- before what runs in one
    | rm | interactive | tty | privileged | ipc | network | shm-size | ulimit | volume | mount
    | workdir | env(-file)? | runtime | container | namespace |
    # constants and shapes whose cost is the model family's
    | norm-epsilon | normalization | rotary-.* | use-rotary-position-embeddings | use-rope-scaling
    | (no-)?position-embedding(-type)? | max-position-embeddings
    | disable-bias-linear | add-qkv-bias | qk-layernorm | apply-layernorm-1p
    | attention-dropout | hidden-dropout | group-query-attention | multi-latent-attention
    | attention-softmax-in-fp32 | no-masked-softmax-fusion | use-mcore-models
    | moe-(aux-loss-coeff|z-loss-coeff|router-(load-balancing-type|score-function|(.*-)?bias.*))
    | moe-(deepep|hybridep)-num-sms
    | moe-router-topk-scaling-factor | moe-grouped-gemm | moe-pad-expert-input-to-capacity
    | softmax-type | glu-linear-offset | activation-func-clamp-value
    # how sharding is switched on and what hides behind compute, read with the plan
    | use-megatron-fsdp | no-overlap-p2p-communication
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class JobFlags:
    """Flags of a command that are not its plan's.

    Parameters
    ----------
    settings : dict
        What the command trains and how, by the keys of scenario files.
    harmless : tuple of str
        Flags that change nothing in a steady iteration.
    unpriced : tuple of str
        Flags, with their values, that may move time or memory and have no price here.
    """

    settings: dict[str, Setting]
    harmless: tuple[str, ...]
    unpriced: tuple[str, ...]


def read_job(words: Words, *, is_complete: bool) -> JobFlags:
    """Return what the flags that say nothing about a plan say about the job.

    Parameters
    ----------
    words : mapping
        The values of every flag, as they stand.
    is_complete : bool
        Whether the words are a command that starts, so that what it leaves out has its default.

    Raises
    ------
    InputError
        For a size that is no number, and for flags that say two things about one setting.
    """
    settings: dict[str, Setting] = {}
    sources: dict[str, str] = {}
    unpriced: list[str] = []
    harmless: list[str] = []
    for flag, values in words.items():
        entries = list(_settings(flag, values, words))
        if not entries:
            if _HARMLESS.fullmatch(flag) or _assumed(flag, values, words):
                harmless.append(flag)
            else:
                unpriced.append(" ".join((flag, *values[:3])))
        for key, value in entries:
            present = settings.get(key, value)
            if present in _REFINED and key in settings:
                continue
            if present != value and value not in _REFINED:
                raise InputError(
                    flag,
                    f"must agree with {sources[key]} before it",
                    " ".join(values) or "set",
                    "drop one of the two",
                )
            settings[key], sources[key] = value, flag
    if is_complete:
        settings = {
            **_UNSAID,
            **(_UNSAID_OF_EXPERTS if "--num-experts" in words else {}),
            **settings,
        }
    return JobFlags(settings, tuple(harmless), tuple(unpriced))


_UNSAID_OVERLAP = {"tp_comm_overlap": "", "overlap_p2p_comm": "True", "overlap_grad_reduce": ""}


def yes(text: str) -> bool:
    """Return whether a switch is on."""
    return text.strip().lower() not in ("", "0", "false", "no", "none", "null", "off")


def hidden_traffic(settings: Mapping[str, str], *, is_complete: bool) -> dict[str, bool]:
    """Return which classes of traffic Megatron-LM hides behind compute; without those left open.

    A switch says something only where Megatron-LM heeds it: ``tp_comm_overlap`` of tensor-parallel
    ranks that divide sequences, ``overlap_p2p_comm`` of interleaved stages, ``overlap_grad_reduce``
    outside PyTorch's FSDP.

    Parameters
    ----------
    settings : mapping
        As a log's arguments or a command have them, in lower case with underscores.
    is_complete : bool
        Whether what is left out has its default, as in a command that starts.

    Examples
    --------
    >>> hidden_traffic({"overlap_grad_reduce": "True"}, is_complete=False)
    {'dp': True}
    >>> sharded = {"tensor_model_parallel_size": "4", "sequence_parallel": "True"}
    >>> hidden_traffic(sharded, is_complete=True)
    {'tp': False, 'dp': False}
    """
    stated = {**(_UNSAID_OVERLAP if is_complete else {}), **settings}
    on = {name for name, text in stated.items() if yes(text)}
    if "no_overlap_p2p_communication" in on:
        stated["overlap_p2p_comm"] = ""
    shards = settings.get("tensor_model_parallel_size", "1") != "1" and "sequence_parallel" in on
    virtual = any("virtual_" in name or name.endswith("layout") for name in on)
    switches = {
        "tp": ("tp_comm_overlap", shards),
        "pp": ("overlap_p2p_comm", virtual),
        "dp": ("overlap_grad_reduce", "use_torch_fsdp2" not in on),
    }
    return {
        traffic: yes(stated[name])
        for traffic, (name, heeds) in switches.items()
        if heeds and name in stated
    }


def _settings(flag: str, values: tuple[str, ...], words: Words) -> Iterator[tuple[str, Setting]]:
    if flag in _SIZES:
        yield _SIZES[flag], _size(flag, values)
    elif flag in _SWITCHES and not values:
        yield _SWITCHES[flag]
    elif (
        flag == "--window-size"
        and "--window-attn-skip-freq" not in words
        and (window := re.fullmatch(r"\(?(\d{1,8}),0\)?", "".join(values)))
    ):
        yield "workload.model.window", int(window[1]) + 1
    elif flag == "--moe-layer-freq" and (dense := _DENSE_FIRST.fullmatch("".join(values))):
        yield "workload.model.dense_blocks", int(dense[2] or bool(dense[1]))
    elif flag == "--moe-token-dispatcher-type" and values == ("flex",):
        backend = "".join(words.get("--moe-flex-dispatcher-backend", ("deepep",)))
        if backend in _BACKENDS:
            yield "workload.dispatch", _BACKENDS[backend]
    elif flag == "--moe-expert-capacity-factor" and len(values) == 1:
        yield "workload.capacity", _factor(flag, values[0])
    elif len(values) == 1 and (choice := _CHOICES.get(flag, {}).get(values[0])) is not None:
        yield choice


def _assumed(flag: str, values: tuple[str, ...], words: Words) -> bool:
    """Whether a flag asks for what the costs assume anyway."""
    if flag == "--no-gradient-accumulation-fusion":
        return "--use-megatron-fsdp" in words  # which has no such fusion
    if flag in ("--moe-flex-dispatcher-backend", "--moe-enable-deepep"):  # read with flex
        return not values or values[0] in _BACKENDS
    return len(values) == 1 and values[0] in _CHOICES.get(flag, {})


def _size(flag: str, values: tuple[str, ...]) -> int:
    text = " ".join(values)
    require(
        text.isascii() and text.isdecimal() and (len(text) < 9) and (int(text) > 0),
        flag,
        "must be a whole number from 1",
        text or "nothing",
        "write the number in place of the variable",
    )
    return int(text)


def _factor(flag: str, text: str) -> float:
    require(
        re.fullmatch("\\d{1,6}(\\.\\d{1,6})?", text),
        flag,
        "must be a positive number",
        text,
        "write the number",
    )
    return float(text)
