"""Has XLA compile the stage of a plan for a TPU slice that is not there."""

import json
import os
import sys
from typing import Any

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
sys.path.insert(0, sys.argv[1])

import nest_core as nest
from nest_core.api.compiler import stage_program
from nest_core.calibration.compiler.program import compile_step
from nest_core.costs.head_room import fits_chance


def scenario(case: dict[str, str]) -> nest.Scenario:
    """Return the scenario of a row."""
    slice_table = {
        "generation": case["generation"],
        "shape": [int(size) for size in case["shape"].split("x")],
    }
    document = {
        "schema": 1,
        "name": case["id"],
        "accelerator": f"tpu-{case['generation']}",
        "fabric": {"schema": 1, "name": "slice", "kind": "tpu_slice", "tpu_slice": slice_table},
        "workload": {
            "model": case["model"],
            "sequence_length_tokens": int(case["sequence"]),
            "global_batch_sequences": int(case["batch"]),
            "precision": "bf16",
        },
    }
    return nest.load(document, {"workload.model.blocks": int(case["blocks"])})


def answer(case: dict[str, str]) -> dict[str, Any]:
    """Return what XLA and we say of a row."""
    loaded = scenario(case)
    problem = loaded.values.problem()
    report, stage, job, mesh = stage_program(loaded, case["plan"])
    program = compile_step(job, mesh)
    memory = report.stages[stage].memory
    return {
        "id": case["id"],
        "bytes": program.arguments + program.temporaries,
        "taken": bool(program.text),
        "ours_bytes": memory.tensors,
        "chance": fits_chance(memory.total, problem.memory_bytes, problem.memory_spread),
    }


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.argv[2]))))
