"""Figure 5 where Alpa-E is printed ahead, with own costs: what sharding inside layers adds."""

from __future__ import annotations

from collections.abc import Sequence

from nest_core.paper.own import own_result, own_scenario
from nest_core.paper.reproduction import Row

__all__ = ["template_rows"]


def template_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Llama 3 on 128 devices: whole layers, tensor parallelism up to a node, Alpa-E's program.

    Parameters
    ----------
    rows : sequence of Row
        Of figure 5 with own costs.

    Returns
    -------
    tuple of dict
        ``{space, samples_per_s, of_ours, reason}``, the last why Alpa-E's has no plan.
    """
    row = next(row for row in rows if (row["model"], row["devices"]) == ("llama3", 128))
    rates = {}
    for space, override in (
        ("whole layers only (tp 1)", {"search.tp": 1}),
        ("tp up to 8", {}),
    ):
        best = own_result(own_scenario("tpuv4_fatTree", "llama3", 128, 1, override)).best
        rates[space] = best.samples_per_s if best else None
    alpa = row["baselines"]["alpa_e"]
    reached = alpa["right_order"]
    rates["Alpa-E's program"] = reached * row["throughput"] / row["ours"] if reached else None
    ours = rates["tp up to 8"]
    return tuple(
        {
            "space": space,
            "samples_per_s": rate,
            "of_ours": rate / ours if rate and ours else None,
            "reason": None if rate else alpa.get("right_order_reason"),
        }
        for space, rate in rates.items()
    )
