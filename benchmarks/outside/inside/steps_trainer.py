"""One optimizer step of transformers' Trainer on accelerate with the exported ``ds_config.json``.

Its own arguments repeat what the file says, as it asks; batches are those of its own loader.
"""

import json
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from deepspeed.utils import groups
from steps_deepspeed import (
    build,
    keep_nothing,
    model_of,
    optimizer_bytes,
    parameter_bytes,
    reference,
)
from steps_ranks import Log, step_all
from transformers import Trainer, TrainerCallback, TrainingArguments


class Watch(TrainerCallback):
    """Opens a log for the step."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Open it."""
        self.log.__enter__()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Close it."""
        self.log.__exit__(None, None, None)


def arguments(config: dict[str, Any]) -> TrainingArguments:
    """Return what the file says, in the Trainer's words."""
    optimizer = config["optimizer"]["params"]
    return TrainingArguments(
        "out",
        deepspeed="ds_config.json",
        use_cpu=True,
        bf16=True,
        max_steps=1,
        per_device_train_batch_size=config["train_micro_batch_size_per_gpu"],
        gradient_accumulation_steps=config["gradient_accumulation_steps"],
        learning_rate=optimizer["lr"],
        adam_beta1=optimizer["betas"][0],
        adam_beta2=optimizer["betas"][1],
        adam_epsilon=optimizer["eps"],
        weight_decay=optimizer["weight_decay"],
        max_grad_norm=config["gradient_clipping"],
        report_to=[],
        save_strategy="no",
    )


def make(_: Path, case: dict[str, Any], log: Log) -> dict[str, Any]:
    """Make one step."""
    keep_nothing(case)
    config = json.loads(Path("ds_config.json").read_text())
    generator = torch.Generator().manual_seed(1)
    size = (4 * case["batch"], case["sequence"])
    data = torch.randint(0, case["config"]["vocab_size"], size, generator=generator)
    numbers = {tuple(row): number for number, row in enumerate(data.tolist())}
    model, seen = model_of(case), []
    model.register_forward_pre_hook(
        lambda _, args, fields: seen.append(fields["input_ids"].tolist()), with_kwargs=True
    )
    trainer = Trainer(
        model,
        arguments(config),
        train_dataset=[{"input_ids": row, "labels": row} for row in data],
        callbacks=[Watch(log)],
    )
    trainer.train()
    engine = trainer.model_wrapped
    sequences = [numbers[tuple(row)] for rows in seen for row in rows]
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, sequences)
    used = sorted({number for part in everyone for number in part})
    ranks = dist.get_process_group_ranks
    tp = groups.get_tensor_model_parallel_group() if case["plan"]["tp"] > 1 else None
    return {
        "micro_batches": len(seen),
        "sequences": len(used),
        "norm": float(engine.get_global_grad_norm()),
        "reference": reference(case, data[used]),
        "parameter_bytes": parameter_bytes(engine),
        "optimizer_bytes": optimizer_bytes(engine),
        "groups": {
            "data": sorted(ranks(engine.seq_data_parallel_group)),
            "tp": sorted(ranks(tp)) if tp else [dist.get_rank()],
        },
    }


if __name__ == "__main__":
    build()
    step_all(make)
