"""Software stacks: what they change of an accelerator, which is the default, who may run which."""

from __future__ import annotations

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import StackFile
from nest_core.hardware import load_accelerator
from nest_core.hardware.posterior import PARAMETERS, adjusted, load_posterior
from nest_core.hardware.stacks import (
    FEWEST_ROWS,
    all_stacks,
    default_stack,
    known_of,
    load_stack,
    stacks_of,
    under,
    validated,
)
from nest_core.scenario import load_scenario

H100 = "llama2-7b-64-h100"
STACK = """
framework = "megatron"
year = 2026
release = "of one cluster"
families = ["h100"]
source = "its logs"
[overlap]
tp = []
pp = ["bf16"]
dp = ["bf16"]
[parameters]
gemm_efficiency = 0.5
"""


@pytest.mark.parametrize("name", preset_names("stacks"))
def test_every_shipped_stack_says_what_it_is(name):
    stack = load_stack(name)
    assert stack.name == name
    assert stack.source
    assert stack.families
    assert not stack.parameters  # figures of its own are a person's


@pytest.mark.parametrize("name", preset_names("accelerators"))
def test_the_default_is_the_newest_that_was_measured_enough(name):
    """Of those without stored scores, where there are any; a V100 has none."""
    family = load_accelerator(name).family.name
    default = default_stack(family)
    able = [stack for stack in stacks_of(family) if stack.model_parallel] or list(stacks_of(family))
    flash = [stack for stack in able if stack.attention == "flash"]
    assert default.attention == ("flash" if flash else "unfused")
    rivals = flash or able
    measured = [stack for stack in rivals if validated(family, stack)] or rivals
    assert default in measured
    assert default.year == max(stack.year for stack in measured)


def test_the_default_of_an_a100_is_software_of_today():
    """Until 2026-11 it was Megatron-LM of 2021: 135 GiB for a run that takes 64."""
    assert default_stack("a100").year >= 2025
    assert default_stack("volta").name == "megatron-lm-2021"


def test_a_stack_overlaps_in_its_precisions_alone():
    device = load_accelerator("h100-80gb")
    stack = load_stack("megatron-core-2026")
    wide, narrow = (under(device, stack, precision).family for precision in ("bf16", "fp8"))
    assert (wide.overlap_tp, narrow.overlap_tp) == (0.0, device.family.overlap_tp)
    assert wide.overlap_dp == narrow.overlap_dp == device.family.overlap_dp
    early = under(load_accelerator("a100-80gb"), load_stack("megatron-lm-2021"), "fp16").family
    assert (early.overlap_tp, early.overlap_pp, early.overlap_dp) == (0.0, 0.0, 0.0)


def test_factors_multiply_what_the_family_reaches():
    device = load_accelerator("h100-80gb")
    moved = adjusted(device, dict.fromkeys(PARAMETERS, 0.9))
    for name in PARAMETERS[:-1]:
        assert getattr(moved.family, name) == pytest.approx(0.9 * getattr(device.family, name))
    assert moved.network_reach == pytest.approx(0.9)
    assert adjusted(device, {"memory_efficiency": 9.0}).family.memory_efficiency == 1.0


def test_what_was_not_measured_is_known_less():
    """A stack that no effect was fitted for is the family's, with the prior spread of stacks."""
    device = load_accelerator("h100-80gb")
    place = PARAMETERS.index("gemm_efficiency")
    seen, unseen = (
        known_of(device, load_stack(name)) for name in ("megatron-core-2025", "megatron-core-2026")
    )
    assert seen.covariance[place, place] < unseen.covariance[place, place]
    spread = load_posterior().stack_sd["gemm_efficiency"]
    assert unseen.covariance[place, place] > spread**2


def test_a_family_without_measurements_is_known_least():
    stack = default_stack("uncalibrated")
    known, unknown = (load_posterior().of(name, "megatron", stack.name) for name in ("h100", "x"))
    place = PARAMETERS.index("memory_efficiency")
    assert unknown.centre[place] == 0.0
    assert unknown.covariance.trace() > known.covariance.trace()


def test_draws_have_the_spread_that_they_are_drawn_from():
    known = known_of(load_accelerator("a100-80gb"), load_stack("megatron-lm-2021"))
    drawn = known.draws(20_000, seed=1)
    assert drawn.mean(axis=0) == pytest.approx(known.centre, abs=0.01)
    sd = known.covariance.diagonal() ** 0.5
    assert drawn.std(axis=0) == pytest.approx(sd, rel=0.05, abs=1e-6)
    assert (known.draws(3, seed=1) == known.draws(3, seed=1)).all()


def test_a_scenario_runs_under_the_stack_that_it_names(tmp_path):
    usual = load_scenario(H100)
    assert usual.stack == default_stack("h100")
    other = load_scenario(H100, ['stack="megatron-core-2026"'])
    assert other.stack.name == "megatron-core-2026"
    assert other.accelerator.family.overlap_tp == 0.0 < usual.accelerator.family.overlap_tp
    path = tmp_path / "mine.toml"
    path.write_text(STACK)
    own = load_scenario(H100, [f'stack="{path}"'])
    assert own.accelerator.family.gemm_efficiency == 0.5
    early = load_scenario("gpt3-175b-512-a100", ['stack="megatron-lm-2021"'])
    assert early.attention == "unfused"


def test_pytorchs_checkpoints_run_less_of_a_block_again():
    """A stack's way to recompute reaches the tables that its scenarios are priced from."""
    sets = ['search.recompute=["none", "full"]', 'stack="torchtitan-2025"']
    jobs = [load_scenario(H100, sets[:n]) for n in (1, 2)]
    assert [job.strategy(1, False, 1, 1, 1, 1).checkpoint for job in jobs] == [
        "whole",
        "per_operator",
    ]
    tables = [job.table(1, False, 1, 1, 1, 1) for job in jobs]
    replay = [table.replay_s[-1, 1] / table.forward_s[1] for table in tables]
    assert replay[0] == pytest.approx(1.0)
    assert 0.6 < replay[1] < 0.85
    stack = load_stack("torchtitan-2025")
    assert stack.checkpointing("fp8") == "per_operator_narrow"
    assert load_stack("megatron-core-2025").checkpointing("fp8") == "whole"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('stack="nemo"', "stack must be a preset"),
        ('stack="megatron-lm-2021"', "stack must run on H100 SXM 80 GB, but is 'megatron-lm-2021'"),
        ("stack=7", "stack must be"),
    ],
)
def test_what_is_no_stack_is_refused(text, message):
    with pytest.raises(InputError) as caught:
        load_scenario(H100, [text])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("year = 2026", 'year = 2026\nlaunch = "fast"', "stack.launch"),
        ("year = 2026", "year = 1999", "stack.year"),
        ("year = 2026", 'year = 2026\ncolour = "red"', "stack.colour"),
        ("year = 2026", 'year = 2026\nattention = "linear"', "stack.attention"),
        ('["h100"]', "[]", "stack.families"),
        ("tp = []", 'tp = ["bf17"]', "stack.overlap.tp"),
        ("gemm_efficiency = 0.5", "wings = 2.0", "stack.parameters"),
    ],
)
def test_a_file_that_is_no_stack_says_why(tmp_path, old, new, field):
    path = tmp_path / "mine.toml"
    path.write_text(STACK.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_scenario(H100, [f'stack="{path}"'])
    assert str(caught.value).startswith(field)


def test_the_table_of_stacks_is_read_as_it_is_written():
    fields = set(StackFile.model_fields)
    assert {"framework", "families", "overlap", "parameters"} <= fields
    assert len({stack.name for stack in all_stacks()}) == len(preset_names("stacks"))
    assert FEWEST_ROWS == 8
