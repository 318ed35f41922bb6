"""Collectives of a program as XLA prints it: loops counted as often as they run."""

import pytest

from nest_core.calibration.compiler.collectives import collectives_of_program

PROGRAM = """
%sum (a: bf16[], b: bf16[]) -> bf16[] {{
  ROOT %add = bf16[] add(%a, %b)
}}

%condition (s: (s32[], bf16[8])) -> pred[] {{
  %constant.1 = s32[]{{:T(128)}} constant({trips})
  ROOT %lt = pred[] compare(%i, %constant.1), direction=LT
}}

%all-reduce-scatter.3 (x: bf16[64,4]) -> bf16[8,4] {{
  %all-reduce.9 = bf16[64,4]{{1,0}} all-reduce(%x), to_apply=%sum
  ROOT %slice = bf16[8,4]{{1,0}} dynamic-slice(%all-reduce.9, %i)
}}

%body (s: (s32[], bf16[8])) -> (s32[], bf16[8]) {{
  %gather-start = (bf16[2]{{0}}, bf16[16]{{0}}) all-gather-start(%p), dimensions={{0}}
  %gather-done = bf16[16]{{0}} all-gather-done(%gather-start)
  %fusion = bf16[8,4]{{1,0}} fusion(%q), kind=kCustom, calls=%all-reduce-scatter.3
}}

%ring_condition (r: (bf16[4], u32[])) -> pred[] {{
  %limit = u32[]{{:T(128)}} constant(8)
  %r = (bf16[4]{{0}}, u32[]{{:T(128)}}) parameter(0)
  %reached = u32[]{{:T(128)}} get-tuple-element(%r), index=1
  ROOT %less = pred[]{{:T(512)}} compare(%reached, %limit), direction=LT
}}

%ring (r: (bf16[4], u32[])) -> (bf16[4], u32[]) {{
  %other = u32[]{{:T(128)}} constant(5)
  %step = u32[]{{:T(128)}} constant({step})
  %turn = u32[]{{:T(128)}} get-tuple-element(%r), index=1
  %next = u32[]{{:T(128)}} add(%turn, %step), metadata={{op_name="add"}}
  %kept = u32[]{{:T(128)}} copy(%next)
  %permute-start = (bf16[4]{{0}}, bf16[4]{{0}}, u32[], u32[]) collective-permute-start(%p)
  ROOT %rest = (bf16[4]{{0:T(8,128)}}, /*index=1*/u32[]{{:T(128)}}) tuple(%p, /*index=1*/%kept)
}}

ENTRY %main (x: bf16[8]) -> bf16[8] {{
  %around = (bf16[4], u32[]) while(%u), condition=%ring_condition, body=%ring
  %while = (s32[], bf16[8]) while(%t), condition=%condition, body=%body
  %all-reduce = (f32[3]{{0}}, f32[5]{{0}}) all-reduce(%a, %b), to_apply=%sum
  %scatter = f32[4]{{0}} reduce-scatter(%c), replica_groups=mesh['x'=2,'y'=3] {{'x','y'}}, d=0
}}
"""


@pytest.mark.parametrize(("trips", "step", "rounds"), [(1, 1, 8), (7, 2, 4), (7, 3, 3)])
def test_a_loop_counts_as_often_as_it_runs(trips, step, rounds):
    """XLA's rings count in unsigned numbers and, where they go both ways, by two."""
    assert collectives_of_program(PROGRAM.format(trips=trips, step=step)) == {
        "all_gather": (trips, trips * 16 * 2),
        "reduce_scatter": (trips + 1, trips * 64 * 4 * 2 + 4 * 4 * 6),
        "all_reduce": (1, (3 + 5) * 4),
        "collective_permute": (rounds, rounds * 4 * 2),
    }


def test_a_program_that_was_refused_sends_nothing():
    assert collectives_of_program("") == {}
