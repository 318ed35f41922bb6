"""The program and the baselines against the artifact's own runs, and the paper's cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nest_core.documents.errors import InputError
from nest_core.paper.published import (
    PAPER_CASES,
    Instance,
    StageOrder,
    evaluate,
    paper_cells,
    read_instance,
    solve,
)

Reference = list[dict[str, str]]
ReadReference = Callable[[Path], Reference]


def _solver_differences(instance: Instance, expected: dict[str, str]) -> list[str]:
    solution = solve(instance)
    if expected["feasible"] == "0":
        return [] if not solution.feasible and solution.reason else ["is not infeasible"]
    columns = ("data_parallel", "tensor_parallel", "stages", "devices_used")
    shape = (
        solution.data_parallel,
        solution.tensor_parallel,
        len(solution.stages),
        solution.devices_used,
    )
    found = []
    if solution.time_per_batch != pytest.approx(float(expected["time_per_batch"]), rel=1e-9):
        found.append(f"takes {solution.time_per_batch}, not {expected['time_per_batch']}")
    if shape != tuple(int(expected[column]) for column in columns):
        found.append(f"has another shape: {shape}")
    return found


def _baseline_differences(instance: Instance, expected: dict[str, str]) -> list[str]:
    columns = {
        ("Manual", StageOrder.AS_PUBLISHED): "manual_as_published",
        ("MCMC", StageOrder.AS_PUBLISHED): "mcmc_as_published",
        ("Phaze", StageOrder.AS_PUBLISHED): "phaze_as_published",
        ("Manual", StageOrder.RIGHT): "manual_correct_order",
    }
    found = []
    for baseline in instance.baselines:
        for order in StageOrder:
            cell = expected.get(columns.get((baseline.name, order), ""))
            if cell is None or (not cell and order is StageOrder.RIGHT):
                continue  # not run there
            evaluation = evaluate(instance, baseline, order)
            if not cell:
                if evaluation.feasible or not evaluation.reason:
                    found.append(f"{baseline.name} {order} is not infeasible")
            elif evaluation.time_per_batch != pytest.approx(float(cell), rel=1e-9):
                found.append(f"{baseline.name} {order}: {evaluation.time_per_batch}, not {cell}")
    return found


def _differences(folder: Path, reference: Reference) -> dict[str, list[str]]:
    differences = {}
    for expected in reference:
        instance = read_instance(folder / f"{expected['instance']}.json")
        found = _solver_differences(instance, expected) + _baseline_differences(instance, expected)
        if found:
            differences[expected["instance"]] = found
    return differences


def test_all_shared_instances_equal_the_reference(
    shared_data: Path, read_reference: ReadReference
) -> None:
    reference = read_reference(shared_data / "nest_reference_runs.csv")
    assert len(reference) == 55
    assert _differences(shared_data / "nest_instances", reference) == {}


def test_the_cited_instances_equal_the_reference(
    cited_data: Path, read_reference: ReadReference
) -> None:
    reference = read_reference(cited_data / "reference_runs.csv")
    assert {row["feasible"] for row in reference} == {"0", "1"}
    assert _differences(cited_data, reference) == {}


@pytest.mark.parametrize("name", PAPER_CASES)
def test_presets_expand_to_the_shared_instances(shared_data: Path, name: str) -> None:
    cells = paper_cells(name)
    assert cells
    for cell in cells:
        file = f"{cell.setup}_{cell.model}_d{cell.instance.devices}_mbs{cell.micro_batch}.json"
        assert cell.instance == read_instance(shared_data / "nest_instances" / file)


def test_presets_hold_every_shared_instance_of_the_figures(shared_data: Path) -> None:
    held = {
        f"{cell.setup}_{cell.model}_d{cell.instance.devices}_mbs{cell.micro_batch}"
        for name in PAPER_CASES
        for cell in paper_cells(name)
    }
    shared = {path.stem for path in (shared_data / "nest_instances").glob("*.json")}
    # BERT's Megatron graph on H100 has no manual placement and is in no figure.
    assert shared - held == {"h100_spineLeaf_bert_d128_mbs1", "h100_spineLeaf_bert_d1024_mbs1"}
    assert held <= shared


def test_a_cited_instance_equals_its_preset(cited_data: Path) -> None:
    for name, model in (("bertlarge-h100", "bertlarge"), ("llama2-h100", "llama2")):
        (cell,) = (cell for cell in paper_cells(name) if cell.instance.devices == 128)
        instance = read_instance(cited_data / f"h100_spineLeaf_{model}_d128_mbs1.json")
        assert cell.instance == instance


def test_another_model_is_refused() -> None:
    with pytest.raises(InputError, match="model must be one of bert"):
        paper_cells("opt")
