"""Fields of a shut group of the form are not drawn, and what the form asks for is the same.

The page whose groups are all open is the reference: its widgets hold every value.
"""

from __future__ import annotations

import random

import pytest

pytestmark = pytest.mark.usefixtures("shut_folds")

SMALL = "llama2-7b-64-h100"
LEAF = "fabric.clos.oversubscription.0"
TIERS = "fabric.clos.tiers"
PRECISION = "workload.precision"
MEMORY = "accelerator.memory_GiB"
BATCH = "workload.global_batch_sequences"
FOLDS = ("fabric", "workload", "limits", "pins", *(f"fabric-{number}" for number in range(6)))
KINDS = ("selectbox", "multiselect", "slider", "number_input", "text_input", "checkbox", "button")
CHANGES = (
    ("slider", LEAF, (1.0, 2.0, 4.0)),
    ("number_input", BATCH, (64, 128, 192)),
    ("number_input", "workload.sequence_length_tokens", (2048, 4096)),
    ("number_input", MEMORY, (40.0, 64.0)),
    ("selectbox", PRECISION, ("bf16", "fp8")),
    ("selectbox", "workload.model", ("llama2-7b", "bert-large")),
    ("selectbox", "accelerator", ("h100-80gb", "a100-80gb", "v100-32gb")),
    ("selectbox", "fabric", ("h100-spine-leaf-64", "torus-16x16", "dgx-superpod-h100")),
    ("selectbox", "fabric.routing", ("ecmp", "ideal")),
    ("selectbox", "search.tp", ("any", "exactly 2", "up to 4")),
    ("selectbox", "scenario", (SMALL, "bert-large-64-v100")),
    ("number_input", TIERS, (2, 3)),
    *(("button", f"form-{name}", (None,)) for name in ("undo", "undo", "redo", "reset")),
)


def widgets(page):
    return {w.key: w for kind in KINDS for w in getattr(page, kind) if w.key}


def asked(page):
    """What the form asks for, whether it can be or not, and what of it is not as in the preset."""
    shown = [body for one in page.get("html") if "nest-changed" in (body := one.proto.body)]
    return dict(page.session_state["FormSteps"].history.present), shown


def turn(page, *, shut):
    """Open all groups, or shut them."""
    for name in FOLDS:
        page.session_state[f"fold-{name}"] = not shut
    return page.run()


def sentences(page):
    return [error.value for error in page.error]


def test_a_shut_group_draws_no_field_that_is_as_in_the_preset(plan_page):
    page = plan_page(scenario=SMALL)
    assert not page.exception
    assert not {key for key in widgets(page) if key.startswith(("workload.", "fabric."))}
    assert "search.tp" in widgets(page)  # pins stand open
    opened = turn(page, shut=False)
    assert {LEAF, TIERS, PRECISION, MEMORY, BATCH} <= widgets(opened).keys()


def test_a_preset_sets_the_fields_of_shut_groups(plan_page):
    """And leaves nothing in the session, all of which Streamlit reads for every widget."""
    page = plan_page(scenario=SMALL)
    widgets(page)["scenario"].set_value("bert-large-64-v100").run()
    now, shown = asked(page)
    assert (now[MEMORY], now[PRECISION]) == (32.0, "fp16")
    assert "Changed:" not in shown[0]
    assert not [key for key in (MEMORY, PRECISION, BATCH) if key in page.session_state]


def test_a_link_sets_a_field_of_a_shut_group(plan_page):
    address = {"fabric": "dgx-superpod-h100", TIERS: "3", "fabric.clos.oversubscription.1": "2.0"}
    page = plan_page(scenario=SMALL, **address)
    assert not page.error
    assert not page.warning
    assert widgets(page)[TIERS].value == 3
    assert page.query_params[TIERS] == "3"
    assert "oversubscription 1:1 and 2:1" in asked(page)[1][0]


def test_a_link_that_is_refused_is_said_until_its_field_is_set(plan_page):
    page = plan_page(scenario=SMALL, **{BATCH: "-5"})
    (said,) = page.warning
    assert "-5" in said.value
    assert page.run().warning[0].value == said.value
    widgets(turn(page, shut=False))[BATCH].set_value(192).run()
    assert not page.warning


def test_what_was_set_stays_when_its_group_is_shut(plan_page):
    page = turn(plan_page(scenario=SMALL), shut=False)
    widgets(page)[BATCH].set_value(192).run()
    before = asked(page)
    assert "192" in before[1][0]
    assert asked(turn(page, shut=True)) == before
    assert {key for key in widgets(page) if key.startswith("workload.")} == {BATCH}
    page.button(key="form-undo").click().run()
    assert "192" not in asked(page)[1][0]
    assert BATCH not in widgets(page)
    page.button(key="form-redo").click().run()
    assert asked(page) == before


def test_a_chip_changes_a_field_of_a_shut_group(plan_page):
    page = plan_page(scenario=SMALL)
    for name in ("batch", "devices", "model"):
        page.session_state[f"chip-{name}"] = True
    copy = widgets(page.run())[f"chip {BATCH}"]
    assert copy.value == 1024
    copy.set_value(128).run()
    assert asked(page)[0][BATCH] == 128
    widgets(page)["chip accelerator"].set_value("v100-32gb").run()
    now = asked(page)[0]
    assert not page.exception
    assert (now["accelerator"], now[MEMORY], now[PRECISION]) == ("v100-32gb", 32.0, "fp16")
    widgets(page)["chip workload.model"].set_value("bert-large").run()
    assert asked(page)[0]["workload.sequence_length_tokens"] == 512


def test_a_refusal_is_said_below_the_fold_that_hides_its_field(plan_page):
    page = plan_page(scenario=SMALL, fabric="h100-spine-leaf-1024", **{"fabric.clos.radix": "3"})
    (sentence,) = sentences(page)
    hidden = {caption.value for fold in page.expander for caption in fold.caption}
    (beside,) = [caption.value for caption in page.caption if caption.value.startswith(":red[")]
    assert beside == f":red[{sentence}]"
    assert beside not in hidden
    next(button for button in page.button if button.label.startswith("Set ")).click().run()
    assert not page.exception
    assert not sentences(page)


@pytest.mark.parametrize("seed", range(3))
def test_a_form_with_shut_groups_asks_for_what_an_open_one_does(plan_page, seed):
    """Changes, undo, redo, reset: a person opens a group, sets a field and shuts it again."""
    dice = random.Random(seed)
    opened, folded = (turn(plan_page(scenario=SMALL), shut=shut) for shut in (False, True))
    for _ in range(10):
        kind, key, values = dice.choice(CHANGES)
        value = dice.choice(values)
        if key not in widgets(opened) or (kind == "button" and widgets(opened)[key].disabled):
            continue
        for page in (opened, turn(folded, shut=False)):
            field = widgets(page)[key]
            (field.click() if kind == "button" else field.set_value(value)).run()
            assert not page.exception, (key, value)
        turn(folded, shut=True)
        assert asked(folded) == asked(opened), (key, value)
        assert sentences(folded) == sentences(opened)
