"""Settings of plans that make no sense are refused in one sentence, through every door alike."""

from __future__ import annotations

import math
from typing import Any

import pytest

import nest_core as nest
from nest_core.documents.errors import InputError
from nest_core.documents.overrides import toml_value
from nest_studio.cli import run

DENSE, EXPERTS = "llama2-7b-64-h100", "mixtral-8x7b-256-tpuv4like"

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (DENSE, {"search.etp": 2}, "search.etp must be 1 for a dense model"),
    (EXPERTS, {"search.etp": 3}, "search.etp must divide what tp may be, but is 3"),
    (EXPERTS, {"search.etp": [1, "tp"]}, "search.etp[1] must be a whole number"),
    (DENSE, {"search.zero_group": 0}, "search.zero_group must be at least 1"),
    (
        DENSE,
        {"search.zero_group": "node"},
        "search.zero_group must be 'all', a whole number or a list",
    ),
    (
        DENSE,
        {"search.zero_group": 8, "search.zero": 0},
        "search.zero_group must hold all where search.zero is 0, which shards nothing, but is 8",
    ),
    (DENSE, {"search.pad_batch": 1}, "search.pad_batch must be true or false"),
    (
        DENSE,
        {"search.recompute": {"modules": ["rope"]}},
        "search.recompute must name modules that can be recomputed, but is 'rope'",
    ),
    (
        DENSE,
        {"search.recompute": {"modules": ["mlp", "mlp"]}},
        "search.recompute must name each module once",
    ),
    (
        DENSE,
        {"search.recompute": {"modules": ["moe_act"]}},
        "search.recompute must name modules that Llama 2 7B has, but is 'moe_act'",
    ),
    (DENSE, {"search.recompute": [{"uniform": 2, "block": 2}]}, "search.recompute must be none, "),
    (DENSE, {"search.recompute": {"block": -1}}, "search.recompute.block must be at least 1"),
    (DENSE, {"search.offload": "optimizer"}, "search.offload must be 'none', a table or a list"),
    (DENSE, {"search.offload": {"weights": 1.0}}, "search.offload.weights is not a known key"),
    (
        DENSE,
        {"search.offload": [{"optimizer": 1.5}]},
        "search.offload[0].optimizer must be at most 1.0, but is 1.5",
    ),
    (DENSE, {"search.schedule": ["1f1b", "zb_3p"]}, "search.schedule[1] must be '1f1b', "),
    (
        DENSE,
        {"search.schedule": "zb_h1", "search.interleave": 2},
        "search.schedule must go with interleave = [2], but is ['zb_h1']",
    ),
    (DENSE, {"search.seating": [0, 0, 1]}, "search.seating must be 'any' or 'consecutive'"),
    (DENSE, {"search.seating": "7 per node"}, "search.seating must be 'any' or 'consecutive'"),
    (DENSE, {"search.time_limit_s": 0}, "search.time_limit_s must be at least 1e-09, but is 0"),
    (DENSE, {"search.time_limit_s": -1}, "search.time_limit_s must be at least 1e-09"),
    (DENSE, {"search.time_limit_s": math.nan}, "search.time_limit_s must be a finite number"),
    (DENSE, {"search.time_limit_s": "soon"}, "search.time_limit_s must be a number, but is 'soon'"),
    (DENSE, {"search.device_order": "8 per node"}, "search.device_order must be 'natural', "),
    (
        DENSE,
        {"search.device_order": "snake"},
        "search.device_order must be natural, rail or rack unless the fabric is a torus",
    ),
    (DENSE, {"search.layouts": ["even", "uneven"]}, "search.layouts must be 'even' or 'uneven'"),
    (
        DENSE,
        {"search.layouts": "uneven", "search.stage_strategies": "mixed"},
        "search.layouts must be even where stages are mixed",
    ),
    (EXPERTS, {"workload.dispatch": "deepep"}, "workload.dispatch must be 'all_to_all', "),
    (EXPERTS, {"workload.expert_overlap": "true"}, "workload.expert_overlap must be true or false"),
    (DENSE, {"workload.collectives": "tree"}, "workload.collectives must be 'library', 'ring', "),
    (DENSE, {"baselines.space": "papers"}, "baselines.space must be 'own' or 'paper'"),
]


def from_file(name: str, changes: dict[str, Any], folder: Any) -> object:
    document = {**nest.load(name).document, "override": changes}
    path = folder / "mine.toml"
    head = [f"{key} = {toml_value(value)}" for key, value in document.items()]
    path.write_text("\n".join(head))
    return nest.load(path)


@pytest.mark.parametrize(
    ("name", "changes", "sentence"), REFUSED, ids=[text for _, _, text in REFUSED]
)
def test_a_setting_that_makes_no_sense_is_refused_alike_by_files_the_command_and_the_api(
    name, changes, sentence, tmp_path, capsys
):
    told = []
    for ask in (
        lambda: from_file(name, changes, tmp_path),
        lambda: nest.load(name).with_(**changes),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        told.append(str(caught.value))
    settings = [f"--set={key}={toml_value(value)}" for key, value in changes.items()]
    assert run(["plan", name, *settings]) == 2
    told.append(capsys.readouterr().err.rstrip("\n"))
    assert told[0].startswith(sentence)
    assert told == told[:1] * 3
    rule, _, remedy = told[0].partition(": ")
    assert ", but is " in rule
    assert remedy.endswith(".")
    assert "\n" not in told[0]
