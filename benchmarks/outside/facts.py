"""What tools were seen to do (``facts.toml``), looked at again."""

import json
import tomllib
from pathlib import Path

from benchmarks.outside import deepspeed, maxtext, megatron, pipelining, torchtitan
from benchmarks.outside.tool import Missing, Row, Tool

TOOL = Tool("transformers", "5.24.0", ("transformers==5.24.0",), torch=True)
LLM_ANALYSIS = Tool("llm-analysis", "0.2.2", ("llm-analysis==0.2.2",))
TOOLS = {
    "torchtitan": torchtitan.TOOL,
    "torch": pipelining.TOOL,
    "deepspeed": deepspeed.TOOL,
    "megatron": megatron.TOOL,
    "transformers": TOOL,
    "maxtext": maxtext.TOOL,
    "llm_analysis": LLM_ANALYSIS,
}


def rows() -> list[Row]:
    """Return a row for each fact: whether it is as it was, or what it is now."""
    result = []
    for name, entries in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items():
        tool = TOOLS[name]
        try:
            now = json.loads(tool.run(f"facts_{name}.py").splitlines()[-1])
        except Missing as error:
            result.append(tool.row("facts", len(entries), None, str(error)))
            continue
        for key, fact in entries.items():
            same = now[key] == fact["value"]
            result.append(tool.row(fact["text"], 1, int(same), "" if same else f"now {now[key]}"))
    return result
