"""Single operators: work and traffic by hand."""

from __future__ import annotations

import pytest

from nest_core.workload.operators import elementwise, flash_attention, matmul, unfused_attention


def test_a_projection_reads_two_matrices_and_writes_one():
    """(3, 5) x (5, 7) in 2 bytes: 2*3*5*7 FLOP, 2*(15 + 35 + 21) bytes, twice both backward."""
    found = matmul("p", 3, 5, 7, 2.0, kept_bytes=11.0)
    assert (found.flops, found.bytes) == (210, 142)
    assert (found.backward_flops, found.backward_bytes) == (420, 284)
    assert (found.unit, found.kept_bytes, found.core) == ("matmul", 11.0, False)


def test_experts_read_all_of_their_weights():
    """Rows go to one expert each, but every expert's weights come from memory."""
    one = matmul("p", 3, 5, 7, 2.0, kept_bytes=0.0)
    four = matmul("p", 3, 5, 7, 2.0, kept_bytes=0.0, weights=4 * 35)
    assert four.flops == one.flops
    assert four.bytes - one.bytes == 2 * 3 * 35


def test_an_elementwise_pass_moves_its_reads():
    found = elementwise("e", 10, 2.0, reads=3, kept_bytes=0.0)
    assert (found.flops, found.bytes, found.backward_bytes) == (0, 60, 80)
    assert (
        elementwise("e", 10, 2.0, reads=3, kept_bytes=0.0, backward_reads=5).backward_bytes == 100
    )


@pytest.mark.parametrize("causal", [True, False])
def test_fused_attention_moves_no_scores(causal):
    """b 2, s 6, a 4, kv 2, d 8: 4*2*36*4*8 FLOP, half with a mask; backward 2.5 times (Dao 2023).

    Queries, keys, values and the result: 12 tokens x (2*4 + 2*2) heads x 8 x 2 bytes.
    """
    found = flash_attention(2, 6, 4, 2, 8, 2.0, causal=causal)
    assert found.flops == 9216 / (2 if causal else 1)
    assert found.backward_flops == 2.5 * found.flops
    assert found.bytes == 2 * 12 * 12 * 8
    assert found.kept_bytes == 2 * 12 * (4 + 2 * 2) * 8 + 4 * 12 * 4


def test_unfused_attention_moves_and_keeps_its_scores():
    """b 2, s 6, a 4, d 8: 288 scores; 13 bytes each forward, 17 backward, 4 or 5 kept or 2."""
    inputs, core = unfused_attention(2, 6, 4, 4, 8, 2.0, dropout=True)
    operands = 2 * 12 * (2 * 4 + 2 * 4) * 8
    assert (core.flops, core.backward_flops) == (9216, 18432)
    assert core.bytes == operands + 13 * 288
    assert core.backward_bytes == 2 * operands + 17 * 288
    assert core.core
    assert core.kept_bytes == 5 * 288
    assert inputs.kept_bytes == 2 * 12 * (4 + 2 * 4) * 8
    assert (inputs.flops, inputs.bytes) == (0, 0)
    _, without = unfused_attention(2, 6, 4, 4, 8, 2.0, dropout=False)
    assert without.kept_bytes == 2 * 288
