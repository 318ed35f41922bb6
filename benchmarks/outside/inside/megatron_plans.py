"""Parses and validates exported launch scripts with Megatron-LM's own argument parser.

The wheel of megatron-core holds it. Scripts run to where they start torchrun, whose place a shell
function takes that prints what the program would be given.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import absent  # noqa: F401
from core_stages import pairs_of
from megatron.core.tokenizers.text.libraries.null_tokenizer import NullTokenizer
from megatron.training import arguments
from reading import expect, read_all

SHELL = "exec() { shift; printf '%q ' \"$@\"; builtin exit 0; }; source launch.sh "
DATA = "--mock-data --tokenizer-type NullTokenizer --vocab-size 30522"
"""What BERT's program must be given."""


def words(folder: Path) -> list[str]:
    """Return the training program and what it would be given."""
    bert = "pretrain_bert.py" in (folder / "launch.sh").read_text()
    environment = os.environ | {"NODE_RANK": "0", "MASTER_ADDR": "node0"}
    done = subprocess.run(
        ["bash", "-c", SHELL + (DATA if bert else "")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ValueError(done.stderr)
    given = shlex.split(done.stdout)
    program = next(place for place, word in enumerate(given) if "pretrain_" in word)
    return given[program:]


def given_arguments(folder: Path, case: dict[str, Any]) -> Any:
    """Return what Megatron-LM's parser makes of a case's launch script."""
    os.environ |= {"RANK": "0", "WORLD_SIZE": str(case["ranks"])}
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    for line in (folder / "launch.sh").read_text().splitlines():
        if line.startswith("export CUDA_DEVICE_MAX_CONNECTIONS="):
            os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = line.partition("=")[2]
    sys.argv = words(folder)
    args = arguments.parse_args()
    arguments.validate_args(args)
    return args


def read(folder: Path, case: dict[str, Any]) -> None:
    """Raise where Megatron-LM refuses the plan or reads another one."""
    args = given_arguments(folder, case)
    config = arguments.core_transformer_config_from_args(args)
    replicas, inside = args.data_parallel_size, args.use_tp_pp_dp_mapping
    expect(
        latent=(config.multi_latent_attention, case["latent"]),
        vocabulary=(NullTokenizer(args.vocab_size).vocab_size, case["vocabulary"]),
        **pairs_of(config, args, replicas, inside, case),
    )


if __name__ == "__main__":
    read_all(read)
