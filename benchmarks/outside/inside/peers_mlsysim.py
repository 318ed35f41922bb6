"""mlsysim on a plan of Llama 2 7B; its own environment runs this file.

``PYTHON peers_mlsysim.py PLAN_JSON`` prints seconds of a step, of the clock and of the
processor, as JSON. Its own DGX A100 with HDR and half of the peak, its default; micro-batches are
the plan's.
"""

import json
import sys
import time

import mlsysim
from mlsysim.solvers import DistributedModel
from mlsysim.systems.types import Fleet


def main():
    """Estimate a step, and print."""
    plan = json.loads(sys.argv[1])
    clock, processor = time.perf_counter(), time.process_time()
    fleet = Fleet(
        name="job",
        node=mlsysim.Systems.Nodes.DGX_A100,
        count=plan["nodes"],
        fabric=mlsysim.Systems.Fabrics.InfiniBand_HDR,
    )
    estimate = DistributedModel().solve(
        mlsysim.Models.Language.Llama2_7B,
        fleet,
        batch_size=plan["batch"],
        tp_size=plan["tp"],
        pp_size=plan["pp"],
        zero_stage=plan["zero"],
        microbatch_count=plan["batch"] // (plan["dp"] * plan["micro_batch"]),
        seq_len=plan["sequence"],
    )
    wall_s, cpu_s = time.perf_counter() - clock, time.process_time() - processor
    step_s = estimate.step_latency_total.to("s").magnitude
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "plans": 1, "step_s": step_s}))


if __name__ == "__main__":
    main()
