"""The NEST artifact's cost model and program, quirks and all.

For the paper's rows only, and always labelled ``published``: the studio's own physics is
elsewhere and shares nothing with it. Times are in an instance's own unit, sizes in bytes.

Examples
--------
>>> from nest_core.paper.published import paper_cells, solve
>>> smallest = paper_cells("llama2")[0]
>>> solution = solve(smallest.instance)
>>> solution.data_parallel, solution.tensor_parallel, len(solution.stages)
(8, 1, 8)
"""

from nest_core.paper.published.baselines import Evaluation, StageOrder, evaluate, partition
from nest_core.paper.published.instance import (
    PAPER_CASES,
    PAPER_MODELS,
    ArtifactBaseline,
    Instance,
    PaperCell,
    paper_cells,
    parse_instance,
    read_instance,
)
from nest_core.paper.published.solver import Solution, SolvedStage, solve

__all__ = [
    "PAPER_CASES",
    "PAPER_MODELS",
    "ArtifactBaseline",
    "Evaluation",
    "Instance",
    "PaperCell",
    "Solution",
    "SolvedStage",
    "StageOrder",
    "evaluate",
    "paper_cells",
    "parse_instance",
    "partition",
    "read_instance",
    "solve",
]
