"""Nodes and processes that launch commands state, whichever launcher says so."""

from __future__ import annotations

import pytest

from nest_core.calibration.logs.launch import Launch, read_launch


@pytest.mark.parametrize(
    "command",
    [
        "srun -N 16 --ntasks-per-node 8 ./run",
        "srun -N16 --ntasks-per-node=8 ./run",
        "srun --nodes=16 --gpus-per-node=8 --ntasks-per-node=1 torchrun train.py",
        "srun -N 16 --gres=gpu:h100:8 ./run",
        "srun -N 16 -n 128 all_reduce_perf -b 8 -e 8G -n 20 -N 5 -g 1",
        "torchrun --nnodes 16 --nproc-per-node 8 --node-rank 3 train.py --num-layers 32",
        "torchrun --nnodes=16:16 --nproc_per_node=8 train.py",
        "NNODES=16\ntorchrun --nnodes $NNODES \\\n  --nproc-per-node 8 train.py -n 5",
        "srun --nodes $SLURM_NNODES torchrun --nnodes 16 --nproc-per-node 8 train.py",
        "mpirun -np 128 -npernode 8 ./run",
        "mpirun -np 128 -N 8 ./run",
        "deepspeed --num_nodes 16 --num_gpus 8 train.py",
    ],
)
def test_launchers_state_nodes_and_processes(command):
    assert read_launch(command) == Launch(16, 8, 128)


def test_what_is_not_stated_stays_open():
    assert read_launch("torchrun --nnodes 4 --nproc-per-node gpu a.py") == Launch(4, None, None)
    assert read_launch("torchrun --standalone --nproc-per-node 8 a.py") == Launch(None, 8, None)
