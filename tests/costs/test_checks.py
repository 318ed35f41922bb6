"""Plans that do not exist are refused in one sentence that names the field."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plain_chain import chain, plan, problem

from nest_core.costs import price
from nest_core.documents.errors import InputError

BAD = [
    ({"tp": 0}, (0, 4), "plan.tp must be at least 1, but is 0"),
    ({"cp": 0}, (0, 4), "plan.cp must be at least 1, but is 0"),
    ({"ep": 0}, (0, 4), "plan.ep must be at least 1, but is 0"),
    ({"zero": 4}, (0, 4), "plan.zero must be 0, 1, 2 or 3, but is 4"),
    ({"cp": 3, "dp": 4}, (0, 4), "the fabric's 8 devices, but is 12: lower dp, tp, cp or pp"),
    ({"dp": 8, "tp": 2}, (0, 4), "the fabric's 8 devices, but is 16: lower dp, tp or pp"),
    ({"dp": 4, "ep": 3}, (0, 4), "plan.ep must divide dp x cp = 4, but is 3"),
    ({"ep": 2}, (0, 4), "plan.ep must divide dp x cp = 1, but is 2"),
    ({"tp": 4, "sp": True, "etp": 3}, (0, 4),
     "plan.etp times ep = 1 must divide tp x cp x dp = 4, but is 3: choose another etp or ep"),
    ({"tp": 4, "sp": True, "dp": 2, "ep": 4, "etp": 4}, (0, 4),
     "plan.ep must divide dp x cp = 2, but is 4: choose a divisor, another dp, or an etp under tp"),
    ({"tp": 4, "etp": 2}, (0, 4),
     "plan.etp must be tp = 4 without sequence parallelism, as all tp ranks then hold the same"),
    ({"etp": -1}, (0, 4), "plan.etp must be at least 1, but is -1"),
    ({"dp": 3}, (0, 4), "plan.dp times micro_batch = 1 must divide the batch of 8, but is 3"),
    ({"schedule": "zb"}, (0, 4), "plan.schedule must be one of the schedules, but is 'zb'"),
    ({"interleave": 2}, (0, 2, 4), "plan.interleave must be 1 without a pipeline, but is 2"),
    ({"pp": 2, "interleave": 2}, (0, 1, 2, 3, 4), "plan.interleave must be above 1 under int"),
    ({"pp": 2, "schedule": "interleaved"}, (0, 2, 4), "plan.interleave must be above 1 under int"),
    ({"pp": 2, "schedule": "zbv", "interleave": 3}, (0, 4),
     "plan.interleave must be above 1 under interleaved schedules, 2 under zbv and dualpipev, and"),
    ({"pp": 2, "dp": 4, "schedule": "dualpipev", "interleave": 2}, (0, 4),
     "plan.pp must not exceed half the 2 micro-batches of a replica under dualpipev, but is 2"),
    ({"pp": 3, "schedule": "interleaved", "interleave": 2}, (0, 4),
     "plan.pp must divide the 8 micro-batches of a replica when interleaved, but is 3"),
    ({"pp": 2, "schedule": "interleaved", "interleave": 4}, (0, 4),
     "plan.interleave must leave a layer for each virtual stage of the 4 layers, but is 8"),
    ({"pp": 5}, (0, 4),
     "plan.pp must leave a layer for each virtual stage of the 4 layers, but is 5"),
    ({"pp": 2}, (0, 4), r"plan.cuts must rise from 0 to 4 in 2 steps, but is \[0, 4\]"),
    ({"pp": 2}, (0, 4, 4), "plan.cuts must rise from 0 to 4 in 2 steps"),
    ({"pp": 2, "schedule": "interleaved", "interleave": 2}, (0, 2, 4),
     r"must rise from 0 to 4 in 4 steps, but is \[0, 2, 4\]: give the first layer of every "
     "virtual stage"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "cuts", "message"), BAD, ids=[m[:60] for *_, m in BAD])
def test_plans_that_do_not_exist_are_refused(fields, cuts, message):
    with pytest.raises(InputError, match=message) as caught:
        price(problem(chain()), plan(cuts, **fields))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("names", [("none",) * 2, ("some",), ()])
def test_recomputation_is_named_once_per_stage(names):
    asked = replace(plan(), recompute=names)
    with pytest.raises(
        InputError, match=r"plan\.recompute must name none, selective or full for 1"
    ):
        price(problem(chain()), asked)
