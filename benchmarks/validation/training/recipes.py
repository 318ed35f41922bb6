"""What published runs leave to the recipes that they name.

Megatron-Bridge's performance summaries print plan and batch, and leave dispatcher, CUDA graphs,
recomputed modules, overlap and the precision of gradients to the recipe of that model on that
device (``scripts/performance/configs`` at 0426418 for DeepSeek-V3, 01b2977 for Qwen3, 07eea52 for
GPT-OSS; what older containers had is known where the plan changed with it). Configuration alone;
what a row states itself goes before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from nest_core.calibration.training.runs import MeasuredRow, Run

__all__ = ["with_recipe"]

SOURCE = re.compile(r"NVIDIA-NeMo/Megatron-Bridge.*[ ,](\d\d\.\d\d)(?:\.\d+)? container", re.I)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Facts of a kind of run; of several that fit, later ones go before.

    Parameters
    ----------
    runs : str
        Pattern of model, accelerator and precision, in lower case with blanks between.
    facts : tuple of (str, str)
        As notes state them (`nest_core.calibration.training.cells.NOTES`).
    recompute : str
        Empty: as other recipes have it.
    since, before : str
        Containers, of which ``before`` is none any more.
    micro_batch, ep : int
        Of the plan that it is for; 0: any.
    """

    runs: str
    facts: tuple[tuple[str, str], ...] = ()
    recompute: str = ""
    since: str = ""
    before: str = "99"
    micro_batch: int = 0
    ep: int = 0

    def fits(self, run: Run, container: str) -> bool:
        """Whether a run of a container is of this kind."""
        words = f"{run.model} {run.accelerator} {run.precision_name}".lower()
        return (
            re.search(self.runs, words) is not None
            and self.since <= container < self.before
            and self.micro_batch in (0, run.point.micro_batch)
            and self.ep in (0, run.point.ep)
        )


HYBRID, DEEPEP = ("dispatch", "hybrid"), ("dispatch", "once_per_node")
LAYERS, ITERATION = ("launch", "layer_graphs"), ("launch", "iteration_graphs")
HIDDEN = ("expert overlap", "yes")
RACK = r"gb[23]00"

RECIPES = (
    Recipe("qwen3-", recompute="none"),
    Recipe(rf"qwen3-.* {RACK}", (HYBRID, LAYERS), since="26.02"),
    Recipe("qwen3-30b.* b300", (HYBRID, LAYERS)),
    Recipe("qwen3-30b.* b200", (HYBRID, LAYERS), micro_batch=4),
    Recipe("qwen3-30b.* h100", (HYBRID,), ep=16),
    Recipe("qwen3-30b.* h100.* bf16", (LAYERS,), ep=16),
    Recipe("qwen3-235b.* h100", (HIDDEN,)),
    Recipe(rf"qwen3-.* ({RACK}|b300)\S* mxfp8", (ITERATION,), since="26.06"),
    Recipe("deepseek-v3", (HYBRID,), recompute="mla_up_proj"),
    Recipe(rf"deepseek-v3 {RACK}", (LAYERS,), since="26.02"),
    Recipe("deepseek-v3 b200", (DEEPEP, HIDDEN, LAYERS), "mla_up_proj+mlp", ep=32),
    Recipe("deepseek-v3 h100", (DEEPEP, HIDDEN), recompute="mla_up_proj+mlp"),
    Recipe(rf"deepseek-v3 ({RACK}|b300)\S* mxfp8", (ITERATION, HIDDEN), since="26.06"),
    Recipe("gpt-oss-120b", recompute="none"),
    Recipe("gpt-oss-120b (gb200|b200|h100)", recompute="layernorm+moe_act"),
    Recipe("gpt-oss-120b (gb300|b300)", (LAYERS,)),
    Recipe("gpt-oss-120b gb200", (HIDDEN,), since="26.04"),
    Recipe("gpt-oss-120b b300", (HYBRID,), ep=8),
    Recipe(rf"gpt-oss-120b {RACK}\S* mxfp8", (HYBRID, ITERATION, HIDDEN), "none", since="26.06"),
)


def with_recipe(row: MeasuredRow) -> MeasuredRow:
    """A measured run with what it leaves to its recipe; others as they are."""
    run = row.run
    named = SOURCE.search(run.source)
    if named is None:
        return row
    facts, recompute = dict[str, str](), ""
    for recipe in RECIPES:
        if recipe.fits(run, named[1]):
            facts |= dict(recipe.facts)
            recompute = recipe.recompute or recompute
    stated = "recompute" not in run.assumed
    return replace(
        row,
        run=replace(
            run,
            facts=tuple((facts | dict(run.facts)).items()),
            recompute=run.recompute if stated else recompute,
            # `grad_reduce_in_fp32 = False` in what all of its performance recipes share.
            gradient_bytes=run.gradient_bytes or 2.0,
        ),
    )
