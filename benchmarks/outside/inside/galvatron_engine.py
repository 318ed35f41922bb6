"""The search engine of hetu-galvatron 2.4.0 on Llama 2 7B, timed; its environment runs this file.

``PYTHON galvatron_engine.py NODES BATCH MEMORY_GIB FOLDER [--fine]`` prints one line of
JSON: seconds of the clock and of the processor, plans, and sequences per second. The profiles
are those that the package ships (Llama 2 7B at 2,048 tokens, two nodes of eight GPUs), so no GPU is
needed. Two things stand in its way, and are mended in FOLDER: it reads memory by the length of the
sequence, which its own profile does not have, and it has bandwidths for two nodes alone, of which
the outermost go on for more. The package itself imports what trains (einops, flash-attn, Megatron);
its search needs none of that, so its packages are made without their ``__init__``.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import sys
import time
import types
from pathlib import Path

MODEL = "hidden4096_head32_seqlen2048"
GPUS = 8
"""In a node."""


def imported(base):
    """Return the modules of the search, without what trains."""
    for name in ("galvatron", "galvatron.core", "galvatron.utils"):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = [str(base.parent.joinpath(*name.split(".")))]
    from galvatron.utils import config_utils, strategy_utils

    for part in (config_utils, strategy_utils):
        vars(sys.modules["galvatron.utils"]).update(vars(part))
    from galvatron.core.search_engine import arguments, dynamic_programming, search_engine

    return arguments, dynamic_programming, search_engine


def profiled(base, folder, nodes):
    """Write the shipped profiles as the engine reads them."""
    memory = base / f"models/llama_hf/configs/memory_profiling_bf16_{MODEL}.json"
    table = {
        key: {"2048": value} if key.startswith(("layertype", "other_memory")) else value
        for key, value in json.loads(memory.read_text()).items()
    }
    (folder / memory.name).write_text(json.dumps(table))
    shipped = base / "profile_hardware/hardware_configs"
    reduce, send = (
        json.loads((shipped / f"{name}_bandwidth_2nodes_8gpus_per_node.json").read_text())
        for name in ("allreduce", "p2p")
    )
    count = 2 * GPUS
    while count <= nodes * GPUS:
        reduce.setdefault(f"allreduce_size_{count}_consec_1", reduce["allreduce_size_16_consec_1"])
        reduce.setdefault(f"allreduce_size_{count}_consec_0", reduce["allreduce_size_8_consec_0"])
        send.setdefault(f"pp_size_{count}", send["pp_size_16"])
        count *= 2
    size = f"{nodes}nodes_{GPUS}gpus_per_node.json"
    (folder / f"allreduce_bandwidth_{size}").write_text(json.dumps(reduce))
    (folder / f"p2p_bandwidth_{size}").write_text(json.dumps(send))
    inside = shipped / "sp_time_1nodes_8gpus_per_node.json"
    (folder / f"sp_time_{size}").write_text(inside.read_text())
    overlap = "overlap_coefficient.json"
    (folder / overlap).write_text((shipped / overlap).read_text())


def main():
    """Search, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nodes", type=int)
    parser.add_argument("batch", type=int)
    parser.add_argument("memory", type=int, help="GiB")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fine", action="store_true", help="a strategy for every layer")
    asked = parser.parse_args()
    base = Path(importlib.util.find_spec("galvatron_dp_core").origin).parent / "galvatron"
    arguments, dynamic_programming, search_engine = imported(base)
    profiled(base, asked.folder, asked.nodes)
    engine_arguments = argparse.ArgumentParser()
    arguments.galvatron_search_args(engine_arguments)
    settings = engine_arguments.parse_args([])
    vars(settings).update(
        num_nodes=asked.nodes,
        num_gpus_per_node=GPUS,
        memory_constraint=asked.memory,
        settle_bsz=asked.batch,
        pipeline_type="pipedream_flush",
        fine_grained_mode=int(asked.fine),
        hidden_size=4096,
        sequence_parallel=True,
        memory_profiling_path=str(asked.folder),
        output_config_path=str(asked.folder),
        log_dir=str(asked.folder / "logs"),
    )
    for name in ("allreduce_bandwidth_config", "p2p_bandwidth_config", "overlap_coe", "sp_time"):
        setattr(settings, f"{name}_path", f"{asked.folder}/")
    plans = 0
    program = dynamic_programming.DpOnModel
    built = program._build_dp_and_run_multi_layer_type

    def counted(self, degree, *rest, **more):
        """A plan for every strategy of a depth; with a strategy per layer, all of them are one."""
        nonlocal plans
        strategies = sum(strategy[0] == degree for strategy in self.strategies_set)
        plans += 1 if asked.fine else strategies
        return built(self, degree, *rest, **more)

    program._build_dp_and_run_multi_layer_type = counted
    engine = search_engine.GalvatronSearchEngine(settings)
    layers = [{"hidden_size": 4096, "seq_len": 2048, "layer_num": 32}]
    engine.set_search_engine_info(str(base / "models/llama_hf"), layers, MODEL)
    with contextlib.redirect_stdout(io.StringIO()):
        engine.initialize_search_engine()
        clock, processor = time.perf_counter(), time.process_time()
        rate = engine.parallelism_optimization()
        wall_s, cpu_s = time.perf_counter() - clock, time.process_time() - processor
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "plans": int(plans), "rate": float(rate)}))


if __name__ == "__main__":
    main()
