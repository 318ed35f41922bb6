"""One row of a table of measured training runs as a run.

What a row leaves unstated takes the defaults of `DEFAULTS`, the same for all rows; a run lists
which it needed.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from nest_core.calibration.training.cells import (
    FRAMEWORKS,
    OPTIMIZERS,
    ORDERS,
    PRECISIONS,
    RECOMPUTATIONS,
    ROWWISE,
    ZERO,
    NotNumber,
    decide,
    figure,
    flag,
    positive_integer,
    stated,
)
from nest_core.calibration.training.machines import accelerator_of
from nest_core.calibration.training.runs import Run
from nest_core.costs import MEGATRON_ORDER, Point
from nest_core.documents import GB, InputError
from nest_core.hardware.stacks import Stack, all_stacks, default_stack, load_stack
from nest_core.workload.recomputation import recomputation

__all__ = ["DEFAULTS", "Unusable", "run_of"]

MAX_DEVICES = 1_048_576
MAX_LAYERS = 1_998

DEFAULTS: Mapping[str, str] = {
    "kv_heads": "as many as heads",
    "ffn_hidden": "four times hidden",
    "vocab": "51,200, GPT-2's as Megatron-LM pads it",
    "gated_mlp": "gated where ffn_hidden is not four times hidden",
    "gpus_per_node": "the accelerator's usual node",
    "intra_bw_GBps": "the accelerator's usual links",
    "inter_bw_GBps_per_gpu": "the accelerator's usual network port",
    "cp": "1",
    "ep": "1, and for experts as many as share a node",
    "dp": "what the other degrees leave of the devices",
    "vp_interleave": "1, and 2 where the notes name an interleaved schedule",
    "micro_batch": "1, and under FSDP2's pipelines what makes as many as there are stages",
    "recompute": "the first of none, selective and full that fits into memory",
    "seq_parallel": "no",
}
"""What an empty cell is taken for.

``nics_stated`` of the MLPerf tables stands for no rate: where one is known, its author filled in
``inter_bw_GBps_per_gpu``, and what is left names ports of hosts (Gaudi 2), of PCIe (Oracle) or of
another network ("100GbE InfiniBand": read as 12.5 GB/s, that run comes out 2.4 times too slow).
"""

_OWN = ("own run", "launch command")
"""How sources of rows begin that were read of a person's own logs and commands."""

T = TypeVar("T")


class Unusable(ValueError):
    """A row that states too little or contradicts itself."""


def _require(holds: object, words: str) -> None:
    """Refuse a row for what the words say of it, where a rule does not hold."""
    if not holds:
        raise Unusable(words)


class _Cells:
    """The cells of one row, read by rule; notes which defaults were needed."""

    def __init__(self, cells: Mapping[str, str]) -> None:
        self._cells = cells
        self.assumed: list[str] = []

    def text(self, column: str) -> str:
        return (self._cells.get(column) or "").strip()

    def size(self, column: str, max_value: int = 10**9, default: int | None = None) -> int:
        value = self._read(column, lambda text: positive_integer(text, max_value))
        _require(value is not None or default is not None, f"states no {column}")
        return self._or(column, value, default if default is not None else 0)

    def rate(self, column: str) -> float:
        value = self._read(column, figure)
        words = f"states {column} as {self.text(column)}, which is not positive"
        _require(value is None or value > 0, words)
        return self._or(column, value, 0.0) * GB

    def yes(self, column: str, default: bool) -> bool:
        return self._or(column, self._read(column, flag), default)

    def _or(self, column: str, value: T | None, default: T) -> T:
        if value is None:
            self.assumed.append(column)
            return default
        return value

    def _read(self, column: str, read: Callable[[str], T | None]) -> T | None:
        try:
            return read(self.text(column))
        except NotNumber as error:
            raise Unusable(f"states {column} as {error}, which is not such a number") from error


def run_of(cells: Mapping[str, str], identity: str) -> Run:
    """Return the run that a row describes.

    Parameters
    ----------
    cells : mapping
        Columns (`nest_core.calibration.training.reading.RUN_COLUMNS` and those that may be missing)
        to text.
    identity : str
        What to call the run.

    Raises
    ------
    Unusable
        If the row states too little or contradicts itself.
    """
    row = _Cells(cells)
    notes = row.text("notes")
    precision = decide(PRECISIONS, row.text("precision"))
    if precision is None:
        raise Unusable(f"states precision as {row.text('precision')!r}, which is none known")
    _require(
        precision != "fp8" or not decide(ROWWISE, f"{row.text('precision')} {notes}"),
        "states fp8 products scaled row by row, whose kernels and casts are unknown",
    )
    hidden, heads = row.size("hidden"), row.size("heads")
    ffn = row.size("ffn_hidden", default=4 * hidden)
    experts, top_k = _experts(row)
    devices = row.size("gpus", MAX_DEVICES)
    degrees = _degrees(row, devices, experts)
    degrees["etp"] = _expert_tensor(notes, degrees)
    schedule = stated("schedule", notes)
    interleave = row.size("vp_interleave", 1_000, default=2 if schedule == "interleaved" else 1)
    if schedule in (None, "1f1b", "interleaved"):
        schedule = "interleaved" if interleave > 1 else "1f1b"
    fsdp2 = "fsdp2" in row.text("dist_opt_or_zero").lower()
    batch = row.size("global_batch_seqs")
    stages = degrees["pp"] * interleave if fsdp2 else 1
    zero = decide(ZERO, row.text("dist_opt_or_zero"))
    if zero is None:
        raise Unusable(f"states dist_opt_or_zero as {row.text('dist_opt_or_zero')!r}")
    recompute = _recompute(row.text("recompute"))
    if not recompute:
        row.assumed.append("recompute")
    words = (row.text("dist_opt_or_zero"), notes, row.text("accelerator"))
    framework = decide(FRAMEWORKS, " ".join(words)) or "megatron"
    stack = _stack(row, framework)
    point = Point(
        tp=degrees["tp"],
        pp=degrees["pp"],
        cp=degrees["cp"],
        dp=degrees["dp"],
        ep=degrees["ep"],
        etp=degrees["etp"],
        sp=row.yes("seq_parallel", False),
        micro_batch=row.size("micro_batch", default=_micro_batch(batch // degrees["dp"], stages)),
        zero=int(zero),
        order=_order(row, notes),
        schedule=schedule,
        interleave=interleave,
    )
    sharp = row.text("sharp")  # says more of reduction by switches than the notes do
    facts = (
        "tied",
        "activation",
        "position",
        "attention kind",
        "routing",
        "compiled",
        "launch",
        "dispatch",
        "expert overlap",
    )
    reduction = stated("in-network reduction", f"sharp: {sharp}" if sharp else notes)
    more_facts = {"in-network reduction": reduction == "yes", "fsdp2": fsdp2}
    return Run(
        id=identity,
        source=row.text("source"),
        model=row.text("model"),
        layers=row.size("layers", MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=row.size("kv_heads", default=heads),
        ffn=ffn,
        gated=row.yes("gated_mlp", ffn != 4 * hidden),
        vocabulary=row.size("vocab", default=51_200),
        sequence=row.size("seq_len"),
        experts=experts,
        top_k=top_k,
        accelerator=row.text("accelerator"),
        devices=devices,
        per_node=row.size("gpus_per_node", MAX_DEVICES, default=0),
        intra_Bps=row.rate("intra_bw_GBps"),
        inter_Bps=row.rate("inter_bw_GBps_per_gpu"),
        point=point,
        batch=batch,
        precision_name=row.text("precision"),
        precision=precision,
        optimizer=decide(OPTIMIZERS, row.text("precision")) or "adam",
        gradient_bytes=_gradient_bytes(row, notes, framework),
        recompute=recompute,
        framework=framework,
        stack=stack.name,
        attention="flash" if stated("attention", notes) == "flash" else stack.attention,
        embedding_stage=stated("embedding stage", notes) == "yes",
        overlap=_overlap(row, stack, precision),
        head_dim=_noted(r"head_dim (\d+)", notes),
        dense_layers=_noted(r"(\d+) dense \+", notes),
        facts=(
            *((fact, word) for fact in facts if (word := stated(fact, notes))),
            *((fact, "yes") for fact, holds in more_facts.items() if holds),
        ),
        quality=row.text("quality"),
        subset=row.text("set"),
        assumed=tuple(row.assumed),
    )


def _recompute(text: str) -> str:
    """Return it as `nest_core.workload.recomputation` spells it, or in the words of sources."""
    try:
        return recomputation(text) if text else ""
    except InputError:
        choice = decide(RECOMPUTATIONS, text)
    if choice is None:
        raise Unusable(f"states recompute as {text!r}, which is none known")
    return choice


def _experts(row: _Cells) -> tuple[int, int]:
    if not row.text("experts") or row.text("experts").lower() == "nan":
        return 1, 1
    experts, top_k = row.size("experts"), row.size("topk")
    _require(top_k <= experts, f"routes to {top_k} of {experts} experts")
    return experts, top_k


def _degrees(row: _Cells, devices: int, experts: int) -> dict[str, int]:
    degrees = {name: row.size(name, MAX_DEVICES) for name in ("tp", "pp")}
    degrees["cp"] = row.size("cp", MAX_DEVICES, default=1)
    rest = degrees["tp"] * degrees["pp"] * degrees["cp"]
    degrees["dp"] = row.size("dp", MAX_DEVICES, default=max(1, devices // rest))
    product = " x ".join(str(degrees[name]) for name in ("tp", "pp", "cp", "dp"))
    _require(
        rest * degrees["dp"] == devices,
        f"has tp x pp x cp x dp = {product}, which are not its {devices} devices",
    )
    usual = 1
    if experts > 1:  # as many as divide the experts and share a node of eight
        ranks = degrees["dp"] * degrees["cp"]
        usual = max(n for n in range(1, 9) if experts % n == 0 and ranks % n == 0)
    degrees["ep"] = row.size("ep", MAX_DEVICES, default=usual)
    return degrees


def _expert_tensor(notes: str, degrees: Mapping[str, int]) -> int:
    """Return ranks that share an expert's width, which no column states.

    What the notes say, else tp, or the largest divisor of it with which ep divides tp x cp x dp.

    Examples
    --------
    >>> _expert_tensor("", {"tp": 2, "cp": 1, "dp": 16, "ep": 32})
    1
    """
    stated_degree, tp = _noted(r"\betp=(\d+)", notes), degrees["tp"]
    if stated_degree:
        return stated_degree
    ranks = tp * degrees["cp"] * degrees["dp"]
    fitting = [n for n in range(1, tp + 1) if tp % n == 0 and ranks % (n * degrees["ep"]) == 0]
    return max(fitting, default=tp)


def _order(row: _Cells, notes: str) -> tuple[str, ...]:
    """Return along which axes ranks are numbered; Megatron-LM's where nothing is stated."""
    stated_order = row.text("rank_order")
    order = decide(ORDERS, f"rank order {stated_order}" if stated_order else notes)
    _require(
        order or not stated_order, f"states rank_order as {stated_order!r}, which is none known"
    )
    return tuple(order.split()) if order else MEGATRON_ORDER


def _micro_batch(local_batch: int, stages: int) -> int:
    """Return sequences, where a row does not tell.

    torchtitan of 2024 cuts a replica's batch into as many micro-batches as the pipeline has
    stages (``--experimental.pipeline_parallel_microbatches``, its help text); others feed one.

    Examples
    --------
    >>> _micro_batch(32, 8), _micro_batch(32, 1), _micro_batch(30, 8)
    (4, 1, 1)
    """
    return local_batch // stages if stages > 1 and local_batch % stages == 0 else 1


def _gradient_bytes(row: _Cells, notes: str, framework: str) -> float:
    """Return bytes of a gradient as it is reduced, where the row tells; 0 where it does not.

    Mixed precision by autocast under FSDP (``bf16-amp``) reduces in the compute precision.
    """
    precision = row.text("precision")
    stated_bytes = stated("gradients", precision) or stated("gradients", notes)
    if stated_bytes:
        return float(stated_bytes)
    return 2.0 if framework == "fsdp" and "amp" in precision else 0.0


def _stack(row: _Cells, framework: str) -> Stack:
    """Return the software that a row names, else the one that its source is known for.

    That is the newest stack of its framework on such accelerators one of whose patterns is found
    in source, notes and way of sharding; else the one that a scenario of these devices has, of
    the framework's. What stands for publications that say nothing is not said of own runs.
    """
    name, is_own = row.text("stack"), row.text("source").startswith(_OWN)
    if name:
        try:
            stack = load_stack(name)
        except InputError as error:
            raise Unusable(f"states stack as {name!r}, which is none known") from error
        if not is_own or stack.framework == framework:  # else the scenario's, not the log's
            return stack
    words = " | ".join(row.text(column) for column in ("source", "notes", "dist_opt_or_zero"))
    try:
        family = accelerator_of(row.text("accelerator")).family.name
    except InputError:  # which the prediction refuses in words of its own
        family = ""
    of_framework = [stack for stack in all_stacks() if stack.framework == framework]
    able = [stack for stack in of_framework if family in stack.families] or of_framework
    ran = (s for s in able if s.ran(words) and not (is_own and s.ran("")))
    return next(ran, default_stack(family, able))


def _noted(pattern: str, notes: str) -> int:
    match = re.search(pattern, notes)
    return int(match[1]) if match and len(match[1]) < 6 else 0


def _overlap(row: _Cells, stack: Stack, precision: str) -> tuple[bool, bool, bool]:
    """Return whether tensor-, pipeline- and data-parallel traffic overlaps.

    What the notes say, else the stack. A publication that names what it overlaps means that the
    rest does not, but for gradients; own logs and commands state all that their switches decide.
    """
    notes = row.text("notes")
    is_list = "overlap on" in notes.lower() and not row.text("source").startswith(_OWN)
    tensor, pipeline, data = (
        stack.overlaps(traffic, precision) and not (is_list and traffic != "dp")
        if (word := stated(f"{kind} overlap", notes)) is None
        else word == "yes"
        for kind, traffic in (("tensor", "tp"), ("pipeline", "pp"), ("data", "dp"))
    )
    return tensor, pipeline, data
