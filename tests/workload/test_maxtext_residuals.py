"""What a block keeps under JAX, against what MaxText's own blocks keep.

``tests/data/compiler/maxtext.csv``: bytes that a layer more adds to the saved residuals of MaxText
0.2.5's loss (jax 0.11.2), its layers scanned, one sequence of 1,536 tokens a device, in bf16, by
``remat_policy``; ``products`` is ``custom`` with the products that `export` names for experts
(again by ``make outside ARGS=maxtext``).
"""

import csv
from pathlib import Path

import pytest

from nest_core.workload import Strategy, chain
from nest_core.workload.model_files import load_model

FILE = Path(__file__).parents[1] / "data" / "compiler" / "maxtext.csv"
ROWS = [(*row.values(),) for row in csv.DictReader(FILE.read_text().splitlines())]
TOKENS = 1536
BY_NAMES = {"llama3-8b", "qwen2.5-7b", "qwen3-8b"}
"""Dense models, of which ``minimal`` names every product."""


def kept(name, recompute):
    *_, block, _ = chain(
        load_model(name, Path()), Strategy(checkpoint="jax", sequence=TOKENS)
    ).runs  # the last of the blocks is of experts where there are any
    return block[0].kept_bytes(recompute)


def rows(*policies):
    return [(name, float(size)) for name, policy, size in ROWS if policy in policies]


@pytest.mark.parametrize(("name", "size"), rows("full"))
def test_under_full_recomputation_a_layer_keeps_its_input(name, size):
    assert kept(name, "full") == size


@pytest.mark.parametrize(
    ("name", "size"), [row for row in rows("minimal") if row[0] in BY_NAMES] + rows("products")
)
def test_selective_is_what_maxtext_keeps_of_products(name, size):
    """MaxText keeps keys of latent attention joined with their rotated part, and no router's."""
    assert kept(name, "selective") == pytest.approx(size, rel=0.05 if "deepseek" in name else 0.005)


def test_no_policy_of_maxtext_keeps_what_derivatives_read():
    for name in BY_NAMES:
        most = max(float(size) for model, _, size in ROWS if model == name)
        assert kept(name, "none") > 2.5 * most


def test_minimal_names_only_half_of_the_experts_products():
    """The experts' up projection has a name that ``minimal`` leaves out."""
    products, minimal = dict(rows("products")), dict(rows("minimal"))
    for name in products:
        assert products[name] > 1.07 * minimal[name]
