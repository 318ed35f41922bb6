#!/usr/bin/env bash
# DeepSpeed 0.19.8, ZeRO 3: no one key makes it give gathered weights back between the passes.
#
# "stage3_max_reuse_distance": 0 and "stage3_max_live_parameters": 0 are how its documentation has
# weights given back early: nothing may stay for a use to come, or nothing at all. One would expect
# either to give every layer's weights back after the forward pass, so that they are
# gathered again for the backward pass. From the second micro-batch on, when the order is known,
# either alone changes nothing: six layers are gathered once per micro-batch, as by default, since
# what the prefetch bucket (50 million elements) reaches counts as about to be used. With the reuse
# distance AND "stage3_prefetch_bucket_size" at 0 they are gathered twice; the bucket alone at 0
# changes nothing either. The first micro-batch gathers twice under any of them.
#
# Guessed before it was run: with the reuse distance at 0 bytes double once the order is known (an
# expert who was told of the model and the keys); before that, that the persistence threshold at 0
# beside it is enough.
# Who prices ZeRO 3 with two gathers a micro-batch, or measures memory on a small model, sets both
# keys; the first micro-batch shows nothing of what comes after.
#
# Two ranks on gloo; bytes are taken down where PyTorch is asked for an all-gather.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy ninja \
  setuptools deepspeed==0.19.8
cat >"$folder/gathers.py" <<'PYTHON'
import json
import os
import socket
import sys

os.environ |= {"DS_ACCELERATOR": "cpu"}
import torch
import torch.distributed as dist
import torch.multiprocessing as processes

sent = {"bytes": 0}
gather = dist.all_gather_into_tensor


def counted(*args, **fields):
    output = fields.get("output_tensor", args[0] if args else None)
    sent["bytes"] += output.numel() * output.element_size()
    return gather(*args, **fields)


dist.all_gather_into_tensor = counted
import deepspeed


def work(rank, port, settings, queue):
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }
    deepspeed.init_distributed("gloo", verbose=False)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(192, 192, bias=False) for _ in range(6)))
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0} | settings,
    }
    optimizer = torch.optim.AdamW(model.parameters())
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    steps = []
    for _ in range(4):
        sent["bytes"] = 0
        engine.backward(engine(torch.randn(4, 192)).square().mean())
        steps.append(sent["bytes"] / (6 * 192 * 192 * 4))
        engine.step()
    if rank == 0:
        queue.put(steps)


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    queue = processes.get_context("spawn").SimpleQueue()
    processes.spawn(work, (port, json.loads(sys.argv[1]), queue), nprocs=2)
    print(json.dumps(queue.get()))
PYTHON
export TORCH_EXTENSIONS_DIR="$folder/extensions" PATH="$folder/env/bin:$PATH"
gathered() {
  local seen
  seen=$("$folder/env/bin/python" -W ignore "$folder/gathers.py" "$1" 2>"$folder/errors" | tail -n 1) \
    || { tail -n 5 "$folder/errors" >&2; return 1; }
  echo "$1: $seen of the model's weights gathered in micro-batches 1 to 4"
  [ "$seen" = "$2" ]
}
gathered '{}' '[2.0, 1.0, 1.0, 1.0]'
gathered '{"stage3_max_reuse_distance": 0}' '[2.0, 1.0, 1.0, 1.0]'
gathered '{"stage3_max_live_parameters": 0}' '[2.0, 1.0, 1.0, 1.0]'
gathered '{"stage3_prefetch_bucket_size": 0}' '[2.0, 1.0, 1.0, 1.0]'
gathered '{"stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}' '[2.0, 2.0, 2.0, 2.0]'
echo "as described"
