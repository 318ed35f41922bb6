"""The planner: search space, bounds, the dynamic program, the plan and its certificate.

An *outer point* says how many ranks there are and how they are numbered; the program then cuts the
chain of layers into stages. For tp 2, cp 1, dp 2, pp 2 in the order tp-dp-pp, on nodes of four
devices (``order`` reads from the fastest axis to the slowest)::

    device           0   1   2   3 | 4   5   6   7     what the fabric has; a rank sits on each
    block            ----node 0--- | ----node 1---     devices behind one egress
    tp group         a   a   b   b | c   c   d   d     work on one layer together
    replica          0   0   1   1 | 0   0   1   1     has a share of the batch, m micro-batches
    stage            0   0   0   0 | 1   1   1   1     ranks with the same layers, in all replicas
    sharers          x   y   x   y | z   w   z   w     dp * cp ranks with the same weights
    layers           0 ... i-1     | i ... L-1         cut at i: the program's choice

Within a node stay tp groups and sharers here; micro-batches pass between nodes. A plan takes
``sum(t_s) + (m - 1) max(t_s) + max(e_s)`` for stage loads ``t_s`` and what is exposed once per
iteration, ``e_s``.

From all points to the best plan, each step with what it excludes::

    space          rows: families of degrees, dp, pp, micro-batch     no valid division of ranks
      points       a row's states, schedules and orders, numbered     nothing; decoded one by one
    bounds         seconds that no plan of a point beats              bound above the best so far
    screening      stages relaxed to best-case communication          no cut fits, or none in time
    placed_bounds  traffic where the ranks really sit                 bound above the best so far
    solver         the program on the point's stage costs             all cuts but the best
    search         the order of all this, and the certificate

A bound may be wrong to one side only: too low costs time, too high would lose the optimum.
"""

from nest_core.planner.search import (
    Audit,
    Certificate,
    NamedPlans,
    Progress,
    SearchResult,
    audit,
    search,
)
from nest_core.planner.shadow import (
    HeadRoom,
    Neighbours,
    head_room_steps,
    shadow_prices,
    shared_frontier,
)
from nest_core.planner.space import ORDERS, SearchSpace

__all__ = [
    "ORDERS",
    "Audit",
    "Certificate",
    "HeadRoom",
    "NamedPlans",
    "Neighbours",
    "Progress",
    "SearchResult",
    "SearchSpace",
    "audit",
    "head_room_steps",
    "search",
    "shadow_prices",
    "shared_frontier",
]
