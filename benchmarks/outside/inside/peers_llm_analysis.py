"""llm-analysis on a plan of Llama 2 7B; its own environment runs this file.

``PYTHON peers_llm_analysis.py PLAN_JSON`` prints seconds of a step, of the clock and of the
processor, as JSON. Half of the peak is its usual assumption; it finds the model by its name.
"""

import json
import sys
import time

from llm_analysis.analysis import train


def main():
    """Estimate a step, and print."""
    plan = json.loads(sys.argv[1])
    clock, processor = time.perf_counter(), time.process_time()
    estimate = train(
        model_name="decapoda-research_llama-7b-hf",
        gpu_name="a100-sxm-80gb",
        batch_size_per_gpu=plan["micro_batch"],
        global_batch_size=plan["batch"],
        seq_len=plan["sequence"],
        total_num_tokens=plan["batch"] * plan["sequence"],
        dp_size=plan["dp"],
        tp_size=plan["tp"],
        pp_size=plan["pp"],
        ds_zero=plan["zero"],
        mlp_gated_linear_units=True,
        flops_efficiency=0.5,
        log_level="ERROR",
    )
    wall_s, cpu_s = time.perf_counter() - clock, time.process_time() - processor
    step_s = estimate["latency_per_iter"]
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "plans": 1, "step_s": step_s}))


if __name__ == "__main__":
    main()
