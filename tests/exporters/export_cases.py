"""Scenarios and plans that the tests of exports share."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from nest_core.costs import Plan, Point, price
from nest_core.costs.price import Report
from nest_core.interop.exporters import ExportFiles, export_plan
from nest_core.scenario import ScenarioValues, load_scenario

DATA = Path(__file__).resolve().parents[1] / "data" / "export"
ORDERS = [
    ("tp", "cp", "dp", "pp"),
    ("tp", "cp", "pp", "dp"),
    ("tp", "dp", "cp", "pp"),
    ("tp", "dp", "pp", "cp"),
    ("tp", "pp", "cp", "dp"),
    ("tp", "pp", "dp", "cp"),
]
MEGATRON = ORDERS[0]


def known(name: str) -> set[str]:
    """The lines of a list in the data folder that are no comments."""
    lines = (DATA / f"{name}.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


@functools.cache
def scenario(
    model: str = "llama3-8b", fabric: str = "h100-spine-leaf-64", *sets: str
) -> ScenarioValues:
    """A scenario on a preset's fabric with a large batch; ``sets`` are settings."""
    return load_scenario(
        "llama2-7b-64-h100",
        [
            f'workload.model="{model}"',
            f'fabric="{fabric}"',
            "workload.global_batch_sequences=512",
            "workload.sequence_length_tokens=512",
            'search.device_order="natural"',
            *sets,
        ],
    )


def plan(asked: ScenarioValues, /, **fields: Any) -> Plan:
    """A plan of a scenario, from the fields of a point; cuts are as even as they go."""
    from nest_core.costs.parse import parse_plan

    return parse_plan(fields, asked.model.blocks + 2)


def priced(asked: ScenarioValues, chosen: Plan) -> Report:
    """The report of a plan."""
    return price(asked.problem(chosen.recompute), chosen)


def exported(target: str, asked: ScenarioValues, /, **fields: Any) -> ExportFiles:
    """The files of a plan given by fields."""
    return export_plan(target, asked, priced(asked, plan(asked, **fields)))


@st.composite
def drawn_plans(draw: st.DrawFn, asked: ScenarioValues, devices: int = 64) -> Plan:
    """Any plan of a scenario of 64 devices with powers of two for degrees."""
    layers, model = asked.model.blocks + 2, asked.model
    rooms = [2**k for k in range(devices.bit_length())]
    tp = draw(st.sampled_from([n for n in rooms if n <= 8 and model.heads % n == 0]))
    pp = draw(st.sampled_from([n for n in rooms if n <= 8 and tp * n <= devices]))
    cp = draw(st.sampled_from([n for n in rooms if n <= 4 and tp * pp * n <= devices]))
    dp = draw(st.sampled_from([n for n in rooms if tp * pp * cp * n <= devices]))
    sp = draw(st.booleans()) and tp > 1
    apart = sp and model.experts > 1 and draw(st.booleans())
    etp = draw(st.sampled_from([n for n in rooms if tp % n == 0])) if apart else tp
    wide = [n for n in rooms if tp * dp * cp % (n * etp) == 0 and model.experts % n == 0]
    ep = draw(st.sampled_from(wide)) if model.experts > 1 else 1
    schedule = draw(
        st.sampled_from(
            ["1f1b", "gpipe", "interleaved", "interleaved_zb", "zbv"] if pp > 1 else ["1f1b"]
        )
    )
    v = draw(st.integers(2, 3)) if schedule.startswith("interleaved") else 1
    v = 2 if schedule == "zbv" else v
    inner = draw(
        st.sets(st.integers(1, layers - 1), min_size=pp * v - 1, max_size=pp * v - 1)
        | st.just(None)
    )
    zero, sharers = draw(st.integers(0, 3)), dp * cp
    parts = [n for n in rooms if 1 < n < sharers and tp * cp * dp // (ep * etp) * n % sharers == 0]
    point = Point(
        tp=tp,
        sp=sp,
        dp=dp,
        pp=pp,
        micro_batch=draw(st.sampled_from([1, 2])),
        zero=zero,
        zero_group=draw(st.sampled_from([0, *parts])) if zero else 0,
        order=draw(st.sampled_from(ORDERS)),
        device_order=draw(st.sampled_from(["natural", "natural", "rack", "rail"])),
        cp=cp,
        ep=ep,
        schedule=schedule,
        interleave=v,
        etp=etp,
    )
    if inner is None:
        from nest_core.costs.plan import even_cuts

        cuts = even_cuts(layers, pp * v)
    else:
        cuts = (0, *sorted(inner), layers)
    common = draw(st.sampled_from(["none", "selective", "full"]))
    mixed = draw(st.integers(0, 9)) == 0
    kinds = st.sampled_from(["none", "selective", "full"])
    recompute = tuple(draw(kinds) if mixed else common for _ in range(pp))
    return Plan(point, cuts, recompute)
