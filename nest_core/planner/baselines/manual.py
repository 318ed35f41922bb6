"""Manual: what people who train with Megatron-LM set by its published rules.

**The original** is advice in papers and documentation, made definite here:

1. Model parallelism is as small as memory allows [2]_: tensor parallelism within the node first,
   in widths that divide it; when that is used up the pipeline, in depths that divide the blocks (or
   the layers, embedding and head counted); context parallelism where nothing else fits; data
   parallelism takes all that is left [1]_.
2. Sequence parallelism goes with tensor parallelism [3]_, the distributed optimizer (ZeRO 1) with
   data parallelism. Experts are divided among as many ranks as still share a node with the
   tensor-parallel ones [2]_.
3. A pipeline may be interleaved, with the middle one of the numbers of virtual stages that divide
   its stages [2]_, where the micro-batches go round in whole pipelines.
4. Micro-batch, recomputation and whether to interleave are found by trial [1]_: of what fits the
   fastest.

For the paper's models on the paper's numbers of devices there is a second candidate: the depth and
width that the paper's Manual has there (its table 2 and figure 5), with all else by rules 1 to 4.
The faster of the two is Manual's plan; the origin says which it is.

**Simplified**: blocks are split evenly and recomputation is the same in all stages, as
Megatron-LM's common flags have it; axis order and device order are its defaults.

**Why that is fair to it**: nobody's tuning by hand beyond these rules is reproduced, but trial is
exact here, over all micro-batches, where people try a few.

References
----------
.. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
   Megatron-LM", SC 2021, takeaways 1 to 3.
.. [2] NVIDIA, Megatron Core, guide to mixture of experts, "Select Optimal Parallelism Strategy",
   guidelines 1 to 5.
.. [3] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
   MLSys 2023.
.. [4] NEST, MLSys 2026, table 2 and figure 5.
"""

from collections.abc import Iterator
from dataclasses import asdict

from nest_core.costs import Plan, Point, Problem, degrees_in_words
from nest_core.documents.presets import load_toml, preset_path
from nest_core.planner import SearchSpace
from nest_core.planner.baselines.baseline import (
    Found,
    PlanPrices,
    canonical,
    default_order,
    even_choices,
    grouped,
    natural,
    row_length,
    valid,
)
from nest_core.planner.layouts import even_patterns
from nest_core.workload import Model

__all__ = ["Degrees", "find", "middle_interleave", "published_degrees", "steps"]

Degrees = tuple[int, int, int]
"""tp, cp, pp."""

_PAPER_FILE = {
    "BERT-large": "bert.toml",
    "Llama 2 7B": "llama2.toml",
    "Llama 3 70B": "llama3.toml",
    "Mixtral 8x7B": "mixtral.toml",
    "GPT-3 175B": "gpt3.toml",
}


def find(problem: Problem, space: SearchSpace, model: Model) -> Found:
    """Return the faster of the rules' plan and, where there is one, the published placement.

    Where neither fits, the plan that comes closest to fitting.
    """
    prices = PlanPrices(problem)
    by_rules = _by_rules(prices, space)
    printed = _by_print(prices, space, model) or by_rules
    return min((by_rules, printed), key=lambda entry: _rank(prices, entry.plan))


def _rank(prices: PlanPrices, plan: Plan | None) -> tuple[float, float]:
    """Return how far a plan is from fitting, and where it fits its seconds."""
    if plan is None:
        return float("inf"), 0.0
    overflow = prices.overflow(plan)
    return overflow, 0.0 if overflow else prices.seconds(plan)


def _by_rules(prices: PlanPrices, space: SearchSpace) -> Found:
    """Return the first degrees, from the least model parallelism up, at which something fits."""
    closest: list[Plan] = []
    for degrees in steps(prices.problem, space):
        plans = _trials(prices.problem, space, degrees)
        fitting = [plan for plan in plans if not prices.overflow(plan)]
        if fitting:
            best = min(fitting, key=prices.seconds)
            return Found(best, f"Megatron-LM's rules: {_degrees(best)} is the least that fits")
        closest += plans
    if not closest:
        return Found(None, "Megatron-LM's rules", "no degrees in the search limits follow them")
    nearest = min(closest, key=prices.overflow)
    return Found(nearest, "Megatron-LM's rules: nothing fits, this comes closest")


def steps(problem: Problem, space: SearchSpace) -> Iterator[Degrees]:
    """tp, cp and pp in the order in which they are tried."""
    node = row_length(problem.network)
    depths = sorted(pp for pp in space.pp if pp <= problem.layers)
    depths = [pp for pp in depths if pp == 1 or even_patterns(problem.layers, pp, 1)] or depths
    for cp in sorted(space.cp):
        widths = sorted(tp for tp in space.tp if node % (tp * cp) == 0) or [min(space.tp)]
        yield from ((tp, cp, depths[0]) for tp in widths)
        yield from ((widths[-1], cp, pp) for pp in depths[1:])


def _by_print(prices: PlanPrices, space: SearchSpace, model: Model) -> Found | None:
    """Return the published depth and width; None unless this model was published on so many
    devices.
    """
    printed = published_degrees(model, prices.problem.network.devices)
    if printed is None or printed[0] not in space.pp or printed[1] not in space.tp:
        return None
    plans = _trials(prices.problem, space, (printed[1], min(space.cp), printed[0]))
    if not plans:
        return None
    best = min(plans, key=lambda plan: _rank(prices, plan))
    return Found(best, f"the paper's Manual: {_degrees(best)}, published for this model and size")


def published_degrees(model: Model, devices: int) -> tuple[int, int] | None:
    """Depth and width of the paper's Manual, where it has a model on that many devices."""
    file = _PAPER_FILE.get(model.name)
    if file is None:
        return None
    for cell in load_toml(preset_path("paper", file))["cell"]:
        if cell["devices"] == devices and "Manual" in cell["baselines"]:
            placement = cell["baselines"]["Manual"]
            return int(placement["p"]), int(placement["t"])
    return None


def _trials(problem: Problem, space: SearchSpace, degrees: Degrees) -> list[Plan]:
    """Plans of these degrees: every micro-batch and recomputation, each with the largest dp."""
    tp, cp, pp = degrees
    sp = True in space.sp and tp > 1
    points: dict[Point, None] = {}
    for micro in space.micro_batch:
        dp = _largest_dp(problem, space, degrees, micro)
        if not dp or (not sp and False not in space.sp):
            continue
        zero = 1 if 1 in space.zero and dp * cp > 1 else min(space.zero)
        etp = max(space.expert_tensor(tp, sp), default=tp)
        for ep in _experts_per_node(problem, space, etp, tp * cp * dp):
            for schedule, virtual_stages in _schedules(problem, space, pp):
                point = Point(
                    tp,
                    sp,
                    dp,
                    pp,
                    micro,
                    zero,
                    default_order(space),
                    natural(space),
                    cp,
                    ep,
                    schedule,
                    virtual_stages,
                    etp,
                )
                point = grouped(space, point)
                if valid(problem, space, point):
                    points[canonical(space, point)] = None
    return [
        Plan(point, cuts, (recompute,) * pp)
        for point in points
        for cuts in even_choices(problem, point)
        for recompute in space.recompute
    ]


def _largest_dp(problem: Problem, space: SearchSpace, degrees: Degrees, micro: int) -> int:
    """Return the most replicas that devices and batch allow; 0 if none."""
    width = degrees[0] * degrees[1] * degrees[2]
    devices = problem.network.devices
    fitting = [
        dp
        for dp in space.dp
        if problem.divides(dp, micro)
        and (dp * width <= devices if space.idle_devices else dp * width == devices)
    ]
    return max(fitting, default=0)


def _experts_per_node(
    problem: Problem, space: SearchSpace, etp: int, ranks: int
) -> tuple[int, ...]:
    """Return the largest expert parallelism that shares a node with its tensor parallelism, if
    any.
    """
    dividing = [ep for ep in space.ep if ranks % (ep * etp) == 0]
    inside = [ep for ep in dividing if ep * etp <= row_length(problem.network)]
    return (max(inside),) if inside else tuple(sorted(dividing)[:1])


def _schedules(problem: Problem, space: SearchSpace, pp: int) -> list[tuple[str, int]]:
    """Without virtual stages, and with as many as the rules have."""
    schedules = [(space.plain, 1)] if space.plain else []
    if "interleaved" in space.schedules and pp > 1:
        dividing = sorted(
            v for v in set(space.interleave) if v > 1 and even_patterns(problem.layers, pp, v)
        )
        schedules += [("interleaved", middle_interleave(dividing))] if dividing else []
    return schedules


def middle_interleave(dividing: list[int]) -> int:
    """Return the middle one of rising numbers of virtual stages, the lower of two.

    Examples
    --------
    >>> middle_interleave([2, 3, 6])
    3
    """
    return dividing[(len(dividing) - 1) // 2]


def _degrees(plan: Plan) -> str:
    return degrees_in_words(asdict(plan.point))
